"""Files -> layers, and the two verbs that show them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.file_kinds import kind_of_import, kind_of_input
from mbr_esd_metric.adapters.rating_formats import FORMATS, read_mqm
from mbr_esd_metric.adapters.ratings import RatingData
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.decoding.decide import decide
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.files.judged import JudgedSegment as Rating
from mbr_esd_metric.files.paths import NamedPath, short_names
from mbr_esd_metric.files.records import DecisionRecord, read_candidates, write_records
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.report.inputs import JudgedColumn, JudgedTable, column_named, distribution, join, read_table
from mbr_esd_metric.report.viewer import payload
from tests.helpers.candidates import answer, record, with_segment
from tests.helpers.command import Command
from tests.helpers.refused import refused

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
CANDIDATES = EXAMPLES / "candidates.jsonl"
TINY = Path(__file__).parents[1] / "data" / "wmt" / "tiny"


def comet_file(path: Path, data: Any) -> Path:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=4), encoding="utf-8")
    return path


def sheet_of(*files: str | Path) -> JudgedTable:
    return read_table([NamedPath.parse(str(file)) for file in files])


def row(mt: str, score: float, *errors: dict[str, Any]) -> dict[str, Any]:
    return {"src": "source", "mt": mt, "COMET": score} | ({"errors": list(errors)} if errors else {})


def error(start: int, end: int, severity: str, confidence: float = 0.5) -> dict[str, Any]:
    return {"text": "?", "confidence": confidence, "severity": severity, "start": start, "end": end}


def annotations(sheet: JudgedTable, name: str) -> list[Annotation | None]:
    column = next(column for column in sheet.columns if column.name == name)
    return [opinion.annotation if opinion else None for opinion in column.judged]


def test_output_of_comet_score(tmp_path: Path) -> None:
    first = row("eins zwei", 0.5, error(0, 4, "critical")) | {"omissions": [error(1, 3, "minor")]}
    second = row("eins drei", 1.0) | {"errors": []}
    spans = ErrorSpan(0, 4, "major", None, 0.5), ErrorSpan(1, 3, "minor", None, 0.5, "source")
    sheet = sheet_of(comet_file(tmp_path / "xcomet.json", {"out/a.txt": [first], "b.txt": [second]}))
    assert [(t.system, t.label, t.translation) for t in sheet.rows] == [
        ("a", "1", "eins zwei"),
        ("b", "1", "eins drei"),
    ]
    assert annotations(sheet, "xcomet") == [Annotation(spans), Annotation()]
    assert [o.input_score for o in sheet.columns[0].judged if o] == [0.5, 1.0]
    assert annotations(sheet_of(comet_file(tmp_path / "c.json", {"a": [row("eins", 0.5)]})), "c") == [None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": [{"src": "x"}]}, "system a, segment 1: give an object with src, mt and COMET"),
        ({"a": [row("x", 1, error(3, 2, "major"))]}, "system a, segment 1: error span 1"),
        ({"a": [row("x", 1, error(0, 2, "major"))]}, r"bad, segment 1: error span \[0, 2\) ends past"),
        ({"a": [row("x", "high")]}, "'high' is not a finite number"),
        ({"a": 3}, "an object with a list of segments a system"),
        ("just a sentence\n", "neither the output of comet-score"),
        ("", "is empty"),
        ({"lp": "en-de", "rater": "r"}, "its first object is not that of comet-score"),
        (None, "no such file"),
    ],
)
def test_what_is_none_of_these_files(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=4), encoding="utf-8")
    refused(message, sheet_of, path)


def test_decisions_belong_to_their_candidates(tmp_path: Path) -> None:
    """Without them, beside others', beside a copy, and beside other texts of the same names."""
    decisions, other, records = tmp_path / "decisions.jsonl", tmp_path / "other.jsonl", [*read_candidates(CANDIDATES)]
    write_records(decisions, [DecisionRecord.of(r, decide(r.candidates, r.segment.translation)) for r in records])
    message = "segment 1 is in no file of candidates and no test set.*give the candidates file"
    refused(message, sheet_of, decisions)
    write_records(
        other,
        [with_segment(record, translation=f"Anders: {record.segment.translation}") for record in records],
    )
    refused(r"decisions.jsonl: segment 1: the error span 'Ufer' is not at offset 4 of", sheet_of, decisions, other)
    write_records(other, records)
    sheet = sheet_of(decisions, CANDIDATES, other)
    assert [text.label for text in sheet.rows] == ["1", "2", "3", "4"]
    assert [len(a) for a in annotations(sheet, "decisions") if a is not None] == [1, 1, 0, 2]
    message = "other.jsonl: segment 1 has another text before it, and decisions name segments by system and id only"
    longer = [with_segment(record, translation=f"{record.segment.translation} Anders.") for record in records]
    for inputs, written, rows in (
        ((CANDIDATES, other), longer, 8),
        ((other,), [*records, with_segment(records[0], translation="anders")], 5),
    ):
        write_records(other, written)
        assert len(sheet_of(*inputs).rows) == rows
        refused(message, sheet_of, decisions, *inputs)


