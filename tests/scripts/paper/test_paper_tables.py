"""The paper's tables on small test sets: values against a direct computation, and what is said of missing rows."""

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
from mbr_esd_metric.adapters.wmt.layout import Layout, write_scores
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.adapters.wmt.test_set import metric_set_of
from mbr_esd_metric.core.annotation import EMPTY, Annotation, mqm_score
from mbr_esd_metric.decoding.decide import decide
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.records import read_candidates, write_records
from mbr_esd_metric.metaeval import MetricEntry, MetricSet, evaluate_metrics, lambda_sweep
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.report.tables import Table
from tests.helpers.candidates import record
from tests.helpers.wmt_folder import spans, write_folder, write_texts

SETTINGS = LeaderboardSettings(measures=("softf1", "f1", "softdice-corpus"))
SEGMENTS, WORDS = 6, "alpha beta gamma delta epsilon zeta eta theta iota kappa"


@pytest.fixture(scope="module")
def test_set(tmp_path_factory: pytest.TempPathFactory) -> TestSet:
    """Three systems, six segments, one rater."""
    layout, rng = Layout(tmp_path_factory.mktemp("paper"), "tiny", "en-de"), random.Random(3)
    texts = {
        name: [" ".join(rng.sample(WORDS.split(), 7)) for _ in range(SEGMENTS)] for name in ("one", "two", "three")
    }
    human = {name: [spans(rng, text, 1) for text in row] for name, row in texts.items()}
    write_texts(layout, [f"source {number}" for number in range(SEGMENTS)], texts)
    write_ratings(layout.human_file("mqm.merged", "seg.rating"), human)
    write_scores(
        layout.human_file("mqm", "seg.score"), {name: list(map(mqm_score, row)) for name, row in human.items()}
    )
    return load_test_set(layout.data, "tiny", "en-de")


