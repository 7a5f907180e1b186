"""Pearmut's offsets, and the spans that it can show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric.adapters.pearmut.campaign import apart, character, utf16_units
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan


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