def test_a_compressed_file_is_of_the_same_kind(tmp_path: Path) -> None:
    released, human = tmp_path / "released.gen.json.gz", tmp_path / "human.tsv.gz"
    write_whole(released, '{"A": [[["{\\"errors\\": []}", -1, "mt", "src"]]]}')
    write_whole(human, (EXAMPLES / "human.tsv").read_text(encoding="utf-8"))
    assert (kind_of_input(released), kind_of_input(human)) == ("candidates", "mqm")
    assert sheet_of(human).rows == sheet_of(EXAMPLES / "human.tsv").rows


def test_files_of_one_name_get_longer_names(tmp_path: Path) -> None:
    odd = tmp_path / "a=b.json"
    odd.touch()
    parsed = [NamedPath.parse(text) for text in ("out.eval.json", "MBR 256=out.json", str(odd))]
    assert parsed == [NamedPath(Path("out.eval.json")), NamedPath(Path("out.json"), "MBR 256"), NamedPath(odd)]
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        comet_file(folder / "out.json", {"x/a/mt.txt": [row("eins", 0.5)], "x/b/mt.txt": [row("zwei", 0.5)]})
    sheet = sheet_of(one / "out.json", two / "out.json")
    assert [column.name for column in sheet.columns] == ["one/out", "two/out"]
    assert [text.system for text in sheet.rows] == ["a/mt", "b/mt"]
    (one / "out.candidates.jsonl").write_bytes(CANDIDATES.read_bytes())
    sheet = sheet_of(one / "out.json", one / "out.candidates.jsonl")
    assert {column.name for column in sheet.columns} == {"out", "out.candidates"}
    message = "two inputs are named .*out.json'; name them apart with NAME=FILE"
    refused(message, sheet_of, one / "out.json", one / "out.json")


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["mt.txt", "a/mt.txt"], ["mt.txt", "a/mt"]),
        (["x/1/mt.txt", "y/1/mt.txt", "y/2/mt.txt"], ["x/1/mt", "y/1/mt", "2/mt"]),
        (["d/mt.a.txt", "d/mt.b.txt"], ["mt.a", "mt.b"]),
        (["d/mt.txt", "d/mt.json", "e/mt.txt"], ["d/mt.txt", "mt.json", "e/mt"]),
        (["/mt.txt", ".", "a.b", "a.b.txt", "a.txt"], ["mt", ".", "a.b", "a.b.txt", "a"]),
    ],
)
def test_short_names_differ(paths: list[str], names: list[str]) -> None:
    assert short_names(paths) == names


def test_real_raters(mqm_folder: Path) -> None:
    sheet = sheet_of(mqm_folder / "sxs_mqm_generalMT2023_ende.3raters.tsv")
    assert [column.name for column in sheet.columns] == ["human 1", "human 2", "human 3"]
    assert all(column.human for column in sheet.columns)
    # Three raters a translation, whoever of the ten they were.
    assert all(opinion is not None for column in sheet.columns for opinion in column.judged)
    signed = [span.category for o in sheet.columns[0].judged if o and o.annotation for span in o.annotation]
    assert all(re.search(r"\(rater\d+\)$", category or "") for category in signed)


