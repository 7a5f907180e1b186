"""A board says how well metrics find what is left out, and only where one says such a thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.wmt.layout import write_scores
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from tests.helpers.wmt_folder import SEGMENTS, SYSTEMS, write_folder


def board(data: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    where = ["--test-set", f"{data}/made", "--lp", "en-de", "--table", "json"]
    assert main(["leaderboard", "--tasks", "spans", *where]) == 0
    return {row["metric"]: row for row in json.loads(capsys.readouterr().out)["rows"]}


def test_omissions_are_a_part_of_the_board_of_spans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layout = write_folder(tmp_path)
    before = board(tmp_path, capsys)
    assert not any("omission" in name for row in before.values() for name in row)
    rating = layout.human_rating("mqm.merged")
    lines = rating.read_text(encoding="utf-8").splitlines()
    place = next(i for i, line in enumerate(lines) if not line.endswith("\tNone"))
    system, stored = lines[place].split("\t")
    human = json.loads(stored)
    issue = {"start": 0, "end": 2, "category": "Source issue", "severity": "major", "is_source_error": True}
    human["errors"] += [issue, issue | {"category": "Accuracy/Omission"}]
    lines[place] = f"{system}\t{json.dumps(human)}"
    rating.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # People's omissions alone change nothing.
    assert board(tmp_path, capsys) == before
    number = [line.split("\t")[0] for line in lines[:place]].count(system)
    said = {s: [Annotation()] * SEGMENTS for s in SYSTEMS}
    said[system][number] = Annotation(
        [ErrorSpan(1, 3, "minor", side="source"), ErrorSpan(3, 4, "minor", side="source")]
    )
    write_scores(layout.metric_scores("both-src", "seg"), {s: [0.0] * SEGMENTS for s in SYSTEMS})
    write_ratings(layout.metric_rating("both-src"), said, {s: [None] * SEGMENTS for s in SYSTEMS})
    after = board(tmp_path, capsys)
    mine = after["both"]
    names = ["omissions", "omission_precision", "omission_recall", "omission_f1"]
    assert [mine[name] for name in names] == [2, 0.5, 1.0, pytest.approx(2 / 3)]
    assert (mine["major"], mine["minor"]) == (0, 0)  # spans of the translation
    assert {
        name: {k: v for k, v in row.items() if k not in names} for name, row in after.items() if name != "both"
    } == (before)
