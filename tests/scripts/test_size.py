"""The table of the package's size, of this checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_counts_lines_options_and_what_a_prediction_loads() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "size.py"), "--json"]
    now = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["now"]
    lines = {name: value for name, value in now.items() if name.startswith("  ") and name.endswith(": lines")}
    assert sum(lines.values()) < now["package: lines"]  # the folders, and the files beside them
    verbs = [value for name, value in now.items() if name.startswith("  ") and name.endswith(": options")]
    assert sum(verbs) == now["options of all verbs"] > 0
    assert 0 < now["loaded by a prediction: lines"] < now["package: lines"]
    assert now["options in a model's name"] > 0
