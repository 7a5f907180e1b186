"""The paper's tables on a small test set: values against a direct computation, and what is said of missing rows."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper_figures import PAPER, TABLES, TITLES
from paper_tables import Study, main

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.layout import Layout
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.cli.main import main as mbr_esd
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.decoding.decide import decide
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, write_records
from mbr_esd_metric.metaeval import MetricEntry, MetricSet, evaluate_metrics
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings
from mbr_esd_metric.report.tables import Table
from tests.helpers.candidates import answer

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
SYSTEMS = ("one", "two", "three")
SEGMENTS = 6


def drawn_answer(rng: random.Random, text: str) -> str:
    words = rng.sample(text.split(), rng.choice([0, 1, 1, 2]))
    return answer(*((word, rng.choice(["major", "minor"])) for word in words))


@pytest.fixture(scope="module")
def test_set(tmp_path_factory: pytest.TempPathFactory) -> TestSet:
    """Three systems and a reference, six segments, one rater."""
    folder, rng = tmp_path_factory.mktemp("paper"), random.Random(3)
    lines = ["system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity"]
    for segment in range(1, SEGMENTS + 1):
        for system in SYSTEMS:
            words = rng.sample(WORDS, 7)
            wrong = rng.randrange(-1, 7)
            target = " ".join(f"<v>{w}</v>" if at == wrong else w for at, w in enumerate(words))
            error = ("Accuracy", rng.choice(["Major", "Minor"])) if wrong >= 0 else ("No-error", "No-error")
            place = [system, "d", str(segment), str(segment), "r1"]
            lines.append("\t".join([*place, f"source {segment}", target, *error]))
    tsv = folder / "mqm.tsv"
    tsv.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert mbr_esd(["wmt", "import", str(tsv), "--test-set", f"{folder}/tiny", "--lp", "en-de"]) == 0
    return load_test_set(folder, "tiny", "en-de")


@pytest.fixture
def candidates(test_set: TestSet, tmp_path: Path) -> Path:
    """256 candidates a translation, some invalid; 1 greedy one."""
    rng = random.Random(4)
    sampled: list[CandidateRecord] = []
    greedy: list[CandidateRecord] = []
    for system in test_set.systems:
        for number, text in enumerate(test_set.outputs[system]):
            assert text is not None
            texts = (*(drawn_answer(rng, text) for _ in range(254)), "not JSON", drawn_answer(rng, text))
            logprobs = tuple(-rng.random() * 9 for _ in texts)
            for records, n in ((sampled, 256), (greedy, 1)):
                columns = CandidateColumns(texts[:n], logprobs[:n], (False,) * n)
                records.append(CandidateRecord(str(number), test_set.sources[number], text, columns, system))
    write_records(tmp_path / "llama.en-de.jsonl.gz", sampled)
    write_records(tmp_path / "llama-greedy.en-de.jsonl", greedy)
    return tmp_path


def cells(table: Table) -> dict[str, dict[str, Any]]:
    """Row -> column key -> value."""
    return {
        str(row[0].value): {column.key: cell.value for column, cell in zip(table.columns, row, strict=True)}
        for row in table.rows
    }


def test_rows_equal_a_direct_computation(test_set: TestSet, candidates: Path) -> None:
    study = Study([test_set], candidates)
    records = {(r.system, r.id): r for r in read_candidates(candidates / "llama.en-de.jsonl.gz")}
    (human,) = test_set.human_ratings()
    gold = human.of(test_set.systems, test_set.segments)

    def chosen(system: int, segment: int, rule: str, utility: str, n: int) -> Annotation:
        stored = records[test_set.systems[system], str(segment)]
        references = [gold[system][segment] or EMPTY] if rule == "oracle" else None
        few, options = list(stored.candidates[:n]), DecisionOptions(rule, utility)
        return decide(few, stored.mt, options, references=references).annotation

    for (table, row), options in {
        ("main", "empty"): ("empty", "softf1", 1),
        ("main", "Llama 3.3 70B greedy"): ("greedy", "softf1", 1),
        ("main", "Llama 3.3 70B majority"): ("majority", "softf1", 256),
        ("main", "Llama 3.3 70B MBR-ScoreSim"): ("mbr", "scoresim", 256),
        ("oracle", "Llama 3.3 70B oracle-F1"): ("oracle", "f1", 256),
        ("scalability", "Llama 3.3 70B MBR-SoftF1 N=16"): ("mbr", "softf1", 16),
        ("lambda", "Llama 3.3 70B MBR-SoftF1 lambda 0.0"): ("mbr", "softf1", 256),
    }.items():
        spans = [[chosen(i, j, *options) for j in range(SEGMENTS)] for i in range(len(test_set.systems))]
        data = MetricSet("en-de", test_set.gold, test_set.lengths, [gold], [MetricEntry.of_spans("row", spans)])
        expected = evaluate_metrics(data, LeaderboardSettings(measures=("softf1", "f1", "softdice-corpus")))[
            "row", False
        ]
        values = cells(study.table(table))[row]
        for measure, value in expected.values.items():
            assert values[f"{measure}_ours"] == pytest.approx(value, abs=1e-12), (table, row, measure)
        assert values["missing"] is None
    counts = cells(study.table("span-counts"))["human"]
    assert counts["major_ours"] == sum(a.count("major") for row in gold for a in row if a)


def test_what_a_row_lacks_is_named(test_set: TestSet, candidates: Path) -> None:
    study = Study([test_set], candidates)
    missing = {name: row["missing"] for name, row in cells(study.table("main")).items()}
    rated = int((~np.isnan(test_set.gold)).sum())
    assert missing["Mistral Large 123B MAP"] == f"mistral.en-de.jsonl: 256 x {rated} candidates"
    few = cells(study.table("scalability"))["Llama 3.3 70B MAP N=1024"]["missing"]
    assert "fewer candidates; needs llama.en-de.jsonl: 1024 x" in few
    score = "score it with: mbr-esd wmt score --test-set tiny --lp en-de --model Unbabel/XCOMET-XXL"
    for table, count in (("xcomet", 6), ("lambda", 22)):
        rows = [row for name, row in cells(study.table(table)).items() if name.startswith("XCOMET")]
        assert (len(rows), {row["missing"] for row in rows}) == (count, {score})
    ours = {"empty", *(spec.name for spec in TABLES["main"] if spec.model == "llama")}
    assert {row for row, text in missing.items() if text is None} == ours


HUMAN = {
    "A": [Annotation(), Annotation()],
    "B": [Annotation([ErrorSpan(0, 4, "major")]), Annotation([ErrorSpan(5, 10, "minor")])],
}
UNSIGNED = {"A": [None, None], "B": [None, None]}


def write_lp(
    data: Path, lp: str, xcomet: str, scores: dict[str, list[float]], spans: dict[str, list[Annotation]]
) -> Layout:
    """Two systems and two segments of WMT24 with human spans, translations of 10 characters, and one metric."""
    layout = Layout(data, "wmt24", lp)
    files.write_documents(layout.documents, [("all", "d")] * 2)
    files.write_text(layout.source(), ["one", "two"])
    for reference in ("refA", "refB"):
        files.write_text(layout.reference(reference), ["any text", "any text"])
    for system in HUMAN:
        files.write_text(layout.output(system), [f"{system}aaa bbbbb", f"{system}ccc ddddd"])
    files.write_scores(layout.human_file("mqm", "seg.score"), {"A": [0, 0], "B": [-5, -1]})
    write_ratings(layout.human_file("mqm.merged", "seg.rating"), HUMAN, UNSIGNED)
    files.write_scores(layout.metric_file(xcomet, "seg.score"), scores)
    write_ratings(layout.metric_file(xcomet, "seg.rating"), spans, UNSIGNED)
    return layout


@pytest.fixture
def wmt24(tmp_path: Path) -> tuple[Layout, Layout]:
    """Two language pairs with different standard references; XCOMET is right in one and half right in the other."""

    def spans(*confidences: float | None) -> dict[str, list[Annotation]]:
        """The humans' spans of B, with these confidences; left out where there is None."""
        return HUMAN | {
            "B": [
                Annotation(replace(span, confidence=sure) for span in human if sure is not None)
                for human, sure in zip(HUMAN["B"], confidences, strict=True)
            ]
        }

    return (
        write_lp(tmp_path, "en-de", "XCOMET-refB", {"A": [1, 0.9], "B": [0.2, 0.5]}, spans(0.9, 0.5)),
        write_lp(tmp_path, "en-es", "XCOMET-refA", {"A": [1, 0.1], "B": [0.2, 0.5]}, spans(None, 0.5)),
    )


