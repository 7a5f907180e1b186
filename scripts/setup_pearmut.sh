#!/bin/sh
# Sets up an environment with the annotation tool Pearmut. Usage: scripts/setup_pearmut.sh FOLDER [PYTHON 3.12 or later]
set -eu
. "$(dirname "$0")/setting_up.sh"
help_if_asked "$@"
usage $# 2 "FOLDER [PYTHON 3.12 or later]"
folder="$1"
python="${2:-}"
if [ -z "$python" ]; then
  for one in python3.12 python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[23].*/bin/python3 python3; do
    if "$one" -c "import sys; sys.exit(sys.version_info < (3, 12))" 2>/dev/null; then python="$one" && break; fi
  done
fi
[ -n "$python" ] || { echo "Pearmut needs Python 3.12 or later" >&2; exit 1; }
"$python" -m venv "$folder"
"$folder/bin/pip" install --quiet pearmut==1.1.6
echo "export MBR_ESD_PEARMUT=$folder/bin/pearmut"
