"""The viewer's numbers equal Python's: scores, similarities, ranking; filters and orders of its list."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from mbr_esd_metric import f1, soft_dice, soft_f1
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, mqm_score, unit_score
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.metaeval.comparison import SampledScore, mean_score
from mbr_esd_metric.report.inputs import JudgedColumn, JudgedTable, join
from mbr_esd_metric.report.inputs import JudgedSegment as Rating
from tests.helpers.pages import Page, random_sheet

pytestmark = pytest.mark.browser


def above(annotation: Annotation, threshold: float) -> Annotation:
    """The spans at least as sure; of a person, two on the same characters stay two."""
    return Annotation.of_rater(s for s in annotation if s.confidence is None or s.confidence >= threshold)


def check_numbers(page: Page, sheet: JudgedTable, threshold: float) -> None:
    """Every score and similarity in the page equals Python's."""
    numbers = page.numbers()
    assert numbers["lambda"] == threshold
    spans = [[above(rating.annotation, threshold) for rating in column.judged] for column in sheet.columns]
    for at, mine in enumerate(spans):
        mqm, figures = list(map(mqm_score, mine)), numbers["figures"][at]
        assert numbers["mqm"][at] == pytest.approx(mqm, abs=1e-12)
        assert numbers["scores"][at] == pytest.approx(list(map(unit_score, mqm)), abs=1e-12)
        for name, measure in (("softf1", soft_f1), ("f1", f1), ("softdice", soft_dice)):
            triples = zip(mine, spans[0], sheet.rows, strict=True)
            values = [measure(one, gold, len(text.translation)) for one, gold, text in triples]
            assert [similar[name] for similar in numbers["agreements"][at]] == pytest.approx(values, abs=1e-12), name
            assert figures[name] == pytest.approx(fmean(values), abs=1e-9)
        for severity in ("major", "minor"):
            assert figures[severity] == sum(one.count(severity) for one in mine)


def test_slider_equals_python(page: Page) -> None:
    """0.7 is a value that spans have exactly."""
    human, metric = random_sheet(200).columns
    text = metric.judged[0].segment
    spans = [ErrorSpan(0, 5, "major", None, 0.7), ErrorSpan(2, 9, "minor", None, 0.69)]
    sheet = join([human, replace(metric, judged=[Rating(text, Annotation(spans)), *metric.judged[1:]])])
    page.open(sheet)
    check_numbers(page, sheet, 0)
    for threshold in (0.7, 1, 0.35):
        page.set("lambda", threshold)
        check_numbers(page, sheet, threshold)
    assert page.text("#lambda-value") == "0.35"


def test_systems_are_ranked_with_intervals(page: Page, sheet: JudgedTable) -> None:
    page.open(sheet)
    page.click("#tab-overview")
    numbers = page.numbers()
    for system in numbers["ranking"]:
        for column, cell in zip(sheet.columns, system["cells"], strict=True):
            scores = [rating.score for rating in column.judged if rating.segment.system == system["name"]]
            assert cell["mean"] == pytest.approx(fmean(scores), abs=1e-12)
            assert cell["interval"] == list(mean_score([SampledScore(score, 0.0) for score in scores]).interval)
    best = [s["name"] for s in sorted(numbers["ranking"], key=lambda s: -s["cells"][1]["mean"])]
    assert page.texts("#panel-overview .scroll:nth-of-type(2) tbody th") == best
    low, high = numbers["ranking"][0]["cells"][1]["interval"]
    assert f"({low:.4f} to {high:.4f})" in page.text("#panel-overview .scroll:nth-of-type(2)")
    page.set("lambda", 0.5)  # of other spans Python has computed none
    assert page.numbers()["ranking"][0]["cells"][1]["interval"] is None
    # A mean of 0 is the best; a system that the metric does not score comes last.
    good, bad, other = (Segment("source", f"translation {name}", "1", name) for name in ("good", "bad", "other"))
    major = Annotation([ErrorSpan(0, 3, "major")])
    human = JudgedColumn("human", [Rating(text, Annotation()) for text in (other, bad, good)], human=True)
    page.open(join([human, JudgedColumn("metric", [Rating(bad, major), Rating(good, Annotation())])]))
    page.click("#tab-overview")
    assert page.texts("#panel-overview .scroll:nth-of-type(2) tbody th") == ["good", "bad", "other"]
    assert page.texts("#panel-overview .scroll:nth-of-type(2) tbody tr")[2].endswith("–")


