"""Segments in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from mbr_esd_metric.cli.show import mark, show, wants_color
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.report.inputs import AnnotationCount, CandidateInput, Distribution, JudgedColumn, join
from mbr_esd_metric.report.inputs import JudgedSegment as Rating

ANNOTATION = Annotation([ErrorSpan(2, 6, "minor", "style", 0.25), ErrorSpan(4, 8, "major")])
MISSING = ErrorSpan(4, 10, "major", "omission", 0.5, "source")
TEXT = Segment("the source", "0123456789", "7", "sys")


def shown(annotation: Annotation, *scores: float, text: Segment = TEXT, color: bool = False, **more: Any) -> str:
    """One segment of one metric."""
    return show(join([JudgedColumn("m", [Rating(text, annotation, *scores, **more)])]), 0, color=color)


def counted(*counts: AnnotationCount) -> Sequence[CandidateInput]:
    valid = sum(one.count for one in counts)
    return [CandidateInput("c", [Distribution(TEXT, valid, len(counts), 1, [(10, 0, 0)], counts)])]


def test_overlaps_show_the_worse_severity() -> None:
    assert mark("0123456789", ANNOTATION, color=False) == "01[23](minor)[4567](major)89"
    assert mark("0123456789", ANNOTATION, color=True) == "01\x1b[4;33m23\x1b[0m\x1b[1;4;31m4567\x1b[0m89"
    assert mark("", Annotation(), color=True) == ""


def test_a_segment() -> None:
    columns = [JudgedColumn("m", [Rating(TEXT, ANNOTATION, 0.5)]), JudgedColumn("n", [Rating(TEXT, None, 0.75)])]
    counts = counted(AnnotationCount(Annotation(), 3, -1.25), AnnotationCount(ANNOTATION, 1, None))
    assert show(join(columns, counts), 0, color=False) == (
        "7 · sys\n"
        "source  the source\n"
        "m  score 0.5000  MQM -6\n"
        "  01[23](minor)[4567](major)89\n"
        "  minor  [2, 6)  style  confidence 0.25  2345\n"
        "  major  [4, 8)  4567\n"
        "n  score 0.7500\n"
        "c  4 candidates, 2 distinct, 1 invalid\n"
        "      3 x  log-prob. -1.2  0123456789\n"
        "      1 x  01[23](minor)[4567](major)89\n"
    )


def test_what_is_left_out_is_marked_in_the_source() -> None:
    annotation = Annotation([ErrorSpan(2, 4, "minor"), MISSING]).with_unplaced(["minor"])
    counts = counted(AnnotationCount(Annotation([MISSING]), 1, None))
    sheet = join([JudgedColumn("m", [Rating(TEXT, annotation)])], counts)
    assert show(sheet, 0, color=False).partition("source  the source\n")[2] == (
        "m  score 0.7200  MQM -7\n"
        "  01[23](minor)456789\n"
        "  left out of  the [source](major)\n"
        "  minor  [2, 4)  23\n"
        "  major  source [4, 10)  omission  confidence 0.50  source\n"
        "  minor  omission without a place\n"
        "c  1 candidate, 1 distinct, 1 invalid\n"
        "      1 x  0123456789  left out of  the [source](major)\n"
    )


def test_a_text_judged_by_sentences_is_shown_by_sentences() -> None:
    annotation = Annotation([ErrorSpan(4, 8, "minor"), ErrorSpan(2, 5, "major")])
    parts = (ScoredPart(0, 3, 1.0), ScoredPart(4, 12, 0.96))
    text = Segment("", "Ja. Nein, 😀.", "7")
    assert "  1.0000  Ja[.](major)\n  0.9600  [N](major)[ein](minor), 😀.\n" in shown(
        annotation, text=text, parts=parts
    )


def test_a_stated_score_that_is_not_that_of_the_spans_is_an_estimate() -> None:
    assert "MQM -1.97 (estimated)" in shown(Annotation(), 0.92, -1.97)
    major = Annotation([ErrorSpan(0, 2, "major")])
    assert "MQM -7.75 (estimated)" in shown(major, 0.69, -7.75)  # one major error is 5
    assert "(estimated)" not in shown(major, 0.8, -5.0) + shown(
        Annotation([ErrorSpan(0, 2, "minor", "fluency/punctuation")]), 0.996, -0.1
    )
    assert "estimate" not in shown(ANNOTATION) + shown(Annotation())


def test_no_text_drives_the_terminal() -> None:
    text = Segment("a\x07b\x9bc", "d\x1b]0;title\x07\ne", "\x1b[2J", "m\x1b")
    out = shown(Annotation(), text=text)
    assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 for c in out)
    assert "d␛]0;title␇⏎e" in out


@pytest.mark.parametrize(
    ("tty", "variable", "value", "color"),
    [
        (True, "NO_COLOR", "", True),
        (False, "NO_COLOR", "", False),
        (True, "NO_COLOR", "1", False),
        (True, "TERM", "dumb", False),
        (False, "FORCE_COLOR", "1", True),
    ],
)
def test_colour_by_terminal_and_environment(
    monkeypatch: pytest.MonkeyPatch, tty: bool, variable: str, value: str, color: bool
) -> None:
    for name, usual in {"NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm", variable: value}.items():
        monkeypatch.setenv(name, usual)
    assert wants_color(SimpleNamespace(isatty=lambda: tty)) is color


def test_a_correction_stands_under_its_span_and_the_corrected_text_below() -> None:
    text, number = Segment("", "Der alte Hund bellt.", "7"), Segment("", "5.400 Euro", "8")
    spans = [
        ErrorSpan(9, 13, "major", "style", correction="Kater\x1b[2J", reason="a cat", agreement=0.75),
        ErrorSpan(4, 9, "minor", correction=""),
        ErrorSpan(19, 20, "minor"),
    ]
    assert shown(Annotation(spans), text=text).splitlines()[3:] == [
        "  minor  [4, 9)  alte ",
        "    instead  nothing",
        "  major  [9, 13)  style  Hund",
        "    instead  Kater␛[2J  a cat  agreement 0.75",
        "  minor  [19, 20)  .",
        "  corrected  Der [-alte Hund-]{+Kater␛[2J+} bellt.",
    ]
    one = Annotation([ErrorSpan(0, 5, "major", correction="4.500")])
    assert "  corrected  [-5.400-]{+4.500+} Euro\n" in shown(one, text=number)
    colored = shown(Annotation(spans), text=text, color=True)
    assert "\x1b[9;31malte Hund\x1b[0m\x1b[32mKater␛[2J\x1b[0m bellt." in colored
    assert "corrected" not in shown(Annotation([spans[2]]), text=text)
