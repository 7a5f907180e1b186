#!/usr/bin/env bash
# Builds the sdist, the wheel and the documentation site, and checks them. Usage: scripts/build.sh OUT
#
# Writes OUT/dist and OUT/site. The wheel is installed with only the package's dependencies, must list its models and decide,
# and must contain all files of the default model. The unpacked sdist must pass the fast tests. The site must build without
# warnings.
#   MBR_ESD_VENVS   the folder of the environments (default .venvs)
set -euo pipefail
. "$(dirname "$0")/setting_up.sh"
help_if_asked "$@"
cd "$(dirname "$0")/.."
mkdir -p "$1"
out="$(cd "$1" && pwd)"
venvs="${MBR_ESD_VENVS:-.venvs}"
python="${PYTHON:-python3}"
mkdir -p "$venvs"
venvs="$(cd "$venvs" && pwd)"

echo "== sdist and wheel"
environment "$venvs/docs" "$python"
install "$venvs/docs" --constraint scripts/constraints-docs.txt --editable ".[docs,release]"
rm -rf "$out/dist" "$out/site" "$out/unpacked" "$out/bare"
# Build from a copy with absolute links in the README, which the package index needs.
address="$(sed -n 's/^url = //p' setup.cfg)"
rm -rf "$out/tree" && mkdir "$out/tree"
git ls-files -z | tar -c --null --files-from=- | tar -x -C "$out/tree"
sed -i -E "s#\]\((docs/images/[^)]+)\)#](${address/github.com/raw.githubusercontent.com}/main/\1)#; s#\]\(((docs/|[A-Z]+\.)[^):]*)\)#]($address/blob/main/\1)#g" \
  "$out/tree/README.md"
"$venvs/docs/bin/python" -m build --outdir "$out/dist" "$out/tree" >"$out/build.log" 2>&1 || {
  tail -n 20 "$out/build.log"
  exit 1
}
"$venvs/docs/bin/twine" check --strict "$out"/dist/*
[ "$(cat "$out"/dist/*.whl | wc -c)" -lt 25000000 ] || { echo "the wheel is larger than 25 MB" >&2 && exit 1; }

echo "== the wheel"
environment "$out/bare" "$python"
install "$out/bare" "$out"/dist/*.whl
(cd "$out" && bare/bin/mbr-esd models >/dev/null)
(cd "$out" && bare/bin/mbr-esd decide "$OLDPWD/docs/examples/candidates.jsonl" -o decided.jsonl --quiet)
(cd "$out" && bare/bin/python -) <<'PYTHON'
from importlib.resources import files

package = files("mbr_esd_metric")
small = ("hparams.yaml", "config.json", "model.safetensors")
names = ["py.typed", "README.md", "distill/recipes/dpo.yaml", "prompting/prompts/json/v1.txt", *(f"small/{file}" for file in small)]
for name in names:
    assert (package / name).is_file(), f"the wheel lacks {name}"
assert not (package / "demo").is_dir(), "the model of the tests is in the wheel"
PYTHON

echo "== the sdist's tests"
mkdir "$out/unpacked"
tar -xzf "$out"/dist/*.tar.gz -C "$out/unpacked" --strip-components 1
install "$out/bare" pytest hypothesis
(cd "$out/unpacked" && OMP_NUM_THREADS=1 "$out/bare/bin/python" -m pytest -q \
  tests/core/test_similarities.py tests/prompting tests/files/test_records.py)

echo "== site"
# Without --quiet, which would also hide the warnings of --strict.
NO_MKDOCS_2_WARNING=1 "$venvs/docs/bin/mkdocs" build --strict --site-dir "$out/site" >"$out/site.log" 2>&1 || {
  grep -vE "^INFO" "$out/site.log"
  exit 1
}
ls "$out"/dist
