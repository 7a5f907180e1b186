"""Inputs side by side."""

from __future__ import annotations

import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.report.rating_table import RatingInput, Text, join
from mbr_esd_metric.report.rating_table import SegmentRating as Rating

A = Text("1", "sys", "source", "one translation")
MAJOR = Annotation([ErrorSpan(0, 3, "major", "accuracy", 0.1 + 0.2)])


@pytest.mark.parametrize(("system", "step"), [("other", -1), (A.system, 1)])
def test_the_same_text_twice_stays_apart(system: str, step: int) -> None:
    """Texts of two systems may come in any order, those of one system in one order."""
    both = [Rating(A, MAJOR), Rating(Text("2", system, A.source, A.translation), Annotation())]
    sheet = join([RatingInput("a", both), RatingInput("b", both[::step])])
    assert [text.id for text in sheet.rows] == ["1", "2"]
    assert [o.annotation for o in sheet.columns[1].ratings if o] == [MAJOR, Annotation()]


def test_nothing_is_left_out_and_what_stands_alone_is_counted() -> None:
    alone = Text("9", "sys", "source", "another translation")
    sheet = join([RatingInput("a", [Rating(A, MAJOR)]), RatingInput("b", [Rating(A, MAJOR), Rating(alone, MAJOR)])])
    assert list(sheet.rows) == [A, alone]
    assert sheet.columns[0].ratings[1] is None
    assert sheet.notes == ["1 of the segments of b are in no other input"]
