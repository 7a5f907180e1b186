"""Views of a leaderboard."""

from __future__ import annotations

import csv
import json
import re
import shutil
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, read_scores, write_scores
from mbr_esd_metric.adapters.wmt.rating_files import read_ratings, write_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.metaeval import correlation, spa
from mbr_esd_metric.metaeval.error_free import error_free
from mbr_esd_metric.metaeval.score_statistics import TASK_SETS
from mbr_esd_metric.metaeval.spans import evaluate_spans, precision_recall_curve
from tests.helpers.command import Command, table_rows
from tests.helpers.wmt_folder import SEGMENTS, SYSTEMS

BOTH = "--lp en-de zh-en"
SWEEP = "--view lambda-sweep"


@pytest.fixture
def board(data: Path, mbr_esd: Command) -> Command:
    """`mbr-esd leaderboard` of the test set, of en-de where --lp does not follow."""
    return partial(mbr_esd, f"leaderboard --test-set {data}/wmt23 --lp en-de")


@pytest.fixture
def own_board(own: Layout, mbr_esd: Command) -> Command:
    """`mbr-esd leaderboard` of the test set that the test may change."""
    return partial(mbr_esd, f"leaderboard --test-set {own.root} --lp en-de")


@pytest.fixture
def test_set(test_sets: dict[str, TestSet]) -> TestSet:
    return test_sets["en-de"]


def by_metric(board: Command, *words: object) -> dict[str, Any]:
    return {row["metric"]: row for row in table_rows(board, *words)}


