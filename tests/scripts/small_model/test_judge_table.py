"""The table of what models see of the difference between translations of one source."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sacrebleu")

from judge_table import Rated, kind_cells, pair_cells, rated_cells, read_kinds, with_reference

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
    assert kind_cells(pairs, of) == ["0.500", "1.000", "0.500"]
    assert kind_cells([{**one, "bad": ""} for one in pairs], of) == ["below .8: 0.500", "-", "0.500"]


def test_kinds_of_the_example() -> None:
    kinds = read_kinds(str(Path(__file__).parents[3] / "docs" / "examples" / "everyday-errors.tsv"))
    assert {len(some) for kind, some in kinds.items() if kind not in ("string", "idiom")} == {10}
    assert all(not one["bad"] for kind in ("string", "idiom") for one in kinds[kind])
