"""The data folder: what is written reads back, and what does not fit is an error with its file and line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.adapters.wmt import TestSet, TestSetInfo, load_test_set
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.layout import Layout, SystemChoice, metric_status, preferred_gold
from mbr_esd_metric.adapters.wmt.rating_files import read_ratings, write_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError
from tests.helpers.refused import refused
from tests.helpers.wmt_folder import write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two systems and a reference over three segments, the last one unrated but for A."""
    return write_folder(tmp_path, "tiny").data


def load(folder: Path, **options: object) -> TestSet:
    return load_test_set(folder, "tiny", "en-de", **options)  # type: ignore[arg-type]


def test_a_folder_is_read_and_written_as_it_was(folder: Path, tmp_path: Path) -> None:
    test_set = load(folder)
    assert test_set.systems == ("A", "B")
    assert test_set.info.standard_reference == "refA"
    assert test_set.outputs["B"] == ("Die Katze schläft.", "Seit drei Tagen schon regnet es.", None)
    np.testing.assert_array_equal(test_set.gold, [[-0.1, -1, -25], [-1, -5.1, np.nan]])
    np.testing.assert_array_equal(test_set.lengths, [[37, 26, 6], [18, 32, 0]])
    (ratings,) = test_set.human_ratings()
    first = Annotation([ErrorSpan(0, 3, "major", "Accuracy/Mistranslation")])
    assert (ratings.name, ratings.of("AB", 3)) == ("mqm.rater1", [[None] * 3, [first, Annotation(), None]])
    assert test_set.find_metrics() == ("BLEU-refA", "good-src")
    bleu, good = test_set.metric("BLEU-refA"), test_set.metric("good-src")
    np.testing.assert_array_equal(bleu.scores, [[1, 2, 3], [1 / 3, 1e-17, 3]])
    assert bleu.ratings is None
    assert good.ratings is not None
    assert list(good.ratings.annotations["B"][0] or ()) == [ErrorSpan(1, 3, "minor", None, 0.75)]
    old, new = test_set.layout, Layout(tmp_path, "new", "en-de")
    files.write_documents(new.documents, test_set.documents)
    files.write_text(new.output("B"), test_set.outputs["B"])
    bleu_file, span_file = ("BLEU-refA", "seg.score"), ("good-src", "seg.rating")
    files.write_scores(new.metric_file(*bleu_file), files.read_scores(old.metric_file(*bleu_file)))
    write_ratings(new.metric_file(*span_file), read_ratings(old.metric_file(*span_file)))
    for path in new.root.rglob("*.*"):
        assert path.read_bytes() == (old.root / path.relative_to(new.root)).read_bytes()


def test_texts_with_line_ends_and_json_lines(folder: Path) -> None:
    files.write_text(folder / "texts.txt", ["a\nb\rc", "d\u2028e\x85f", "", None, "  x  "])
    assert files.read_text(folder / "texts.txt", "source") == ("a b c", "d\u2028e\x85f", "", None, "  x")
    layout = Layout(folder, "tiny", "en-de")
    outputs = layout.outputs()
    for ending in (".jsonl", ".tok"):  # beside a text file, and of no text
        layout.output("A").with_suffix(ending).write_text("{}\n")
    assert layout.outputs() == outputs
    for path, field, texts in (
        (layout.source(), "source", ["Two\nlines.", "Two.", "Three."]),
        (layout.reference("refA"), "target", ["Eins.", "Zwei.", "Drei."]),
        (layout.output("B"), "hypothesis", ["Ein.", "Zwei.", "Drei, genau."]),
    ):
        path.unlink()
        path.with_suffix(".jsonl").write_text("".join(json.dumps({field: t}) + "\n" for t in texts))
    test_set = load(folder)
    assert test_set.sources[0] == "Two\nlines."
    assert test_set.outputs["B"][1] == "Zwei."


def test_a_test_set_is_a_line_in_a_session(folder: Path) -> None:
    assert repr(load(folder)) == "TestSet(tiny en-de: 2 systems, 3 segments)"


def test_gold_that_is_not_there(folder: Path) -> None:
    refused("there are: mqm; .*--gold", load, folder, gold="da")
    for path in (folder / "tiny" / "human-scores").glob("*.score"):
        path.unlink()
    refused("there are: none; import human ratings first: mbr-esd wmt import", load, folder)


