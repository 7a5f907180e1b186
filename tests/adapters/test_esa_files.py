"""ESA in its published forms, hand-written in their layout: one content, read to the same segments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.esa_files import read_esa
from mbr_esd_metric.adapters.ratings import LeftOut, MqmError
from tests.helpers.refused import refused

FILES = Path(__file__).parents[1] / "data" / "ratings"
WMT25, WMT24, TABLE = (FILES / name for name in ("wmt25-genmt-humeval.jsonl", "wmt24_esa.jsonl", "wmt25-mteval.tsv"))
#: System and segment -> errors, score and annotator.
EXPECTED = {
    ("Alpha", "0"): ((), 95.0, "a1"),
    ("Beta", "0"): ((MqmError("major", "", "translation", 0, 3),), 40.0, "a1"),
    ("Alpha", "1"): ((MqmError("minor", "", "translation", 5, 6),), 80.0, "a2"),
    ("Beta", "1"): ((MqmError("minor", "omission", "source"),), 60.0, "a2"),
}


@pytest.mark.parametrize("path", [WMT25, WMT24, TABLE])
def test_the_forms_say_the_same(path: Path) -> None:
    data = read_esa([path])
    assert [(s.lp, s.domain, s.document, s.number, s.source) for s in data.segments] == [
        ("en-cs", "news", "d1", "0", "A cat sat."),
        ("en-cs", "news", "d1", "1", "It slept."),
    ]
    (human,) = data.human
    ratings = {(one.segment.system, one.segment.label): (one.errors, one.score, one.rater) for one in human}
    assert (ratings, len(human)) == (EXPECTED, len(EXPECTED))
    assert data.lps == ("en-cs",)
    missing = LeftOut(human.ratings[-1].line, "error of text missing from the translation: has no span", "en-cs")
    challenge = [LeftOut(6, "row of a challenge set", "en-cs")] if path == TABLE else []
    assert sorted(human.left_out) == [missing, *challenge]
    assert (data.segments[0].outputs.get("refA") == "Kočka seděla tam.") == (path != WMT24)


def test_a_table_without_scores(tmp_path: Path) -> None:
    rows = [line.rpartition("\t")[0] for line in TABLE.read_text(encoding="utf-8").splitlines()]
    (tmp_path / "a.tsv").write_text("\n".join(rows), encoding="utf-8")
    assert {one.score for data in read_esa([tmp_path / "a.tsv"]).human for one in data} == {None}


def test_an_error_that_is_no_span_is_left_out(tmp_path: Path) -> None:
    text = WMT25.read_text(encoding="utf-8").replace('"severity": "major"', '"severity": "undecided"')
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    (human,) = read_esa([tmp_path / "a.jsonl"]).human
    assert [one.errors for one in human if (one.segment.system, one.segment.label) == ("Beta", "0")] == [()]
    why = "error of severity 'undecided': left out, it is not a span and has no penalty"
    assert human.left_out[0] == LeftOut(1, why, "en-cs")


def test_of_what_a_person_rated_several_times_the_last_counts(tmp_path: Path) -> None:
    first, *rest = [json.loads(line) for line in WMT24.read_text(encoding="utf-8").splitlines()]
    again = [{**first, "esa_score": score, "times": [0, end]} for score, end in (("95", 2), ("60", 9), ("30", 1.5))]
    path = tmp_path / "wmt24_esa.jsonl"
    path.write_text("\n".join(map(json.dumps, [*again, *rest])) + "\n", encoding="utf-8")
    (human,) = read_esa([path]).human
    scores = [one.score for one in human if (one.segment.system, one.segment.label) == ("Alpha", "0")]
    assert scores == [60.0]
    lines = [
        item.line
        for item in human.left_out
        if "repeated annotation by the same person: the last one counts" in item.reason
    ]
    assert lines == [2, 3]
    # In another file it is another annotation.
    assert [data.ratings[0].score for data in read_esa([path, WMT24]).human] == [60.0, 95.0]
    path.write_text(WMT24.read_text(encoding="utf-8").replace("Spala.", "Spí."), encoding="utf-8")
    refused("a different text of system Alpha", read_esa, [WMT25, path])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"doc_id": "en-cs_#_d1", "src_text": "", "tgt_text": {}, "scores": {}}\n', "line 1: doc_id"),
        ("a.jsonl", '{"langs": "en-cs"}\n', "no 'domain'"),
        ("a.jsonl", "\n", "no annotation"),
        ("a.tsv", "doc_id\tsystem_id\n", "no column segment_id"),
        ("a.xlsx", "", "read from .jsonl"),
    ],
)
def test_what_is_none_of_these_forms_is_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    refused(message, read_esa, [tmp_path / name])
