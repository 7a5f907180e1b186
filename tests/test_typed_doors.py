"""What type checkers know of the options that functions take by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mbr_esd_metric.decoding.options import FIELDS, DecisionFields
from mbr_esd_metric.metric.card import OPTIONS, ModelFields

PROGRAM = """\
from mbr_esd_metric import decide, load_metric

load_metric("mbr-esd-small", utility="softf1", n=16)
load_metric("mbr-esd-small", utilty="softf1")
decide([], "Ein Hund.", rule="map")
decide([], "Ein Hund.", ruel="map")
decide([], "Ein Hund.", rule=3)
"""


def test_arguments_are_the_options() -> None:
    assert list(DecisionFields.__annotations__) == list(FIELDS), "decoding/options.py"
    assert set(ModelFields.__annotations__) == {*OPTIONS, *FIELDS}, "metric/card.py"


def test_a_misspelt_option_is_a_type_error(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs mypy")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--follow-imports", "silent", "--ignore-missing-imports", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    wrong = [line.split(":")[1] for line in done.stdout.splitlines() if ": error:" in line]
    assert wrong == ["4", "6", "7"], done.stdout
    assert '"utilty"' in done.stdout
