"""Statistics, tasks, parts, omissions, error-free translations and curves of a made-up test set in the layout."""

from __future__ import annotations

import json
import shutil
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import read_scores, write_scores
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.metaeval import acc_eq, correlation, spa
from mbr_esd_metric.metaeval.error_free import error_free
from mbr_esd_metric.metaeval.spans import precision_recall_curve
from tests.helpers.command import Command
from tests.helpers.wmt_folder import DOCUMENTS, SEGMENTS, SYSTEMS, write_folder

LPS = ("en-de", "zh-en")
BOTH = "--lp en-de zh-en"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    for lp in LPS:
        write_folder(folder, "wmt23", lp)
    return folder


@pytest.fixture(scope="module")
def test_sets(data: Path) -> dict[str, TestSet]:
    return {lp: load_test_set(data, "wmt23", lp) for lp in LPS}


@pytest.fixture
def board(data: Path, mbr_esd: Command) -> Command:
    """`mbr-esd leaderboard` of the test set; --lp is en-de where it is not given."""

    def run(*words: object, status: int = 0) -> Any:
        lp = () if any("--lp" in str(word) for word in words) else ("--lp en-de",)
        return mbr_esd(f"leaderboard --test-set {data}/wmt23", *lp, *words, status=status)

    return run


def rows(board: Command, *words: object) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = json.loads(board(*words, "--table json").out)["rows"]
    return table


def by_metric(board: Command, *words: object) -> dict[str, Any]:
    return {row["metric"]: row for row in rows(board, *words)}


def test_correlations_are_those_of_the_stored_scores(board: Command, test_sets: dict[str, TestSet]) -> None:
    statistics = "sys-pearson sys-accuracy seg-kendall-item seg-spearman-none spa"
    shown = by_metric(board, BOTH, "--statistics", statistics)
    assert set(shown) == {"flat", "length", "noise", "spans", "systems"}
    for lp, test_set in test_sets.items():
        stored = read_scores(test_set.layout.metric_file("length-src", "sys.score"))
        gold = np.nanmean(test_set.gold, axis=1)
        systems = np.array([stored[system][0] for system in SYSTEMS], dtype=float)
        length = test_set.metric("length-src").scores
        expected = {
            # Stored scores of systems are not the means of segments.
            "sys-pearson": stats.pearsonr(gold, systems).statistic,
            "sys-accuracy": (stats.kendalltau(gold, systems).statistic + 1) / 2,
            "seg-kendall-item": correlation(test_set.gold, length, "kendall", "item"),
            "seg-spearman-none": correlation(test_set.gold, length, "spearman"),
            "spa": spa(test_set.gold, length),
        }
        assert shown["length"][lp] == pytest.approx(expected, abs=1e-12)
        assert shown["systems"][lp]["sys-pearson"] == pytest.approx(1.0)
        assert shown["systems"][lp]["spa"] is None
        assert shown["flat"][lp]["sys-pearson"] == 0.0
    mean = np.mean([shown["noise"][lp]["spa"] for lp in LPS])
    assert shown["noise"]["average"]["spa"] == pytest.approx(mean)


