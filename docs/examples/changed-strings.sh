# Checks the changed strings, and annotates their errors. Every line of FILES is a set of files, as arguments of `mbr-esd score`,
# with wildcards, which must match; BASE is the revision to compare with, MODEL the model, GATE the options that can make the run fail.
set -euo pipefail
shopt -s globstar failglob
base=$(git rev-parse --quiet --verify "$BASE^{commit}") || {
    git fetch --quiet --depth=1 origin "$BASE"
    base=$(git rev-parse FETCH_HEAD)
}
mkdir -p mbr-esd
status=0 number=0
while read -r line; do
    files=($line)
    [ ${#files[@]} -gt 0 ] || continue
    number=$((number + 1))
    mbr-esd score "${files[@]}" --changed-from "git:$base" --model "$MODEL" $GATE --quiet --only_system \
        --sarif "mbr-esd/$number.sarif" --summary "mbr-esd/$number.md" < /dev/null || status=$?
    cat "mbr-esd/$number.md" >> "${GITHUB_STEP_SUMMARY:-/dev/null}" || true
done <<< "$FILES"
exit $status