def put(path: Path, number: int, text: str | None) -> None:
    """Another text, or none, in the place of a line; of the whole file if the number is 0."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    put = [] if text is None else [text if text.endswith("\n") or not number else f"{text}\n"]
    lines[max(0, number - 1) : number or None] = put
    path.write_text("".join(lines), encoding="utf-8")
    if text is None and not number:
        path.unlink()


HUMAN, METRIC = "human-scores/en-de.mqm.seg.score", "metric-scores/en-de/good-src.seg.score"
RATING = "human-scores/en-de.mqm.rater1.seg.rating"


@pytest.mark.parametrize(
    ("file", "line", "text", "message"),
    [
        ("documents/en-de.docs", 2, "news desk", "line 2: give the segment's domain and document"),
        ("documents/en-de.docs", 1, "talk\ttwo", "line 3: document two is not contiguous"),
        ("documents/en-de.docs", 3, None, "line 3: 2 lines, but 3 source segments"),
        ("documents/en-de.docs", 0, None, "en-de.docs: no such file"),
        ("references/en-de.refA.txt", 1, None, r"refA.txt, line 3: 2 lines, but 3"),
        ("references/en-de.all.txt", 0, "x\n", "'all' is not a valid reference name"),
        ("system-outputs/en-de/A.txt", 3, "x\ny", r"A.txt, line 4: 4 lines, but 3"),
        ("sources/en-de.txt", 0, None, "language pairs of tiny: none"),
        ("sources/en-de.txt", 0, "", "the file is empty"),
        (HUMAN, 2, "A much", "line 2: give a system and its score"),
        (HUMAN, 2, None, "line 2: 2 entries for system A, but 3 segments"),
        (HUMAN, 2, "who 1", "line 3: 2 entries for system A|line 2: the folder has no translations of system who"),
        (RATING, 1, "B", "line 1: 1 columns"),
        (RATING, 1, 'B\t{"errors": [{"severity": "major"}]}', "line 1: no 'start'"),
        (RATING, 1, 'B\t{"errors": [{"start": 3, "end": 2, "severity": "minor"}]}', "line 1: "),
        (RATING, 3, None, "line 2: 2 entries for system B"),
        (METRIC, 1, "A None", "no score of system A for segment 1, which is rated"),
        (METRIC, 1, None, "line 2: 2 entries"),
        (METRIC, 0, "B 1\n" * 3, "no scores for system A"),
    ],
)
def test_what_does_not_fit_is_named(folder: Path, file: str, line: int, text: str | None, message: str) -> None:
    put(folder / "tiny" / file, line, text)
    with pytest.raises(InputError, match=message) as error:
        load(folder).metric("good-src")
    assert Path(file).name in str(error.value)


def rated(*spans: tuple[int, int]) -> str:
    return json.dumps({"errors": [{"start": start, "end": end, "severity": "minor"} for start, end in spans]})


def test_a_span_past_the_end_is_cut_and_counted_once(folder: Path) -> None:
    """One that is marked twice stays twice, which is noted of metrics alone."""
    path = folder / "tiny" / RATING
    put(path, 1, "B\t" + rated((1, 2), (1, 2), (2, 99), (18, 99), (3, 3)))
    test_set = load(folder)
    (ratings,) = test_set.ratings
    twice, cut = [ErrorSpan(1, 2, "minor")] * 2, ErrorSpan(2, 18, "minor")
    assert list(ratings.annotations["B"][0] or ()) == [*twice, cut]
    assert test_set.notes == (
        "error spans of people, en-de in 2 translations: 1 end past the translation and are cut there, "
        "2 begin past it or have no characters and are not spans",
    )
    path.with_name("en-de.mqm.merged.seg.rating").write_bytes(path.read_bytes())
    assert load(folder).notes == test_set.notes
    path = folder / "tiny" / "metric-ratings/en-de/good-src.seg.rating"
    put(path, 4, "B\t" + rated((1, 2), (1, 2), (0, 0), (2, 99)))
    metric = load(folder).metric("good-src")
    assert metric.ratings is not None
    assert list(metric.ratings.annotations["B"][0] or ()) == [*twice, cut]
    assert "good-src, en-de in 6 translations: 1 end past" in metric.notes[0]
    assert any("1 repeat others" in note for note in metric.notes)


def test_spans_of_a_system_that_is_not_evaluated_stop_nothing(folder: Path) -> None:
    with (folder / "tiny" / RATING).open("a", encoding="utf-8") as file:
        file.write(f"refA\t{rated((0, 99))}\n" + "refA\tNone\n" * 2)
    assert load(folder).notes == ()
    assert load(folder, choice=SystemChoice(standard=True)).notes != ()


def test_the_choice_of_systems(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def systems(**options: object) -> tuple[str, ...]:
        return load(folder, choice=SystemChoice(**options)).systems  # type: ignore[arg-type]

    assert systems(standard=True) == ("A", "B", "refA")
    assert systems(exclude=("B",)) == ("A",)
    assert systems(only=("refA", "B")) == ("B", "refA")
    assert load(folder, choice=SystemChoice(only=("B",))).gold.shape == (1, 3)
    refused(r"gold score \(A, B, refA\) none is evaluated", load, folder, choice=SystemChoice(only=("who",)))
    refused("no reference 'refB'.*there are: refA", load, folder, reference="refB")
    files.write_text(Layout(folder, "tiny", "en-de").reference("refB"), ["x", "y", "z"])
    assert load(folder, reference="refB").systems == ("A", "B", "refA")
    info = TestSetInfo("refA", "mqm", frozenset({"B"}))
    monkeypatch.setattr("mbr_esd_metric.adapters.wmt.test_set.info_of", lambda *_: info)
    assert load(folder).systems == ("A",)
    assert systems(outliers=True) == ("A", "B")


def test_a_usual_reference_that_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mbr_esd_metric.adapters.wmt.test_set.info_of", lambda *_: TestSetInfo("refB"))
    one = load(folder)
    assert one.info.standard_reference == "refA"
    assert one.notes == ("no reference refB in en-de (there are: refA): refA is used instead",)
    Layout(folder, "tiny", "en-de").reference("refA").unlink()
    none = load(folder)
    assert none.info.standard_reference is None
    assert "there are: none): no metric with a reference is compared" in none.notes[0]
    assert none.find_metrics() == ("good-src",)


def test_the_table_of_test_sets() -> None:
    golds = {"da-sqm mqm": "mqm", "esa-human2 esa-human1": "esa-human1", "stars": "stars", "stars da": None}
    assert {names: preferred_gold(names.split()) for names in golds} == golds
    # Before wmt23 the task does not tell baselines from primary submissions.
    statuses = {"wmt24 MetricX-24": "contrastive", "wmt23.sent COMET": "baseline", "wmt26 BLEU": None}
    statuses |= {"wmt21.tedtalks BLEU": "primary"}
    assert {name: metric_status(*name.split()) for name in statuses} == statuses
