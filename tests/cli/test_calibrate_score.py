"""`mbr-esd calibrate --score`: a score learnt from candidates and people's ratings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.candidate import CandidateColumns, ExpectedSpans
from mbr_esd_metric.core.learnt_score import LearntScore
from mbr_esd_metric.files.learnt_file import read_learnt
from mbr_esd_metric.files.records import CandidateRecord, write_records


def written(folder: Path, pair: str, count: int, seed: int) -> list[Path]:
    """Ratings that a major error for each two that are expected makes, and what was expected."""
    rng = np.random.default_rng(seed)
    records, lines = [], []
    for number in range(count):
        source, text = f"{pair} source {number}", "word " * 9 + str(number)
        expected = ExpectedSpans(float(rng.exponential(0.3)), float(rng.integers(5)), 0.0, 10, 20.0)
        sampled = CandidateColumns(("x", "y"), (None,) * 2, (False,) * 2, expected=(expected, expected))
        records.append(CandidateRecord(str(number), source, text, sampled))
        ends = [str(5 * i + 4) for i in range(int(expected.major / 2 + 0.5))]
        starts = [str(5 * i) for i in range(len(ends))]
        columns = (
            (" ".join(starts), " ".join(ends), " ".join(["major"] * len(ends))) if ends else ("-1", "-1", "no-error")
        )
        lines.append("\t".join(["mt", "doc", str(number), "rater", source, text, *columns]))
    table, candidates = folder / f"2022_{pair}.tsv", folder / f"{pair}.jsonl"
    table.write_text("".join(line + "\n" for line in lines))
    write_records(candidates, records)
    return [candidates, table]


def test_a_score_is_learnt_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [*written(tmp_path, "en-de", 60, 0), *written(tmp_path, "zh-en", 30, 1)]
    out = tmp_path / "score.json"
    assert main(["calibrate", "--score", str(out), *map(str, paths)]) == 0
    learnt = read_learnt(LearntScore, out)
    assert learnt.learnt_on == "90 translations: 60 en-de, 30 zh-en"
    assert str(learnt) in capsys.readouterr().err
    scores = [learnt.of(ExpectedSpans(0.1, major, 0.0, 10, 20.0)) for major in (0.0, 1.0, 2.0, 4.0)]
    assert sorted(scores, reverse=True) == scores
    assert scores[0] > -2 > scores[2]
    assert (
        main(
            [
                "decide",
                str(paths[0]),
                "-o",
                str(tmp_path / "d.jsonl"),
                "--answers",
                "marked",
                "--invalid",
                "empty",
                "--score",
                str(out),
            ]
        )
        == 0
    )


def test_candidates_of_other_translations_teach_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    candidates, _ = written(tmp_path, "en-de", 3, 0)
    _, table = written(tmp_path, "zh-en", 3, 0)
    assert main(["calibrate", "--score", str(tmp_path / "s.json"), str(candidates), str(table)]) == 1
    assert "the texts of both files must be the same" in capsys.readouterr().err