def put_lines(path: Path, changes: dict[int, str]) -> None:
    """Replace lines of a file, by their numbers from 0."""
    lines = [changes.get(n, line) for n, line in enumerate(path.read_text(encoding="utf-8").splitlines())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def copy_metric(layout: Layout, name: str, copy: str) -> None:
    for ending in ("seg.score", "seg.rating"):
        shutil.copy(layout.metric_file(name, ending), layout.metric_file(copy, ending))


def test_statistics_are_of_the_stored_scores(board: Command, test_sets: dict[str, TestSet]) -> None:
    shown = by_metric(board, BOTH, "--statistics sys-pearson seg-kendall-item")
    assert set(shown) == {"flat", "length", "noise", "spans", "systems"}
    for lp, test_set in test_sets.items():
        # Stored scores of systems are not the means of segments.
        stored = read_scores(test_set.layout.metric_file("length-src", "sys.score"))
        gold, systems = np.nanmean(test_set.gold, axis=1), [stored[system][0] for system in SYSTEMS]
        kendall = correlation(test_set.gold, test_set.metric("length-src").scores, "kendall", "item")
        expected = {"sys-pearson": stats.pearsonr(gold, systems).statistic, "seg-kendall-item": kendall}
        assert shown["length"][lp] == pytest.approx(expected, abs=1e-12)
        assert shown["systems"][lp] == {"sys-pearson": pytest.approx(1.0), "seg-kendall-item": None}
    means = np.mean([shown["noise"][lp]["seg-kendall-item"] for lp in test_sets])
    assert shown["noise"]["average"]["seg-kendall-item"] == pytest.approx(means)


def test_documents_are_compared_by_their_means_or_their_gold(own: Layout, own_board: Command) -> None:
    words = "--metric length --statistics doc-pearson-none doc-kendall-item"
    test_set = load_test_set(own.data, "wmt23", "en-de")
    at = [slice(8), slice(8, 12), slice(12, 24)]
    scores = test_set.metric("length-src").scores
    rated = np.where(np.isnan(test_set.gold), np.nan, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a document without a rating
        gold, length = (np.stack([np.nanmean(of[:, i], 1) for i in at], 1) for of in (test_set.gold, rated))
    pearson = stats.pearsonr(gold[~np.isnan(gold)], length[~np.isnan(gold)]).statistic
    expected = {"doc-pearson-none": pearson, "doc-kendall-item": correlation(gold, length, "kendall", "item")}
    assert by_metric(own_board, words)["length"]["en-de"] == pytest.approx(expected, abs=1e-12)
    # Gold of documents that stands in the folder; the metric's is then the mean of all segments.
    gold = np.random.default_rng(1).normal(size=gold.shape)
    write_scores(own.human_file("mqm", "doc.score"), dict(zip(test_set.systems, gold.tolist(), strict=True)))
    length = np.stack([scores[:, columns].mean(axis=1) for columns in at], 1)
    pearson = stats.pearsonr(gold.ravel(), length.ravel()).statistic
    assert by_metric(own_board, words)["length"]["en-de"]["doc-pearson-none"] == pytest.approx(pearson, abs=1e-9)


@pytest.mark.parametrize("view", ["--statistics spa acc_eq", "--view wmt24"])
def test_spa_is_exact_with_the_option(board: Command, test_set: TestSet, view: str) -> None:
    expected = spa(test_set.gold, test_set.metric("length-src").scores, exact=True)
    shown = by_metric(board, "--spa exact", view)["length"]
    assert shown["en-de"]["spa"] == pytest.approx(expected, abs=1e-12)
    assert shown.get("overall_rank", 1) is not None
    printed = board("--spa exact", view).out
    assert "SPA: exact, of infinitely many permutations" in printed
    assert re.search("SPA says nothing.*: flat in en-de\n", printed)


def test_every_view_says_what_is_no_submission_what_cannot_be_read_and_what_was_repaired(
    own: Layout, own_board: Command, candidates: Path, mbr_esd: Command
) -> None:
    past = json.dumps({"errors": [{"start": 0, "end": 999, "severity": "minor"}]})
    put_lines(own.human_file("mqm.merged", "seg.rating"), {0: f"A\t{past}\tr"})
    cut = r"people, en-de in \d+ translations: 1 end past the translation and are cut there\n"
    own.metric_file("noise-refA", "seg.score").write_text("A\t0.5\nB\tbad\n", encoding="utf-8")
    for view in ("--k 0", "--statistics", "--view wmt23", "--view error-free", "--view spans", "--view domain"):
        printed = own_board(view).out
        assert re.search(r"\*flat.*\*: contrastive submission, or none; _: baseline", printed, re.S)
        assert len(re.findall("noise-refA is left out in en-de: .*noise-refA.seg.score", printed)) == 1
        assert len(re.findall(cut, printed)) == 1
        if view != "--view spans":
            assert "noise-refA.seg.score" in own_board(view, "--metric noise", status=1).err
    assert len(re.findall(cut, own_board(SWEEP, "--metric spans").out)) == 1
    assert len(re.findall(cut, mbr_esd(f"oracle {candidates} --rules --test-set {own.root} --lp en-de").out)) == 1


#: What is wrong with a file, given its lines.
FAULTS: dict[str, Callable[[list[str]], list[str]]] = {
    "short": lambda lines: lines[:-1],
    "one too many": lambda lines: [*lines, lines[-1]],
    "None": lambda lines: [f"{line.split()[0]}\tNone" for line in lines],
    "NaN": lambda lines: [f"{line.split()[0]}\tnan" for line in lines],
    "without a system": lambda lines: [line for line in lines if not line.startswith("B")],
    "empty": lambda _: [],
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("metric", ["", "--metric noise spans", "--metric noise-refA spans-src length"])
def test_one_incomplete_metric_stops_no_board(fault: str, metric: str, own: Layout, own_board: Command) -> None:
    """It is left out with a line, named or not, in every view; the file of systems, too."""
    for name, ending in (("noise-refA", "seg.score"), ("length-src", "sys.score"), ("systems-refA", "sys.score")):
        path = own.metric_file(name, ending)
        path.write_text("".join(f"{line}\n" for line in FAULTS[fault](path.read_text().splitlines())))
    for words in ("--k 0", "--statistics", "--view wmt23", "--view error-free", "--view domain"):
        printed = own_board(words, metric).out
        assert len(re.findall("noise-refA is left out in en-de: .*noise-refA.seg.score", printed)) == 1, words
        assert "spans" in printed
    assert "noise-refA is left out in en-de" in own_board("--metric noise", status=1).err


def test_metrics_that_are_left_out_are_one_line(own: Layout, own_board: Command) -> None:
    for n in range(20):
        shutil.copy(own.metric_file("noise-refA", "seg.score"), own.metric_file(f"m{n:02}-refB", "seg.score"))
    own.metric_file("noise-refA", "seg.score").write_text("A\t0.5\n", encoding="utf-8")
    [line] = [line for line in own_board("--k 0").out.splitlines() if "left out" in line]
    first = (
        "m00-refB, m01-refB, m02-refB, m03-refB, m04-refB and 15 more are left out in en-de: they use refB, evaluated"
    )
    assert line.startswith(first)
    assert "; noise-refA is left out in en-de: " in line


def test_error_spans_of_some_systems_stop_no_board(own: Layout, own_board: Command) -> None:
    """They are not compared, with a line that says how; the scores are."""
    path = own.metric_file("spans-src", "seg.rating")
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines() if line[0] in "AB"))
    line = (
        "spans-src has error spans of 2 of 5 systems in en-de, and they are not compared; --systems A B compares them"
    )
    whole = by_metric(own_board, "--k 0")
    assert "spa" in whole["spans"]["en-de"]
    assert whole["spans"]["en-de"].get("softf1") is None
    for words in ("--k 0", "--view spans", "--view error-free", "--view lambda-sweep", "--view domain"):
        assert line in own_board(words).out, words
    assert line in own_board("--view spans --metric spans", status=1).err
    assert by_metric(own_board, "--k 0 --systems A B")["spans"]["en-de"]["softf1"] > 0


def test_a_table_as_csv(own_board: Command) -> None:
    words = "--k 0 --metric noise spans --table"
    commas, tabs = (own_board(words, form).out.splitlines() for form in ("csv", "tsv"))
    assert [*csv.reader(commas)] == [line.split("\t") for line in tabs]
    assert commas[0].startswith("metric,metric_status,input,n,en-de:spa,")


def test_a_file_of_scores_is_a_metric(own: Layout, own_board: Command, tmp_path: Path) -> None:
    """As in the folder; its name says the reference, and one that is incomplete is left out with a line."""
    stored = by_metric(own_board, "--k 0")["noise"]
    for name in ("noise-refA.seg.score", "other-refA.seg.score"):
        shutil.copy(own.metric_file("noise-refA", "seg.score"), tmp_path / name)
    for given, called in (("M={}/noise-refA.seg.score", "M"), ("{}/other-refA.seg.score", "other")):
        row = by_metric(own_board, "--k 0 --metric", given.format(tmp_path))[called]
        assert row["en-de"] == {name: value for name, value in stored["en-de"].items() if value is not None}
    assert {"noise", "M"} <= {*by_metric(own_board, f"--k 0 --metric noise M={tmp_path}/noise-refA.seg.score")}
    (tmp_path / "other-refA.seg.score").write_text("A\t0.5\n", encoding="utf-8")
    printed = own_board("--k 0 --metric noise", tmp_path / "other-refA.seg.score").out
    assert "other-refA-src is left out in en-de: " in printed
    assert "no such file" in own_board("--metric missing-src.seg.score", status=1).err


def test_precision_recall(board: Command, test_set: TestSet) -> None:
    row = by_metric(board, "--view precision-recall")["spans (src)"]
    predicted = test_set.metric("spans-src").ratings.of(test_set.systems, test_set.segments)
    curve = precision_recall_curve(predicted, test_set.human(), test_set.lengths)
    assert (row["area"], row["all spans"]["all_recall"]) == (curve.area, curve.points[-1].recall)
    assert row["the best threshold"]["best_value"] == curve.best.value


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("leaderboard --view lambda-sweep --metric spans", ["SoftF1", "spans", "lambda", "empty en-de"]),
        ("leaderboard --view precision-recall", ["precision, F1 corpus", "recall"]),
        ("oracle {candidates} --rules map --sizes 1 7", ["SoftF1", "spans", "candidates N", "oracle"]),
        ("leaderboard --view precision-recall --metric flat", []),
    ],
)
def test_curves_are_plotted(
    data: Path, candidates: Path, tmp_path: Path, mbr_esd: Command, words: str, labels: list[str]
) -> None:
    pytest.importorskip("matplotlib")
    where = f"--test-set {data}/wmt23 --lp en-de --plot {tmp_path}/curves.png"
    printed = mbr_esd(words.format(candidates=candidates), where, status=0 if labels else 1)
    if not labels:
        assert "no metric marks spans on rated translations, so there is nothing to plot" in printed.err
        return
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert all(f">{label}<" in drawn for label in labels)


