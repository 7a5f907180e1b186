"""Parts of the example package, put into this package, pass its own tests beside the parts that are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "tests" / "plugin_package" / "mbr_esd_example_plugin"
#: Class -> the file that it is written to, or that it is added to, and the tests that find it there.
PARTS = {
    "Jaccard": ("core/similarities/jaccard.py", ("tests/core/test_similarities.py", "-k", "jaccard")),
    "Bracketed": ("prompting/formats/bracketed.py", ("tests/prompting/test_formats.py", "-k", "bracketed")),
    "Longest": ("core/rules.py", ("tests/core/test_rules.py", "-k", "longest")),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_passes_the_projects_tests(name: str, tmp_path: Path) -> None:
    path, tests = PARTS[name]
    code = (EXAMPLES / f"{name.lower()}.py").read_text(encoding="utf-8").replace('= "example-', '= "')
    for folder in ("mbr_esd_metric", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.safetensors"))
    for file in ("pyproject.toml", "mbr_esd_autoload.py"):
        shutil.copy(ROOT / file, tmp_path)
    target = tmp_path / "mbr_esd_metric" / path
    if target.exists():
        code = target.read_text(encoding="utf-8") + "\n\n" + code[code.index(f"class {name}(") :]
    target.write_text(code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\d+ passed", done.stdout)