def test_a_test_set_has_people_and_the_metrics_with_spans_or_those_named(mbr_esd: Command) -> None:
    """A translation that nobody supplied is not a row."""
    sheet = read_table([], load_test_set(TINY.parent, "tiny", "en-de"))
    assert [(column.name, column.human) for column in sheet.columns] == [("mqm.rater1", True), ("good-src", False)]
    assert [f"{text.system}{text.label}" for text in sheet.rows] == ["B1", "B2", "A1", "A2", "A3"]
    assert [o.input_score for o in sheet.columns[1].judged if o] == [0.25, 1, 0.25, 1, 2]
    assert mbr_esd("show --lp en-de --metric BLEU good -n 1 --test-set", TINY).out.splitlines()[2:] == [
        "mqm.rater1  score 0.8000  MQM -5",
        "  [Die](major) Katze schläft.",
        "  major  [0, 3)  Accuracy/Mistranslation  Die",
        "BLEU-refA  score 0.3333",
        "good-src  score 0.2500  MQM -1",
        "  D[ie](minor) Katze schläft.",
        "  minor  [1, 3)  confidence 0.75  ie",
    ]
    first = [mbr_esd(f"show --lp en-de --worst {name} -n 1 --test-set", TINY).out for name in ("good", "good-src")]
    assert first[0] == first[1]
    assert first[0].startswith("1 · B")
    with pytest.raises(OptionError, match="there are a-refA and a-src; name one in full"):
        column_named([JudgedColumn("a-refA", [], base="a"), JudgedColumn("a-src", [], base="a")], "a")
    message = mbr_esd("show --lp en-de --metric mqm.merged --test-set", TINY, status=1).err
    assert "unknown metric of tiny en-de 'mqm.merged'" in message


def test_an_error_without_characters_counts(tmp_path: Path, mbr_esd: Command) -> None:
    """A table of the quality estimation task, by its first line alone."""
    path = tmp_path / "people.txt"
    path.write_text("A\tdoc\t1\tr1\tA dog barks.\tEin Hund bellt.\t4 0\t4 3\tmajor minor\n", encoding="utf-8")
    shown = mbr_esd("show", path).out
    assert "score 0.7600  MQM -6" in shown
    assert "major  [4, 4)" in shown


def test_blank_translations_and_what_our_scores_suspect_are_shown(tmp_path: Path, mbr_esd: Command) -> None:
    rows = [
        row("eins", 0.8, error(0, 4, "major")),
        row("", 0.0),
        row("zwei", 0.0) | {"errors": []},
        row("source", 1.0) | {"errors": [], "data_warning": "equal to its source"},
    ]
    path = comet_file(tmp_path / "ours.json", {"a": rows})
    assert re.findall("^ours.*$", mbr_esd("show", path, "--worst ours").out, re.MULTILINE) == [
        "ours  score 0.0000  MQM -25  blank translation",
        "ours  score 0.0000  MQM 0",
        "ours  score 0.8000  MQM -5",
        "ours  score 1.0000  MQM 0  equal to its source",
    ]
    assert payload(sheet_of(path))["columns"][0]["mqm"] == [None, -25.0, None, None]
    # A score of another scale says nothing of its MQM score.
    other = comet_file(tmp_path / "xcomet.json", {"a": [row("", 0.3), row("eins", 0.5, error(0, 4, "major"))]})
    assert payload(sheet_of(other))["columns"][0]["mqm"] is None


