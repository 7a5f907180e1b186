"""Bars on a terminal; a line now and then elsewhere."""

from __future__ import annotations

import io
import sys
import time

import pytest

from mbr_esd_metric.files import progress
from mbr_esd_metric.files.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_short_work_says_nothing_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        for _ in progress_bar("reading", iterable=range(3)):
            time.sleep(0.2)
        assert ("reading" in stream.getvalue()) is shown


def test_long_work_says_how_far_it_is_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_PAUSE", 0.2)
    with progress_bar("sampling", "segment", total=10, done=4) as bar:
        for _ in range(5):
            time.sleep(0.1)
            bar.update(1)
    lines = capsys.readouterr().err.split("\r")
    assert "9/10" in lines[-1]
    assert len([line for line in lines if "sampling" in line]) < 5


def test_nothing_is_shown_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress_bar("deciding", iterable=range(3), shown=False)) == [0, 1, 2]
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
