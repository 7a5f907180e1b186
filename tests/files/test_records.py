"""Candidates and decisions files: what is read, what is refused and how it is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide
from mbr_esd_metric.core.decision import CandidateColumns, TokenLogprobs
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import (
    CandidateRecord,
    DecisionRecord,
    read_candidates,
    read_decisions,
    read_recalibration,
    write_records,
)
from mbr_esd_metric.files.streams import numbered_lines

RECORD: dict[str, Any] = {
    "id": "7",
    "system": "A",
    "src": "The cat.",
    "mt": "Die Katze.",
    "candidates": [{"text": "x", "logprob": -1.5}, {"text": "y", "logprob": None, "truncated": True}],
}


def write(path: Path, *values: object) -> Path:
    written = [value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n" for value in values]
    path.write_bytes(b"".join(written))
    return path


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    record = CandidateRecord.from_json(RECORD)
    assert record.candidates == (Candidate("x", None, -1.5), Candidate("y", truncated=True))
    bare = CandidateRecord(Segment("s", "\ud800\u2028", "8"), CandidateColumns(("t",), (-0.5,), (False,)))
    tokens = TokenLogprobs((2, 3, 0), (-0.5, -0.25, -1.0))
    single = CandidateRecord(
        Segment("s", "t", "9"), CandidateColumns(("xyü.",), (-1.75,), (False,), token_logprobs=tokens)
    )
    assert single.candidates[0].token_logprobs == tokens
    path = tmp_path / f"c.jsonl{suffix}"
    write_records(path, [record, bare, single] * 2)
    assert list(read_candidates(path)) == [record, bare, single] * 2
    assert len(list(numbered_lines(path))) == 6
    assert not list(tmp_path.glob("*.part"))


def test_decisions_round_trip(tmp_path: Path) -> None:
    record = CandidateRecord.from_json(RECORD)
    spans = [ErrorSpan(0, 3, "major", "accuracy/mistranslation"), ErrorSpan(4, 9, "minor")]
    decision = decide([Candidate(annotation=spans), Candidate(annotation=spans[:1])], record.segment.translation)
    row = DecisionRecord.of(record, decision)
    value = row.to_json()
    place = {"start": 0, "end": 3, "severity": "major", "category": "accuracy/mistranslation"}
    assert value["error_spans"][0] == {**place, "text": "Die", "confidence": 1.0}
    assert " ".join(value) == "id system index score mqm error_spans expected_utility valid distinct invalid"
    path = tmp_path / "d.jsonl.gz"
    write_records(path, [row])
    assert list(read_decisions(path)) == [row]
    assert row.annotation == Annotation(spans[: len(row.annotation)])


def test_released_code_files(tmp_path: Path) -> None:
    systems = {
        name: [[[f'text {k} ]], [[ \\ " ü', -1.0 - k, f"mt {k}", "src"] for _ in range(1 + k)] for k in range(n)]
        for name, n in (("A", 2), ('B "x"', 0), ("C", 3))
    }
    path = tmp_path / "x.en-de.gen.json"
    path.write_text(json.dumps(systems, indent=1), encoding="utf-8")
    records = list(read_candidates(path))
    assert [(r.segment.system, r.segment.label, r.segment.translation) for r in records] == [
        (s, str(k + 1), f"mt {k}") for s in "AC" for k in range(len(systems[s]))
    ]
    assert list(records[1].texts) == [candidate[0] for candidate in systems["A"][1]]
    path.write_text("{}")
    assert list(read_candidates(path)) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"A": [[["t", -1, "m"]]]}', "system 'A', segment 1: candidate 1 is not"),
        (
            '{"A": [[["t", -1, "m", "s"], ["t", -1, "n", "s"]]]}',
            "candidate 2 has a different mt or src from candidate 1",
        ),
        ('{"A": [[["t", -1, "m", "s"]], []]}', "system 'A', segment 2: give a list"),
        ('{"A": [[["t", "x", "m", "s"]]]}', "logprob"),
        ('{"A": [[["t", -1, "m", "s"]', "not JSON"),
        ("[]", "give the released code's"),
    ],
)
def test_broken_released_code_files(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.gen.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        list(read_candidates(path))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{\n", "not JSON"),
        (b'{"id": "\xff"}\n', r"not UTF-8 \(byte 8\)"),
        (b"[" * 100_000 + b"\n", "JSON nested too deeply"),
        ([], "not a list"),
        ({"id": 1, "index": 0, "error_spans": []}, "this is a decision; pass the file with its candidates"),
        (RECORD | {"id": None}, '"id" is null'),
        ({k: v for k, v in RECORD.items() if k != "mt"}, 'no "mt"'),
        (RECORD | {"system": 3}, '"system" is a number'),
        (RECORD | {"candidates": {}}, '"candidates" is an object'),
        (RECORD | {"format": "compct"}, "unknown format .compct.; did you mean .compact."),
        (RECORD | {"candidates": ["x"]}, "candidate 1 is a string"),
        (RECORD | {"candidates": [{"text": "x"}, {"text": None}]}, 'candidate 2: "text" is null'),
        (RECORD | {"candidates": [{"text": "x", "logprob": "1"}]}, "logprob must be a number"),
        (RECORD | {"candidates": [{"text": "x", "truncated": 1}]}, "true or false"),
        (b'{"id": 1, "src": "", "mt": "", "candidates": [{"text": "", "logprob": NaN}]}\n', "NaN is not a JSON number"),
        *(
            (RECORD | {"candidates": [{"text": "x", "logprob": -1.5, "tokens": tokens}]}, '"tokens" of a candidate')
            for tokens in (3, "ab", [[1]], [["1", -1.0]], [[2, -1.0]], [[1, 1.0]], [[1, None]], [[-1, 0], [2, 0]])
        ),
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, line: object, message: str) -> None:
    path = write(tmp_path / "c.jsonl", RECORD, line)
    with pytest.raises(InputError, match=r"c\.jsonl, line 2: .*" + message):
        list(read_candidates(path))


def test_malformed_decisions_are_named(tmp_path: Path) -> None:
    record = CandidateRecord.from_json(RECORD)
    good = DecisionRecord.of(record, decide([Candidate(annotation=[])], record.segment.translation)).to_json()
    for key in good.keys() - {"system"}:
        path = write(tmp_path / "d.jsonl", good, good | {key: [1]})
        with pytest.raises(InputError, match=r"d\.jsonl, line 2"):
            list(read_decisions(path))
    with pytest.raises(InputError, match=r"d\.jsonl"):
        read_recalibration(path)


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read_candidates(tmp_path / "none.jsonl"))
    pytest.importorskip("zstandard")
    for name, before, end in (("x.jsonl.gz", b"garbage", None), ("x.jsonl.zst", b"garbage", None), ("y.gz", b"", -20)):
        path = tmp_path / name
        write_records(path, [CandidateRecord.from_json(RECORD)] * 50)
        path.write_bytes(before + path.read_bytes()[:end])
        with pytest.raises(InputError, match="damaged"):
            list(read_candidates(path))