def test_error_free(board: Command, test_set: TestSet) -> None:
    shown = {(row["metric"], row["by"]): row for row in table_rows(board, "--view error-free")}
    (human,) = test_set.human()
    labels = np.where(np.isnan(test_set.gold), np.nan, ~np.array([[bool(a) for a in row] for row in human]))
    best = shown["noise (src+ref)", "score, best"]
    assert best["mcc"] == error_free(labels, test_set.metric("noise-refA").scores >= best["threshold"]).mcc
    assert shown["none without error", None]["accuracy"] == 1 - np.nanmean(labels)
    assert shown["flat (src)", "no span"]["recall"] == 1.0


@pytest.mark.parametrize(
    ("by", "segments"),
    [("domain", [12, 12]), ("document", [8, 4, 12]), ("length", [6, 8, 10])],
)
def test_parts(board: Command, by: str, segments: list[int]) -> None:
    parts = table_rows(board, f"--view {by} --metric noise --statistics spa --measures f1-corpus-parts")
    assert [part["segments"] for part in parts] == segments
    assert all(part["spa"] is not None and part["f1-corpus-recall"] is None for part in parts)


def test_spans_of_humans_metrics_and_nobody(board: Command, own: Layout, own_board: Command) -> None:
    shown = by_metric(board, "--view spans --metric spans")
    human, nobody, metric = shown["human"], shown["no error"], shown["spans"]
    assert (human["input"], nobody["input"], metric["input"], nobody["ratio"]) == (None, None, "src", 0)
    total, rated = metric["major"] + metric["minor"], int(re.findall(r"(\d+) rated", board("--view spans").out)[0])
    assert metric["ratio"] == pytest.approx(total / (human["major"] + human["minor"]))
    assert metric["per_translation"] == pytest.approx(total / rated)
    assert metric["major_share"] == pytest.approx(metric["major"] / total)
    # The metric `empty` is the row of no error.
    copy_metric(own, "flat-src", "empty-src")
    assert set(by_metric(own_board, "--view spans")) == {"human", "empty", "flat", "spans"}