def test_documents_are_compared_by_their_means_or_their_gold(data: Path, tmp_path: Path, mbr_esd: Command) -> None:
    folder = shutil.copytree(data, tmp_path / "data")
    copied = partial(mbr_esd, f"leaderboard --test-set {folder}/wmt23 --lp en-de")
    words = "--statistics doc-pearson-none doc-kendall-item"
    shown = by_metric(copied, words)["length"]["en-de"]
    test_set = load_test_set(folder, "wmt23", "en-de")
    names = [document for _, document in test_set.documents]
    at = [[i for i, name in enumerate(names) if name == one] for one in dict.fromkeys(names)]
    scores = test_set.metric("length-src").scores
    rated = np.where(np.isnan(test_set.gold), np.nan, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a document without a rating
        gold, length = (
            np.stack([np.nanmean(of[:, columns], axis=1) for columns in at], 1) for of in (test_set.gold, rated)
        )
    rated_documents = ~np.isnan(gold)
    pearson = stats.pearsonr(gold[rated_documents], length[rated_documents]).statistic
    assert shown["doc-pearson-none"] == pytest.approx(pearson, abs=1e-12)
    assert shown["doc-kendall-item"] == pytest.approx(correlation(gold, length, "kendall", "item"))
    # Gold of documents that stands in the folder; the metric's is then the mean of all segments.
    gold = np.random.default_rng(1).normal(size=gold.shape)
    path = test_set.layout.human_file("mqm", "doc.score")
    write_scores(path, {s: list(v) for s, v in zip(test_set.systems, gold.tolist(), strict=True)})
    length = np.stack([scores[:, columns].mean(axis=1) for columns in at], 1)
    pearson = stats.pearsonr(gold.ravel(), length.ravel()).statistic
    assert by_metric(copied, words)["length"]["en-de"]["doc-pearson-none"] == pytest.approx(pearson, abs=1e-9)


@pytest.mark.parametrize(
    "view", ["--k 0", "--statistics acc_eq", "--view overall", "--view domain", "--view error-free"]
)
def test_every_view_marks_what_is_no_primary_submission(view: str, board: Command) -> None:
    printed = board(view).out
    assert "*noise" in printed
    assert "*: contrastive submission, or none; _: baseline" in printed


def test_overall_is_the_weighted_mean_of_the_tasks(board: Command, test_sets: dict[str, TestSet]) -> None:
    shown = by_metric(board, "--view overall", BOTH)
    row = shown["noise"]
    expected = 0.25 * row["all"]["sys-accuracy"]
    for lp in LPS:
        expected += 0.125 * (row[lp]["sys-pearson"] + 1) / 2
        expected += 0.125 * (row[lp]["seg-pearson-none"] + 1) / 2
        expected += 0.125 * row[lp]["acc_eq"]
    assert row["overall"] == pytest.approx(expected, abs=1e-12)
    assert shown["systems"]["overall"] is None
    test_set = test_sets["zh-en"]
    metric = test_set.metric("noise-refA").scores
    assert row["zh-en"]["acc_eq"] == pytest.approx(acc_eq(test_set.gold, metric).accuracy, abs=1e-12)
    (other_year,) = rows(board, "--view wmt24 --metric noise")
    assert set(other_year["en-de"]) == {"spa", "acc_eq"}


def test_what_cannot_be_shown_is_refused(data: Path, board: Command, mbr_esd: Command) -> None:
    for words, message in (
        ("--statistics seg-kendal-item", "seg-kendall-item"),
        ("--statistics --metric lenght", "length"),
        ("--view wmt21", "wmt23"),
        ("--plot x.png", "--plot changes nothing with another view than lambda-sweep and precision-recall"),
        ("--view spans --statistics spa", "--statistics changes nothing with --view spans"),
    ):
        assert message in board(words, status=1).err
    write_folder(data, "made", "en-de")
    assert "--view wmt23" in mbr_esd(f"leaderboard --view overall --test-set {data}/made --lp en-de", status=1).err


def test_spa_is_exact_with_the_option(board: Command, test_sets: dict[str, TestSet]) -> None:
    for view in ("--statistics spa acc_eq", "--view wmt24"):
        shown = json.loads(board(BOTH, "--spa exact", view, "--table json").out)
        assert "SPA: exact, of infinitely many permutations" in shown["notes"]
        assert any("SPA says nothing" in note and "flat in en-de, zh-en" in note for note in shown["notes"])
        of_metric = {row["metric"]: row for row in shown["rows"]}
        for lp, test_set in test_sets.items():
            for name in ("length-src", "noise-refA"):
                expected = spa(test_set.gold, test_set.metric(name).scores, exact=True)
                assert of_metric[name.split("-")[0]][lp]["spa"] == pytest.approx(expected, abs=1e-12)
                assert expected != spa(test_set.gold, test_set.metric(name).scores)
    ranked = {row["metric"] for row in shown["rows"] if row["overall"] is not None and row["overall_rank"]}
    assert ranked == {"flat", "length", "noise", "spans"}


def test_a_metric_that_cannot_be_shown_is_refused_with_its_reason(board: Command) -> None:
    views = ["", "--view error-free", "--view domain", "--view spans"]
    for view in views:
        message = board(view, "--metric systems", status=1).err
        assert "systems-refA is left out in en-de: it has no scores of segments" in message
    for view in [*views, "--statistics"]:
        message = board(view, "--reference refB --metric noise", status=1).err
        assert "noise-refA is left out in en-de: it uses refA" in message


def test_one_broken_file_stops_no_board(tmp_path: Path, mbr_esd: Command) -> None:
    layout = write_folder(tmp_path)
    layout.metric_file("noise-refA", "seg.score").write_text("A\t0.5\nB\tbad\n", encoding="utf-8")
    board = f"leaderboard --test-set {tmp_path}/made --lp en-de"
    for view in ("--k 0", "--statistics", "--view wmt23", "--view error-free", "--view spans", "--view domain"):
        printed = mbr_esd(board, view).out
        assert printed.count("noise-refA is left out in en-de: ") == 1
        assert "noise-refA.seg.score" in printed
        assert "spans" in printed
        if view != "--view spans":
            assert "noise-refA.seg.score" in mbr_esd(board, view, "--metric noise", status=1).err


def test_precision_recall(board: Command, test_sets: dict[str, TestSet], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot, test_set = tmp_path / "curve.png", test_sets["en-de"]
    areas = by_metric(board, "--view precision-recall --plot", plot)
    metric = test_set.metric("spans-src").ratings
    assert metric is not None
    predicted = metric.of(test_set.systems, test_set.segments)
    curve = precision_recall_curve(predicted, list(test_set.human().values()), test_set.lengths)
    row = areas["spans (src)"]
    assert row["area"] == curve.area
    assert row["all spans"]["all_recall"] == curve.points[-1].recall
    assert row["the best threshold"]["best_value"] == curve.best.value
    assert areas["flat (src)"]["area"] == 0.0
    assert plot.is_file()
    assert plot.with_suffix(".svg").is_file()
    none = tmp_path / "none.png"
    result = board("--view precision-recall --metric flat --plot", none, status=1)
    assert "flat (src)" in result.out
    assert "no metric marks a span on a rated translation, so there is no curve to plot" in result.err
    assert "Warning" not in result.err
    assert not none.is_file()


def test_error_free(board: Command, test_sets: dict[str, TestSet]) -> None:
    test_set = test_sets["en-de"]
    shown = {(row["metric"], row["by"]): row for row in rows(board, "--view error-free")}
    (human,) = test_set.human().values()
    labels = np.where(np.isnan(test_set.gold), np.nan, ~np.array([[bool(a) for a in row] for row in human]))
    scores = test_set.metric("noise-refA").scores
    best = shown["noise (src+ref)", "score, best"]
    assert best["mcc"] == error_free(labels, (scores >= best["threshold"]).astype(float)).mcc
    assert best["mcc"] >= error_free(labels, (scores >= -1).astype(float)).mcc
    assert shown["none without error", None]["accuracy"] == 1 - np.nanmean(labels)
    assert shown["flat (src)", "no span"]["recall"] == 1.0
    assert "gold score of at least 0" in board("--view error-free").out


def test_breakdown(board: Command, test_sets: dict[str, TestSet]) -> None:
    test_set = test_sets["en-de"]
    columns = [at for at, (domain, _) in enumerate(DOCUMENTS) if domain == "talks"]
    gold, scores = test_set.gold[:, columns], test_set.metric("noise-refA").scores[:, columns]
    for exact in (False, True):
        words = "--view domain --statistics spa --measures f1-corpus-parts"
        shown = rows(board, words, *(["--spa exact"] if exact else []))
        row = next(row for row in shown if (row["domain"], row["metric"]) == ("talks", "noise"))
        assert row["spa"] == spa(gold, scores, exact=exact)
        assert row["f1-corpus-recall"] is None
    printed = board("--view domain --statistics spa").out
    assert "depends on the order of the systems: flat in en-de\n" in printed
    documents = {row["document"]: row["segments"] for row in rows(board, "--view document")}
    assert documents == {"n1": 8, "n2": 4, "t1": 12}
    lengths = rows(board, "--view length --metric noise")
    assert [row["length"] for row in lengths] == ["0-6", "7-7", "8-"]
    assert sum(row["segments"] for row in lengths) == len(DOCUMENTS)


def test_omissions_are_a_part_of_the_board_of_spans(tmp_path: Path, mbr_esd: Command) -> None:
    layout = write_folder(tmp_path)
    board = partial(mbr_esd, f"leaderboard --view spans --test-set {tmp_path}/made --lp en-de")
    before = by_metric(board)
    assert "no error" in before
    assert not any("omission" in name for row in before.values() for name in row)
    rating = layout.human_file("mqm.merged", "seg.rating")
    lines = rating.read_text(encoding="utf-8").splitlines()
    place = next(i for i, line in enumerate(lines) if not line.endswith("\tNone"))
    system, stored = lines[place].split("\t")
    human = json.loads(stored)
    issue = {"start": 0, "end": 2, "category": "Source issue", "severity": "major", "is_source_error": True}
    human["errors"] += [issue, issue | {"category": "Accuracy/Omission"}]
    lines[place] = f"{system}\t{json.dumps(human)}"
    rating.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # People's omissions alone change nothing.
    assert by_metric(board) == before
    number = [line.split("\t")[0] for line in lines[:place]].count(system)
    marked = {s: [Annotation()] * SEGMENTS for s in SYSTEMS}
    spans = [ErrorSpan(start, end, "minor", side="source") for start, end in ((1, 3), (3, 4))]
    marked[system][number] = Annotation(spans)
    write_scores(layout.metric_file("both-src", "seg.score"), {s: [0.0] * SEGMENTS for s in SYSTEMS})
    write_ratings(layout.metric_file("both-src", "seg.rating"), marked)
    after = by_metric(board)
    both = after.pop("both")
    names = ["omissions", "omission_precision", "omission_recall", "omission_f1"]
    assert [both[name] for name in names] == [2, 0.5, 1.0, pytest.approx(2 / 3)]
    assert (both["major"], both["minor"]) == (0, 0)  # spans of the translation
    assert {name: {k: v for k, v in row.items() if k not in names} for name, row in after.items()} == before
    # A metric that marks nothing by name is the row of no error.
    write_scores(layout.metric_file("empty-src", "seg.score"), {s: [0.0] * SEGMENTS for s in SYSTEMS})
    write_ratings(layout.metric_file("empty-src", "seg.rating"), {s: [Annotation()] * SEGMENTS for s in SYSTEMS})
    assert set(by_metric(board)) == {*after, "both", "empty"} - {"no error"}
