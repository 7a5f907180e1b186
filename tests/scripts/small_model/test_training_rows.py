"""Rows that the small model learns from: joined ones, the order of translations, minimal pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import training_rows
from training_rows import Row


def test_joined_rows_have_the_errors_of_both() -> None:
    first, second = Row("a", "bb", ((0, 2, 2),)), Row("c", "dd", ((1, 2, 1),))
    both = training_rows.joined(first, second)
    assert (both.translation, both.errors) == ("bb dd", ((0, 2, 2), (4, 5, 1)))
    assert both.quality == pytest.approx(-1.9459, abs=1e-4)


def test_translations_of_a_source_have_the_order_of_the_mean_of_their_raters(tmp_path: Path) -> None:
    lines = ["mt_system\tdoc\tseg\trater\tsource\ttarget\tstart_indices\tend_indices\terrors"]
    for rater, ends in (("strict", ("1 2", "2")), ("mild", ("1", "-1"))):
        for system, end in zip("ab", ends, strict=True):
            fine = end == "-1"
            starts, kinds = (
                (end, "no-error") if fine else (" ".join("0" for _ in end.split()), "major " * len(end.split()))
            )
            lines.append("\t".join([system, "doc", "1", rater, "eins", f"one {system}", starts, end, kinds.strip()]))
    path = tmp_path / "2021_de-en.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    mqm, clean = training_rows.read_mqm_rows(str(path), 1.0)
    [[worse, better]] = mqm.sources
    assert [row.order for row in worse] == pytest.approx([-2, -2]), "one standard deviation of each rater"
    assert [row.order for row in better] == pytest.approx([2, 2])
    assert worse[0].quality == pytest.approx(-(2.3979 + 1.7918) / 2, abs=1e-3)
    assert [one.translation for one in clean] == ["one b"]


def test_minimal_pairs_say_where_something_is_lost(tmp_path: Path) -> None:
    pair = {"kind": "negation", "severity": "critical", "src": "nicht da", "good": "is not here", "bad": "is here"}
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(pair | {"wrong": [], "removed": [[3, 7]]}) + "\n", encoding="utf-8")
    [[good, bad]] = training_rows.read_minimal(path)["negation"]
    assert (good.errors, bad.errors, bad.sides) == ((), ((1, 3, 2),), (4.0, 0.0))
    assert (good.order or 0.0) > (bad.order or 0.0)
