#!/bin/sh
# Sets up a virtual environment and scores 20 English-German pairs with the small model.
#
#   sh scripts/first_run.sh [VENV]
#
# VENV is a folder, by default .venv. The interpreter (Python 3.10 to 3.14) is PYTHON, otherwise python3, otherwise another one
# on the PATH or under pyenv. The first run installs the package with the dependencies of the small model, and downloads the
# model's embeddings (92 MB). Further runs take seconds. Progress is printed to standard error.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/scripts/setting_up.sh"
help_if_asked "$@"
venv=${1:-$root/.venv}

say() {
    echo "first_run.sh: $1" >&2
}

# in_venv ARGUMENTS...: runs pip install, with its output in the log, and a line on standard error every ten seconds.
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

if ! [ -x "$venv/bin/mbr-esd" ]; then
    python=$(a_python 10 14)
    say "1 of 3: installing into $venv: about 35 packages, 350 MB; half a minute with a package index near by"
    environment "$venv" "$python"
    log=$venv/install.log started=$(date +%s)
    constraints=$root/scripts/constraints.txt
    fits "$venv/bin/python" 10 12 || constraints=$root/scripts/constraints-new.txt
    in_venv --no-compile --constraint "$constraints" -e "$root[small]"
fi

say "2 of 3: scoring 20 translations; fetches 92 MB the first time"
"$venv/bin/mbr-esd" score -s "$root/scripts/data/first-run.en" -t "$root/scripts/data/first-run.de" \
    --model mbr-esd-small --to_json "$venv/first-run.json"

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
say "this model detects gross errors and few small ones (docs/small-model.md); 'mbr-esd models' lists stronger ones"
say "for comet-score, which needs COMET and torch (1.3 GB more), see docs/comet.md"