def test_wrong_use(workdir: Path, mbr_esd: Command) -> None:
    for arguments, message in (
        ("report -o x.html", "no input; specify a file"),
        (f"show {CANDIDATES} --metric XCOMET", "--metric has no effect with files alone"),
        ("report -o x.html --test-set wmt23", "specify its language pair"),
        (f"show {CANDIDATES} --id 99", "no segment has the id 99"),
        (f"show {CANDIDATES} --system A", "unknown system 'A'"),
        (f"show {CANDIDATES} --worst A", "unknown column 'A'"),
    ):
        assert message in mbr_esd(arguments, status=1).err


def test_distribution_counts_characters() -> None:
    mt = "abcdefghij"
    spans = [[(2, 5, "major")], [(4, 8, "minor")], [(2, 5, "major"), (3, 4, "minor")], [], [(2, 5, "major")]]
    candidates = [Candidate(annotation=[{"start": s, "end": e, "severity": v} for s, e, v in a]) for a in spans]
    summary = distribution(Segment("", mt, "1"), [*candidates, Candidate("not JSON")], most=2)
    assert (summary.valid, summary.distinct, summary.invalid) == (5, 4, 1)
    marked = [sum(any(s <= i < e for s, e, _ in a) for a in spans) for i in range(len(mt))]
    major = [sum(any(s <= i < e and v == "major" for s, e, v in a) for a in spans) for i in range(len(mt))]
    expanded = [pair for width, *pair in summary.runs for _ in range(width)]
    assert expanded == [list(pair) for pair in zip(marked, major, strict=True)]
    assert [(strips.count, strips.logprob) for strips in summary.annotations] == [(2, None), (1, None)]
    for text, runs in (("", []), ("abc", [(3, 0, 0)])):
        for candidate in (Candidate(annotation=()), Candidate("not JSON")):
            assert list(distribution(Segment("", text, "1"), [candidate]).runs) == runs


def test_candidates_are_read_as_they_were_decided(tmp_path: Path) -> None:
    texts, candidates = (answer("und", "und", severity="minor"), "not JSON"), tmp_path / "candidates.jsonl"
    for location, words in (("first", 1), ("successive", 2)):
        write_records(candidates, [record("and and", "und und", *texts, decision={"location": location})])
        sheet = sheet_of(candidates)
        (summary,) = (d for d in sheet.candidates[0].distributions if d)
        assert [len(one.annotation) for one in summary.annotations] == [words]
        assert annotations(sheet, "candidates") == [summary.annotations[0].annotation]


def test_an_importer_of_json_is_a_row_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ratings.jsonl"
    path.write_text('{"hypothesis": "Ein Hund.", "judge": "anna"}\n', encoding="utf-8")
    refused("line 1", read_mqm, path)
    data = RatingData(path, (), ())
    monkeypatch.setitem(FORMATS, lambda line: '"judge"' in line, lambda _: data)
    assert read_mqm(path) is data
    assert kind_of_input(path) == kind_of_import(path) == "mqm"


A = Segment("source", "one translation", "1", "sys")
MAJOR = Annotation([ErrorSpan(0, 3, "major", "accuracy", 0.1 + 0.2)])


@pytest.mark.parametrize(("system", "step"), [("other", -1), (A.system, 1)])
def test_the_same_text_twice_stays_apart(system: str, step: int) -> None:
    """Texts of two systems may come in any order, those of one system in one order."""
    both = [Rating(A, MAJOR), Rating(Segment(A.source, A.translation, "2", system), Annotation())]
    sheet = join([JudgedColumn("a", both), JudgedColumn("b", both[::step])])
    assert [text.label for text in sheet.rows] == ["1", "2"]
    assert [o.annotation for o in sheet.columns[1].judged if o] == [MAJOR, Annotation()]


def test_nothing_is_left_out_and_what_stands_alone_is_counted() -> None:
    alone = Segment("source", "another translation", "9", "sys")
    sheet = join([JudgedColumn("a", [Rating(A, MAJOR)]), JudgedColumn("b", [Rating(A, MAJOR), Rating(alone, MAJOR)])])
    assert list(sheet.rows) == [A, alone]
    assert sheet.columns[0].judged[1] is None
    assert sheet.notes == ["1 of the segments of b are in no other input"]
