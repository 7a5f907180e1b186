#!/bin/sh
# Sets up a virtual environment and scores 20 English-German pairs with COMET's own command and the embedded model.
#
#   sh scripts/first_run.sh [VENV]        VENV is a folder, by default .venv; PYTHON=python3.11 chooses the interpreter
#
# The first run installs, fetches the model once and samples. A second run takes the candidates from the store.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
venv=${1:-$root/.venv}
python=${PYTHON:-python3}

if ! [ -x "$venv/bin/comet-score" ] || ! [ -x "$venv/bin/mbr-esd" ]; then
    "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' || {
        echo "first_run.sh: COMET needs numpy<2, and so Python 3.10 to 3.12; name one: PYTHON=python3.12 sh $0" >&2
        exit 1
    }
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --constraint "$root/scripts/constraints.txt" -e "$root[comet,transformers]"
fi

# Where another process has one of the cores, threads that spin while they wait make this ten times slower.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
"$venv/bin/comet-score" --sources "$root/scripts/data/first-run.en" --translations "$root/scripts/data/first-run.de" \
    --model 'mbr-esd-demo?lp=en-de' --gpus 0 --to_json "$venv/first-run.json"

"$venv/bin/python" - "$venv/first-run.json" <<'PYTHON'
import json
import sys

[segments] = json.load(open(sys.argv[1], encoding="utf-8")).values()
for number, segment in enumerate(segments):
    print(f"\n{number:2}  {segment['COMET']:.2f}  {segment['src']}\n          {segment['mt']}")
    for error in segment.get("errors", ()):
        print(f"            {error['severity']} {error['category']} ({error['confidence']:.2f}): {error['text']}")
PYTHON
