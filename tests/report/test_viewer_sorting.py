"""Filters and orders of the viewer's list."""

from __future__ import annotations

import pytest

from mbr_esd_metric import soft_f1
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.report.rating_table import RatingInput, RatingTable, Text, join
from mbr_esd_metric.report.rating_table import SegmentRating as Rating
from tests.helpers.pages import Page, some_texts

pytestmark = pytest.mark.browser


def test_filters_and_sorting(page: Page, sheet: RatingTable) -> None:
    page.open(sheet)
    metric = next(column for column in sheet.columns if column.name == "metric")
    annotations = [opinion.annotation for opinion in metric.ratings if opinion]
    human = [opinion.annotation for opinion in sheet.columns[0].ratings if opinion]
    page.set("show", "major")
    assert page.numbers()["rows"] == [r for r, a in enumerate(annotations) if a.count("major")]
    page.set("show", "minor")
    assert page.numbers()["rows"] == [r for r, a in enumerate(annotations) if a.count("minor") and not a.count("major")]
    page.set("show", "none")
    assert page.numbers()["rows"] == [r for r, a in enumerate(annotations) if not a]
    page.set("show", "all")
    page.set("sort", "worst")
    assert page.numbers()["rows"] == sorted(range(40), key=lambda r: (mqm_score(annotations[r]), r))
    page.set("sort", "disagree")
    softness = [soft_f1(annotations[r], human[r], len(sheet.rows[r].translation)) for r in range(40)]
    found = page.numbers()["rows"]
    assert [softness[r] for r in found] == pytest.approx(sorted(softness), abs=1e-12)
    page.set("sort", "agree")
    found = page.numbers()["rows"]
    assert [softness[r] for r in found] == pytest.approx(sorted(softness, reverse=True), abs=1e-12)
    page.set("sort", "best")
    assert page.numbers()["rows"] == sorted(range(40), key=lambda r: (-mqm_score(annotations[r]), r))
    page.set("sort", "long")
    assert page.numbers()["rows"] == sorted(range(40), key=lambda r: (-len(sheet.rows[r].translation), r))
    page.set("sort", "severe")
    severity = [(-a.count("major"), -a.count("minor")) for a in annotations]
    assert page.numbers()["rows"] == sorted(range(40), key=lambda r: (severity[r], r))
    page.set("sort", "gap")
    gaps = [abs(mqm_score(annotations[r]) - mqm_score(human[r])) for r in range(40)]
    assert [gaps[r] for r in page.numbers()["rows"]] == sorted(gaps, reverse=True)
    page.set("sort", "order")
    page.set("low", "0.75")
    page.set("high", "0.97")
    assert page.numbers()["rows"] == [r for r, a in enumerate(annotations) if -6 <= mqm_score(a) <= -1]
    page.js("document.getElementById('reset').click()")
    page.wait("return mbrEsd.numbers().rows.length === 40")
    page.set("system", "2")
    assert page.numbers()["rows"] == [r for r, t in enumerate(sheet.rows) if t.system == "system 2"]
    page.set("find", "STRASSE")
    page.set("find", "straße")
    assert page.numbers()["rows"] == [
        r for r, t in enumerate(sheet.rows) if t.system == "system 2" and "Straße" in t.translation
    ]
    page.set("find", "no such text")
    assert page.text("#detail") == "No segment fits these filters."
    page.set("find", "")
    page.set("system", "")
    page.js("document.getElementById('same-source').click()")
    assert {sheet.rows[r].source for r in page.numbers()["rows"]} == {sheet.rows[page.numbers()["rows"][0]].source}
    assert page.log() == []


def test_sorting_by_system_and_text(page: Page) -> None:
    """Alphabetical, numbers by value; texts by the source, then the translation; what is equal stays as it is."""
    given = [
        ("system 10", "Zebra", "b"),
        ("system 2", "äpfel", "b"),
        ("System 1", "apple 10", "b"),
        ("system 2", "apple 9", "b"),
        ("system 10", "apple 9", "C"),
        ("system 2", "apple 9", "b"),
    ]
    texts = [Text(str(number), *text) for number, text in enumerate(given, 1)]
    page.open(join([RatingInput("metric", [Rating(text, Annotation()) for text in texts])]))
    for sort, ids in (("system", "324615"), ("text", "246531"), ("order", "123456")):
        page.set("sort", sort)
        assert "".join(texts[row].id for row in page.numbers()["rows"]) == ids, sort


def test_rows_without_a_score_come_last(page: Page) -> None:
    """A metric that is silent on the second text, and has no spans for the first."""
    texts = some_texts(4)
    major = Annotation([ErrorSpan(0, 3, "major")])
    metric = [Rating(texts[0], None, 0.5), Rating(texts[2], Annotation()), Rating(texts[3], major)]
    page.open(
        join(
            [
                RatingInput("human", [Rating(t, Annotation()) for t in texts], human=True),
                RatingInput("metric", metric),
            ]
        )
    )
    for sort, rows in (
        ("worst", [0, 3, 2, 1]),
        ("best", [2, 3, 0, 1]),
        ("severe", [3, 2, 0, 1]),
        ("disagree", [3, 2, 0, 1]),
        ("agree", [2, 3, 0, 1]),
        ("gap", [0, 3, 2, 1]),
    ):
        page.set("sort", sort)
        assert page.numbers()["rows"] == rows, sort
    page.set("show", "differs")
    assert page.numbers()["rows"] == [3]