def loaded(layouts: Sequence[Layout]) -> list[TestSet]:
    return [load_test_set(layout.data, layout.test_set, layout.lp) for layout in layouts]


def test_values_are_means_over_the_language_pairs(wmt24: tuple[Layout, Layout]) -> None:
    files.write_scores(wmt24[0].metric_file("plain-src", "seg.score"), {"A": [2, 2], "B": [1, 1]})
    study = Study(loaded(wmt24))
    rows = cells(study.table("xcomet"))
    row = rows["XCOMET (src+ref)"]
    assert row["missing"] is None
    # en-de: both pairs in the gold's order. en-es: one of the two.
    assert row["acc_eq_ours"] == (1 + 1 / 2) / 2
    # en-de: gold and metric are surest of the same of the four permutations. en-es: p = 1/4 and 1/2, of 1000 draws.
    assert row["spa_ours"] == pytest.approx((1 + 3 / 4) / 2, abs=0.03)
    # en-de: all as the humans have it. en-es: one of four translations lacks its major span of 4 of 10 characters.
    assert row["f1_ours"] == (1 + 3 / 4) / 2
    precision, recall = 1 - 4 / (10 + 0 + 1), 1 - 4 / (10 + 4 + 1)
    lacking = 2 * precision * recall / (precision + recall)
    assert row["softf1_ours"] == pytest.approx((1 + (3 + lacking) / 4) / 2, abs=1e-12)
    assert (rows["plain (src)"]["missing"], rows["plain (src)"]["spa_ours"]) == ("scores in en-es", None)
    # A metric called XCOMET is taken for its own score; its spans as a metric are missing.
    metrics = [name.removeprefix("XCOMET").split(" ")[0] for name in rows if name.startswith("XCOMET")]
    assert metrics == ["", "-QE-Reg", "-ESD", "-QE-ESD", "-ESD-Conf", "-QE-ESD-Conf"]
    assert (row["spa_paper"], row["f1_paper"]) == (0.844, None)
    swept = cells(study.table("lambda"))
    assert swept["XCOMET (src+ref) lambda 0.5"]["f1_ours"] == (1 + 3 / 4) / 2
    # Without the spans of confidence 0.5 each language pair lacks one more.
    assert swept["XCOMET (src+ref) lambda 0.6"]["f1_ours"] == (3 / 4 + 2 / 4) / 2
    kept = [[swept[f"XCOMET (src+ref) lambda {x}"][f"{s}_ours"] for x in (0.5, 0.6)] for s in ("major", "minor")]
    assert kept == [[1, 1], [2, 0]]
    # "No error" is right for A's two translations in both directions.
    for table in (rows, swept, cells(study.table("main"))):
        assert table["empty"]["f1_ours"] == 1 / 2
    counts = cells(study.table("span-counts"))["human"]
    assert [counts[f"{kind}_ours"] for kind in ("major", "minor", "ratio")] == [2, 2, 1]
    assert [counts[f"{kind}_paper"] for kind in ("major", "minor", "ratio")] == [9000, 15500, 0.58]
    # Other translations have other numbers of errors.
    differences = [counts[f"{kind}_difference"] for kind in ("major", "minor", "ratio")]
    assert differences == [None, None, pytest.approx(1 - 0.58)]


