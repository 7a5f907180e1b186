#!/bin/sh
# Sets up a virtual environment and scores 20 English-German pairs with COMET's own command and the small model.
#
#   sh scripts/first_run.sh [VENV]
#
# VENV is a folder, by default .venv. The interpreter is PYTHON, else python3, else another one on the PATH or under pyenv: Python 3.10
# to 3.12 with all that COMET requires, 3.13 and 3.14 with COMET beside numpy 2 and transformers 5, against its requirements.
# The first run installs COMET, torch and transformers, fetches the model's embeddings once (92 MB) and scores. Most of its time goes
# for downloads. A second run takes the candidates from the store, in seconds. Progress goes to standard error.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/setting_up.sh"
help_if_asked "$@"
venv=${1:-$root/.venv}

say() {
    echo "first_run.sh: $1" >&2
}

# in_venv ARGUMENTS...: pip install, with its output in the log and a line on standard error every ten seconds.
in_venv() {
    "$venv/bin/python" -m pip install --progress-bar off --disable-pip-version-check "$@" >>"$log" 2>&1 &
    pip=$!
    trap 'kill "$pip" 2>/dev/null; exit 130' INT TERM
    while kill -0 "$pip" 2>/dev/null; do
        sleep 1
        seconds=$(($(date +%s) - started))
        [ $((seconds % 10)) != 0 ] || say "  $seconds s: $(grep -E '^ *(Collecting|Downloading|Building|Installing)' "$log" |
            tail -n 1 | sed 's/collected packages.*/them/' | cut -c 1-90)"
    done
    wait "$pip" || {
        tail -n 20 "$log" >&2
        say "the installation failed; all of its output is in $log"
        exit 1
    }
    trap - INT TERM
}

if ! [ -x "$venv/bin/comet-score" ] || ! [ -x "$venv/bin/mbr-esd" ]; then
    python=$(a_python 10 14)
    say "1 of 3: installing COMET, torch and transformers into $venv: about 70 packages, 1.5 GB on disk (more where pip takes"
    say "torch with CUDA); a minute with a package index near by, else as long as the downloads take"
    environment "$venv" "$python"
    log=$venv/install.log started=$(date +%s)
    if fits "$venv/bin/python" 10 12; then
        in_venv --constraint "$root/scripts/constraints.txt" -e "$root[comet,transformers]"
    else
        in_venv --constraint "$root/scripts/constraints-new.txt" -e "$root[comet-new,transformers]"
        in_venv --constraint "$root/scripts/constraints-new.txt" --no-deps unbabel-comet
    fi
fi

say "2 of 3: scoring 20 translations with comet-score: loads COMET (10 s or more), and fetches 92 MB the first time"
"$venv/bin/comet-score" --sources "$root/scripts/data/first-run.en" --translations "$root/scripts/data/first-run.de" \
    --model mbr-esd-small --gpus 0 --to_json "$venv/first-run.json"

say "3 of 3: the errors that it found"
"$venv/bin/python" - "$venv/first-run.json" <<'PYTHON'
import json
import sys

[segments] = json.load(open(sys.argv[1], encoding="utf-8")).values()
for number, segment in enumerate(segments, 1):
    print(f"\n{number:2}  {segment['COMET']:.2f}  {segment['src']}\n          {segment['mt']}")
    for error in segment.get("errors", ()):
        print(f"            {error['severity']} ({error['confidence']:.2f}): {error['text']}")
    for error in segment.get("omissions", ()):
        print(f"            left out, {error['severity']} ({error['confidence']:.2f}): {error['text']}")
PYTHON
say "this model finds gross faults and little else (docs/small-model.md); 'mbr-esd models' lists stronger ones, for servers and GPUs"
