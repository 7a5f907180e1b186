"""The viewer in headless Chromium, opened from disk."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.report.inputs import (
    AnnotationCount,
    CandidateInput,
    Distribution,
    JudgedColumn,
    JudgedTable,
    join,
)
from mbr_esd_metric.report.inputs import JudgedSegment as Rating
from tests.helpers.pages import Page, random_sheet

pytestmark = pytest.mark.browser

HOSTILE = (
    '</script><script>window.broken=1</script><img src=x onerror="window.broken=1"><svg onload=window.broken=1>'
    "{{data}} ${window.broken=1} --> ]]> &lt;b&gt; javascript:window.broken=1 \u202e\u2028"
)


def marked(translation: str, spans: Iterable[ErrorSpan], source: str = "") -> JudgedTable:
    """One translation with error spans of one metric."""
    return join([JudgedColumn("metric", [Rating(Segment(source, translation, "1"), Annotation(spans))])])


def test_opens_from_disk_without_a_request(page: Page, sheet: JudgedTable) -> None:
    page.open(sheet, "Plain & simple <report>")
    assert [url.split("/")[-1] for url in page.requests() if not url.startswith("data:")] == ["report.html"]
    assert page.log() == []
    assert page.text("#title") == "Plain & simple <report>"
    assert page.text("#status") == "40 segments · metric"
    assert page.js("return document.querySelectorAll('#detail .card').length") == 4
    # The policy stops scripts that are not ours.
    page.js("const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s)")
    assert page.js("return window.broken") is None
    assert any("Content Security Policy" in line for line in page.log())


def test_nothing_in_the_data_runs(page: Page) -> None:
    text = Segment(f"source {HOSTILE}", f"translation {HOSTILE}", f"id {HOSTILE}", f"system {HOSTILE}")
    other = Rating(Segment("source", "translation", "2", "other"), Annotation())
    whole = Annotation([ErrorSpan(0, len(text.translation), "major", f"category {HOSTILE}", 0.5)])
    counts = Distribution(text, 2, 1, 0, [(len(text.translation), 2, 1)], [AnnotationCount(whole, 2, -1.0)])
    ratings = [Rating(text, whole), other]
    columns = [JudgedColumn(f"human {HOSTILE}", ratings, human=True), JudgedColumn(f"metric {HOSTILE}", ratings)]
    page.open(join(columns, [CandidateInput(f"candidates {HOSTILE}", [counts])]), f"title {HOSTILE}")
    page.js("document.querySelectorAll('#detail summary').forEach(s => s.click())")
    page.js("document.querySelector('#detail mark').focus()")
    assert "category " + HOSTILE in page.text("#tip")
    page.click("#tab-overview")
    page.click("#tab-segments")
    page.frame()
    assert page.js("return window.broken") is None
    assert page.js("return document.querySelectorAll('img, svg[onload], body script:not(#data)').length") == 1
    assert page.text("#detail .card:nth-child(2) .body") == text.translation
    assert page.text("#title") == f"title {HOSTILE}"
    assert page.log() == []


@pytest.mark.parametrize(
    ("translation", "span", "direction"),
    [
        ("🙂🙂 Das 𝒙\nist e\u0301 👩‍👩‍👧 gut", (7, 14), "ltr"),
        ("זה טקסט 🙂 בעברית", (8, 9), "rtl"),
    ],
)
def test_offsets_count_code_points(page: Page, translation: str, span: tuple[int, int], direction: str) -> None:
    page.open(marked(translation, [ErrorSpan(*span, "major", "accuracy", 0.4)]))
    assert page.texts("#detail .body mark") == [translation[slice(*span)]]
    body = "#detail .card:nth-child(1) .body"
    assert page.text(body) == translation
    assert page.js(f"return getComputedStyle(document.querySelector('{body}')).direction") == direction
    assert page.texts("#detail li") == [f"{translation[slice(*span)]} — major · accuracy · confidence 0.40"]


def test_overlapping_spans_and_their_tooltips(page: Page) -> None:
    page.open(
        marked("0123456789abcdef", [ErrorSpan(0, 9, "minor", "style", 0.25), ErrorSpan(4, 13, "major", None, 0.75)])
    )
    assert page.texts("#detail .body mark") == ["0123", "45678", "9abc"]
    marks = page.js("return [...document.querySelectorAll('#detail .body mark')].map(m => [m.className, m.tabIndex])")
    # Each error is one stop of the Tab key.
    assert marks == [["minor", 0], ["major", 0], ["major", -1]]
    page.js("document.querySelectorAll('#detail .body mark')[1].focus()")
    assert page.texts("#tip div") == ["minor · style · confidence 0.25", "major · confidence 0.75"]
    assert page.js("return document.querySelectorAll('#detail mark.lit').length") == 3
    (minor, yellow), (major, red), _ = page.styles("#detail .body mark", "textDecorationStyle", "backgroundColor")
    assert (minor, major) == ("dotted", "double")
    assert yellow != red


def test_what_is_left_out_is_marked_in_the_source(page: Page) -> None:
    annotation = Annotation([ErrorSpan(2, 4, "minor"), ErrorSpan(4, 10, "major", None, None, "source")])
    text = Segment("the source", "0123456789", "1")
    human = Rating(text, Annotation([ErrorSpan(2, 4, "minor")]))
    unplaced = Rating(text, annotation.with_unplaced(["minor"]))
    page.open(join([JudgedColumn("metric", [unplaced]), JudgedColumn("human", [human], human=True)]))
    card = "#detail section[aria-label=metric] "
    assert page.texts(card + "mark") == ["23", "source"]
    assert page.texts(card + "li") == ["23 — minor", "source — major · omission", "nowhere — minor · omission"]
    assert page.texts(card + ".score") == ["score 0.7200 · MQM −7"]
    # The comparison is of the translation, and so are the counts of spans; what is left out has its own.
    assert "SoftF1 1.000" in page.texts(card + ".facts span")
    page.click("#tab-overview")
    assert page.texts("#panel-overview .scroll thead th")[4:7] == ["major", "minor", "omissions"]
    assert page.texts("#panel-overview tr[data-metric=metric] td")[3:6] == ["0", "1", "2"]


def test_opens_on_the_worst_segment_and_shows_what_is_missing(page: Page) -> None:
    """A list of one metric has no controls that choose another one, or compare two."""
    source = "The dog sleeps in the garden, and nobody wakes it up."
    texts = [Segment(source, f"Der Hund schläft {number}.", str(number)) for number in range(3)]
    half = Annotation([ErrorSpan(28, 53, "major", "omission", None, "source")])
    ratings = [
        Rating(texts[0], Annotation(), 1.0, 0.0),
        Rating(texts[1], half, 0.69, -7.75),
        Rating(texts[2], Annotation(), 0.9, -2.5, data_warning="said twice"),
    ]
    page.open(join([JudgedColumn("metric", ratings)]))
    assert page.text("#detail h2") == "1"
    assert page.texts(".row .missing") == ["missing: , and nobody wakes it up.", "said twice"]
    assert page.texts("#detail section[aria-label=Source] mark") == [", and nobody wakes it up."]
    assert "47% of the source is missing" in page.text("#detail .facts")
    assert page.text("#detail .head .score") == "score 0.6900 · MQM −7.75 (estimated)"
    shown = "return [...document.querySelectorAll('.more label')].filter(e => !e.hidden).map(e => e.firstChild.data)"
    assert page.js(shown) == ["Show", "Sort"]
    assert "lowest agreement first" not in page.texts("#sort option")
    page.open(join([JudgedColumn("metric", ratings), JudgedColumn("other", ratings)]))
    assert page.js(shown) == ["Metric", "Compare with", "Agreement", "Show", "Sort"]


def test_a_correction_stands_under_its_span_and_the_corrected_text_below(page: Page) -> None:
    spans = [
        ErrorSpan(11, 15, "major", "style", correction=HOSTILE, reason=HOSTILE, agreement=0.75),
        ErrorSpan(6, 11, "minor", correction=""),
        ErrorSpan(21, 22, "minor"),
    ]
    page.open(marked("Der 🐉 alte Hund bellt.", spans))
    assert page.js("return window.broken") is None
    assert page.js("return document.querySelector('#detail details').open")
    assert page.texts("#detail li") == [
        "alte  — minorinstead: nothing",
        f"Hund — major · styleinstead: {HOSTILE} — {HOSTILE} · agreement 0.75",
        ". — minor",
    ]
    body = "[...document.querySelectorAll('#detail .card > .body:last-child > *')]"
    runs = page.js(f"return {body}.map(one => [one.localName, one.textContent])")
    assert "".join(run for name, run in runs if name != "ins") == "Der 🐉 alte Hund bellt."
    assert "".join(run for name, run in runs if name != "del") == f"Der 🐉 {HOSTILE} bellt."
    assert "del" in dict(runs)


def test_a_text_judged_by_sentences_has_a_score_at_each(page: Page) -> None:
    parts = (ScoredPart(0, 3, 1.0), ScoredPart(4, 12, 0.96))
    rating = Rating(Segment("", "Ja. Nein, 😀.", "1"), Annotation([ErrorSpan(4, 8, "minor")]), 0.98, parts=parts)
    page.open(join([JudgedColumn("m", [rating])]))
    assert page.texts("#detail .sentences .score") == ["1.00", ".96"]
    assert page.texts("#detail .sentences .body") == ["Ja.", "Nein, 😀."]
    assert page.texts("#detail .sentences mark") == ["Nein"]


def test_confidence_is_opacity(page: Page) -> None:
    """The surer of two spans is the more opaque one; without a confidence a span is as opaque as a sure one."""
    page.open(
        marked("0123456789", [ErrorSpan(2 * n, 2 * n + 1, "major", None, (0.1, 0.6, 1, None)[n]) for n in range(4)])
    )
    colours = page.styles("#detail .body mark", "backgroundColor")
    first, second, third, unknown = (float([*re.findall(r"[\d.]+", one), "1"][3]) for [one] in colours)
    assert first + 0.05 < second < third - 0.05
    assert third == unknown


def test_the_tooltip_stays_where_the_focus_scrolls(page: Page) -> None:
    page.open(marked("many words " * 400, [ErrorSpan(4000, 4010, "major")]))
    hidden = "return document.getElementById('tip').hidden"
    page.js("document.querySelector('#detail .body mark').focus()")
    page.frame()
    page.frame()
    assert page.js("return document.getElementById('detail').scrollTop") > 0
    assert page.js(hidden) is False
    page.driver.switch_to.active_element.send_keys("\ue00c")  # Escape
    assert page.js(hidden) is True


def test_keyboard(page: Page, sheet: JudgedTable) -> None:
    from selenium.webdriver.common.keys import Keys

    page.open(sheet)
    page.set("sort", "order")
    page.js("document.querySelector('#row-0').click()")
    box = page.driver.find_element("id", "list")
    chosen = "return document.getElementById('list').getAttribute('aria-activedescendant')"
    assert page.js(chosen) == "row-0"
    box.send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert page.js(chosen) == "row-2"
    assert page.text("#detail h2") == f"{sheet.rows[2].label} · {sheet.rows[2].system}"
    box.send_keys(Keys.END)
    assert page.js(chosen) == "row-39"
    assert page.js("return document.querySelector('#row-39').getAttribute('aria-posinset')") == "40"
    for key, focused in ((Keys.ENTER, "detail"), (Keys.ESCAPE, "list"), ("/", "find")):
        page.driver.switch_to.active_element.send_keys(key)
        assert page.js("return document.activeElement.id") == focused


def test_everything_has_a_name(page: Page, sheet: JudgedTable) -> None:
    """In the accessibility tree every control has a name, and the roles are those that a screen reader knows."""
    page.open(sheet)
    roles: dict[str, list[str]] = {}
    for node in page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]:
        if not node.get("ignored"):
            roles.setdefault(node["role"]["value"], []).append(str(node.get("name", {}).get("value", "")).strip())
    for role in ("button", "combobox", "searchbox", "slider", "spinbutton", "tab", "listbox", "option", "article"):
        assert roles.get(role), role
        assert all(roles[role]), (role, roles[role])


def test_candidates(page: Page) -> None:
    text = Segment("source", "abcdefgh", "1")
    major = Annotation([ErrorSpan(2, 4, "major")])
    counts = [AnnotationCount(major, 3, -2.5), AnnotationCount(Annotation(), 1, None)]
    summary = Distribution(text, 4, 2, 1, [(2, 0, 0), (2, 3, 2), (4, 0, 0)], counts)
    page.open(join([JudgedColumn("metric", [Rating(text, major)])], [CandidateInput("samples", [summary])]))
    page.js("document.querySelector('#detail .heat span').focus()")
    assert page.texts("#tip div") == ["3 of 4 candidates mark this (75%)", "2 of them as major"]
    assert page.text("#detail .heat") == "abcdefgh"
    page.js("[...document.querySelectorAll('#detail summary')].at(-1).click()")
    assert page.texts("#detail .ranked tbody tr") == ["3 of 4−2.5abcdefgh", "1 of 4–no error"]


@pytest.mark.parametrize("width", [1280, 390])
def test_fits_the_screen(page: Page, sheet: JudgedTable, width: int) -> None:
    page.open(sheet, width=width)
    shown = "return document.getElementById('list').offsetParent !== null"
    for clicked in (None, ".row", "#tab-overview"):
        if clicked:
            page.click(clicked)
        assert page.js("return document.documentElement.scrollWidth") <= width
        if clicked == ".row":
            assert page.js(shown) == (width > 390)
            page.click(".back")
            assert page.js(shown)


def test_scores_without_spans_and_of_a_blank_translation(page: Page) -> None:
    blank, text = Segment("source", " ", "1"), Segment("source", "abcdefgh", "2")
    spans = Annotation([ErrorSpan(0, 4, "minor", None, 0.5)])
    metric = JudgedColumn("spans", [Rating(blank, Annotation(), 0.0), Rating(text, spans, 0.96)])
    page.open(join([metric, JudgedColumn("plain", [Rating(blank, None, 0.5)])]))
    _, with_spans, plain = page.texts("#detail .card")
    assert "MQM \u221225" in with_spans
    assert "score 0.5000" in plain
    page.set("lambda", 0.6)
    assert page.numbers()["scores"][0] == [0, 1]


def test_fifty_thousand_segments(page: Page) -> None:
    sheet = random_sheet(50_000, systems=20, metrics=("metric",))
    # The best of three: the machine may be busy with other things.
    assert any(page.open(sheet) < 15 for _ in range(3))
    page.frame()  # the size of the window may have come late
    assert page.js("return document.querySelectorAll('*').length") < 600
    page.set("sort", "order")  # the page opens on the worst segment
    page.js("document.getElementById('list').scrollTop = 84 * 25000")
    page.wait("return document.getElementById('row-25001') !== null")
    start = time.perf_counter()
    page.set("find", "weil läuft")
    page.set("find", "")
    page.set("lambda", 0.5)
    page.set("sort", "text")
    page.click("#tab-overview")
    assert time.perf_counter() - start < 30
    assert page.texts("#panel-overview .scroll tbody tr:last-child td")[0] == "50,000"
    assert page.js("gc(); return performance.memory.usedJSHeapSize") < 400e6
