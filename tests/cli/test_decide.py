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
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.decoding import file as module
from mbr_esd_metric.decoding.file import decide_file
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus
from mbr_esd_metric.elicit.formats.json import render_answer
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, read_decisions, write_records

WORDS = ("der", "Hund", "und", "die", "Katze", "saßen", "da", ".")


def records(n: int, seed: int = 0) -> list[CandidateRecord]:
    rng = random.Random(seed)
    made = []
    for number in range(n):
        words = [rng.choice(WORDS) for _ in range(rng.randint(3, 12))]
        texts = []
        for _ in range(rng.randint(1, 12)):
            errors = [
                {
                    "error_span": rng.choice(words),
                    "category": "style",
                    "sub_category": "awkward",
                    "severity": rng.choice(["major", "minor"]),
                }
                for _ in range(rng.choice([0, 1, 1, 2]))
            ]
            texts.append(render_answer(errors))
        logprobs = tuple(-rng.random() * 9 for _ in texts)
        columns = CandidateColumns(tuple(texts), logprobs, (False,) * len(texts))
        made.append(CandidateRecord(str(number), "src", " ".join(words), columns, "A"))
    return made


def run(*words: object) -> int:
    return main(["decide", *map(str, words), "--quiet"])


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(params=["candidates.jsonl", "candidates.jsonl.gz"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    write_records(path, records(40))
    return path


@pytest.mark.parametrize("options", [[], ["--utility", "softdice+f1"], ["--rule", "map"], ["--weights", "model"]])
def test_each_line_is_the_decision_for_its_segment(source: Path, tmp_path: Path, options: list[str]) -> None:
    out = tmp_path / "out.jsonl"
    assert run(source, "-o", out, *options) == 0
    given = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}
    for record, row in zip(read_candidates(source), read_decisions(out), strict=True):
        decision = decide(record.candidates, record.mt, **given)  # type: ignore[arg-type]
        assert (row.id, row.system, row.index, row.mqm) == (record.id, "A", decision.index, decision.mqm)
        assert row.annotation == decision.annotation
        assert row.texts == tuple(record.mt[s.start : s.end] for s in decision.annotation)
        assert row.expected_utility == decision.expected_utilities[decision.index]
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, "out.jsonl"]


@pytest.mark.parametrize(("suffix", "magic"), [(".gz", b"\x1f\x8b"), (".zst", b"\x28\xb5\x2f\xfd")])
def test_the_output_is_compressed_by_its_suffix(source: Path, tmp_path: Path, suffix: str, magic: bytes) -> None:
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    plain, out = tmp_path / "out.jsonl", tmp_path / f"out.jsonl{suffix}"
    for path in (plain, out):
        assert run(source, "-o", path) == 0
    assert out.read_bytes().startswith(magic)
    assert list(read_decisions(out)) == list(read_decisions(plain))
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, "out.jsonl", out.name]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 1 << 14)
    peaks, path = [], tmp_path / f"candidates.{ending}"
    for n in (100, 1000):
        write_records(path, records(n))
        tracemalloc.start()
        assert decide_file(path, tmp_path / "out", DecisionOptions()).segments == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 500_000


def test_workers_change_nothing(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 2000)
    for name, workers in (("one", 1), ("two", 2)):
        assert run(source, "-o", tmp_path / name, "--workers", workers) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_workers_of_a_run_that_fails_have_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even while somebody holds the exception; otherwise they would end in the middle of the interpreter's own end."""
    monkeypatch.setattr(module, "_BLOCK", 2000)
    path = tmp_path / "candidates.jsonl"
    write_records(path, records(400))
    with pytest.raises(OSError, match="No space left") as held:
        decide_file(path, "/dev/full", DecisionOptions(), workers=2)
    assert multiprocessing.active_children() == []
    assert held.value.errno == errno.ENOSPC


