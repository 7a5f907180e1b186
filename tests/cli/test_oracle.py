"""lambda-sweep, oracle and span counts on a small test set in the folder layout."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, write_scores, write_text
from mbr_esd_metric.adapters.wmt.metric_files import import_file
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval import acc_eq, spa
from mbr_esd_metric.prompting.formats import get_format
from tests.helpers.command import Command
from tests.helpers.wmt_folder import WORDS, spans, write_texts

SYSTEMS = ("A", "B", "C")
SEGMENTS = 12
SWEEP = "leaderboard --view lambda-sweep"


@dataclass(frozen=True)
class Small:
    """The arguments that name the test set, a candidates file and the output of comet-score."""

    arguments: list[str]
    layout: Layout
    candidates: Path
    xcomet: Path


def put_lines(path: Path, changes: Mapping[int, str]) -> None:
    """Replace lines of a file, by their numbers from 0."""
    lines = [changes.get(n, line) for n, line in enumerate(path.read_text(encoding="utf-8").splitlines())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    rng = random.Random(0)
    folder = tmp_path_factory.mktemp("small")
    layout = Layout(folder / "data", "small", "en-de")
    texts = {s: [" ".join(rng.sample(WORDS, 8)) for _ in range(SEGMENTS)] for s in SYSTEMS}
    sources = [f"source {i}" for i in range(SEGMENTS)]
    write_texts(layout, sources, texts)
    write_text(layout.reference("refA"), sources)
    one, two, metric = ({s: [spans(rng, text, most) for text in texts[s]] for s in SYSTEMS} for most in (2, 2, 3))
    gold: dict[str, list[float | None]] = {s: [mqm_score(a) for a in one[s]] for s in SYSTEMS}
    for scores in gold.values():
        scores[5] = None
    write_scores(layout.human_file("mqm", "seg.score"), gold)
    write_scores(layout.metric_file("mine-src", "seg.score"), {s: [mqm_score(a) for a in metric[s]] for s in SYSTEMS})
    unrated = {s: [None if i == 5 else a for i, a in enumerate(one[s])] for s in SYSTEMS}
    write_ratings(layout.human_file("mqm.rater1", "seg.rating"), unrated)
    write_ratings(layout.human_file("mqm.rater2", "seg.rating"), two)
    write_ratings(layout.metric_file("mine-src", "seg.rating"), metric)

    lines = []
    written: dict[str, list[dict[str, Any]]] = {}
    for system in SYSTEMS:
        for i, text in enumerate(texts[system]):
            choices = [Annotation(), one[system][i], metric[system][i], *(spans(rng, text, 3) for _ in range(5))]
            sampled = [(annotation, -rng.random() * 9) for annotation in rng.choices(choices, k=20)]
            sampled[3] = one[system][i], -8.0  # the oracle has something to find
            answers = [{"text": get_format("json").answer(a, text)[0], "logprob": logprob} for a, logprob in sampled]
            lines.append({"id": f"{system}{i}", "system": system, "src": sources[i], "mt": text, "candidates": answers})
            names = ("confidence", "severity", "start", "end")
            errors = [{"text": "", **{name: getattr(span, name) for name in names}} for span in metric[system][i]]
            row = {"src": sources[i], "mt": text, "COMET": 0.5, "errors": errors}
            written.setdefault(f"{system}.txt", []).append(row)
    candidates, xcomet = folder / "candidates.jsonl", folder / "xcomet.json"
    candidates.write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)), encoding="utf-8")
    xcomet.write_text(json.dumps(written), encoding="utf-8")
    return Small(["--test-set", f"{layout.data}/small", "--lp", "en-de"], layout, candidates, xcomet)


@dataclass(frozen=True)
class Pair:
    """A copy of the data folder in which all of en-de is there as en-fr, too; and the arguments that name these."""

    layout: Layout
    where: str
    both: str


@pytest.fixture
def en_fr(small: Small, tmp_path: Path) -> Pair:
    data = shutil.copytree(small.layout.data, tmp_path / "data")
    for path in sorted(data.rglob("*en-de*"), reverse=True):
        (shutil.copytree if path.is_dir() else shutil.copy)(path, path.with_name(path.name.replace("en-de", "en-fr")))
    test_set = f"--test-set {data}/small --lp"
    return Pair(Layout(data, "small", "en-fr"), f"{test_set} en-fr", f"{test_set} en-de en-fr")


def rows(mbr_esd: Command, *words: object) -> list[dict[str, Any]]:
    table: dict[str, list[dict[str, Any]]] = json.loads(mbr_esd(*words, "--table json").out)
    return table["rows"]


def test_sweep_of_a_stored_metric_and_of_comets_output(small: Small, mbr_esd: Command) -> None:
    stored = rows(mbr_esd, f"{SWEEP} --metric mine-src", *small.arguments)
    assert [row["lambda"] for row in stored] == [*(i / 10 for i in range(11)), "empty"]
    totals = [row["en-de"]["major"] + row["en-de"]["minor"] for row in stored]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > totals[-2] > totals[-1] == 0
    assert set(stored[0]["en-de"]) == {"spa", "acc_eq", "softf1", "f1", "major", "minor", "ratio"}
    assert rows(mbr_esd, f"{SWEEP} --metric mine={small.xcomet}", *small.arguments) == stored
    # Nothing is dropped at 0, and what is left is what `spans` and `leaderboard` say.
    (entry,) = (row for row in rows(mbr_esd, "leaderboard --k 0", *small.arguments) if row["metric"] == "mine")
    for name in ("spa", "acc_eq", "softf1", "f1"):
        assert stored[0]["en-de"][name] == pytest.approx(entry["en-de"][name], abs=1e-12)


@pytest.mark.parametrize("verb", [SWEEP, "oracle"])
def test_curves_are_plotted(small: Small, tmp_path: Path, mbr_esd: Command, verb: str) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "curves.png"
    what, shown = "--metric mine-src", ["SPA", "acc_eq*", "SoftF1", "F1", "spans", "empty en-de"]
    if verb == "oracle":
        what, shown = f"{small.candidates} --sizes 1 7", ["SPA", "acc_eq*", "SoftF1", "candidates N"]
    assert len(mbr_esd(verb, what, *small.arguments, "--plot", out).out.splitlines()) >= 6
    assert out.read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in drawn for name in shown)


def test_the_oracle_bounds_every_rule_and_finds_the_best_candidate(small: Small, mbr_esd: Command) -> None:
    rules = ["empty", "map", "majority", "mbr", "mbr-corpus"]
    oracle = ["oracle", small.candidates, *small.arguments]
    evaluated = {row["rule"]: row["en-de"] for row in rows(mbr_esd, *oracle, "--rules", *rules)}
    softf1 = {rule: values["softf1"] for rule, values in evaluated.items()}
    assert list(softf1) == [*rules, "oracle", "oracle mqm.rater1", "oracle mqm.rater2"]
    assert softf1["oracle"] >= max(value for rule, value in softf1.items() if not rule.startswith("oracle"))
    # The fourth candidate of each is what the first rater said.
    assert softf1["oracle mqm.rater1"] == pytest.approx(1.0)
    assert "oracle mqm.rater1: 33 translations in en-de" in mbr_esd(*oracle, "--rules").out
    (alone,) = rows(mbr_esd, *oracle, "--rules --raters mqm.rater1")
    assert alone["rule"] == "oracle"
    assert alone["en-de"]["spa"] == pytest.approx(1.0)


def test_sizes_take_prefixes(small: Small, mbr_esd: Command) -> None:
    oracle = ["oracle", small.candidates, *small.arguments, "--sizes"]
    rules = ("empty", "map", "majority", "mbr", "oracle")
    table = {(row["rule"], row["n"]): row["en-de"] for row in rows(mbr_esd, *oracle, "1 7 20")}
    assert list(table) == [(rule, n) for rule in rules for n in (1, 7, 20)]
    # One candidate leaves no choice; with all of them the best is at least as good as any rule's.
    assert all(table[rule, 1] == table["oracle", 1] for rule in rules[1:])
    assert all(table["oracle", 20]["softf1"] >= table[rule, 20]["softf1"] for rule in rules)
    assert [row["en-de"] for row in rows(mbr_esd, *oracle, "7")] == [table[rule, 7] for rule in rules]


def test_spans_of_humans_metrics_and_nobody(small: Small, mbr_esd: Command) -> None:
    human, nobody, metric = rows(mbr_esd, "leaderboard --view spans", *small.arguments, "--raters mqm.rater1")
    assert (human["metric"], nobody["metric"], metric["metric"]) == ("human", "no error", "mine")
    assert (human["input"], nobody["input"], metric["input"]) == (None, None, "src")
    assert nobody["ratio"] == 0
    total = metric["major"] + metric["minor"]
    assert metric["ratio"] == pytest.approx(total / (human["major"] + human["minor"]))
    assert metric["per_translation"] == pytest.approx(total / 33)
    assert metric["major_share"] == pytest.approx(metric["major"] / total)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("oracle half.jsonl", "nothing on segment 1 of system A in en-de"),
        ("oracle all.jsonl --sizes 64", "segment 1 of A: there are 20 candidates, fewer than 64"),
        ("oracle all.jsonl --rules mbrr", "did you mean 'mbr'"),
        ("oracle all.jsonl --plot x.png", "say how many with --sizes, for instance 16 64 256"),
        (
            "oracle bare.jsonl",
            "bare.jsonl: segment 1 of A: the rule 'map' needs the candidates' log-prob",
        ),
        ("oracle unread.jsonl --rules mbr-corpus", "segment 2 of A: none of the 1 candidates is valid"),
        (f"{SWEEP} --metric min-src", "unknown metric of small en-de 'min-src'; did you mean 'mine-src'"),
        (f"{SWEEP} --metric all.jsonl", "a metric is a name, or a file that comet-score"),
        (f"{SWEEP} --metric mine-src --raters nobody", "unknown set of human ratings 'nobody'"),
        ("leaderboard --view spans --metric mini", "did you mean 'mine' or 'mine-src'"),
        ("leaderboard --view spans --measures mpp-corps", "did you mean 'mpp-corpus'"),
    ],
)
def test_failures_are_one_line(
    small: Small, tmp_path: Path, mbr_esd: Command, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    every = [json.loads(line) for line in small.candidates.read_text(encoding="utf-8").splitlines()]
    bare = [{**line, "candidates": [{"text": one["text"]} for one in line["candidates"]]} for line in every]
    unread = [{**line, "candidates": [{"text": "?"}]} if line["id"] == "A1" else line for line in bare]
    for name, lines in (("all", every), ("half", every[:20]), ("bare", bare), ("unread", unread)):
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (line,) = mbr_esd(words, *small.arguments, status=1).err.splitlines()
    assert message in line


def test_metrics_are_named_as_in_the_leaderboard(en_fr: Pair, tmp_path: Path, mbr_esd: Command) -> None:
    for path in (en_fr.layout.metric_file("mine-src", "seg.score"), en_fr.layout.metric_file("mine-src", "seg.rating")):
        shutil.copy(path, path.with_name(path.name.replace("-src", "-refA")))
    inputs = {"mine": ["src", "src+ref"], "mine-src": ["src"], "mine-refA": ["src+ref"]}
    for name, expected in inputs.items():
        metric = f"{en_fr.where} --metric {name}"
        for words in ("leaderboard --k 0", "leaderboard --view spans"):
            named = sorted((row["metric"], row["input"]) for row in rows(mbr_esd, words, metric) if row["input"])
            assert named == [("mine", each) for each in expected]
        shown = mbr_esd(SWEEP, metric).out
        assert [each for each in ("src", "src+ref") if f"mine ({each}), small" in shown] == expected
        mbr_esd("report", metric, "-o", tmp_path / "r.html")


def test_a_base_name_may_lack_a_reference_in_one_language_pair(en_fr: Pair, mbr_esd: Command) -> None:
    for path in (en_fr.layout.metric_file("mine-src", "seg.score"), en_fr.layout.metric_file("mine-src", "seg.rating")):
        path.rename(path.with_name(path.name.replace("-src", "-refA")))
    printed = mbr_esd(f"{SWEEP} --metric mine", en_fr.both, "--table tsv").out
    lines = [line.split("\t")[1:] for line in printed.splitlines() if line.startswith("0\t")]
    first, second = ([bool(cell) for cell in line] for line in lines)
    assert first == second[::-1] == [True] * 7 + [False] * 7


def test_a_sweep_needs_error_spans(en_fr: Pair, mbr_esd: Command) -> None:
    write_scores(en_fr.layout.metric_file("bare-src", "seg.score"), {s: [0.0] * SEGMENTS for s in SYSTEMS})
    for verb in (SWEEP, "leaderboard --view spans"):
        assert "bare-src has no error spans" in mbr_esd(verb, "--metric bare-src", en_fr.where, status=1).err
    assert "bare" not in mbr_esd("leaderboard --view spans", en_fr.where).out


def test_two_language_pairs_stand_side_by_side(small: Small, en_fr: Pair, mbr_esd: Command) -> None:
    """A language pair and its copy under another name."""
    oracle = f"oracle {small.candidates}"
    for words in (f"{SWEEP} --metric mine-src", f"{oracle} --rules mbr", f"{oracle} --sizes 4"):
        alone = rows(mbr_esd, words, *small.arguments)
        together = rows(mbr_esd, words, en_fr.both)
        assert [{k: v for k, v in row.items() if k != "en-fr"} for row in together] == alone
        assert [row["en-fr"] for row in together] == [row["en-de"] for row in together]
    assert "--lp en-de en-fr en-de: en-de is there twice" in mbr_esd("leaderboard", en_fr.both, "en-de", status=1).err


def test_every_analysis_counts_the_spans_that_were_cut(small: Small, en_fr: Pair, mbr_esd: Command) -> None:
    past = json.dumps({"errors": [{"start": 0, "end": 999, "severity": "minor"}]})
    put_lines(en_fr.layout.human_file("mqm.rater1", "seg.rating"), {0: f"A\t{past}\tr"})
    oracle = f"oracle {small.candidates}"
    boards = ("leaderboard --k 0", "leaderboard --view spans", f"{SWEEP} --metric mine-src")
    for words in (*boards, f"{oracle} --rules mbr", f"{oracle} --sizes 4"):
        (note,) = [line for line in mbr_esd(words, en_fr.where).out.splitlines() if "are cut there" in line]
        assert note == "error spans of people, en-fr in 69 translations: 1 end past the translation and are cut there"


def test_a_sweep_is_printed_beside_empty_and_says_where_nothing_is_left(en_fr: Pair, mbr_esd: Command) -> None:
    layout = en_fr.layout
    unsure = {s: [Annotation([ErrorSpan(0, 2, "minor", None, 0.5)])] * SEGMENTS for s in SYSTEMS}
    write_scores(layout.metric_file("unsure-src", "seg.score"), {s: [-1.0] * SEGMENTS for s in SYSTEMS})
    write_ratings(layout.metric_file("unsure-src", "seg.rating"), unsure)
    notes = mbr_esd(f"{SWEEP} --metric unsure-src", en_fr.where).out.splitlines()
    (constant,) = (note for note in notes if note.startswith("one score for everything"))
    assert constant.endswith(", ".join(f"lambda {at / 10}" for at in range(11)) + ", empty in en-fr")


@pytest.mark.parametrize(
    ("changes", "system"),
    [({35: "C\tNone"}, "C"), ({5: "A\t-1.0", 7: "A\tNone"}, "A")],  # one rating less, or of another segment
)
def test_systems_rated_on_different_segments(
    en_fr: Pair, mbr_esd: Command, changes: Mapping[int, str], system: str
) -> None:
    put_lines(en_fr.layout.human_file("mqm", "seg.score"), changes)
    for words in ("leaderboard --k 0", "leaderboard --statistics spa", f"{SWEEP} --metric mine-src"):
        printed = mbr_esd(words, en_fr.where).out
        assert "SPA compares each pair of systems on the 10 to 11 segments that both have" in printed
    assert "SPA compares" not in mbr_esd("leaderboard --k 0", en_fr.where, "--exclude", system).out
    board = f"leaderboard --view spans {en_fr.where}"
    assert "unknown system of small en-fr 'Z'" in mbr_esd(board, "--exclude Z", status=1).err
    assert " 2 systems, " in mbr_esd(board, "--systems A B").out


def test_a_contrastive_campaign_has_a_board(en_fr: Pair, mbr_esd: Command) -> None:
    """Each segment is rated for two systems, in turn: none for all."""
    places = [(i, j) for i in range(len(SYSTEMS)) for j in range(SEGMENTS) if (i - j) % len(SYSTEMS) > 1]
    changes = {i * SEGMENTS + j: f"{SYSTEMS[i]}\tNone" for i, j in places}
    put_lines(en_fr.layout.human_file("mqm", "seg.score"), changes)
    board = json.loads(mbr_esd("leaderboard", en_fr.where, "--k 50 --table json").out)
    (row,) = [row for row in board["rows"] if row["metric"] == "mine"]
    test_set = load_test_set(en_fr.layout.data, "small", "en-fr")
    scores = test_set.metric("mine-src").scores
    assert row["en-fr"]["spa"] == spa(test_set.gold, scores, missing="pairs")
    assert row["en-fr"]["acc_eq"] == acc_eq(test_set.gold, scores).accuracy
    assert any("each pair of systems on the" in note for note in board["notes"])


def test_a_file_is_a_metric_in_every_view(small: Small, tmp_path: Path, mbr_esd: Command) -> None:
    written = json.loads(small.xcomet.read_text(encoding="utf-8"))
    for rows_of in written.values():
        for row in rows_of:
            row["COMET"] = mqm_score(Annotation(row["errors"]))
    # A span without characters is no span, and no reason to stop.
    written["A.txt"][0]["errors"].append({"severity": "minor", "start": 3, "end": 3, "confidence": 0.5})
    file = tmp_path / "out.json"
    file.write_text(json.dumps(written), encoding="utf-8")
    views = ("--k 20", "--statistics spa", "--view spans", "--view error-free", "--view domain")
    sweeps = (SWEEP, "leaderboard --view precision-recall")
    for words in (*(f"leaderboard {view}" for view in views), *sweeps):
        stored = rows(mbr_esd, words, *small.arguments, "--metric mine")
        assert rows(mbr_esd, words, *small.arguments, f"--metric mine={file}") == stored
    printed = mbr_esd("leaderboard", *small.arguments, f"--view spans --metric {file} mine").out
    assert "1 begin past it or have no characters and are no spans" in printed
    assert {"out", "mine"} <= {line.split(" ")[0] for line in printed.splitlines()}
    del written["B.txt"][1]
    file.write_text(json.dumps(written), encoding="utf-8")
    assert f"{file}: nothing on segment" in mbr_esd("leaderboard", *small.arguments, "--metric", file, status=1).err


def test_a_file_is_written_into_the_folder(small: Small, en_fr: Pair, tmp_path: Path, mbr_esd: Command) -> None:
    test_set = load_test_set(en_fr.layout.data, "small", "en-fr")
    done = import_file(small.xcomet, test_set, "xcomet")
    assert (done.name, done.systems, done.translations, done.spans) == ("xcomet-src", 3, 36, True)
    imported, stored = (test_set.metric(name).ratings for name in ("xcomet-src", "mine-src"))
    assert imported is not None
    assert stored is not None
    assert imported.annotations == stored.annotations
    with pytest.raises(InputError, match="already there; choose another name"):
        import_file(small.xcomet, test_set, "xcomet")
    for indent, name in ((None, "flat"), (4, "indented")):  # COMET indents its file
        file = tmp_path / "xcomet.json"
        file.write_text(json.dumps(json.loads(small.xcomet.read_text(encoding="utf-8")), indent=indent))
        printed = mbr_esd(f"wmt import {name}={file}", en_fr.where).out
        assert f"{name}-src, scores and error spans of 36 translations by 3 systems" in printed
    assert f"name its metric, NAME={small.xcomet}" in mbr_esd("wmt import", small.xcomet, en_fr.where, status=1).err
