"""A recalibration may be in a model folder of unknown origin."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.recalibration_file import read_recalibration


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": 1, "a": 2}', "NaN", '{"a": 1' + "0" * 5000 + "}", "", "[]"])
def test_what_is_no_recalibration_is_one_line_that_names_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"calibration\.json"):
        read_recalibration(path)
