"""`mbr-esd decide`: order, malformed lines, compression, and what a file says of its decision."""

from __future__ import annotations

import errno
import json
import multiprocessing
import random
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric import decide
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.decoding import file as module
from mbr_esd_metric.decoding.file import decide_corpus, decide_file
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, read_decisions, write_records
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command

WORDS = ("der", "Hund", "und", "die", "Katze", "saßen", "da", ".")


def records(n: int, seed: int = 0) -> list[CandidateRecord]:
    rng = random.Random(seed)
    made = []
    for number in range(n):
        words = [rng.choice(WORDS) for _ in range(rng.randint(3, 12))]
        texts = [
            answer(*rng.choices(words, k=rng.choice([0, 1, 1, 2])), severity=rng.choice(["major", "minor"]))
            for _ in range(rng.randint(1, 12))
        ]
        logprobs = tuple(-rng.random() * 9 for _ in texts)
        columns = CandidateColumns(tuple(texts), logprobs, (False,) * len(texts))
        made.append(CandidateRecord(str(number), "src", " ".join(words), columns, "A"))
    return made


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


@pytest.fixture
def run(mbr_esd: Command, out: Path) -> Command:
    """Decides a file into `out`."""
    return lambda path, *words, status=0: mbr_esd("decide", path, "-o", out, *words, status=status)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(params=["candidates.jsonl", "candidates.jsonl.gz"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    write_records(path, records(40))
    return path


@pytest.mark.parametrize("options", [{}, {"utility": "softdice+f1"}, {"rule": "map"}, {"weights": "model"}])
def test_each_line_is_the_decision_for_its_segment(
    source: Path, tmp_path: Path, mbr_esd: Command, options: dict[str, Any]
) -> None:
    out = tmp_path / f"out{''.join(source.suffixes)}"
    mbr_esd("decide", source, "-o", out, *(f"--{name} {value}" for name, value in options.items()))
    assert out.read_bytes().startswith(b"\x1f\x8b") == (source.suffix == ".gz")
    for one, row in zip(read_candidates(source), read_decisions(out), strict=True):
        decision = decide(one.candidates, one.mt, **options)
        assert (row.id, row.system, row.index, row.mqm) == (one.id, "A", decision.index, decision.mqm)
        assert row.annotation == decision.annotation
        assert row.texts == tuple(one.mt[s.start : s.end] for s in decision.annotation)
        assert row.expected_utility == decision.expected_utilities[decision.index]
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, out.name]


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks, path = [], tmp_path / "candidates.jsonl.gz"
    for n in (100, 1000):
        write_records(path, records(n))
        tracemalloc.start()
        assert decide_file(path, tmp_path / "out", DecisionOptions()).segments == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000


def test_workers_change_nothing(source: Path, out: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run(source)
    alone = out.read_bytes()
    monkeypatch.setattr(module, "_BYTES", 2000)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert module.workers_for(source) == 2
    run(source)
    assert out.read_bytes() == alone


def test_the_workers_of_a_run_that_fails_have_ended(tmp_path: Path) -> None:
    """Even while somebody holds the exception; otherwise they would end in the middle of the interpreter's own end."""
    path = tmp_path / "candidates.jsonl"
    write_records(path, records(400))
    with pytest.raises(OSError, match="No space left") as held:
        decide_file(path, "/dev/full", DecisionOptions(), workers=2)
    assert multiprocessing.active_children() == []
    assert held.value.errno == errno.ENOSPC


def test_a_run_with_workers_ends_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    write_records(path, records(3))
    code = f"from mbr_esd_metric.decoding.file import decide_file; decide_file({str(path)!r}, 'out', workers=2)"
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_a_run_that_fails_leaves_the_old_file(source: Path, out: Path, run: Command, rule: str) -> None:
    out.write_text("old", encoding="utf-8")
    source.write_bytes(source.read_bytes() + b"{\n")
    before = sorted(out.parent.iterdir())
    run(source, "--rule", rule, status=1)
    assert out.read_text(encoding="utf-8") == "old"
    assert sorted(out.parent.iterdir()) == before


def test_a_file_is_decided_as_it_says(tmp_path: Path, out: Path, run: Command) -> None:
    """Unless an option changes it, which the signature says; one file has one decision."""
    path = tmp_path / "c.jsonl"
    made = [replace(one, decision={"rule": "mbr", "score": "expected"}) for one in records(3)]
    write_records(path, made)
    run(path)
    expected = [decide(one.candidates, one.mt, score="expected").score for one in made]
    assert [row["score"] for row in rows(out)] == pytest.approx(expected)
    assert "score:" not in run(path, "--score chosen").err.splitlines()[-1]
    assert [row["score"] for row in rows(out)] == [decide(one.candidates, one.mt).score for one in made]
    line = run(path, "--utility f1").err.splitlines()[-1]
    assert "|u:f1|" in line
    assert "|score:expected|" in line
    write_records(path, [*made, replace(made[0], id="other", decision={"rule": "map"})])
    assert "line 4, segment 'other' of system 'A': its \"decision\" is" in run(path, status=1).err
    write_records(path, [replace(made[0], decision={"rule": "mpb"})])
    assert "did you mean 'mbr'" in run(path, status=1).err


@pytest.mark.parametrize(("name", "content"), [("c.jsonl", ""), ("c.jsonl", "\n\n"), ("c.gen.json", "{}")])
def test_a_file_without_segments(tmp_path: Path, name: str, content: str, run: Command) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert f"{name} holds no segment" in run(tmp_path / name, status=1).err
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("workers", [1, 2])
def test_malformed_lines(
    tmp_path: Path, workers: int, out: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "workers_for", lambda _: workers)
    path = tmp_path / "c.jsonl"
    good = [json.dumps(one.to_json()) for one in records(3)]
    hopeless = json.dumps(record("s", "m", "?", number="x").to_json())
    path.write_text("\n".join([good[0], "", "{}", good[1], hopeless, good[2]]) + "\n", encoding="utf-8")
    message = run(path, status=1).err
    assert 'c.jsonl, line 3: no "src"' in message
    assert "--skip-invalid" in message
    assert not out.exists()
    message = run(path, "--skip-invalid").err
    assert [row["id"] for row in rows(out)] == ["0", "1", "2"]
    assert "3 segments decided, 2 lines left out" in message
    assert "line 3: no" in message
    assert "line 5, segment 'x': none of the 1 candidates is valid (1 not JSON)" in message


@pytest.mark.parametrize(
    ("rule", "line"), [("mbr", ""), ("mbr-corpus", "expected corpus softdice 1.0000, 1 iteration\n")]
)
def test_the_summary_says_why_candidates_cannot_be_read(tmp_path: Path, run: Command, rule: str, line: str) -> None:
    incomplete = '{"errors": [{"error_span": "m", "severity": "major"}]}'
    columns = CandidateColumns(("?", "?", incomplete, answer()), (-1.0,) * 4, (False,) * 4)
    write_records(tmp_path / "c.jsonl", [CandidateRecord("1", "s", "m", columns, "A")])
    message = run(tmp_path / "c.jsonl", "--rule", rule).err
    why = "2 not JSON, 1 an error without error_span/category/sub_category/severity"
    assert f"; 3 of 4 candidates could not be read ({why})\n{line}" in message


def test_mbr_corpus_is_that_of_the_library(source: Path, out: Path) -> None:
    summary = decide_file(source, out, DecisionOptions(rule="mbr-corpus"))
    read = list(read_candidates(source))
    expected = decide_corpus(((one.candidates, one.mt) for one in read), DecisionOptions("mbr-corpus"))
    assert [row["index"] for row in rows(out)] == [decision.index for decision in expected.decisions]
    assert summary.ratios == pytest.approx(expected.ratios)
    utilities = [decision.expected_utility for decision in expected.decisions]
    assert [row["expected_utility"] for row in rows(out)] == pytest.approx(utilities)


def test_a_utility_is_taken_where_it_says_something(source: Path, out: Path, run: Command) -> None:
    """MAP chooses without it, and reports it."""
    utilities = set()
    for utility in ("f1", "scoresim"):
        run(source, "--rule map --utility", utility)
        utilities.add(tuple(row.expected_utility for row in read_decisions(out)))
    assert len(utilities) == 2


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_blank_translations(tmp_path: Path, rule: str, out: Path, run: Command) -> None:
    path = tmp_path / "c.jsonl"
    blank = record("source", " ", answer(), answer(), number="b")
    write_records(path, [*records(2), blank])
    scores = {}
    for mode in ("worst", "perfect", "skip"):
        message = run(path, "--rule", rule, "--blank", mode).err
        scores[mode] = [row["mqm"] for row in rows(out)]
        assert ("blank translations: 1 (--blank worst)" in message) == (mode == "worst")
        assert ("segment 'b': a blank translation" in message) == (mode == "skip")
    assert scores["worst"][2] == -25
    assert scores["perfect"] == [*scores["worst"][:2], 0]
    assert scores["skip"] == scores["worst"][:2]
    write_records(path, [blank])
    run(path, "--rule", rule)
    assert (rows(out)[0]["score"], rows(out)[0]["index"], rows(out)[0]["error_spans"]) == (0, None, [])


def test_candidates_in_another_format_name_the_option(tmp_path: Path, run: Command) -> None:
    candidates = tmp_path / "candidates.jsonl"
    line = '{"id": "1", "src": "a", "mt": "und so", "candidates": [{"text": "minor <so>", "logprob": -1.0}]}'
    candidates.write_text(line + "\n", encoding="utf-8")
    message = run(candidates, status=1).err
    assert "they are in the format compact, and were read as json: say so with --format compact" in message
    run(candidates, "--format compact")