def test_filters_and_sorting(page: Page, sheet: JudgedTable) -> None:
    page.open(sheet)
    human, annotations, _ = ([rating.annotation for rating in column.judged] for column in sheet.columns)
    severity = [(-a.count("major"), -a.count("minor")) for a in annotations]
    softness = [soft_f1(annotations[r], human[r], len(sheet.rows[r].translation)) for r in range(40)]
    mqm, lengths = [mqm_score(a) for a in annotations], [len(text.translation) for text in sheet.rows]

    def rows(**values: str) -> list[int]:
        for name, value in values.items():
            page.set(name, value)
        return list(page.numbers()["rows"])

    rows(sort="order")
    assert rows(show="major") == [r for r in range(40) if severity[r][0]]
    assert rows(show="minor") == [r for r in range(40) if severity[r][1] and not severity[r][0]]
    assert rows(show="none") == [r for r in range(40) if not annotations[r]]
    rows(show="all")
    keys = {"worst": mqm, "best": [-one for one in mqm], "long": [-one for one in lengths], "severe": severity}
    for sort, key in keys.items():
        assert rows(sort=sort) == sorted(range(40), key=key.__getitem__), sort
    assert [softness[r] for r in rows(sort="disagree")] == pytest.approx(sorted(softness), abs=1e-12)
    assert rows(sort="order", low="0.75", high="0.97") == [r for r in range(40) if -6 <= mqm[r] <= -1]
    page.click("#reset")
    page.wait("return mbrEsd.numbers().rows.length === 40")
    rows(sort="order")
    second = [r for r, t in enumerate(sheet.rows) if t.system == "system 2"]
    assert rows(system="2") == second
    page.set("find", "STRASSE")
    assert rows(find="straße") == [r for r in second if "Straße" in sheet.rows[r].translation]
    page.set("find", "no such text")
    assert page.text("#detail") == "No segment matches these filters."
    rows(find="", system="")
    page.click("#same-source")
    assert len({sheet.rows[r].source for r in rows()}) == 1
    assert page.log() == []


def test_sorting_by_system_and_text(page: Page) -> None:
    """Alphabetical, numbers by value; texts by the source, then the translation; what is equal stays as it is."""
    texts = [("system 10", "Zebra"), ("system 2", "äpfel"), ("System 1", "apple 10"), ("system 2", "apple 9")]
    ratings = [
        Rating(Segment(source, "b", str(number), system), Annotation()) for number, (system, source) in enumerate(texts)
    ]
    page.open(join([JudgedColumn("metric", ratings)]))
    for sort, rows in (("system", [2, 1, 3, 0]), ("text", [1, 3, 2, 0]), ("order", [0, 1, 2, 3])):
        page.set("sort", sort)
        assert page.numbers()["rows"] == rows, sort


def test_rows_without_a_score_come_last(page: Page) -> None:
    """A metric that is silent on the second text, and has no spans for the first."""
    texts = [Segment("source", f"translation {number}", str(number)) for number in range(4)]
    major = Annotation([ErrorSpan(0, 3, "major")])
    metric = [Rating(texts[0], None, 0.5), Rating(texts[2], Annotation()), Rating(texts[3], major)]
    human = JudgedColumn("human", [Rating(text, Annotation()) for text in texts], human=True)
    page.open(join([human, JudgedColumn("metric", metric)]))
    orders = {"worst": "0321", "best": "2301", "severe": "3201", "disagree": "3201", "agree": "2301", "gap": "0321"}
    for sort, rows in orders.items():
        page.set("sort", sort)
        assert "".join(map(str, page.numbers()["rows"])) == rows, sort
    page.set("show", "differs")
    assert page.numbers()["rows"] == [3]