def test_metrics_and_humans_are_compared_on_the_translations_of_several_raters(
    board: Command, test_set: TestSet
) -> None:
    words = "--view spans --metric spans --measures f1 mpp-corpus --raters mqm.merged mqm.rater2"
    shown = by_metric(board, words)
    human = test_set.human(["mqm.merged", "mqm.rater2"])
    cells = [list(zip(*rows, strict=True)) for rows in zip(*human, strict=True)]
    both = [[[None if None in cell else cell[rater] for cell in row] for row in cells] for rater in range(2)]
    count = sum(cell is not None for row in both[0] for cell in row)
    rated = sum(any(one is not None for one in cell) for row in cells for cell in row)
    assert count < rated
    assert f"that value, on the {count} of {rated} rated translations with at least two raters" in board(words).out
    predicted = test_set.metric("spans-src").ratings.of(test_set.systems, SEGMENTS)
    on_both, on_all = (evaluate_spans(predicted, of, test_set.lengths, ["f1", "mpp-corpus"]) for of in (both, human))
    for name, value in on_both.values.items():
        assert shown["spans"][name] == pytest.approx(on_all.values[name])
        assert shown["spans"][f"{name}_share"] == pytest.approx(value / shown["human"][name])


def test_omissions_are_columns_where_a_metric_has_any(own: Layout, own_board: Command) -> None:
    before = by_metric(own_board, "--view spans")
    one, other = (ErrorSpan(at, at + 1, "minor", "omission", side="source") for at in (1, 3))
    people = own.human_file("mqm.merged", "seg.rating")
    stored = read_ratings(people)
    for row in stored.values():
        row[:] = [None if marked is None else marked.with_spans([*marked, one]) for marked in row]
    write_ratings(people, stored)
    assert by_metric(own_board, "--view spans") == before
    copy_metric(own, "flat-src", "both-src")
    marks = [Annotation([one, other])] * SEGMENTS
    write_ratings(own.metric_file("both-src", "seg.rating"), dict.fromkeys(SYSTEMS, marks))
    after = by_metric(own_board, "--view spans")
    both, names = after.pop("both"), ["omissions", "omission_precision", "omission_recall", "omission_f1"]
    assert [both[name] for name in names] == [220, 0.5, 1.0, pytest.approx(2 / 3)]
    assert (both["major"], both["minor"]) == (0, 0)  # spans of the translation
    assert {name: {k: v for k, v in row.items() if k not in names} for name, row in after.items()} == before


