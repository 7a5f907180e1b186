"""lambda-sweep, oracle and span counts on a small test set in the folder layout."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, write_documents, write_scores, write_text
from mbr_esd_metric.adapters.wmt.metric_files import import_file
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval import acc_eq, spa

SYSTEMS = ("A", "B", "C")
SEGMENTS = 12
WORDS = ["der", "graue", "Hund", "sieht", "einen", "alten", "Baum", "am", "Ufer", "und", "bellt", "laut"]


@dataclass(frozen=True)
class Small:
    """The arguments that name the test set, its translations, a candidates file and the output of comet-score."""

    arguments: list[str]
    layout: Layout
    texts: dict[str, list[str]]
    candidates: Path
    xcomet: Path


def some_spans(rng: random.Random, text: str, most: int) -> Annotation:
    """Words, each marked at most once, with confidences of one decimal."""
    spans = []
    for word in rng.sample(text.split(), rng.randint(0, most)):
        start = text.index(word)
        severity: Any = rng.choice(["major", "minor"])
        spans.append(ErrorSpan(start, start + len(word), severity, "style", rng.randint(0, 10) / 10))
    return Annotation(spans)


def as_text(annotation: Annotation, text: str) -> str:
    return json.dumps(
        {
            "errors": [
                {"error_span": text[s.start : s.end], "category": "style", "sub_category": "", "severity": s.severity}
                for s in annotation
            ]
        }
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    rng = random.Random(0)
    folder = tmp_path_factory.mktemp("small")
    layout = Layout(folder / "data", "small", "en-de")
    texts = {s: [" ".join(rng.sample(WORDS, 8)) for _ in range(SEGMENTS)] for s in SYSTEMS}
    sources = [f"source {i}" for i in range(SEGMENTS)]
    write_text(layout.source(), sources)
    write_documents(layout.documents, [("news", "one")] * SEGMENTS)
    write_text(layout.reference("refA"), sources)
    one = {s: [some_spans(rng, text, 2) for text in texts[s]] for s in SYSTEMS}
    two = {s: [some_spans(rng, text, 2) for text in texts[s]] for s in SYSTEMS}
    mine = {s: [some_spans(rng, text, 3) for text in texts[s]] for s in SYSTEMS}
    for system in SYSTEMS:
        write_text(layout.output(system), texts[system])
    gold: dict[str, list[float | None]] = {s: [mqm_score(a) for a in one[s]] for s in SYSTEMS}
    for scores in gold.values():
        scores[5] = None
    write_scores(layout.human_scores("mqm", "seg"), gold)
    write_scores(layout.metric_scores("mine-src", "seg"), {s: [mqm_score(a) for a in mine[s]] for s in SYSTEMS})
    unrated = {s: [None if i == 5 else a for i, a in enumerate(one[s])] for s in SYSTEMS}
    raters: dict[str, list[str | None]] = {s: ["r"] * SEGMENTS for s in SYSTEMS}
    write_ratings(layout.human_rating("mqm.rater1"), unrated, raters)
    write_ratings(layout.human_rating("mqm.rater2"), two, raters)
    write_ratings(layout.metric_rating("mine-src"), mine, raters)

    lines = []
    for system in SYSTEMS:
        for i, text in enumerate(texts[system]):
            choices = [Annotation(), one[system][i], mine[system][i], *(some_spans(rng, text, 3) for _ in range(5))]
            sampled = [{"text": as_text(a, text), "logprob": -rng.random() * 9} for a in rng.choices(choices, k=20)]
            # The oracle has something to find.
            sampled[3] = {"text": as_text(one[system][i], text), "logprob": -8.0}
            lines.append({"id": f"{system}{i}", "system": system, "src": sources[i], "mt": text, "candidates": sampled})
    candidates = folder / "candidates.jsonl"
    candidates.write_text("".join(json.dumps(line) + "\n" for line in reversed(lines)), encoding="utf-8")
    xcomet = folder / "xcomet.json"
    written = {
        f"{system}.txt": [
            {
                "src": sources[i],
                "mt": text,
                "COMET": 0.5,
                "errors": [
                    {"text": "", "confidence": s.confidence, "severity": s.severity, "start": s.start, "end": s.end}
                    for s in mine[system][i]
                ],
            }
            for i, text in enumerate(texts[system])
        ]
        for system in SYSTEMS
    }
    xcomet.write_text(json.dumps(written), encoding="utf-8")
    arguments = ["--test-set", f"{layout.data}/small", "--lp", "en-de"]
    return Small(arguments, layout, texts, candidates, xcomet)


def with_en_fr(small: Small, folder: Path) -> Path:
    """A copy of the data folder in which all of en-de is there as en-fr, too."""
    data = folder / "data"
    shutil.copytree(small.layout.data, data)
    for path in sorted(data.rglob("*en-de*"), reverse=True):
        copy = path.with_name(path.name.replace("en-de", "en-fr"))
        if path.is_dir():
            shutil.copytree(path, copy)
        else:
            shutil.copy(path, copy)
    return data


def rows(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main([*words, "--table", "json"]) == 0, capsys.readouterr().err
    table: dict[str, list[dict[str, Any]]] = json.loads(capsys.readouterr().out)
    return table["rows"]


def test_sweep_of_a_stored_metric_and_of_comets_output(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    stored = rows(capsys, "lambda-sweep", "--metric", "mine-src", *small.arguments)
    assert [row["lambda"] for row in stored] == [i / 10 for i in range(11)]
    totals = [row["en-de"]["major"] + row["en-de"]["minor"] for row in stored]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] > totals[-1] > 0
    assert set(stored[0]["en-de"]) == {"spa", "acc_eq", "softf1", "f1", "major", "minor"}
    assert rows(capsys, "lambda-sweep", "--metric", f"mine={small.xcomet}", *small.arguments) == stored
    # Nothing is dropped at 0, and what is left is what `spans` and `leaderboard` say.
    (entry,) = (row for row in rows(capsys, "leaderboard", *small.arguments, "--k", "0") if row["metric"] == "mine")
    for name in ("spa", "acc_eq", "softf1", "f1"):
        assert stored[0]["en-de"][name] == pytest.approx(entry["en-de"][name], abs=1e-12)


def test_sweep_of_two_files_of_one_name(small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = tmp_path / "again" / small.xcomet.name
    again.parent.mkdir()
    shutil.copy(small.xcomet, again)
    assert main(["lambda-sweep", "--metric", str(small.xcomet), str(again), *small.arguments]) == 0
    titles = [line for line in capsys.readouterr().out.splitlines() if "spans of lower confidence" in line]
    assert [title.split(",")[0].rpartition("/")[2] for title in titles] == ["xcomet (src)", "xcomet (src)"]
    assert len(set(titles)) == 2


@pytest.mark.parametrize("verb", ["lambda-sweep", "oracle"])
def test_curves_are_plotted(small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "curves.png"
    what = ["--metric", "mine-src"]
    shown = ["SPA", "acc_eq*", "SoftF1", "F1", "spans", "empty en-de"]
    if verb == "oracle":
        what, shown = [str(small.candidates), "--sizes", "1", "7"], ["SPA", "acc_eq*", "SoftF1", "candidates N"]
    assert main([verb, *what, *small.arguments, "--plot", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in drawn for name in shown)
    assert len(capsys.readouterr().out.splitlines()) >= 6


def test_the_oracle_bounds_every_rule_and_finds_what_is_there(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["--rules", "empty", "map", "majority", "mbr", "mbr-corpus"]
    found = rows(capsys, "oracle", str(small.candidates), *small.arguments, *rules)
    softf1 = {row["rule"]: row["en-de"]["softf1"] for row in found}
    assert list(softf1) == [*rules[1:], "oracle", "oracle mqm.rater1", "oracle mqm.rater2"]
    assert softf1["oracle"] >= max(value for rule, value in softf1.items() if not rule.startswith("oracle"))
    # The fourth candidate of each is what the first rater said.
    assert softf1["oracle mqm.rater1"] == pytest.approx(1.0)
    rated = {row["rule"]: row["en-de"]["rated"] for row in found}
    assert (rated["oracle mqm.rater1"], rated["oracle"]) == (33, 36)
    (alone,) = rows(capsys, "oracle", str(small.candidates), *small.arguments, "--rules", "--raters", "mqm.rater1")
    assert alone["rule"] == "oracle"
    assert alone["en-de"]["spa"] == pytest.approx(1.0)


def test_sizes_take_prefixes(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, "oracle", str(small.candidates), *small.arguments, "--sizes", "1", "7", "20")
    expected = [(rule, n) for rule in ("empty", "map", "majority", "mbr", "oracle") for n in (1, 7, 20)]
    assert [(row["rule"], row["n"]) for row in found] == expected
    # One candidate leaves no choice; with all of them the best is at least as good as any rule's.
    assert found[3]["en-de"] == found[6]["en-de"] == found[9]["en-de"] == found[12]["en-de"]
    assert all(found[14]["en-de"]["softf1"] >= found[at]["en-de"]["softf1"] for at in (2, 5, 8, 11))
    alone = rows(capsys, "oracle", str(small.candidates), *small.arguments, "--sizes", "7")
    assert [row["en-de"] for row in alone] == [found[i]["en-de"] for i in (1, 4, 7, 10, 13)]


def test_spans_of_humans_metrics_and_nobody(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    human, nobody, mine = rows(capsys, "leaderboard", "--tasks", "spans", *small.arguments, "--raters", "mqm.rater1")
    assert (human["metric"], nobody["metric"], mine["metric"]) == ("human", "no error", "mine")
    assert (human["input"], nobody["input"], mine["input"]) == (None, None, "src")
    assert nobody["ratio"] == 0
    total = mine["major"] + mine["minor"]
    assert mine["ratio"] == pytest.approx(total / (human["major"] + human["minor"]))
    assert mine["per_translation"] == pytest.approx(total / 33)
    assert mine["major_share"] == pytest.approx(mine["major"] / total)


def failures(small: Small, folder: Path) -> Iterator[tuple[list[str], str]]:
    half = folder / "half.jsonl"
    half.write_text("".join(small.candidates.read_text(encoding="utf-8").splitlines(keepends=True)[:20]))
    yield ["oracle", str(half)], "nothing on segment 1 of system A in en-de"
    yield ["oracle", str(small.candidates), "--sizes", "64"], "segment 1 of A: there are 20 candidates, fewer than 64"
    yield ["oracle", str(small.candidates), "--sizes", "0"], "give 1 or more"
    yield ["oracle", str(small.candidates), "--rules", "mbrr"], "did you mean 'mbr'"
    yield ["oracle", str(small.candidates), "--plot", "x.png"], "say how many with --sizes, for instance 16 64 256"
    bare = folder / "bare.jsonl"
    lines = [json.loads(line) for line in small.candidates.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["candidates"] = [{"text": one["text"]} for one in line["candidates"]]
    bare.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    yield ["oracle", str(bare)], "the rule map needs; leave the rule out: --rules empty majority mbr"
    yield ["oracle", str(bare), "--rules", "map"], "bare.jsonl: segment 1 of A has no log-probabilities, which"
    next(line for line in lines if line["id"] == "A1")["candidates"] = [{"text": "?"}]
    unread = folder / "unread.jsonl"
    unread.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    unreadable = "segment 2 of A: none of the 1 candidates is valid"
    yield ["oracle", str(unread), "--rules", "mbr"], unreadable
    yield ["oracle", str(unread), "--rules", "mbr-corpus"], unreadable
    yield ["lambda-sweep", "--metric", "min-src"], "unknown metric of small en-de 'min-src'; did you mean 'mine-src'"
    yield (["lambda-sweep", "--metric", str(small.candidates)], "a metric is a name, or a file that comet-score")
    yield ["lambda-sweep", "--metric", "mine-src", "--raters", "nobody"], "unknown set of human ratings 'nobody'"
    yield ["leaderboard", "--tasks", "spans", "--metric", "mini"], "did you mean 'mine' or 'mine-src'"
    yield ["leaderboard", "--tasks", "spans", "--measures", "mpp-corps"], "did you mean 'mpp-corpus'"


@pytest.mark.parametrize("number", range(14))
def test_failures_are_one_line(small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    words, message = list(failures(small, tmp_path))[number]
    assert main([*words, *small.arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert len(list(failures(small, tmp_path))) == 14


def test_metrics_are_named_as_in_the_leaderboard(
    small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    shutil.copytree(small.layout.data, data)
    layout = Layout(data, "small", "en-de")
    for path in (layout.metric_scores("mine-src", "seg"), layout.metric_rating("mine-src")):
        shutil.copy(path, path.with_name(path.name.replace("-src", "-refA")))
    where = ["--test-set", f"{data}/small", "--lp", "en-de"]
    inputs = {"mine": ["src", "src+ref"], "mine-src": ["src"], "mine-refA": ["src+ref"]}
    for name, expected in inputs.items():
        for words in (["leaderboard", "--k", "0"], ["leaderboard", "--tasks", "spans"]):
            found = [row for row in rows(capsys, *words, *where, "--metric", name) if row["input"]]
            assert [row["metric"] for row in found] == ["mine"] * len(expected)
            assert sorted(row["input"] for row in found) == expected
        assert main(["lambda-sweep", "--metric", name, *where]) == 0
        shown = capsys.readouterr().out
        assert [f"mine ({each}), small" in shown for each in ("src", "src+ref")] == [
            each in expected for each in ("src", "src+ref")
        ]
        assert main(["report", *where, "--metric", name, "-o", str(tmp_path / "r.html")]) == 0
        capsys.readouterr()


def test_a_base_name_may_lack_a_reference_in_one_language_pair(
    small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(with_en_fr(small, tmp_path), "small", "en-fr")
    for path in (layout.metric_scores("mine-src", "seg"), layout.metric_rating("mine-src")):
        path.rename(path.with_name(path.name.replace("-src", "-refA")))
    both = ["--test-set", f"{layout.data}/small", "--lp", "en-de", "en-fr"]
    assert main(["lambda-sweep", "--metric", "mine", *both, "--table", "tsv"]) == 0
    lines = [line.split("\t")[1:] for line in capsys.readouterr().out.splitlines() if line.startswith("0.0")]
    there, absent = [True] * 6, [False] * 6
    assert [[bool(cell) for cell in line] for line in lines] == [[*there, *absent], [*absent, *there]]


def test_a_sweep_needs_error_spans(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    path = small.layout.metric_scores("bare-src", "seg")
    write_scores(path, {s: [0.0] * SEGMENTS for s in SYSTEMS})
    try:
        assert main(["lambda-sweep", "--metric", "bare-src", *small.arguments]) == 1
        assert "bare-src has no error spans" in capsys.readouterr().err
        assert main(["leaderboard", "--tasks", "spans", "--metric", "bare-src", *small.arguments]) == 1
        assert "bare-src has no error spans" in capsys.readouterr().err
        assert main(["leaderboard", "--tasks", "spans", *small.arguments]) == 0
        assert "bare" not in capsys.readouterr().out
    finally:
        path.unlink()


def test_two_language_pairs_stand_side_by_side(
    small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A language pair and its copy under another name."""
    data = with_en_fr(small, tmp_path)
    both = ["--test-set", f"{data}/small", "--lp", "en-de", "en-fr"]
    for words in (
        ["lambda-sweep", "--metric", "mine-src"],
        ["oracle", str(small.candidates), "--rules", "mbr"],
        ["oracle", str(small.candidates), "--sizes", "4"],
    ):
        alone = rows(capsys, *words, *small.arguments)
        together = rows(capsys, *words, *both)
        assert [{k: v for k, v in row.items() if k != "en-fr"} for row in together] == alone
        assert [row["en-fr"] for row in together] == [row["en-de"] for row in together]
    assert main(["leaderboard", *both, "en-de"]) == 1
    assert "--lp en-de en-fr en-de: en-de is there twice" in capsys.readouterr().err
    assert main(["leaderboard", "--tasks", "spans", *both]) == 0
    shown = capsys.readouterr().out
    assert "small en-de" in shown
    assert "small en-fr" in shown


