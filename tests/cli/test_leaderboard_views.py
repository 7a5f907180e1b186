"""Views of a leaderboard and the oracle, on a made-up test set in the layout."""

from __future__ import annotations

import json
import random
import re
import shutil
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, read_scores, write_scores
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan, mqm_score
from mbr_esd_metric.metaeval import correlation, spa
from mbr_esd_metric.metaeval.error_free import error_free
from mbr_esd_metric.metaeval.spans import precision_recall_curve
from mbr_esd_metric.prompting.formats import get_format
from tests.helpers.command import Command
from tests.helpers.wmt_folder import DOCUMENTS, SEGMENTS, SYSTEMS, spans, write_folder

LPS = ("en-de", "zh-en")
BOTH = "--lp en-de zh-en"
SWEEP = "--view lambda-sweep"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("views")
    for lp in LPS:
        layout = write_folder(folder, "wmt23", lp)
        test_set, rng = load_test_set(folder, "wmt23", lp), random.Random(1)
        second = {s: [spans(rng, text or "", 2) for text in test_set.outputs[s]] for s in SYSTEMS}
        write_ratings(layout.human_file("mqm.rater2", "seg.rating"), second)
    return folder


@pytest.fixture(scope="module")
def test_sets(data: Path) -> dict[str, TestSet]:
    return {lp: load_test_set(data, "wmt23", lp) for lp in LPS}