def test_sweep(board: Command) -> None:
    stored = table_rows(board, SWEEP, "--metric spans")
    assert [row["lambda"] for row in stored] == [*(i / 10 for i in range(11)), "empty"]
    totals = [row["en-de"]["major"] + row["en-de"]["minor"] for row in stored]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > totals[-2] > totals[-1] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"{SWEEP} --metric span-src", "unknown metric of wmt23 en-de 'span-src'; did you mean 'spans-src'"),
        (f"{SWEEP} --metric {{candidates}}", "a metric is a name, or a file that comet-score"),
        (f"{SWEEP} --metric length", "length-src has no error spans"),
        (f"{SWEEP} --metric spans --raters nobody", "unknown set of human ratings 'nobody'"),
        ("--view spans --metric spanz", "did you mean 'spans' or 'spans-src'"),
        ("--view spans --measures mpp-corps", "did you mean 'mpp-corpus'"),
        ("--view spans --exclude Z", "unknown system of wmt23 en-de 'Z'"),
        ("--view overall --test-set {data}/made", "made has no task definition; choose --view wmt23"),
        ("--test-set {data}/made", "no metric has segment scores; score some with: mbr-esd wmt score"),
        ("--statistics seg-kendal-item", "seg-kendall-item"),
        ("--lp en-de zh-en en-de", "--lp en-de zh-en en-de: duplicate language pair"),
    ],
)
def test_failures_are_one_line(board: Command, data: Path, candidates: Path, words: str, message: str) -> None:
    (line,) = board(words.format(data=data, candidates=candidates), status=1).err.splitlines()
    assert message in line


def test_the_signature_has_the_choices_of_data(board: Command) -> None:
    printed = board("--k 0 --raters mqm.rater2 --gold mqm --exclude refB A --metric noise").out
    assert "leaderboard|k:0|order:name|raters:mqm.rater2|gold:mqm|exclude:A,refB|v:" in printed


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", "plot"),
        ("--statistics spa", "raters measures k against plot"),
        *((f"--view {year}", "raters measures statistics against plot") for year in ("overall", *TASK_SETS)),
        ("--view wmt23", "spa k"),
        ("--view spans", "spa k against statistics plot"),
        ("--view error-free", "measures spa k against statistics plot"),
        (SWEEP, "k against statistics"),
        ("--view precision-recall", "spa k against statistics"),
        *((f"--view {part}", "k against plot") for part in ("domain", "document", "length")),
    ],
)
def test_an_option_without_effect_is_refused(board: Command, words: str, options: str) -> None:
    values = {"spa": "exact", "k": "0", "plot": "x.png"}
    for option in options.split():
        message = board(words, f"--{option} {values.get(option, 'nosuch')}", status=1).err
        beside = "--statistics" if "--statistics" in words else words or "the default view"
        assert f"--{option} has no effect with {beside}; remove it" in message


def test_a_metric_is_named_with_or_without_its_input(own: Layout, own_board: Command) -> None:
    copy_metric(own, "spans-src", "spans-refA")
    for name, inputs in {"spans": ["src", "src+ref"], "spans-src": ["src"], "spans-refA": ["src+ref"]}.items():
        for view in ("--k 0", "--view spans"):
            rows = table_rows(own_board, view, "--metric", name)
            assert sorted(row["input"] for row in rows if row["metric"] == "spans") == inputs
        assert sorted(re.findall(r"spans \((.*)\), wmt23", own_board(SWEEP, "--metric", name).out)) == inputs


