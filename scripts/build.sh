#!/usr/bin/env bash
# Builds the sdist, the wheel and the documentation site, and checks them. Usage: scripts/build.sh OUT
#
# OUT gets dist/ and site/. The wheel is installed with nothing but what the package requires, and must list its models and
# decide. The sdist is unpacked and must pass the fast tests. The site must build without a warning.
#   MBR_ESD_VENVS   folder of the environments (default .venvs)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/setting_up.sh
mkdir -p "$1"
out="$(cd "$1" && pwd)"
venvs="${MBR_ESD_VENVS:-.venvs}"
python="${PYTHON:-python3}"
mkdir -p "$venvs"
venvs="$(cd "$venvs" && pwd)"

echo "== sdist and wheel"
environment "$venvs/docs" "$python"
install "$venvs/docs" --constraint scripts/constraints-docs.txt --editable ".[docs,release]"
rm -rf "$out/dist" "$out/site" "$out/unpacked" "$out/bare"
"$venvs/docs/bin/python" -m build --outdir "$out/dist" . >"$out/build.log" 2>&1 || {
  tail -n 20 "$out/build.log"
  exit 1
}
"$venvs/docs/bin/twine" check --strict "$out"/dist/*

echo "== the wheel alone"
environment "$out/bare" "$python"
install "$out/bare" "$out"/dist/*.whl
(cd "$out" && bare/bin/mbr-esd models >/dev/null)
(cd "$out" && bare/bin/mbr-esd decide "$OLDPWD/docs/examples/candidates.jsonl" -o decided.jsonl --quiet)
"$out/bare/bin/python" - <<'PYTHON'
from importlib.resources import files

package = files("mbr_esd_metric")
for name in ("py.typed", "README.md", "demo/README.md", "demo/sft/hparams.yaml", "distill/recipes/paper.yaml"):
    assert (package / name).is_file(), f"the wheel lacks {name}"
PYTHON

echo "== the sdist's tests"
mkdir "$out/unpacked"
tar -xzf "$out"/dist/*.tar.gz -C "$out/unpacked" --strip-components 1
install "$out/bare" pytest hypothesis
(cd "$out/unpacked" && OMP_NUM_THREADS=1 "$out/bare/bin/python" -m pytest -q \
  tests/core/test_similarity.py tests/elicit tests/files/test_records.py)

echo "== site"
# Not --quiet: it would hide the warnings from --strict as well.
NO_MKDOCS_2_WARNING=1 "$venvs/docs/bin/mkdocs" build --strict --site-dir "$out/site" >"$out/site.log" 2>&1 || {
  grep -vE "^INFO" "$out/site.log"
  exit 1
}
ls "$out"/dist
