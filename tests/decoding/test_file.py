"""Decisions for a whole file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.decoding.file import decide_file, decided_records
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import read_decisions, write_records
from tests.helpers.candidates import answer, record


def test_the_summary_counts_candidates_whether_they_can_be_read_or_not(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    good, bad = answer(), "none"
    write_records(path, [record("a", "b", good, good, bad), record("c", "d", good, bad, bad, good, good)])
    summary = decide_file(path, tmp_path / "out.jsonl", DecisionOptions())
    assert (summary.segments, summary.candidates, summary.invalid) == (2, 8, 3)
    assert not summary.skipped


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text('{\n    "mt.txt": [\n    ]\n}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"scores\.json: one JSON value over several lines"):
        decide_file(path, tmp_path / "out.jsonl", DecisionOptions())


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_records_are_decided_as_a_whole_file_is(tmp_path: Path, rule: str) -> None:
    path, out = tmp_path / "candidates.jsonl", tmp_path / "out.jsonl"
    texts = [("Der Hund bellt.", [answer("Hund"), answer("Hund"), answer()]), ("Die Katze.", [answer("Katze"), "none"])]
    write_records(path, [record("A source.", mt, *some) for mt, some in [("", []), *texts]])
    decide_file(path, out, DecisionOptions(rule))
    expected = [(one.annotation, one.score, one.valid) for one in read_decisions(out)]
    records = list(decided_records(path, DecisionOptions(rule)))
    assert [(one.annotation, one.score, one.valid) for _, one in records if one is not None] == expected
    assert [one.mt for one, _ in records] == ["", *(mt for mt, _ in texts)]
