#!/usr/bin/env bash
# Sets up one of the two test environments, or completes it; a second run takes a moment.
#
#   scripts/environment.sh comet|train
#
# COMET and today's training libraries cannot share one: "comet" has transformers 4 and numpy 1, "train" transformers 5
# and numpy 2.
#   MBR_ESD_VENVS   folder of the environments (default .venvs)
set -euo pipefail
cd "$(dirname "$0")/.."
scripts=$PWD/scripts
. "$scripts/setting_up.sh"

case "${1:-}" in
comet) extras=comet,transformers,server,report,dev constraints=scripts/constraints.txt ;;
train) extras=transformers,server,ray,train,report,dev constraints=scripts/constraints-train.txt ;;
*) usage 0 1 "comet|train" ;;
esac
python=${PYTHON:-python3}
folder="${MBR_ESD_VENVS:-.venvs}/$1"
within "$python" 3.11 3.12 "the tested versions are for Python 3.11 and 3.12"
unless_ready "$folder" "$scripts/environment.sh" setup.cfg pyproject.toml "$constraints"
environment "$folder" "$python"
install "$folder" --upgrade "setuptools>=78.1.1,<81" wheel
install "$folder" --constraint "$constraints" --editable ".[$extras]"
ready