@pytest.fixture(scope="module")
def candidates(test_set: TestSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 candidates a translation, one of them invalid; 1 greedy one."""
    folder, rng, form, sampled = tmp_path_factory.mktemp("candidates"), random.Random(4), get_format("json"), []
    for system in test_set.systems:
        for number, (source, text) in enumerate(zip(test_set.sources, test_set.outputs[system], strict=True)):
            answers = [form.answer(spans(rng, text, 2), text)[0] for _ in range(255)]
            sampled.append(record(source, text, *answers, "not JSON", number=number, system=system))
    greedy = [replace(one, columns=one.columns.first(1)) for one in sampled]
    write_records(folder / "llama.en-de.jsonl.gz", sampled)
    write_records(folder / "llama-greedy.en-de.jsonl", greedy)
    return folder


def cells(table: Table) -> dict[str, dict[str, Any]]:
    """Row -> column key -> value."""
    keys = [column.key for column in table.columns]
    return {str(row[0].value): dict(zip(keys, (cell.value for cell in row), strict=True)) for row in table.rows}


def test_rows_equal_a_direct_computation(test_set: TestSet, candidates: Path) -> None:
    study = Study([test_set], candidates)
    records = {(r.segment.system, r.segment.label): r for r in read_candidates(candidates / "llama.en-de.jsonl.gz")}
    (gold,) = test_set.human()

    def chosen(system: int, segment: int, rule: str, utility: str, n: int) -> Annotation:
        stored = records[test_set.systems[system], str(segment)]
        references = [gold[system][segment] or EMPTY] if rule == "oracle" else None
        few, options = list(stored.candidates[:n]), DecisionOptions(rule, utility)
        return decide(few, stored.segment.translation, options, references=references).annotation

    for (table, row), options in {
        ("main", "empty"): ("empty", "softf1", 1),
        ("main", "Llama 3.3 70B greedy"): ("greedy", "softf1", 1),
        ("main", "Llama 3.3 70B majority"): ("majority", "softf1", 256),
        ("main", "Llama 3.3 70B MBR-ScoreSim"): ("mbr", "scoresim", 256),
        ("oracle", "Llama 3.3 70B oracle-F1"): ("oracle", "f1", 256),
        ("scalability", "Llama 3.3 70B MBR-SoftF1 N=16"): ("mbr", "softf1", 16),
        ("lambda", "Llama 3.3 70B MBR-SoftF1 lambda 0.0"): ("mbr", "softf1", 256),
    }.items():
        matrix = [[chosen(i, j, *options) for j in range(SEGMENTS)] for i in range(len(test_set.systems))]
        data = MetricSet("en-de", test_set.gold, test_set.lengths, [gold], [MetricEntry.of_spans("row", matrix)])
        expected = evaluate_metrics(data, SETTINGS)["row", False].values
        values = cells(study.table(table))[row]
        assert {measure: values[f"{measure}_ours"] for measure in expected} == pytest.approx(expected, abs=1e-12), row
        assert values["missing"] is None
    counts = cells(study.table("span-counts"))["human"]
    assert counts["major_ours"] == sum(a.count("major") for row in gold for a in row)


def test_what_a_row_lacks_is_named(test_set: TestSet, candidates: Path) -> None:
    study = Study([test_set], candidates)
    missing = {name: row["missing"] for name, row in cells(study.table("main")).items()}
    assert missing["Mistral Large 123B MAP"] == f"mistral.en-de.jsonl: 256 x {3 * SEGMENTS} candidates"
    few = cells(study.table("scalability"))["Llama 3.3 70B MAP N=1024"]["missing"]
    assert "fewer candidates; needs llama.en-de.jsonl: 1024 x" in few
    named = f"--test-set {test_set.layout.root} --lp en-de"
    assert f"mbr-esd sample {named} --model" in study.table("main").notes[0]
    score = f"score it with: mbr-esd wmt score {named} --model Unbabel/XCOMET-XXL"
    for table, count in (("xcomet", 6), ("lambda", 22)):
        rows = [row for name, row in cells(study.table(table)).items() if name.startswith("XCOMET")]
        assert (len(rows), {row["missing"] for row in rows}) == (count, {score})
    ours = {"empty", *(spec.name for spec in TABLES["main"] if spec.model == "llama")}
    assert {row for row, text in missing.items() if text is None} == ours


@pytest.fixture
def wmt24(tmp_path: Path) -> list[Layout]:
    """Two language pairs with different standard references, in each of them XCOMET."""
    layouts = [write_folder(tmp_path, "wmt24", lp) for lp in ("en-de", "en-es")]
    for layout, reference in zip(layouts, ("refB", "refA"), strict=True):
        for ending in ("seg.score", "seg.rating"):
            shutil.move(layout.metric_file("spans-src", ending), layout.metric_file(f"XCOMET-{reference}", ending))
    return layouts


def loaded(layouts: Sequence[Layout]) -> list[TestSet]:
    return [load_test_set(layout.data, layout.test_set, layout.lp) for layout in layouts]


def test_values_are_means_over_the_language_pairs(wmt24: list[Layout]) -> None:
    for layout in wmt24:
        shutil.copy(layout.metric_file("flat-src", "seg.score"), layout.metric_file("empty-src", "seg.score"))
    test_sets = loaded(wmt24)
    study, sets = Study(test_sets), [metric_set_of(one, ["XCOMET"]) for one in test_sets]
    rows, swept = cells(study.table("xcomet")), cells(study.table("lambda"))
    assert "empty" in rows
    assert "empty (src)" not in rows
    row = rows["XCOMET (src+ref)"]
    dropped = [MetricEntry.of_spans("XCOMET", lambda_sweep(one.entries[0].spans)[0.6]) for one in sets]
    sure = [replace(one, entries=[entry]) for one, entry in zip(sets, dropped, strict=True)]
    for shown, of in ((row, sets), (swept["XCOMET (src+ref) lambda 0.6"], sure)):
        each = [next(iter(evaluate_metrics(one, SETTINGS).values())) for one in of]
        means = {measure: np.mean([one.values[measure] for one in each]) for measure in each[0].values}
        assert {measure: shown[f"{measure}_ours"] for measure in means} == pytest.approx(means, abs=1e-12)
        assert shown["missing"] is None
    assert swept["XCOMET (src+ref) lambda 0.6"]["major_ours"] == sum(one.counts.major for one in each)
    assert (row["spa_paper"], row["f1_paper"]) == (0.844, None)
    assert (rows["noise (src+ref)"]["missing"], rows["noise (src+ref)"]["spa_ours"]) == ("scores in en-de", None)
    # A metric called XCOMET is taken for its own score; its spans as a metric are missing.
    metrics = [name.removeprefix("XCOMET").split(" ")[0] for name in rows if name.startswith("XCOMET")]
    assert metrics == ["", "-QE-Reg", "-ESD", "-QE-ESD", "-ESD-Conf", "-QE-ESD-Conf"]
    counts = cells(study.table("span-counts"))["human"]
    assert [counts[f"{kind}_paper"] for kind in ("major", "minor", "ratio")] == [9000, 15500, 0.58]
    # Other translations have other numbers of errors.
    assert [counts[f"{kind}_difference"] for kind in ("major", "minor")] == [None, None]


def test_xcomet_under_the_names_of_our_command_is_xcomet(wmt24: list[Layout]) -> None:
    """The names that `mbr-esd wmt score --model Unbabel/XCOMET-XL` gives; then en-es has no error spans."""
    for layout, reference in zip(wmt24, ("refB", "refA"), strict=True):
        scores, ratings = (layout.metric_file(f"XCOMET-{reference}", of) for of in ("seg.score", "seg.rating"))
        shutil.copy(scores, layout.metric_file(f"XCOMET-XL-Reg-{reference}", "seg.score"))
        shutil.move(scores, layout.metric_file("XCOMET-XL-QE-ESD-src", "seg.score"))
        shutil.move(ratings, layout.metric_file("XCOMET-XL-QE-ESD-src", "seg.rating"))
    rows = cells(Study(loaded(wmt24)).table("xcomet"))
    assert rows["XCOMET-XL-Reg (src+ref)"]["softf1_ours"] is None
    assert rows["XCOMET-XL-QE-ESD (src)"]["softf1_ours"] is not None
    assert {row["missing"] for name, row in rows.items() if name.startswith("XCOMET-XL")} == {None}
    wmt24[1].metric_file("XCOMET-XL-QE-ESD-src", "seg.rating").unlink()
    wmt24[1].human_file("mqm.merged", "seg.rating").unlink()
    study = Study(loaded(wmt24))
    row = cells(study.table("xcomet"))["XCOMET-XL-QE-ESD (src)"]
    assert (row["spa_ours"] is None, row["f1_ours"], row["missing"]) == (False, None, "error spans in en-es")
    row = cells(study.table("lambda"))["XCOMET-XL-QE-ESD (src)"]
    assert row["missing"] == "error spans with confidences in en-es"
    lacking = "human error spans of en-es (mbr-esd wmt import)"
    for table, name in (("main", "empty"), ("synthetic", "delete, with errors, minor"), ("span-counts", "human")):
        assert cells(study.table(table))[name]["missing"] == lacking


def test_every_row_of_the_paper_has_a_row(test_set: TestSet) -> None:
    """119 rows, whatever is missing; the paper's values are those of the row, wherever it stands."""
    study = Study([test_set])
    ours = {name: cells(study.table(name)) for name in TITLES}
    assert sum(map(len, PAPER.values())) == 119
    for table, rows in PAPER.items():
        printed = {
            name: {key[:-6]: value for key, value in row.items() if key.endswith("_paper") and value is not None}
            for name, row in ours[table].items()
        }
        expected = {name: {k: v for k, v in row.items() if k != "daggers"} for name, row in rows.items()}
        assert {name: values for name, values in printed.items() if values} == expected
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
