#!/bin/sh
# Sets up a virtual environment and scores 20 English-German pairs with COMET's own command and the small model.
#
#   sh scripts/first_run.sh [VENV]        VENV is a folder, by default .venv; PYTHON=python3.11 chooses the interpreter
#
# The first run installs COMET, torch and transformers, fetches the model once (240 MB) and samples. Most of its time goes
# for downloads. A second run takes the candidates from the store, in seconds. Progress goes to standard error.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/setting_up.sh"
venv=${1:-$root/.venv}
python=${PYTHON:-python3}

say() {
    echo "first_run.sh: $1" >&2
}

if ! [ -x "$venv/bin/comet-score" ] || ! [ -x "$venv/bin/mbr-esd" ]; then
    within "$python" 3.10 3.12 "COMET needs numpy<2, and so Python 3.10 to 3.12"
    say "1 of 3: installing COMET, torch and transformers into $venv: about 70 packages, 1.5 GB on disk (more where pip takes"
    say "torch with CUDA); a minute with a package index near by, else as long as the downloads take"
    environment "$venv" "$python"
    log=$venv/install.log
    "$venv/bin/python" -m pip install --progress-bar off --constraint "$root/scripts/constraints.txt" \
        -e "$root[comet,transformers]" >"$log" 2>&1 &
    pip=$!
    trap 'kill "$pip" 2>/dev/null; exit 130' INT TERM
    started=$(date +%s)
    while kill -0 "$pip" 2>/dev/null; do
        sleep 10
        say "  $(($(date +%s) - started)) s: $(grep -E '^ *(Collecting|Downloading|Building|Installing)' "$log" | tail -n 1 | cut -c 1-90)"
    done
    wait "$pip" || {
        tail -n 20 "$log" >&2
        say "the installation failed; all of its output is in $log"
        exit 1
    }
    trap - INT TERM
fi

say "2 of 3: scoring 20 translations with comet-score: loads COMET (10 s or more), fetches the model the first time (240 MB, under the"
say "Gemma Terms of Use), then samples"
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
PYTHON
say "this model is a weak judge (docs/small-model.md says how weak); 'mbr-esd models' lists stronger ones, for servers and GPUs"
