"""The table of the package's size, of this checkout."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_counts_lines_options_and_what_a_segment_enters_and_loads() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "size.py"))
    now = script["sizes"](ROOT)
    assert set(script["LIMITS"]) <= set(now)
    lines = {name: value for name, value in now.items() if name.startswith("  ") and name.endswith(": lines")}
    assert sum(lines.values()) < now["package: lines"]  # the folders, and the files beside them
    verbs = [value for name, value in now.items() if name.startswith("  ") and name.endswith(": options")]
    assert sum(verbs) == now["options of all verbs"] > 0
    assert 0 < now["prediction: lines loaded"] < now["package: lines"]
    assert 0 < now["score, stored: functions entered"] < now["score, fresh: functions entered"]
    assert now["score, stored: requests"] == 0 < now["score, fresh: requests"]
    assert now["options in a model's name"] > 0
    assert script["table"]({"x": 1}, {"x": 2}).split() == ["before", "now", "limit", "x", "2", "1"]
