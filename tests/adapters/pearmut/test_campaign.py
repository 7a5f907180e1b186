"""Pearmut's offsets, the spans that it can show, and attention checks."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric.adapters.pearmut.campaign import (
    Item,
    Output,
    Screen,
    apart,
    attention_checks,
    character,
    utf16_units,
)
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError


@given(st.text(max_size=30), st.data())
def test_units_are_utf_16(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    assert utf16_units(text, at) == len(text[:at].encode("utf-16-le", "surrogatepass")) // 2
    assert character(text, utf16_units(text, at)) == at
    if at < len(text):
        assert character(text, utf16_units(text, at + 1) - 1) == at


def test_spans_that_pearmut_cannot_show_apart_are_not_marked() -> None:
    text = "one two\nthree"
    spans = Annotation([ErrorSpan(0, 7, "minor"), ErrorSpan(4, 7, "major"), ErrorSpan(7, 8, "major")])
    assert [span.key for span in apart(spans, text)] == [(4, 7, "major")]


@pytest.mark.parametrize(
    ("texts", "before", "behind", "length"),
    [
        (["a0 a1 a2 a3 a4 a5 a6", "b0 b1 b2 b3 b4"], 2, 2, 3),
        ([" ".join(f"{name}{n}" for n in range(12)) for name in "ab"], 4, 4, 4),
        (["昨天我们去了北京看朋友。", "明天他和她的三个孩子要来。"], 4, 4, 4),
    ],
)
def test_an_attention_check_has_words_of_another_segment(
    texts: list[str], before: int, behind: int, length: int
) -> None:
    marked = {"B": Output("not this one", Annotation([ErrorSpan(0, 3, "minor")]))}
    screens = [Screen("d", tuple(Item(str(n), f"s{n}", {"A": Output(text), **marked}) for n, text in enumerate(texts)))]
    checks = attention_checks(screens, 2, random.Random(7))
    assert checks == attention_checks(screens, 2, random.Random(7))
    assert sorted(item.id for check in checks for item in check.items) == ["0", "1"]
    (item,) = next(check.items for check in checks if check.items[0].id == "0")
    assert item.outputs["B"] == marked["B"]
    output, separator = item.outputs["A"], " " if " " in texts[0] else ""
    assert output.check is not None
    run = output.text[output.check.start : output.check.end]
    words = texts[0].split() if separator else list(texts[0])
    assert run in texts[1]
    assert len(run.split() if separator else run) == length
    assert output.text == separator.join([*words[:before], run, *words[-behind:]])


def test_an_attention_check_changes_the_text() -> None:
    items = tuple(Item(str(n), f"s{n}", {"A": Output("ha ha ha ha")}) for n in range(2))
    with pytest.raises(InputError, match=r"^0 can be made .* 1 attention checks are wanted"):
        attention_checks([Screen("d", items)], 1, random.Random(0))