@pytest.fixture(scope="module")
def candidates(test_sets: dict[str, TestSet], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight for each translation of en-de, the fourth as the merged rater has it."""
    rng, test_set = random.Random(0), test_sets["en-de"]
    ((human, *_), metric) = test_set.human(), test_set.metric("spans-src").ratings
    assert metric is not None
    lines = []
    for i, system in enumerate(test_set.systems):
        for j, text in enumerate(test_set.outputs[system]):
            assert text is not None
            choices = [EMPTY, human[i][j] or EMPTY, metric.annotations[system][j] or EMPTY, spans(rng, text, 3)]
            sampled = [(annotation, -rng.random() * 9) for annotation in rng.choices(choices, k=8)]
            sampled[3] = human[i][j] or EMPTY, -8.0
            answers = [{"text": get_format("json").answer(a, text)[0], "logprob": logprob} for a, logprob in sampled]
            place = {"id": f"{system}{j}", "system": system, "src": test_set.sources[j], "mt": text}
            lines.append(json.dumps({**place, "candidates": answers}) + "\n")
    path = tmp_path_factory.mktemp("candidates") / "candidates.jsonl"
    path.write_text("".join(reversed(lines)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def written(test_sets: dict[str, TestSet]) -> dict[str, list[dict[str, Any]]]:
    """The metric "spans" of en-de as comet-score writes it."""
    test_set = test_sets["en-de"]
    metric = test_set.metric("spans-src").ratings
    assert metric is not None
    rows: dict[str, list[dict[str, Any]]] = {}
    for system in test_set.systems:
        texts = zip(test_set.sources, test_set.outputs[system], metric.annotations[system], strict=True)
        for source, text, annotation in texts:
            assert annotation is not None
            names = ("confidence", "severity", "start", "end")
            errors = [{"text": "", **{name: getattr(span, name) for name in names}} for span in annotation]
            row = {"src": source, "mt": text, "COMET": mqm_score(annotation), "errors": errors}
            rows.setdefault(f"{system}.txt", []).append(row)
    return rows


@pytest.fixture
def board(data: Path, mbr_esd: Command) -> Command:
    """`mbr-esd leaderboard` of the test set; --lp is en-de where it is not given."""

    def run(*words: object, status: int = 0) -> Any:
        lp = () if any("--lp" in str(word) for word in words) else ("--lp en-de",)
        return mbr_esd(f"leaderboard --test-set {data}/wmt23", *lp, *words, status=status)

    return run


@pytest.fixture
def oracle(data: Path, candidates: Path, mbr_esd: Command) -> Command:
    return partial(mbr_esd, f"oracle {candidates} --test-set {data}/wmt23 --lp en-de")


class Copy:
    """A copy of the data folder in which all of en-de is there as en-fr, too; and the words that name these."""

    def __init__(self, data: Path, folder: Path) -> None:
        copied = shutil.copytree(data, folder / "data")
        for path in sorted(copied.rglob("*en-de*"), reverse=True):
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, path.with_name(path.name.replace("en-de", "en-fr")))
        self.layout = Layout(copied, "wmt23", "en-fr")
        self.both = f"--test-set {copied}/wmt23 --lp en-de en-fr"
        self.where = self.both.replace(" en-de", "")

    def metric(self, name: str, scores: dict[str, list[float]], annotations: dict[str, list[Annotation]]) -> None:
        write_scores(self.layout.metric_file(name, "seg.score"), scores)
        write_ratings(self.layout.metric_file(name, "seg.rating"), annotations)

    def files_of(self, metric: str) -> list[Path]:
        return [self.layout.metric_file(metric, ending) for ending in ("seg.score", "seg.rating")]


@pytest.fixture
def en_fr(data: Path, tmp_path: Path) -> Copy:
    return Copy(data, tmp_path)


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


def test_documents_are_compared_by_their_means_or_their_gold(en_fr: Copy, mbr_esd: Command) -> None:
    copied = partial(mbr_esd, "leaderboard", en_fr.where)
    words = "--statistics doc-pearson-none doc-kendall-item"
    shown = by_metric(copied, words)["length"]["en-fr"]
    test_set = load_test_set(en_fr.layout.data, "wmt23", "en-fr")
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
    assert by_metric(copied, words)["length"]["en-fr"]["doc-pearson-none"] == pytest.approx(pearson, abs=1e-9)


@pytest.mark.parametrize("view", ["", "--statistics acc_eq", "--view overall", "--view domain", "--view error-free"])
def test_every_view_marks_what_is_no_primary_submission(view: str, board: Command) -> None:
    printed = board(view or "--k 0").out
    assert "*noise" in printed
    assert "*: contrastive submission, or none; _: baseline" in printed
    message = board(view, "--reference refB --metric noise", status=1).err
    assert "noise-refA is left out in en-de: it uses refA" in message
    if view not in ("--statistics acc_eq", "--view overall"):
        message = board(view, "--metric systems", status=1).err
        assert "systems-refA is left out in en-de: it has no scores of segments" in message


def test_overall_has_the_tasks_of_the_year_or_another_one(board: Command) -> None:
    shown = by_metric(board, "--view overall", BOTH)
    for lp in LPS:
        assert set(shown["noise"][lp]) == {"sys-pearson", "seg-pearson-none", "acc_eq"}
    assert (shown["systems"]["overall"], set(shown["noise"]["all"])) == (None, {"sys-accuracy"})
    (other_year,) = rows(board, "--view wmt24 --metric noise")
    assert set(other_year["en-de"]) == {"spa", "acc_eq"}


@pytest.mark.parametrize("view", ["--statistics spa acc_eq", "--view wmt24"])
def test_spa_is_exact_with_the_option(board: Command, test_sets: dict[str, TestSet], view: str) -> None:
    shown = json.loads(board(BOTH, "--spa exact", view, "--table json").out)
    assert "SPA: exact, of infinitely many permutations" in shown["notes"]
    assert any("SPA says nothing" in note and "flat in en-de, zh-en" in note for note in shown["notes"])
    of_metric = {row["metric"]: row for row in shown["rows"]}
    for lp, test_set in test_sets.items():
        for name in ("length-src", "noise-refA"):
            expected = spa(test_set.gold, test_set.metric(name).scores, exact=True)
            assert of_metric[name.split("-")[0]][lp]["spa"] == pytest.approx(expected, abs=1e-12)
            assert expected != spa(test_set.gold, test_set.metric(name).scores)
    if "wmt24" in view:
        ranked = {row["metric"] for row in shown["rows"] if row["overall"] is not None and row["overall_rank"]}
        assert ranked == {"flat", "length", "noise", "spans"}


def test_one_broken_file_stops_no_board(en_fr: Copy, mbr_esd: Command) -> None:
    en_fr.layout.metric_file("noise-refA", "seg.score").write_text("A\t0.5\nB\tbad\n", encoding="utf-8")
    board = f"leaderboard {en_fr.where}"
    for view in ("--k 0", "--statistics", "--view wmt23", "--view error-free", "--view spans", "--view domain"):
        printed = mbr_esd(board, view).out
        assert printed.count("noise-refA is left out in en-fr: ") == 1
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
    curve = precision_recall_curve(predicted, test_set.human(), test_set.lengths)
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
    (human,) = test_set.human()
    labels = np.where(np.isnan(test_set.gold), np.nan, ~np.array([[bool(a) for a in row] for row in human]))
    scores = test_set.metric("noise-refA").scores
    best = shown["noise (src+ref)", "score, best"]
    assert best["mcc"] == error_free(labels, (scores >= best["threshold"]).astype(float)).mcc
    assert shown["none without error", None]["accuracy"] == 1 - np.nanmean(labels)
    assert shown["flat (src)", "no span"]["recall"] == 1.0
    assert "gold score of at least 0" in board("--view error-free").out


def test_breakdown(board: Command, test_sets: dict[str, TestSet]) -> None:
    test_set = test_sets["en-de"]
    columns = [at for at, (domain, _) in enumerate(DOCUMENTS) if domain == "talks"]
    gold, scores = test_set.gold[:, columns], test_set.metric("noise-refA").scores[:, columns]
    shown = rows(board, "--view domain --statistics spa --measures f1-corpus-parts --spa exact")
    row = next(row for row in shown if (row["domain"], row["metric"]) == ("talks", "noise"))
    assert (row["spa"], row["f1-corpus-recall"]) == (spa(gold, scores, exact=True), None)
    printed = board("--view domain --statistics spa").out
    assert "depends on the order of the systems: flat in en-de\n" in printed
    documents = {row["document"]: row["segments"] for row in rows(board, "--view document")}
    assert documents == {"n1": 8, "n2": 4, "t1": 12}
    lengths = rows(board, "--view length --metric noise")
    assert [row["length"] for row in lengths] == ["0-6", "7-7", "8-"]
    assert sum(row["segments"] for row in lengths) == len(DOCUMENTS)


def test_spans_of_humans_metrics_and_nobody(board: Command, en_fr: Copy, mbr_esd: Command) -> None:
    shown = by_metric(board, "--view spans --metric spans")
    human, nobody, metric = shown["human"], shown["no error"], shown["spans"]
    assert (human["input"], nobody["input"], metric["input"], nobody["ratio"]) == (None, None, "src", 0)
    total, rated = metric["major"] + metric["minor"], int(re.findall(r"(\d+) rated", board("--view spans").out)[0])
    assert metric["ratio"] == pytest.approx(total / (human["major"] + human["minor"]))
    assert metric["per_translation"] == pytest.approx(total / rated)
    assert metric["major_share"] == pytest.approx(metric["major"] / total)
    # The metric `empty` is the row of no error.
    en_fr.metric("empty-src", {s: [0.0] * SEGMENTS for s in SYSTEMS}, {s: [EMPTY] * SEGMENTS for s in SYSTEMS})
    assert set(by_metric(mbr_esd, f"leaderboard --view spans {en_fr.where}")) == {"human", "empty", "flat", "spans"}


def test_omissions_are_a_part_of_the_board_of_spans(en_fr: Copy, mbr_esd: Command) -> None:
    layout, board = en_fr.layout, partial(mbr_esd, f"leaderboard --view spans {en_fr.where}")
    before = by_metric(board)
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
    marked = {s: [EMPTY] * SEGMENTS for s in SYSTEMS}
    marked[system][number] = Annotation(ErrorSpan(start, start + 1, "minor", side="source") for start in (1, 3))
    en_fr.metric("both-src", {s: [0.0] * SEGMENTS for s in SYSTEMS}, marked)
    after = by_metric(board)
    both = after.pop("both")
    names = ["omissions", "omission_precision", "omission_recall", "omission_f1"]
    assert [both[name] for name in names] == [2, 0.5, 1.0, pytest.approx(2 / 3)]
    assert (both["major"], both["minor"]) == (0, 0)  # spans of the translation
    assert {name: {k: v for k, v in row.items() if k not in names} for name, row in after.items()} == before


def test_sweep(board: Command) -> None:
    stored = rows(board, SWEEP, "--metric spans")
    assert [row["lambda"] for row in stored] == [*(i / 10 for i in range(11)), "empty"]
    totals = [row["en-de"]["major"] + row["en-de"]["minor"] for row in stored]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > totals[-2] > totals[-1] == 0
    # Nothing is dropped at 0.
    entry = by_metric(board, "--k 0 --measures softf1 f1")["spans"]["en-de"]
    assert {name: entry[name] for name in stored[0]["en-de"]} == pytest.approx(stored[0]["en-de"], abs=1e-12)


def test_a_sweep_says_where_nothing_is_left(en_fr: Copy, mbr_esd: Command) -> None:
    unsure = Annotation([ErrorSpan(0, 2, "minor", None, 0.5)])
    en_fr.metric("unsure-src", {s: [-1.0] * SEGMENTS for s in SYSTEMS}, {s: [unsure] * SEGMENTS for s in SYSTEMS})
    notes = mbr_esd(f"leaderboard {SWEEP} --metric unsure-src", en_fr.where).out.splitlines()
    (constant,) = (note for note in notes if note.startswith("one score for everything"))
    assert constant.endswith(", ".join(f"lambda {at / 10}" for at in range(11)) + ", empty in en-fr")


@pytest.mark.parametrize("verb", ["sweep", "oracle"])
def test_curves_are_plotted(board: Command, oracle: Command, tmp_path: Path, verb: str) -> None:
    pytest.importorskip("matplotlib")
    out, shown = tmp_path / "curves.png", ["SPA", "acc_eq*", "SoftF1", "F1", "spans"]
    if verb == "sweep":
        printed, label = board(SWEEP, "--metric spans --plot", out).out, "empty en-de"
    else:
        printed, label = oracle("--sizes 1 7 --plot", out).out, "candidates N"
    assert len(printed.splitlines()) >= 6
    assert out.read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in drawn for name in (*shown, label))


def test_the_oracle_bounds_every_rule_and_finds_the_best_candidate(oracle: Command) -> None:
    rules, raters = ["empty", "map", "majority", "mbr", "mbr-corpus"], "--raters mqm.merged mqm.rater2"
    evaluated = {row["rule"]: row["en-de"] for row in rows(oracle, raters, "--rules", *rules)}
    softf1 = {rule: values["softf1"] for rule, values in evaluated.items()}
    assert list(softf1) == [*rules, "oracle", "oracle mqm.merged", "oracle mqm.rater2"]
    assert softf1["oracle"] >= max(softf1[rule] for rule in rules)
    # The fourth candidate of each is what the merged rater said.
    assert softf1["oracle mqm.merged"] == pytest.approx(1.0)
    assert re.search(r"oracle mqm.merged: \d+ translations in en-de", oracle(raters, "--rules").out)
    (alone,) = rows(oracle, "--rules --raters mqm.merged")
    assert (alone["rule"], alone["en-de"]["spa"]) == ("oracle", pytest.approx(1.0))


def test_an_oracle_of_ratings_that_cannot_compare_systems_is_left_out(
    candidates: Path, en_fr: Copy, mbr_esd: Command
) -> None:
    path = en_fr.layout.human_file("mqm.rater2", "seg.rating")
    lines = path.read_text(encoding="utf-8").splitlines()
    others = [f"{line.partition(chr(9))[0]}\tNone" for line in lines[SEGMENTS:]]
    path.write_text("\n".join([*lines[:SEGMENTS], *others]) + "\n", encoding="utf-8")
    printed = mbr_esd(f"oracle {candidates} --rules --raters mqm.merged mqm.rater2", en_fr.where).out
    assert "oracle mqm.rater2 is left out in en-fr: no segment is rated for two systems" in printed
    assert printed.count("oracle mqm.rater2") == 1


def test_sizes_take_prefixes(oracle: Command) -> None:
    rules = ("empty", "map", "majority", "mbr", "oracle")
    table = {(row["rule"], row["n"]): row["en-de"] for row in rows(oracle, "--sizes 1 3 8")}
    assert list(table) == [(rule, n) for rule in rules for n in (1, 3, 8)]
    # One candidate leaves no choice; with all of them the best is at least as good as any rule's.
    assert all(table[rule, 1] == table["oracle", 1] for rule in rules[1:])
    assert all(table["oracle", 8]["softf1"] >= table[rule, 8]["softf1"] for rule in rules)
    assert [row["en-de"] for row in rows(oracle, "--sizes 3")] == [table[rule, 3] for rule in rules]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("oracle half.jsonl", "nothing on segment 1 of system A in en-de"),
        ("oracle all.jsonl --sizes 64", "segment 1 of A: there are 8 candidates, fewer than 64"),
        ("oracle all.jsonl --rules mbrr", "did you mean 'mbr'"),
        ("oracle all.jsonl --plot x.png", "say how many with --sizes, for instance 16 64 256"),
        ("oracle bare.jsonl", "bare.jsonl: segment 1 of A: the rule 'map' needs the candidates' log-prob"),
        ("oracle unread.jsonl --rules mbr-corpus", "segment 2 of A: no candidate is valid"),
        (
            f"leaderboard {SWEEP} --metric span-src",
            "unknown metric of wmt23 en-de 'span-src'; did you mean 'spans-src'",
        ),
        (f"leaderboard {SWEEP} --metric all.jsonl", "a metric is a name, or a file that comet-score"),
        (f"leaderboard {SWEEP} --metric length", "length-src has no error spans"),
        (f"leaderboard {SWEEP} --metric spans --raters nobody", "unknown set of human ratings 'nobody'"),
        ("leaderboard --view spans --metric length", "length-src has no error spans"),
        ("leaderboard --view spans --metric spanz", "did you mean 'spans' or 'spans-src'"),
        ("leaderboard --view spans --measures mpp-corps", "did you mean 'mpp-corpus'"),
        ("leaderboard --view spans --exclude Z", "unknown system of wmt23 en-de 'Z'"),
        ("leaderboard --view spans --statistics spa", "--statistics changes nothing with --view spans"),
        ("leaderboard --view wmt21", "wmt23"),
        ("leaderboard --statistics seg-kendal-item", "seg-kendall-item"),
        ("leaderboard --plot x.png", "--plot changes nothing with another view than lambda-sweep and precision-recall"),
        ("leaderboard --lp en-de zh-en en-de", "--lp en-de zh-en en-de: en-de is there twice"),
    ],
)
def test_failures_are_one_line(
    data: Path, candidates: Path, workdir: Path, mbr_esd: Command, words: str, message: str
) -> None:
    every = [json.loads(line) for line in candidates.read_text(encoding="utf-8").splitlines()]
    bare = [{**line, "candidates": [{"text": one["text"]} for one in line["candidates"]]} for line in every]
    unread = [{**line, "candidates": [{"text": "?"}]} if line["id"] == "A1" else line for line in bare]
    for name, lines in (("all", every), ("half", every[:60]), ("bare", bare), ("unread", unread)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    where = f"--test-set {data}/wmt23 --lp en-de" if "--lp" not in words else f"--test-set {data}/wmt23"
    (line,) = mbr_esd(words, where, status=1).err.splitlines()
    assert message in line


def test_a_test_set_without_tasks_or_metrics_says_what_to_do(tmp_path: Path, mbr_esd: Command) -> None:
    write_folder(tmp_path)
    board = f"leaderboard --test-set {tmp_path}/made --lp en-de"
    assert "--view wmt23" in mbr_esd(board, "--view overall", status=1).err
    for path in tmp_path.rglob("metric-scores/**/*.score"):
        path.unlink()
    assert "no metric has segment scores; score some with: mbr-esd wmt score" in mbr_esd(board, status=1).err


def test_metrics_are_named_as_in_the_leaderboard(en_fr: Copy, tmp_path: Path, mbr_esd: Command) -> None:
    for path in en_fr.files_of("spans-src"):
        shutil.copy(path, path.with_name(path.name.replace("-src", "-refA")))
    for name, expected in {"spans": ["src", "src+ref"], "spans-src": ["src"], "spans-refA": ["src+ref"]}.items():
        metric = f"{en_fr.where} --metric {name}"
        for words in ("leaderboard --k 0", "leaderboard --view spans"):
            named = sorted((row["metric"], row["input"]) for row in rows(mbr_esd, words, metric) if row["input"])
            assert named == [("spans", each) for each in expected]
        shown = mbr_esd(f"leaderboard {SWEEP}", metric).out
        assert [each for each in ("src", "src+ref") if f"spans ({each}), wmt23" in shown] == expected
        mbr_esd("report", metric, "-o", tmp_path / "r.html")


def test_a_base_name_may_lack_a_reference_in_one_language_pair(en_fr: Copy, mbr_esd: Command) -> None:
    for path in en_fr.files_of("spans-src"):
        path.rename(path.with_name(path.name.replace("-src", "-refA")))
    printed = mbr_esd(f"leaderboard {SWEEP} --metric spans", en_fr.both, "--table tsv").out
    lines = [line.split("\t")[1:] for line in printed.splitlines() if line.startswith("0\t")]
    first, second = ([bool(cell) for cell in line] for line in lines)
    assert first == second[::-1] == [True] * 7 + [False] * 7


def test_two_language_pairs_stand_side_by_side(candidates: Path, en_fr: Copy, mbr_esd: Command) -> None:
    """A language pair and its copy under another name."""
    oracle = f"oracle {candidates}"
    for words in (f"leaderboard {SWEEP} --metric spans", f"{oracle} --rules mbr", f"{oracle} --sizes 4"):
        alone, together = rows(mbr_esd, words, en_fr.where), rows(mbr_esd, words, en_fr.both)
        assert [{k: v for k, v in row.items() if k != "en-de"} for row in together] == alone
        assert [row["en-fr"] for row in together] == [row["en-de"] for row in together]


def put_lines(path: Path, changes: dict[int, str]) -> None:
    """Replace lines of a file, by their numbers from 0."""
    lines = [changes.get(n, line) for n, line in enumerate(path.read_text(encoding="utf-8").splitlines())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_every_analysis_counts_the_spans_that_were_cut(candidates: Path, en_fr: Copy, mbr_esd: Command) -> None:
    past = json.dumps({"errors": [{"start": 0, "end": 999, "severity": "minor"}]})
    put_lines(en_fr.layout.human_file("mqm.merged", "seg.rating"), {0: f"A\t{past}\tr"})
    oracle = f"oracle {candidates}"
    boards = ("leaderboard --k 0", "leaderboard --view spans", f"leaderboard {SWEEP} --metric spans")
    for words in (*boards, f"{oracle} --rules mbr", f"{oracle} --sizes 4"):
        (note,) = [line for line in mbr_esd(words, en_fr.where).out.splitlines() if "are cut there" in line]
        assert re.search(r"people, en-fr in \d+ translations: 1 end past the translation and are cut there$", note)


@pytest.mark.parametrize("swapped", [False, True])
def test_systems_rated_on_different_segments(en_fr: Copy, mbr_esd: Command, swapped: bool) -> None:
    """System A has one rating less, or that of another segment in its place."""
    path = en_fr.layout.human_file("mqm", "seg.score")
    of_a = path.read_text(encoding="utf-8").splitlines()[:SEGMENTS]
    rated, unrated = (next(n for n, line in enumerate(of_a) if line.endswith("None") is no) for no in (False, True))
    put_lines(path, {rated: "A\tNone", **({unrated: "A\t-1.0"} if swapped else {})})
    for words in ("leaderboard --k 0", "leaderboard --statistics spa", f"leaderboard {SWEEP} --metric spans"):
        printed = mbr_esd(words, en_fr.where).out
        assert re.search(r"SPA compares each pair of systems on the \d+ to \d+ segments that both have", printed)
    assert "SPA compares" not in mbr_esd("leaderboard --k 0", en_fr.where, "--exclude A").out
    assert " 2 systems, " in mbr_esd("leaderboard --view spans", en_fr.where, "--systems A B").out
    test_set = load_test_set(en_fr.layout.data, "wmt23", "en-fr")
    expected = spa(test_set.gold, test_set.metric("noise-refA").scores, missing="pairs")
    assert by_metric(mbr_esd, "leaderboard --k 0", en_fr.where)["noise"]["en-fr"]["spa"] == expected


def test_a_file_is_a_metric_in_every_view(
    board: Command, test_sets: dict[str, TestSet], written: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    # A span without characters is no span, and no reason to stop. This one is in a translation that nobody rated.
    every, file = json.loads(json.dumps(written)), tmp_path / "out.json"
    (unrated, *_) = np.flatnonzero(np.isnan(test_sets["en-de"].gold[0]))
    every["A.txt"][unrated]["errors"].append({"severity": "minor", "start": 3, "end": 3, "confidence": 0.5})
    file.write_text(json.dumps(every), encoding="utf-8")
    views = ("spans", "error-free", "domain", "lambda-sweep", "precision-recall")
    for words in ("--k 20", "--statistics spa", *(f"--view {view}" for view in views)):
        assert rows(board, words, f"--metric spans={file}") == rows(board, words, "--metric spans")
    printed = board(f"--view spans --metric {file} spans").out
    assert "1 begin past it or have no characters and are no spans" in printed
    assert {"out", "spans"} <= {line.split(" ")[0].strip("*") for line in printed.splitlines()}
    file.write_text(json.dumps({**every, "B.txt": every["B.txt"][1:]}), encoding="utf-8")
    assert f"{file}: nothing on segment" in board("--metric", file, status=1).err


def test_two_metrics_of_one_name_are_refused(
    board: Command, written: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    """Files of one name, and a file called as a stored metric is: neither takes the other's place in silence."""
    m, mm, other = (tmp_path / path for path in ("m.json", "mm.json", "r/m.json"))
    other.parent.mkdir()
    for path in (m, mm, other):
        rows = {name: [{**row, "model": "mbr-esd-small"} for row in of] for name, of in written.items()}
        path.write_text(json.dumps(rows), encoding="utf-8")
    for words, message in (
        (f"M={m} M={mm}", f"--metric M={m}, M={mm}: two metrics are called M; name a file apart with NAME=FILE"),
        (f"M={m} M", "two metrics are called M"),
        (f"spans={m} spans-src", "is called spans-src, which is named too"),
    ):
        assert message in board("--metric", words, status=1).err
    # Files of one name are told apart by their folders.
    for view in ("--k 10", "--statistics spa", "--view error-free"):
        named = [re.split(" +", line)[0].strip("*") for line in board(view, f"--metric {m} {other}").out.splitlines()]
        assert {name.rpartition("/")[0] for name in named if name.endswith("/m")} == {tmp_path.name, "r"}
    out = board("--k 0", f"--metric M={m} MM={mm} length").out
    assert "not between good systems" in out
    assert {"M", "MM", "length"} <= {line.split(" ")[0].strip("*") for line in out.splitlines()}


def test_a_file_is_written_into_the_folder(
    en_fr: Copy, written: dict[str, list[dict[str, Any]]], tmp_path: Path, mbr_esd: Command
) -> None:
    file = tmp_path / "xcomet.json"
    for indent, name in ((None, "plain"), (4, "indented")):  # COMET indents its file
        file.write_text(json.dumps(written, indent=indent), encoding="utf-8")
        printed = mbr_esd(f"wmt import {name}={file}", en_fr.where).out
        assert f"{name}-src, scores and error spans of 120 translations by 5 systems" in printed
        test_set = load_test_set(en_fr.layout.data, "wmt23", "en-fr")
        imported, stored = (test_set.metric(full).ratings for full in (f"{name}-src", "spans-src"))
        assert imported is not None
        assert stored is not None
        assert imported.annotations == stored.annotations
    for words, message in (("plain=", "already there; choose another name"), ("", f"name its metric, NAME={file}")):
        assert message in mbr_esd(f"wmt import {words}{file}", en_fr.where, status=1).err
