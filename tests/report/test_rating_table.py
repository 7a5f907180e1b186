"""Joining layers, and the payload made of them."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.report.rating_table import RatingInput, Text, join
from mbr_esd_metric.report.rating_table import SegmentRating as Rating
from mbr_esd_metric.report.viewer import encode_payload, payload

A = Text("1", "sys", "source", "one translation")
MAJOR = Annotation([ErrorSpan(0, 3, "major", "accuracy", 0.1 + 0.2)])


def test_layers_meet_by_text_where_they_name_systems_apart() -> None:
    elsewhere = Text("segment-0", "out/sys.txt", "source", "one translation")
    sheet = join([RatingInput("a", [Rating(A, MAJOR)]), RatingInput("b", [Rating(elsewhere, Annotation())])])
    assert list(sheet.rows) == [A]
    assert [column.ratings[0].annotation for column in sheet.columns if column.ratings[0]] == [MAJOR, Annotation()]
    assert sheet.notes == []


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


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([RatingInput("a", [Rating(A, MAJOR)]), RatingInput("a", [])], "two inputs are named 'a'"),
        ([], "no segment"),
        (
            [RatingInput("a", [Rating(A, Annotation([ErrorSpan(0, 99, "major")]))])],
            r"a, segment 1: error span \[0, 99\)",
        ),
        ([RatingInput("a", [Rating(A, None, float("nan"))])], "a, segment 1: the score nan is no number"),
    ],
)
def test_inputs_that_cannot_be_joined(inputs: list[RatingInput], message: str) -> None:
    with pytest.raises(InputError, match=message):
        join(inputs)


def test_payload_keeps_every_number() -> None:
    plain = Text("2", "sys", "source", "\ud83d\ude00 lone halves")  # two code points, as Python counts
    sheet = join([RatingInput("a", [Rating(A, MAJOR, 1 / 3), Rating(plain, None)], human=True)])
    text = encode_payload(payload(sheet))
    assert text == encode_payload(payload(sheet))
    data = json.loads(gzip.decompress(base64.b64decode(text)))
    column = data["columns"][0]
    assert (column["count"], column["own"], column["confidence"]) == ([1, None], [1 / 3, None], [0.1 + 0.2])
    assert (column["start"], column["length"], column["major"]) == ([0], [3], [1])
    assert data["categories"][column["category"][0]] == "accuracy"
    assert data["sources"] == ["source"]
    assert data["weights"]["major"] == -5
    assert len(data["mt"][1]) == len(plain.translation)