def test_a_run_with_workers_ends_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    write_records(path, records(3))
    command = [sys.executable, "-m", "mbr_esd_metric", "decide", path, "-o", tmp_path / "out", "--workers", "2"]
    for _ in range(5):
        done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, check=True)
        assert done.stderr == ""


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_a_run_that_fails_leaves_the_old_file(source: Path, tmp_path: Path, rule: str) -> None:
    out = tmp_path / "out"
    out.write_text("old", encoding="utf-8")
    source.write_bytes(source.read_bytes() + b"{\n")
    before = sorted(tmp_path.iterdir())
    assert run(source, "-o", out, "--rule", rule) == 1
    assert out.read_text(encoding="utf-8") == "old"
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_is_decided_as_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unless an option changes it, which the signature says; one file has one decision."""
    path, out = tmp_path / "c.jsonl", tmp_path / "out"
    made = [replace(one, decision={"rule": "mbr", "score": "expected"}) for one in records(3)]
    write_records(path, made)
    assert run(path, "-o", out, "--quiet") == 0
    expected = [decide(one.candidates, one.mt, score="expected").score for one in made]
    assert [row["score"] for row in rows(out)] == pytest.approx(expected)
    assert main(["decide", str(path), "-o", str(out), "--score", "chosen"]) == 0
    assert "score:" not in capsys.readouterr().err.splitlines()[-1]
    assert [row["score"] for row in rows(out)] == [decide(one.candidates, one.mt).score for one in made]
    assert main(["decide", str(path), "-o", str(out), "--utility", "f1"]) == 0
    assert "|u:f1|" in (line := capsys.readouterr().err.splitlines()[-1])
    assert "|score:expected|" in line
    write_records(path, [*made, replace(made[0], id="other", decision={"rule": "map"})])
    assert run(path, "-o", out) == 1
    assert "line 4, segment 'other' of system 'A': its \"decision\" is" in capsys.readouterr().err
    write_records(path, [replace(made[0], decision={"rule": "mpb"})])
    assert run(path, "-o", out) == 1
    assert "did you mean 'mbr'" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "content"), [("c.jsonl", ""), ("c.jsonl", "\n\n"), ("c.gen.json", "{}")])
def test_a_file_without_segments(tmp_path: Path, name: str, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert run(tmp_path / name, "-o", tmp_path / "out") == 1
    assert f"{name} holds no segment" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("workers", [1, 2])
def test_malformed_lines(tmp_path: Path, workers: int, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out.jsonl"
    good = [json.dumps(record.to_json()) for record in records(3)]
    hopeless = json.dumps(CandidateRecord("x", "s", "m", CandidateColumns(("?",), (None,), (False,))).to_json())
    path.write_text("\n".join([good[0], "", "{}", good[1], hopeless, good[2]]) + "\n", encoding="utf-8")
    assert run(path, "-o", out, "--workers", workers) == 1
    said = capsys.readouterr().err
    assert 'c.jsonl, line 3: no "src"' in said
    assert "--skip-invalid" in said
    assert not out.exists()
    assert main(["decide", str(path), "-o", str(out), "--workers", str(workers), "--skip-invalid"]) == 0
    assert [row["id"] for row in rows(out)] == ["0", "1", "2"]
    said = capsys.readouterr().err
    assert "3 segments decided, 2 lines left out" in said
    assert "line 3: no" in said
    assert "line 5, segment 'x': none of the 1 candidates is valid (1 not JSON)" in said


def test_invalid_empty_and_google_weights(tmp_path: Path) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out.jsonl"
    comma = {"error_span": ",", "category": "fluency", "sub_category": "punctuation", "severity": "minor"}
    answer = render_answer([comma])
    columns = CandidateColumns((answer, "?", "?"), (-1, -1, -1), (False,) * 3)
    write_records(path, [CandidateRecord("1", "s", "a, b", columns)])
    assert run(path, "-o", out, "--mqm", "google") == 0
    assert (rows(out)[0]["mqm"], rows(out)[0]["valid"], rows(out)[0]["invalid"]) == (-0.1, 1, 2)
    assert run(path, "-o", out, "--invalid", "empty") == 0
    assert (rows(out)[0]["index"], rows(out)[0]["spans"], rows(out)[0]["distinct"]) == (1, [], 2)


def test_mbr_corpus_is_that_of_the_library(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    summary = decide_file(source, out, DecisionOptions(rule="mbr-corpus"))
    read = list(read_candidates(source))
    expected = decide_corpus(((record.candidates, record.mt) for record in read), DecisionOptions("mbr-corpus"))
    assert [row["index"] for row in rows(out)] == [decision.index for decision in expected.decisions]
    assert summary.ratios == pytest.approx(expected.ratios)
    utilities = [decision.expected_utility for decision in expected.decisions]
    assert [row["expected_utility"] for row in rows(out)] == pytest.approx(utilities)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rule", "mrb"], "error: --rule mrb: unknown rule 'mrb'; did you mean 'mbr'"),
        (["--rule", "oracle"], "--rule oracle needs human annotations"),
        (["--rule", "mbr-corpus", "--utility", "softf1"], "--utility softf1 changes nothing with --rule mbr-corpus"),
        (["--utility", "softf2"], "softf1"),
        (["--format", "compct"], "error: --format compct: unknown format 'compct'; did you mean 'compact'"),
        *(
            (["--weights", "w"], "'w'"),
            (["--invalid", "w"], "'w'"),
            (["--mqm", "w"], "'w'"),
            (["--location", "w"], "'w'"),
        ),
        (["--workers", "0"], "error: "),
    ],
)
def test_options_that_are_refused_leave_nothing(
    source: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(source, "-o", tmp_path / "out", *words) == 1
    error = capsys.readouterr().err
    assert said in error
    assert "mrb" not in words or "oracle" not in error
    assert [path.name for path in tmp_path.iterdir()] == [source.name]


def test_a_utility_is_taken_where_it_says_something(source: Path, tmp_path: Path) -> None:
    utilities = []
    for utility in ("f1", "scoresim"):
        assert run(source, "-o", tmp_path / utility, "--rule", "map", "--utility", utility) == 0
        utilities.append([row.expected_utility for row in read_decisions(tmp_path / utility)])
    assert utilities[0] != utilities[1]  # MAP chooses without it, and reports it


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_blank_translations(tmp_path: Path, rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out.jsonl"
    blank = CandidateRecord("b", "source", " ", CandidateColumns((render_answer([]),) * 2, (-1.0, -1.0), (False,) * 2))
    write_records(path, [*records(2), blank])
    scores = {}
    for mode in ("worst", "perfect", "skip"):
        capsys.readouterr()
        assert main(["decide", str(path), "-o", str(out), "--rule", rule, "--blank", mode]) == 0
        scores[mode] = [row["mqm"] for row in rows(out)]
        said = capsys.readouterr().err
        assert ("blank translations: 1 (--blank worst)" in said) == (mode == "worst")
        assert ("segment 'b': a blank translation" in said) == (mode == "skip")
    assert scores["worst"][2] == -25
    assert scores["perfect"] == [*scores["worst"][:2], 0]
    assert scores["skip"] == scores["worst"][:2]
    write_records(path, [blank])
    assert run(path, "-o", out, "--rule", rule) == 0
    assert (rows(out)[0]["score"], rows(out)[0]["index"], rows(out)[0]["spans"]) == (0, None, [])


def test_candidates_in_another_format_name_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidates = tmp_path / "candidates.jsonl"
    line = '{"id": "1", "src": "a", "mt": "und so", "candidates": [{"text": "minor <so>", "logprob": -1.0}]}'
    candidates.write_text(line + "\n", encoding="utf-8")
    out = str(tmp_path / "out.jsonl")
    assert main(["decide", str(candidates), "-o", out]) == 1
    assert (
        "(1 not JSON); they are in the format compact, and were read as json: say so with --format compact"
        in capsys.readouterr().err
    )
    assert main(["decide", str(candidates), "-o", out, "--format", "compact"]) == 0


def test_where_every_score_is_the_same_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = '{"error_span": "b", "category": "accuracy", "sub_category": "x", "severity": "major"}'
    texts = ['{"errors": []}', '{"errors": []}', f'{{"errors": [{error}]}}']
    path = tmp_path / "candidates.jsonl"
    lines = [
        json.dumps({"id": str(i), "src": "a", "mt": "a b", "candidates": [{"text": t} for t in texts[: i + 1]]})
        for i in (1, 2)
    ]
    path.write_text("\n".join(lines) + "\n")
    out = str(tmp_path / "out.jsonl")
    assert main(["decide", str(path), "-o", out]) == 0
    assert "all 2 segments have the score 1; --score expected takes the mean" in capsys.readouterr().err
    assert main(["decide", str(path), "-o", out, "--score", "expected"]) == 0
    assert "have the score" not in capsys.readouterr().err
