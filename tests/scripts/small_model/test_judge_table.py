"""The table of what models see of the difference between translations of one source."""

from __future__ import annotations

import pytest

pytest.importorskip("sacrebleu")

from judge_table import Rated, pair_cells, rated_cells, with_reference

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan

SOURCES: list[tuple[str, Rated]] = [
    ("eins", {"a": ("one", 0.0), "b": ("a one", -1.0), "c": ("two", -5.0)}),
    ("zwei", {"a": ("a two", -1.0), "b": ("two", 0.0), "c": ("three", -5.0)}),
]


def test_the_cells_of_both_tables() -> None:
    assert rated_cells(SOURCES, [{"a": 1.0, "b": 2.0, "c": 3.0}] * 2)[:2] == ["-0.667", "0.000"]
    alone = [(source, {"a": rated["a"]}) for source, rated in SOURCES]
    assert rated_cells(alone, [{"a": 2.0}, {"a": 1.0}]) == ["-", "-", "1.000"]
    assert [one["a"] for one in with_reference(SOURCES, "a")["chrF"]] == pytest.approx([100, 100])
    pairs = [{"src": "s", "good": "is not", "bad": "is now"}, {"src": "t", "good": "five nine", "bad": "five"}]
    hit, miss = Annotation([ErrorSpan(3, 6, "major")]), Annotation([ErrorSpan(0, 2, "minor")])
    of = {
        ("s", "is not"): (0.9, miss), ("s", "is now"): (0.5, hit.with_spans([*hit, *miss])),
        ("t", "five nine"): (0.5, Annotation()), ("t", "five"): (0.9, hit),
    }  # fmt: skip
    assert pair_cells(pairs, [("t", "five nine")], of) == ["0.500", "1.000", "0.667", "0.500", "0.000"]
