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
    assert sheet.unmatched == []


def test_the_same_text_of_two_systems_stays_apart() -> None:
    other = Text("1", "other", "source", "one translation")
    both = [Rating(A, MAJOR), Rating(other, Annotation())]
    sheet = join([RatingInput("a", both), RatingInput("b", both[::-1])])
    assert list(sheet.rows) == [A, other]
    assert [o.annotation for o in sheet.columns[1].ratings if o] == [MAJOR, Annotation()]


def test_repeated_segments_meet_in_order() -> None:
    twice = [Rating(Text("1", "", "s", "text"), MAJOR), Rating(Text("2", "", "s", "text"), Annotation())]
    sheet = join([RatingInput("a", twice), RatingInput("b", twice)])
    assert [text.id for text in sheet.rows] == ["1", "2"]
    assert [o.annotation for o in sheet.columns[1].ratings if o] == [MAJOR, Annotation()]


def test_nothing_is_left_out_and_what_stands_alone_is_counted() -> None:
    alone = Text("9", "sys", "source", "another translation")
    sheet = join([RatingInput("a", [Rating(A, MAJOR)]), RatingInput("b", [Rating(A, MAJOR), Rating(alone, MAJOR)])])
    assert list(sheet.rows) == [A, alone]
    assert sheet.columns[0].ratings[1] is None
    assert sheet.unmatched == [("b", 1)]


def test_errors() -> None:
    with pytest.raises(InputError, match="two inputs are named 'a'"):
        join([RatingInput("a", [Rating(A, MAJOR)]), RatingInput("a", [])])
    with pytest.raises(InputError, match="no segment"):
        join([])
    with pytest.raises(InputError, match=r"a, segment 1: error span \[0, 99\)"):
        join([RatingInput("a", [Rating(A, Annotation([ErrorSpan(0, 99, "major")]))])])


def test_a_score_that_is_no_number() -> None:
    with pytest.raises(InputError, match="a, segment 1: the score nan is no number"):
        join([RatingInput("a", [Rating(A, None, float("nan"))])])


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