@pytest.mark.parametrize("swapped", [False, True])
def test_systems_rated_on_different_segments(own: Layout, own_board: Command, swapped: bool) -> None:
    """System A has one rating less, or that of another segment in its place."""
    path = own.human_file("mqm", "seg.score")
    of_a = path.read_text(encoding="utf-8").splitlines()[:SEGMENTS]
    rated, unrated = (next(n for n, line in enumerate(of_a) if line.endswith("None") is no) for no in (False, True))
    put_lines(path, {rated: "A\tNone", **({unrated: "A\t-1.0"} if swapped else {})})
    for words in ("--k 0", "--statistics spa", f"{SWEEP} --metric spans"):
        assert re.search(r"SPA compares each pair .* on the \d+ to \d+ segments that both have", own_board(words).out)
    assert re.search(r" on the \d+ segments that both have", own_board("--k 0 --systems A B").out)
    assert "SPA compares" not in own_board("--k 0 --exclude A").out
    test_set = load_test_set(own.data, "wmt23", "en-de")
    expected = spa(test_set.gold, test_set.metric("noise-refA").scores, missing="pairs")
    assert by_metric(own_board, "--k 0")["noise"]["en-de"]["spa"] == expected


@pytest.fixture
def scored(own: Layout, candidates: Path, tmp_path: Path, mbr_esd: Command) -> Path:
    """What `mbr-esd score` writes of the systems."""
    file = tmp_path / "out.json"
    model = f"--model mbr-esd-small?candidates={candidates}&n=8&format=json&score=chosen --lp en-de --quiet --to_json"
    mbr_esd(f"score -s {own.source()} -t", *(own.output(system) for system in SYSTEMS), model, file)
    return file


def test_a_file_is_a_metric_in_every_view(own: Layout, own_board: Command, scored: Path, mbr_esd: Command) -> None:
    """As it is once it is imported into the folder."""
    rows = json.loads(scored.read_text(encoding="utf-8"))
    test_set = load_test_set(own.data, "wmt23", "en-de")
    (unrated, *_) = np.flatnonzero(np.isnan(test_set.gold[0]))
    # A span without characters is not a span, and no reason to stop. This one is in a translation that nobody rated.
    rows[str(own.output("A"))][unrated]["errors"].append({"severity": "minor", "start": 3, "end": 3, "confidence": 0.5})
    scored.write_text(json.dumps(rows, indent=4), encoding="utf-8")  # as COMET writes it
    imported = f"wmt import {{}}{scored} --test-set {own.root} --lp en-de"
    printed = mbr_esd(imported.format("plain=")).out
    assert "plain-src, scores and error spans of 120 translations by 5 systems" in printed
    for name, message in (("plain=", "already there; choose another name"), ("", f"name its metric (NAME={scored})")):
        assert message in mbr_esd(imported.format(name), status=1).err
    views = ("spans", "error-free", "domain", "lambda-sweep", "precision-recall")
    for words in ("--k 20", "--statistics spa", *(f"--view {view}" for view in views)):
        stored, file = (table_rows(own_board, words, f"--metric plain{path}") for path in ("", f"={scored}"))
        assert stored == file
    assert "1 begin past it or have no characters and are not spans" in own_board(f"--view spans --metric {scored}").out
    del rows[str(own.output("B"))][0]
    scored.write_text(json.dumps(rows), encoding="utf-8")
    assert f"{scored}: nothing on segment" in own_board("--metric", scored, status=1).err


def test_no_metric_takes_anothers_name(own_board: Command, scored: Path, tmp_path: Path) -> None:
    """Files of one name, and a file called as a stored metric is."""
    other = tmp_path / "r" / "out.json"
    other.parent.mkdir()
    shutil.copy(scored, other)
    for words, message in (
        (
            f"M={scored} M={other}",
            f"--metric M={scored}, M={other}: two metrics are named M; rename one with NAME",
        ),
        (f"M={scored} M", "two metrics are named M"),
        (f"spans={scored} spans-src", "is called spans-src, which is also given"),
    ):
        assert message in own_board("--metric", words, status=1).err
    # Files of one name are told apart by their folders.
    for view in ("--k 10", "--statistics spa", "--view error-free"):
        named = {row["metric"].removesuffix(" (src)") for row in table_rows(own_board, view, "--metric", scored, other)}
        assert {f"{tmp_path.name}/out", "r/out"} <= named
    assert "which of two good systems is better" in own_board("--k 0 --metric", scored).out
