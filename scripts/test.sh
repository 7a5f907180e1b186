#!/usr/bin/env bash
# Sets up a test environment and runs the tests. Usage: sh scripts/test.sh [--all [pinned|new]] [pytest arguments]
#
# Without --all: one environment, without tests that need real models, training, vLLM or a browser; about five minutes.
# With --all: both environments of scripts/environment.sh, or the one with a suitable Python; linters, types and all tests.
# With --all and the name of an environment: its part only.
#   PYTHON                the interpreter; by default python3, or others on the PATH or under pyenv
#   MBR_ESD_VENVS         the folder of the environments (default .venvs)
#   MBR_ESD_SERVE         if set, --all also tests `transformers serve`
#   MBR_ESD_LLAMACPP      the folder created by scripts/setup_llamacpp.sh
#   MBR_ESD_DATA          the folder of the human annotations (downloaded by scripts/human_data.py; default ../shared/data)
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # also as `sh scripts/test.sh`
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setting_up.sh
help_if_asked "$@"
venvs="${MBR_ESD_VENVS:-.venvs}"
quick="not model and not slow and not vllm and not browser" all="" named=""
if [ "${1:-}" = --all ]; then
  all=1
  shift
  case "${1:-}" in pinned | new) named=$1 && shift ;; esac
else
  echo "about five minutes, half of it to set up an environment in $venvs once; scripts/test.sh --all takes about half an hour"
fi

worlds=()
for world in ${named:-pinned new}; do
  [ -n "$all" ] || [ ${#worlds[@]} = 0 ] || continue
  echo "== setting up ($world)"
  if scripts/environment.sh "$world"; then
    worlds+=("$world")
  elif [ $? != 3 ]; then
    exit 1
  fi
done
[ ${#worlds[@]} -gt 0 ] || exit 3

# Two workers with one thread each are faster than one with two. The tests of a file run in one worker to share fixtures, and
# the slowest files, which tests/conftest.py sorts first, are started first.
export OMP_NUM_THREADS=1
workers=(--numprocesses 2 --dist loadfile --no-loadscope-reorder)
if [ -z "$all" ]; then
  echo "== tests ($(basename "${worlds[0]}"))"
  "$venvs/${worlds[0]}/bin/python" -m pytest "${workers[@]}" -r fE -m "$quick" "$@"
  echo "not included: real models, training, vLLM, the browser, linters and types, the second environment; use scripts/test.sh --all"
  exit
fi

once=() trained=()
if [ -n "$named" ] || [ ${#worlds[@]} = 2 ]; then
  # What numpy, transformers and COMET's other parts can change runs in both: numerics, models in process, COMET. The rest runs
  # in one: files, formats, tables, the viewer, the command line, types, the client of servers and documents with
  # the older Python, training and vLLM with the newer one.
  once=(adapters/{documents,pearmut,wmt} adapters/test_{documents,esa_files,mqm_tsv,qe_tsv,wmt26_esa}.py
    adapters/comet/test_model_class_demo.py cli docs/test_{ci,docs,extend}.py files prompting report scoring scripts
    generation/server/test_dialects.py generation/engines/test_{batch,server}.py metric/test_estimate.py
    test_{api,cases,layers,patterns,plugins}.py)
  trained=(distill scripts/paper/test_miniature.py generation/engines/test_vllm.py)
else
  echo "all tests run in the environment \"${worlds[0]}\""
fi
for world in "${worlds[@]}"; do
  chosen=("${workers[@]}" --durations 12)
  if [ "$world" = new ] && [ ${#once[@]} != 0 ]; then
    chosen+=("${once[@]/#/--ignore=tests/}")
  else
    [ ${#trained[@]} = 0 ] || chosen+=("${trained[@]/#/--ignore=tests/}")
    echo "== ruff, mypy"
    "$venvs/$world/bin/ruff" format --check --quiet .
    "$venvs/$world/bin/ruff" check .
    "$venvs/$world/bin/mypy"
  fi
  if [ -n "${MBR_ESD_SERVE:-}" ] && [ "$world" = new ]; then
    echo "== setting up (transformers serve)"
    PYTHON="$venvs/new/bin/python" scripts/setup_transformers_serve.sh "$venvs/serve"
    MBR_ESD_TRANSFORMERS_SERVE="$(cd "$venvs" && pwd)/serve/serve"
    export MBR_ESD_TRANSFORMERS_SERVE
  fi
  echo "== tests ($world)"
  "$venvs/$world/bin/python" -m pytest "${chosen[@]}" "$@"
done
