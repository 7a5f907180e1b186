#!/usr/bin/env bash
# llama.cpp's server and the demo model as GGUF, for the tests of dialect=llamacpp and for trying it.
#
#   scripts/setup_llamacpp.sh FOLDER [PYTHON]
#
# Makes the virtual environment FOLDER with the package xllamacpp (a wheel with llama.cpp's own HTTP server; nothing is
# compiled), and FOLDER/demo.gguf. PYTHON is that of an environment with mbr-esd-metric[transformers] (default: python3).
# Start the server with FOLDER/serve PORT; the tests find it by MBR_ESD_LLAMACPP=FOLDER. A second run takes a second.
set -euo pipefail

scripts=$(cd "$(dirname "$0")" && pwd)
. "$scripts/setting_up.sh"
usage $# 2 "FOLDER [PYTHON]"
folder=$1
python=${2:-python3}
version=2026.10.11549

unless_ready "$folder" "$0" "$scripts/demo_gguf.py"
environment "$folder" "$python"
install "$folder" --no-deps "xllamacpp==$version"
"$python" "$scripts/demo_gguf.py" "$folder/demo.gguf" | tail -n 1 > "$folder/name"

cat > "$folder/serve.py" <<'PYTHON'
"""serve PORT [NAME]: llama.cpp's server with the demo model on 127.0.0.1, for 16 sequences at once."""
import sys
import time
from pathlib import Path

import xllamacpp

folder = Path(__file__).parent
params = xllamacpp.CommonParams()
params.model.path = str(folder / "demo.gguf")
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.model_alias = {sys.argv[2] if len(sys.argv) > 2 else (folder / "name").read_text().strip()}
params.n_ctx, params.n_parallel, params.kv_unified = 32768, 16, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.use_jinja = True
server = xllamacpp.Server(params)
print(f"export MBR_ESD_SERVER={server.listening_address}/v1", flush=True)
while True:
    time.sleep(3600)
PYTHON
printf '#!/bin/sh\nexec "$(dirname "$0")/bin/python" "$(dirname "$0")/serve.py" "$@"\n' > "$folder/serve"
chmod +x "$folder/serve"
ready "start the server with $folder/serve 8080"
