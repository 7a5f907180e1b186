"""ESA in its published forms, hand-written in their layout: one content, read to the same segments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.esa_files import EsaData, read_esa
from mbr_esd_metric.adapters.ratings import MqmError
from tests.helpers.refused import refused

SOURCES = ["A cat sat.", "It slept."]
TEXTS = {"Alpha": ["Kočka seděla.", "Spala."], "Beta": ["Pes seděl.", "Spal."], "refA": ["Kočka seděla tam.", "Spala."]}
#: (segment, system, score, annotator, errors as Appraise exports them: the end is the last character).
RATINGS: list[tuple[int, str, float, str, list[dict[str, Any]]]] = [
    (0, "Alpha", 95.0, "a1", []),
    (0, "Beta", 40.0, "a1", [{"start_i": 0, "end_i": 2, "severity": "major"}]),
    (1, "Alpha", 80.0, "a2", [{"start_i": 5, "end_i": 5, "severity": "minor"}]),
    (1, "Beta", 60.0, "a2", [{"start_i": "missing", "end_i": "missing", "severity": "minor"}]),
]
EXPECTED = {
    ("Alpha", 0): ((), 95.0, "a1"),
    ("Beta", 0): ((MqmError("major", "", "target", 0, 3),), 40.0, "a1"),
    ("Alpha", 1): ((MqmError("minor", "", "target", 5, 6),), 80.0, "a2"),
    ("Beta", 1): ((MqmError("minor", "omission", "source"),), 60.0, "a2"),
}


def unified(path: Path, **changes: Any) -> Path:
    lines = []
    for number, source in enumerate(SOURCES):
        scores = {
            system: [{"score": score, "annotator": annotator, "errors": errors, "times": [1, 2]}]
            for segment, system, score, annotator, errors in RATINGS
            if segment == number
        }
        texts = {system: rows[number] for system, rows in TEXTS.items()}
        item = {"doc_id": f"en-cs_#_news_#_d1_#_{number}", "src_text": source, "tgt_text": texts, "scores": scores}
        lines.append(json.dumps({**item, **changes}, ensure_ascii=False) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def single(path: Path) -> Path:
    lines = []
    for segment, system, score, annotator, errors in RATINGS:
        texts = {"line_id": segment, "src": SOURCES[segment], "tgt": TEXTS[system][segment], "system": system}
        spans = [{**error, "error_type": None} for error in errors]
        answer = {"esa_spans": spans, "esa_score": str(int(score)), "annotator": annotator}
        lines.append(json.dumps({"langs": "en-cs", "doc_id": "d1", "domain": "news", **texts, **answer}) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def table(path: Path, *, overall: bool = True) -> Path:
    header = (
        "doc_id segment_id source_lang target_lang set_id system_id source_segment hypothesis_segment "
        "reference_segment domain_name method start_indices end_indices error_types annotator"
    )
    rows = [[*header.split(), *(["overall"] if overall else [])]]
    for segment, system, score, annotator, errors in RATINGS:
        row = ["d1", str(segment), "en", "cs", "official", system, SOURCES[segment], TEXTS[system][segment]]
        # Half-open, as the task's scorer takes it.
        ends = [str(e["end_i"] + 1) if e["end_i"] != "missing" else "missing" for e in errors]
        spans = [[str(e["start_i"]) for e in errors], ends, [e["severity"] for e in errors]]
        row += [TEXTS["refA"][segment], "news", "ESA"]
        row += map(" ".join, spans if errors else (["-1"], ["-1"], ["no-error"]))
        rows.append([*row, annotator, *([str(score)] if overall else [])])
    rows.append([*rows[1][:4], "challenge_x", *rows[1][5:]])
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def check(data: EsaData) -> None:
    assert [(s.lp, s.domain, s.document, s.number, s.source) for s in data.segments] == [
        ("en-cs", "news", "d1", str(number), source) for number, source in enumerate(SOURCES)
    ]
    ratings = {(system, int(s.number)): one for s in data.segments for system, (one,) in s.ratings.items()}
    assert {place: (one.errors, one.score, one.rater) for place, one in ratings.items()} == EXPECTED
    assert data.lps == ("en-cs",)


def test_one_segment_a_line(tmp_path: Path) -> None:
    data = read_esa([unified(tmp_path / "wmt25-genmt-humeval.jsonl")])
    check(data)
    assert data.segments[0].outputs == {system: rows[0] for system, rows in TEXTS.items()}
    assert data.left_out == {"en-cs": {"error that is missing from the translation: has no span": 1}}


def test_an_error_that_is_no_span_is_left_out(tmp_path: Path) -> None:
    errors = [{"start_i": 0, "end_i": 1, "severity": severity} for severity in ("undecided", "major")]
    data = read_esa([unified(tmp_path / "a.jsonl", scores={"Alpha": [{"score": 9, "errors": errors}]})])
    assert [len(s.ratings["Alpha"][0].errors or ()) for s in data.segments] == [1, 1]
    assert data.left_out == {"en-cs": {"error of severity 'undecided': left out, it is no span and has no penalty": 2}}


def test_a_table_of_the_task(tmp_path: Path) -> None:
    data = read_esa([table(tmp_path / "task.tsv")])
    check(data)
    assert data.segments[1].outputs["refA"] == TEXTS["refA"][1]
    assert data.left_out["en-cs"]["row of a challenge set"] == 1
    without = read_esa([table(tmp_path / "spans.tsv", overall=False)])
    assert {a.score for s in without.segments for each in s.ratings.values() for a in each} == {None}


def test_of_what_a_person_rated_several_times_the_last_counts(tmp_path: Path) -> None:
    path = single(tmp_path / "wmt24_esa.jsonl")
    first, *rest = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    again = [{**first, "esa_score": score, "times": [0, end]} for score, end in (("95", 2), ("60", 9), ("30", 1.5))]
    path.write_text("\n".join(map(json.dumps, [*again, *rest])) + "\n", encoding="utf-8")
    data = read_esa([path])
    assert [one.score for one in data.segments[0].ratings["Alpha"]] == [60.0]
    assert data.left_out["en-cs"]["annotation that the same person gave anew: the last one counts"] == 2
    # In another file it is another annotation.
    both = read_esa([path, single(tmp_path / "second.jsonl")])
    assert [one.score for one in both.segments[0].ratings["Alpha"]] == [60.0, 95.0]


def test_several_files_are_one(tmp_path: Path) -> None:
    first, second = unified(tmp_path / "one.jsonl"), single(tmp_path / "two.jsonl")
    check(read_esa([second]))
    data = read_esa([first, second])
    assert [len(each) for s in data.segments for each in s.ratings.values()] == [2] * 4
    second.write_text(second.read_text(encoding="utf-8").replace("Spala.", "Spí."), encoding="utf-8")
    refused("another text of system Alpha", read_esa, [first, second])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"doc_id": "en-cs_#_d1", "src_text": "", "tgt_text": {}, "scores": {}}\n', "line 1: doc_id"),
        ("a.jsonl", '{"langs": "en-cs"}\n', "no 'domain'"),
        ("a.jsonl", "[]\n", "line 1"),
        ("a.jsonl", "\n", "no annotation"),
        ("a.tsv", "doc_id\tsystem_id\n", "no column segment_id"),
        ("a.xlsx", "", "read from .jsonl"),
    ],
)
def test_what_is_none_of_these_forms_is_refused(name: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    refused(message, read_esa, [tmp_path / name])
