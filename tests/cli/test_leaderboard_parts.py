"""Parts of a board, omissions, error-free translations and precision-recall curves, on a made-up test set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import write_scores
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.metaeval import spa
from mbr_esd_metric.metaeval.error_free import error_free
from mbr_esd_metric.metaeval.evaluation import precision_recall_curve
from tests.helpers.command import Command
from tests.helpers.wmt_folder import DOCUMENTS, SEGMENTS, SYSTEMS, write_folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    write_folder(folder, "wmt23", "en-de")
    return folder


@pytest.fixture(scope="module")
def test_set(data: Path) -> TestSet:
    return load_test_set(data, "wmt23", "en-de", reference="refA")


def text(data: Path, mbr_esd: Command, verb: str, *words: str) -> str:
    return mbr_esd(f"{verb} --test-set {data}/wmt23 --lp en-de", *words).out


def rows(data: Path, mbr_esd: Command, verb: str, *words: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = json.loads(text(data, mbr_esd, verb, *words, "--table json"))["rows"]
    return table


def test_precision_recall(data: Path, test_set: TestSet, mbr_esd: Command, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / "curve.png"
    areas = {row["metric"]: row for row in rows(data, mbr_esd, f"leaderboard --view precision-recall --plot {plot}")}
    metric = test_set.metric("spans-src").ratings
    assert metric is not None
    predicted = metric.of(test_set.systems, test_set.segments)
    human = [r.of(test_set.systems, test_set.segments) for r in test_set.human_ratings()]
    curve = precision_recall_curve(predicted, human, test_set.lengths)
    row = areas["spans (src)"]
    assert row["area"] == curve.area
    assert row["all spans"]["all_recall"] == curve.points[-1].recall
    assert row["the best threshold"]["best_value"] == curve.best.value
    assert areas["flat (src)"]["area"] == 0.0
    assert plot.is_file()
    assert plot.with_suffix(".svg").is_file()


def test_curves_of_metrics_without_a_span_are_no_picture(data: Path, mbr_esd: Command, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / "none.png"
    where = ["--test-set", f"{data}/wmt23", "--lp", "en-de"]
    result = mbr_esd("leaderboard --view precision-recall", *where, "--metric flat --plot", plot, status=1)
    assert "flat (src)" in result.out
    assert "no metric marks a span on a rated translation, so there is no curve to plot" in result.err
    assert "Warning" not in result.err
    assert not plot.is_file()


def test_error_free(data: Path, test_set: TestSet, mbr_esd: Command) -> None:
    board = {(row["metric"], row["by"]): row for row in rows(data, mbr_esd, "leaderboard --view error-free")}
    (ratings,) = test_set.human_ratings()
    marked = [[bool(a) for a in row] for row in ratings.of(test_set.systems, test_set.segments)]
    labels = np.where(np.isnan(test_set.gold), np.nan, ~np.array(marked))
    scores = test_set.metric("noise-refA").scores
    best = board["noise (src+ref)", "score, best"]
    assert best["mcc"] == error_free(labels, (scores >= best["threshold"]).astype(float)).mcc
    assert best["mcc"] >= error_free(labels, (scores >= -1).astype(float)).mcc
    assert board["none without error", None]["accuracy"] == 1 - np.nanmean(labels)
    assert board["flat (src)", "no span"]["recall"] == 1.0
    assert "gold score of at least 0" in text(data, mbr_esd, "leaderboard --view error-free")


def test_breakdown(data: Path, test_set: TestSet, mbr_esd: Command) -> None:
    by_domain = rows(data, mbr_esd, "leaderboard --view domain --statistics spa --measures f1-corpus-parts")
    columns = [at for at, (domain, _) in enumerate(DOCUMENTS) if domain == "talks"]
    row = next(row for row in by_domain if (row["domain"], row["metric"]) == ("talks", "noise"))
    assert row["spa"] == spa(test_set.gold[:, columns], test_set.metric("noise-refA").scores[:, columns])
    assert row["f1-corpus-recall"] is None
    exact = rows(data, mbr_esd, "leaderboard --view domain --spa exact --statistics spa --metric noise flat")
    row = next(row for row in exact if (row["domain"], row["metric"]) == ("talks", "noise"))
    assert row["spa"] == spa(test_set.gold[:, columns], test_set.metric("noise-refA").scores[:, columns], exact=True)
    printed = text(data, mbr_esd, "leaderboard --view domain --statistics spa")
    assert "depends on the order of the systems: flat in en-de\n" in printed
    documents = {row["document"]: row["segments"] for row in rows(data, mbr_esd, "leaderboard --view document")}
    assert documents == {"n1": 8, "n2": 4, "t1": 12}
    lengths = rows(data, mbr_esd, "leaderboard --view length --metric noise")
    assert [row["length"] for row in lengths] == ["0-6", "7-7", "8-"]
    assert sum(row["segments"] for row in lengths) == len(DOCUMENTS)


def omission_board(data: Path, mbr_esd: Command) -> dict[str, dict[str, Any]]:
    output = mbr_esd(f"leaderboard --view spans --test-set {data}/made --lp en-de --table json").out
    return {row["metric"]: row for row in json.loads(output)["rows"]}


def test_omissions_are_a_part_of_the_board_of_spans(tmp_path: Path, mbr_esd: Command) -> None:
    layout = write_folder(tmp_path)
    before = omission_board(tmp_path, mbr_esd)
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
    assert omission_board(tmp_path, mbr_esd) == before
    number = [line.split("\t")[0] for line in lines[:place]].count(system)
    marked = {s: [Annotation()] * SEGMENTS for s in SYSTEMS}
    spans = [ErrorSpan(start, end, "minor", side="source") for start, end in ((1, 3), (3, 4))]
    marked[system][number] = Annotation(spans)
    write_scores(layout.metric_scores("both-src", "seg"), {s: [0.0] * SEGMENTS for s in SYSTEMS})
    write_ratings(layout.metric_rating("both-src"), marked, {s: [None] * SEGMENTS for s in SYSTEMS})
    after = omission_board(tmp_path, mbr_esd)
    both = after.pop("both")
    names = ["omissions", "omission_precision", "omission_recall", "omission_f1"]
    assert [both[name] for name in names] == [2, 0.5, 1.0, pytest.approx(2 / 3)]
    assert (both["major"], both["minor"]) == (0, 0)  # spans of the translation
    assert {name: {k: v for k, v in row.items() if k not in names} for name, row in after.items()} == before
