"""`mbr-esd` itself: without a verb, and with one that there is not."""

from __future__ import annotations

import pytest

from mbr_esd_metric.cli.main import VERBS, main
from mbr_esd_metric.errors import unknown


def test_without_a_verb_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert all(f"  {verb} " in shown for verb in VERBS)


def test_an_unknown_verb_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["scor", "-s", "src.txt"])
    assert end.value.code == 2
    assert "unknown verb 'scor'; did you mean 'score'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "nearest"),
    [("bleu", "'BLEU'"), ("SOFTF1", "'SoftF1' or 'softf1'"), ("CHRf", "'chrF'")],
)
def test_the_nearest_name_may_differ_in_case(value: str, nearest: str) -> None:
    message = str(unknown("name", value, ["chrF", "BLEU", "softf1", "SoftF1", "empty"]))
    assert message == f"unknown name {value!r}; did you mean {nearest}? valid: BLEU, SoftF1, chrF, empty, softf1"