def test_xcomet_under_the_names_of_our_command_is_xcomet(wmt24: tuple[Layout, Layout]) -> None:
    """The names that `mbr-esd wmt score --model Unbabel/XCOMET-XL` gives; then en-es has no error spans of it."""
    for layout, reference in zip(wmt24, ("refB", "refA"), strict=True):
        scores, ratings = (
            layout.metric_file(f"XCOMET-{reference}", "seg.score"),
            layout.metric_file(f"XCOMET-{reference}", "seg.rating"),
        )
        for name in (f"Reg-{reference}", "QE-ESD-src"):
            shutil.copy(scores, layout.metric_file(f"XCOMET-XL-{name}", "seg.score"))
        shutil.copy(ratings, layout.metric_file("XCOMET-XL-QE-ESD-src", "seg.rating"))
        scores.unlink()
        ratings.unlink()
    rows = cells(Study(loaded(wmt24)).table("xcomet"))
    assert rows["XCOMET-XL-Reg (src+ref)"]["softf1_ours"] is None
    assert rows["XCOMET-XL-QE-ESD (src)"]["f1_ours"] == (1 + 3 / 4) / 2
    assert {row["missing"] for name, row in rows.items() if name.startswith("XCOMET-XL")} == {None}
    wmt24[1].metric_file("XCOMET-XL-QE-ESD-src", "seg.rating").unlink()
    wmt24[1].human_file("mqm.merged", "seg.rating").unlink()
    study = Study(loaded(wmt24))
    row = cells(study.table("xcomet"))["XCOMET-XL-QE-ESD (src)"]
    assert (row["acc_eq_ours"], row["f1_ours"], row["missing"]) == (3 / 4, None, "error spans in en-es")
    row = cells(study.table("lambda"))["XCOMET-XL-QE-ESD (src)"]
    assert row["missing"] == "error spans with confidences in en-es"
    # Nor have people error spans there.
    lacking = "human error spans of en-es (mbr-esd wmt import)"
    row = cells(study.table("main"))["empty"]
    assert (row["spa_ours"] is None, row["softf1_ours"], row["missing"]) == (False, None, lacking)
    assert {row["missing"] for row in cells(study.table("synthetic")).values()} == {lacking}
    assert cells(study.table("span-counts"))["human"]["missing"] == lacking