def test_what_was_cut_is_said_by_every_analysis(
    small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(with_en_fr(small, tmp_path), "small", "en-fr")
    path = layout.human_rating("mqm.rater1")
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    past = json.dumps({"errors": [{"start": 0, "end": 999, "severity": "minor"}]})
    path.write_text(f"{first.split()[0]}\t{past}\tr\n{rest}", encoding="utf-8")
    where = ["--test-set", f"{layout.data}/small", "--lp", "en-fr"]
    for words in (
        ["leaderboard", "--k", "0"],
        ["leaderboard", "--tasks", "spans"],
        ["lambda-sweep", "--metric", "mine-src"],
        ["oracle", str(small.candidates), "--rules", "mbr"],
        ["oracle", str(small.candidates), "--sizes", "4"],
    ):
        assert main([*words, *where]) == 0
        said = [line for line in capsys.readouterr().out.splitlines() if "are cut there" in line]
        assert said == ["error spans of people, en-fr in 69 translations: 1 end past the translation and are cut there"]


def test_a_sweep_is_printed_beside_empty_and_says_where_nothing_is_left(
    small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(with_en_fr(small, tmp_path), "small", "en-fr")
    unsure = {s: [Annotation([ErrorSpan(0, 2, "minor", None, 0.5)])] * SEGMENTS for s in SYSTEMS}
    write_scores(layout.metric_scores("unsure-src", "seg"), {s: [-1.0] * SEGMENTS for s in SYSTEMS})
    write_ratings(layout.metric_rating("unsure-src"), unsure, {s: [None] * SEGMENTS for s in SYSTEMS})
    where = ["--test-set", f"{layout.data}/small", "--lp", "en-fr"]
    assert main(["lambda-sweep", "--metric", "mine-src", "unsure-src", *where]) == 0
    notes = capsys.readouterr().out.splitlines()
    assert sum(note.startswith("empty, no error at all, en-fr: SPA 0.") for note in notes) == 2
    (constant,) = (note for note in notes if note.startswith("one score for everything"))
    assert constant.endswith(
        "lambda 0.4, lambda 0.5, lambda 0.6, lambda 0.7, lambda 0.8, lambda 0.9, lambda 1.0 in en-fr"
    )


def test_unequal_numbers_of_ratings_are_named_and_fixed(
    small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(with_en_fr(small, tmp_path), "small", "en-fr")
    path = layout.human_scores("mqm", "seg")
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[-1] = f"{SYSTEMS[-1]}\tNone"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    where = ["--test-set", f"{layout.data}/small", "--lp", "en-fr"]
    last = SYSTEMS[-1]
    for words in (["leaderboard", "--k", "0"], ["lambda-sweep", "--metric", "mine-src"]):
        assert main([*words, *where]) == 0
        out = capsys.readouterr().out
        assert "SPA compares each pair of systems on the 10 to 11 segments that both have" in out
    assert main(["leaderboard", "--k", "0", *where, "--exclude", last]) == 0
    assert "SPA compares" not in capsys.readouterr().out
    assert main(["leaderboard", "--tasks", "spans", *where, "--exclude", "Z"]) == 1
    assert "unknown system of small en-fr 'Z'" in capsys.readouterr().err
    assert main(["leaderboard", "--tasks", "spans", *where, "--systems", "A", "B"]) == 0
    assert " 2 systems, " in capsys.readouterr().out


def test_equal_numbers_of_ratings_on_different_segments_are_said(
    small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(with_en_fr(small, tmp_path), "small", "en-fr")
    path = layout.human_scores("mqm", "seg")
    lines = path.read_text(encoding="utf-8").splitlines()
    # Segment 6 of each system is unrated; that of A is rated now, and another one is not.
    lines[5], lines[7] = f"{SYSTEMS[0]}\t-1.0", f"{SYSTEMS[0]}\tNone"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    where = ["--test-set", f"{layout.data}/small", "--lp", "en-fr"]
    assert main(["leaderboard", *where, "--statistics", "spa"]) == 0
    assert "SPA compares each pair of systems on the 10 to 11 segments that both have" in capsys.readouterr().out


def test_a_contrastive_campaign_has_a_board(small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each segment is rated for two systems, in turn: none for all."""
    layout = Layout(with_en_fr(small, tmp_path), "small", "en-fr")
    path = layout.human_scores("mqm", "seg")
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        system, segment = number // SEGMENTS, number % SEGMENTS
        if (system - segment) % len(SYSTEMS) > 1:
            lines[number] = f"{line.split(chr(9))[0]}\tNone"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    where = ["--test-set", f"{layout.data}/small", "--lp", "en-fr"]
    assert main(["leaderboard", *where, "--k", "50", "--table", "json"]) == 0
    board = json.loads(capsys.readouterr().out)
    (row,) = [row for row in board["rows"] if row["metric"] == "mine"]
    test_set = load_test_set(layout.data, "small", "en-fr")
    scores = test_set.metric("mine-src").scores
    assert row["en-fr"]["spa"] == spa(test_set.gold, scores, missing="pairs")
    assert row["en-fr"]["acc_eq"] == acc_eq(test_set.gold, scores).accuracy
    assert any("each pair of systems on the" in note for note in board["notes"])


def test_a_file_is_a_metric_in_every_view(small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = json.loads(small.xcomet.read_text(encoding="utf-8"))
    for rows_of in written.values():
        for row in rows_of:
            row["COMET"] = mqm_score(Annotation(row["errors"]))
    # A span without characters is no span, and no reason to stop.
    written["A.txt"][0]["errors"].append({"severity": "minor", "start": 3, "end": 3, "confidence": 0.5})
    file = tmp_path / "out.json"
    file.write_text(json.dumps(written), encoding="utf-8")
    tasks = (["--tasks", "spans"], ["--tasks", "error-free"])
    for view in (["--k", "20"], ["--statistics", "spa"], *tasks, ["--by", "domain"]):
        stored = rows(capsys, "leaderboard", *small.arguments, *view, "--metric", "mine")
        from_file = rows(capsys, "leaderboard", *small.arguments, *view, "--metric", f"mine={file}")
        assert from_file == stored
    for words in (["lambda-sweep"], ["lambda-sweep", "--precision-recall"]):
        stored = rows(capsys, *words, *small.arguments, "--metric", "mine")
        assert rows(capsys, *words, *small.arguments, "--metric", f"mine={file}") == stored
    assert main(["leaderboard", *small.arguments, "--tasks", "spans", "--metric", str(file), "mine"]) == 0
    printed = capsys.readouterr().out
    assert "error spans of out, en-de: 1 have no characters and are no spans" in printed
    assert {"out", "mine"} <= {line.split(" ")[0] for line in printed.splitlines()}
    del written["B.txt"][1]
    file.write_text(json.dumps(written), encoding="utf-8")
    assert main(["leaderboard", *small.arguments, "--metric", str(file)]) == 1
    assert f"{file}: nothing on segment" in capsys.readouterr().err


def test_a_file_is_written_into_the_folder(small: Small, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layout = Layout(with_en_fr(small, tmp_path), "small", "en-fr")
    test_set = load_test_set(layout.data, "small", "en-fr")
    done = import_file(small.xcomet, test_set, "xcomet")
    assert (done.name, done.systems, done.translations, done.spans) == ("xcomet-src", 3, 36, True)
    taken, mine = test_set.metric("xcomet-src"), test_set.metric("mine-src")
    assert taken.ratings is not None
    assert mine.ratings is not None
    assert taken.ratings.annotations == mine.ratings.annotations
    with pytest.raises(InputError, match="already there; choose another --name"):
        import_file(small.xcomet, test_set, "xcomet")
    where = ["--test-set", f"{layout.data}/small", "--lp", "en-fr"]
    for indent, name in ((None, "flat"), (4, "indented")):  # COMET indents its file
        file = tmp_path / "xcomet.json"
        file.write_text(json.dumps(json.loads(small.xcomet.read_text(encoding="utf-8")), indent=indent))
        assert main(["wmt", "import", str(file), *where, "--name", name]) == 0
        assert f"{name}-src, scores and error spans of 36 translations by 3 systems" in capsys.readouterr().out
    assert main(["wmt", "import", str(small.xcomet), *where]) == 1
    assert "name its metric with --name" in capsys.readouterr().err
