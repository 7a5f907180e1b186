#!/usr/bin/env bash
# Sets up `transformers serve` with the demo model, to test or try dialect=transformers.
#
#   scripts/setup_transformers_serve.sh FOLDER
#
# Creates the virtual environment FOLDER (transformers 5 on the CPU, 1.5 GB) with the demo model and its merged adapter. Start
# the server with FOLDER/serve PORT; set MBR_ESD_TRANSFORMERS_SERVE=FOLDER/serve for the tests. To use an existing environment
# with transformers 5, in which only missing packages are installed:
#
#   PYTHON=.venvs/new/bin/python scripts/setup_transformers_serve.sh FOLDER
set -euo pipefail

scripts=$(cd "$(dirname "$0")" && pwd)
. "$scripts/setting_up.sh"
help_if_asked "$@"
usage $# 1 FOLDER
folder=$1
python=${PYTHON:-$folder/bin/python}
constraints=$scripts/constraints-new.txt

mkdir -p "$folder"
[ -x "$python" ] || environment "$folder" python3
into=$(dirname "$(dirname "$python")")
install "$into" --constraint "$constraints" fastapi uvicorn rich openai
"$python" -c 'import mbr_esd_metric, peft, transformers; assert int(transformers.__version__.split(".")[0]) >= 5' 2>/dev/null ||
    install "$into" --constraint "$constraints" --editable "$scripts/..[transformers]"

# The server uses the path of the model as its name, so the folder has the name that clients use.
name=$("$python" - "$folder" <<'PYTHON'
import shutil
import sys
from pathlib import Path

from mbr_esd_metric.generation.embedded import with_weights
from mbr_esd_metric.generation.pretrained import merged_folder, model_name
from mbr_esd_metric.metric.cards import load_card

options = load_card("mbr-esd-demo").engine_options
name = model_name(options)
shutil.copytree(merged_folder(with_weights(options)), Path(sys.argv[1], name), dirs_exist_ok=True)
print(name)
PYTHON
)

cat > "$folder/serve" <<EOF
#!/bin/sh
# serve PORT: serves one request at a time on 127.0.0.1
cd "$(cd "$folder" && pwd)" && exec "$("$python" -c 'import sys; print(sys.executable)')" -m transformers.cli.transformers serve "$name" \\
    --host 127.0.0.1 --port "\$1" --device cpu --dtype bfloat16
EOF
chmod +x "$folder/serve"
echo "$folder is ready: start the server with $folder/serve 8000"