def test_every_row_of_the_paper_has_a_row(test_set: TestSet) -> None:
    """119 rows, whatever is missing; the paper's values are those of the row, wherever it stands."""
    study = Study([test_set])
    ours = {table: cells(study.table(table)) for table in TITLES}
    counts = {
        table: sum(any(v is not None for k, v in row.items() if "_paper" in k) for row in rows.values())
        for table, rows in ours.items()
    }
    assert counts == {table: len(rows) for table, rows in PAPER.items()}
    assert sum(counts.values()) == 119
    for table, rows in PAPER.items():
        for name, figures in rows.items():
            shown = {key: ours[table][name][f"{key}_paper"] for key in figures if key != "daggers"}
            assert shown == {key: value for key, value in figures.items() if key != "daggers"}, (table, name)
    for (table, name, key), value in {
        ("main", "Gemma 2 27B MBR-F1 N=64", "f1"): 0.575,
        ("span-counts", "Llama 3.3 70B MBR-ScoreSim", "minor"): 59600,
        ("synthetic", "delete, with errors, minor", "edits"): 556000,
        ("lambda", "XCOMET-QE-ESD (src) lambda 0.0", "minor"): 60700,
    }.items():
        assert PAPER[table][name][key] == value
    starred = next(row for row in study.table("main").rows if row[0].value == "Phi 4 14B MBR-SoftF1")
    marks = [c.key for c, cell in zip(study.table("main").columns, starred, strict=True) if cell.dagger]
    assert marks == ["spa_paper", "softf1_paper", "f1_paper"]


def test_the_script(
    test_set: TestSet, candidates: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = ["--test-set", f"{test_set.layout.data}/tiny", "--lp", "en-de", "--candidates", str(candidates)]
    monkeypatch.setattr("sys.argv", ["paper_tables.py", *where])
    main()
    titles = [line for line in capsys.readouterr().out.splitlines() if line.endswith("(tiny en-de)")]
    assert titles == [f"{title} (tiny en-de)" for title in TITLES.values()]
