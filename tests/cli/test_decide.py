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
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.decoding import file as module
from mbr_esd_metric.decoding.file import decide_file
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, read_decisions, write_records
from tests.helpers.candidates import answer, record, with_segment
from tests.helpers.command import Command

WORDS = ("der", "Hund", "und", "die", "Katze", "saßen", "da", ".")


def records(n: int) -> list[CandidateRecord]:
    rng = random.Random(0)
    made = []
    for number in range(n):
        words = [rng.choice(WORDS) for _ in range(rng.randint(3, 12))]
        texts = [
            answer(*rng.choices(words, k=rng.choice([0, 1, 1, 2])), severity=rng.choice(["major", "minor"]))
            for _ in range(rng.randint(1, 12))
        ]
        logprobs = tuple(-rng.random() * 9 for _ in texts)
        columns = CandidateColumns(tuple(texts), logprobs, (False,) * len(texts))
        made.append(CandidateRecord(Segment("src", " ".join(words), str(number), "A"), columns))
    return made


@pytest.fixture(autouse=True)
def forty(workdir: Path) -> None:
    """Forty segments in c.jsonl."""
    write_records("c.jsonl", records(40))


@pytest.fixture
def run(mbr_esd: Command) -> Command:
    """Decides c.jsonl into out.jsonl."""
    return lambda *words, status=0: mbr_esd("decide c.jsonl -o out.jsonl", *words, status=status)


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
@pytest.mark.parametrize("options", [{}, {"utility": "softdice+f1"}, {"rule": "map"}, {"weights": "model"}])
def test_each_line_is_the_decision_for_its_segment(options: dict[str, Any], ending: str, mbr_esd: Command) -> None:
    source, out = f"s.{ending}", f"out.{ending}"
    write_records(source, records(40))
    mbr_esd("decide", source, "-o", out, *(f"--{name} {value}" for name, value in options.items()))
    assert Path(out).read_bytes().startswith(b"\x1f\x8b") == ending.endswith("gz")
    for one, row in zip(read_candidates(source), read_decisions(out), strict=True):
        decision = decide(one.candidates, one.segment.translation, **options)
        assert (row.id, row.system, row.index, row.mqm) == (one.segment.label, "A", decision.index, decision.mqm)
        assert row.annotation == decision.annotation
        assert row.texts == tuple(one.segment.translation[s.start : s.end] for s in decision.annotation)
        assert row.expected_utility == decision.expected_utilities[decision.index]
    assert {path.name for path in Path().iterdir()} == {"c.jsonl", source, out}


def test_memory_does_not_grow_with_the_file() -> None:
    peaks = []
    for n in (100, 1000):
        write_records("many.jsonl.gz", records(n))
        tracemalloc.start()
        assert decide_file("many.jsonl.gz", "out", DecisionOptions()).segments == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000


def test_workers_change_nothing(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    alone = rows()
    monkeypatch.setattr(module, "PIECE_BYTES", 2000)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert module.workers_for("c.jsonl") == 2
    run()
    assert rows() == alone


def test_workers_end_with_their_run_and_say_nothing() -> None:
    """Even while somebody holds the exception; otherwise they would end in the middle of the interpreter's own end."""
    code = "from mbr_esd_metric.decoding.file import decide_file; decide_file('c.jsonl', 'out', workers=2)"
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == ""
    write_records("c.jsonl", records(400))
    with pytest.raises(OSError, match="No space left") as held:
        decide_file("c.jsonl", "/dev/full", DecisionOptions(), workers=2)
    assert multiprocessing.active_children() == []
    assert held.value.errno == errno.ENOSPC


def test_a_file_is_decided_as_it_says(run: Command) -> None:
    """Unless an option changes it, which the signature says; one file has one decision."""
    made = [replace(one, decision={"rule": "mbr", "score": "expected"}) for one in records(3)]
    write_records("c.jsonl", made)
    run()
    expected = [decide(one.candidates, one.segment.translation, score="expected").score for one in made]
    assert [row["score"] for row in rows()] == pytest.approx(expected)
    assert "score:" not in run("--score chosen").err.splitlines()[-1]
    assert [row["score"] for row in rows()] == [decide(one.candidates, one.segment.translation).score for one in made]
    line = run("--utility f1").err.splitlines()[-1]
    assert "|u:f1|" in line
    assert "|score:expected|" in line
    write_records("c.jsonl", [*made, replace(with_segment(made[0], label="other"), decision={"rule": "map"})])
    assert "line 4, segment 'other' of system 'A': its \"decision\" is" in run(status=1).err
    write_records("c.jsonl", [replace(made[0], decision={"rule": "mpb"})])
    assert "did you mean 'mbr'" in run(status=1).err


@pytest.mark.parametrize(("name", "content"), [("e.jsonl", ""), ("e.jsonl", "\n\n"), ("e.gen.json", "{}")])
def test_a_file_without_segments(name: str, content: str, mbr_esd: Command) -> None:
    Path(name).write_text(content, encoding="utf-8")
    assert f"{name} contains no segment" in mbr_esd(f"decide {name} -o out.jsonl", status=1).err


@pytest.mark.parametrize("workers", [1, 2])
def test_malformed_lines(workers: int, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "workers_for", lambda _: workers)
    good = [json.dumps(one.to_json()) for one in records(3)]
    hopeless = json.dumps(record("s", "m", "?", number="x").to_json())
    lines = [good[0], "", "{}", good[1], hopeless, good[2]]
    Path("c.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    Path("out.jsonl").write_text("old", encoding="utf-8")
    message = run(status=1).err
    assert 'c.jsonl, line 3: no "src"; give a string; fix the line, or skip such lines with --skip-inv' in message
    assert Path("out.jsonl").read_text(encoding="utf-8") == "old"
    message = run("--skip-invalid").err
    assert [row["id"] for row in rows()] == ["0", "1", "2"]
    assert "3 segments decided, 2 lines skipped" in message
    assert "line 3: no" in message
    assert "line 5, segment 'x': no candidate is valid (1 not JSON)" in message


@pytest.mark.parametrize(
    ("rule", "line"), [("mbr", ""), ("mbr-corpus", "expected corpus softdice 1.0000, 1 iteration\n")]
)
def test_the_summary_says_why_candidates_cannot_be_read(run: Command, rule: str, line: str) -> None:
    write_records("c.jsonl", [record("s", "m", "?", "?", '{"errors": [{"error_span": "m"}]}', answer())])
    why = "2 not JSON, 1 an error without error_span and severity"
    assert f"; 3 of 4 candidates are invalid ({why})\n{line}" in run("--rule", rule).err


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_blank_translations(rule: str, run: Command) -> None:
    blank = record("source", " ", answer(), answer(), number="b")
    write_records("c.jsonl", [*records(2), blank])
    for mode, mqm, said in (
        ("worst", [-25.0], "blank translations: 1 (--blank worst)"),
        ("perfect", [0.0], "|blank:perfect|"),
        ("skip", [], "segment 'b': a blank translation (blank=skip)"),
    ):
        assert said in run("--rule", rule, "--blank", mode).err
        assert [row["mqm"] for row in rows()[2:]] == mqm
    write_records("c.jsonl", [blank])
    assert "blank translations: 1 (--blank worst)" in run("--rule", rule).err


def test_candidates_in_another_format_name_the_option(run: Command) -> None:
    write_records("c.jsonl", [record("a", "und so", "minor <so>")])
    message = run(status=1).err
    assert "they are in the format compact, and were read as json: say so with --format compact" in message
    run("--format compact")
