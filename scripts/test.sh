#!/usr/bin/env bash
# Sets up the test environments and runs linters and tests. Usage: scripts/test.sh [pytest arguments]
#
# The environments are those of scripts/environment.sh. Tests that need vLLM or Chromium run where those are, and say so
# where not:
#   MBR_ESD_VENVS         folder of the environments (default .venvs)
#   MBR_ESD_VLLM_PYTHON   python of an environment made by scripts/setup_vllm_cpu.sh
#   MBR_ESD_SERVE         set: try `transformers serve`, too
#   MBR_ESD_LLAMACPP      folder made by scripts/setup_llamacpp.sh
#   MBR_ESD_DATA          folder of the human annotations (default ../shared/data)
set -euo pipefail
cd "$(dirname "$0")/.."
venvs="${MBR_ESD_VENVS:-.venvs}"

for name in comet train; do
  echo "== setting up ($name)"
  scripts/environment.sh "$name"
done

echo "== ruff, mypy (with numpy 1 and 2)"
"$venvs/comet/bin/ruff" format --check --quiet .
"$venvs/comet/bin/ruff" check .
"$venvs/comet/bin/mypy" &
"$venvs/train/bin/mypy" --cache-dir .mypy_cache/numpy2
wait $!

# Two workers with one thread each are faster than one with two, and a file's tests share what its fixtures made. They
# begin with the files that take longest, which tests/conftest.py puts first.
export OMP_NUM_THREADS=1
workers=(--numprocesses 2 --dist loadfile --no-loadscope-reorder)
echo "== tests (train)"
# What numpy 2, transformers 5 and the training libraries can change runs in both environments: numerics, models in
# process, runs. What they cannot change runs in COMET's alone: files, tables, the viewer, the command line, the client of
# servers, documents. The vLLM server is asked from there too, as users do.
once=(adapters/comet cli docs files report generation/server generation/engines/test_batch.py test_plugins.py
  scripts/test_address.py scripts/test_bench_generation.py scripts/test_rater_tables.py scripts/test_rules_page.py)
"$venvs/train/bin/python" -m pytest "${once[@]/#/--ignore=tests/}" -m "not vllm" "${workers[@]}" "$@"
if [ -n "${MBR_ESD_SERVE:-}" ]; then
  echo "== setting up (transformers serve)"
  PYTHON="$venvs/train/bin/python" scripts/setup_transformers_serve.sh "$venvs/serve"
  export MBR_ESD_TRANSFORMERS_SERVE="$(cd "$venvs" && pwd)/serve/serve"
fi
echo "== tests (comet)"
"$venvs/comet/bin/python" -m pytest --ignore tests/distill --ignore tests/scripts/test_miniature.py "${workers[@]}" "$@"
