"""Kinds of files, and human MQM and ESA into the layout: order, gold, ratings, references, what cannot be carried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.adapters.esa_files import TestSetTexts, read_esa
from mbr_esd_metric.adapters.file_kinds import kind_of_import
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import MqmError, Rating, RatingData
from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.importing import Imported, Target, import_mqm, import_texts
from mbr_esd_metric.adapters.wmt.layout import read_scores
from mbr_esd_metric.adapters.wmt.rating_files import choose_ratings
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError, MbrEsdError
from mbr_esd_metric.scoring.wmt import make_scorer, score_test_set
from tests.helpers.command import Command
from tests.helpers.refused import refused


def rating(
    system: str,
    label: str,
    rater: str = "r1",
    doc: str = "d",
    source: str | None = None,
    translation: str | None = None,
    **fields: Any,
) -> Rating:
    texts = source or f"source {label}", translation or f"{system} {label}"
    return Rating(Segment(*texts, label, system, doc), rater, **fields)


def imported(
    folder: Path, *ratings: Rating, test_set: str = "t", lp: str = "en-de", **target: Any
) -> tuple[Imported, TestSet]:
    done = import_mqm(RatingData(Path("some.tsv"), ratings, ()), Target(folder, test_set, lp, **target))
    return done, load_test_set(folder, test_set, lp)


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.*")}


def test_segments_are_in_order_and_documents_in_one_piece(tmp_path: Path) -> None:
    places = (("10", "x"), ("9", "y"), ("2", "x"), ("11", "y"))
    _, test_set = imported(tmp_path, *(rating(system, n, doc=d) for system in "AB" for n, d in places))
    assert test_set.sources == ("source 2", "source 10", "source 9", "source 11")
    assert [document for _, document in test_set.documents] == ["x", "x", "y", "y"]


def test_gold_is_the_mean_over_raters_and_nan_where_nobody_rated(tmp_path: Path) -> None:
    minor, major = MqmError("minor", "Style", "translation", 0, 1), MqmError("major", "x", "source", 0, 1)
    done, test_set = imported(
        tmp_path,
        rating("A", "1", "r1", errors=(minor, minor)),
        rating("A", "1", "r1", errors=(major,)),  # a rater rates a translation once
        rating("A", "1", "r2", errors=(major,)),
        rating("A", "2", "r1"),
        rating("B", "1", "r1", errors=(MqmError("minor", "Fluency/Punctuation"),)),
        rating("A", "3", lp="de-en"),
    )
    assert done.notes[0] == "1 rating of other language pairs: left out"
    assert done.notes[1].startswith("1 rating by a rater who had rated the same translation")
    np.testing.assert_array_equal(test_set.gold, [[-3.5, 0], [-0.1, np.nan]])
    assert test_set.outputs["B"] == ("B 1", None)
    first, second = test_set.human_ratings()
    assert (first.name, second.name) == ("mqm.r1", "mqm.r2")
    assert second.annotations["A"] == (Annotation(), None)  # the source side is not a span of the translation
    assert first.annotations["B"] == (Annotation(), None)  # an error without a place is none either
    errors = (MqmError("minor", "Fluency/Punctuation"), MqmError("major", "Non-translation!"))
    assert imported(tmp_path / "paper", rating("A", "1", errors=errors), weights="paper")[1].gold.item() == -6


@pytest.mark.parametrize(
    ("target", "references"),
    [
        ({}, ("ref",)),
        ({"references": ["refB"], "rename": {"Human.1": "refB"}}, ("refB",)),
        # It has one name in every language pair, also in one that the table of test sets does not have.
        ({"test_set": "wmt21.tedtalks"}, ("refA",)),
        ({"test_set": "wmt21.tedtalks", "lp": "de-en"}, ("refA",)),
    ],
)
def test_references_have_usual_names_or_others(
    tmp_path: Path, target: dict[str, Any], references: tuple[str, ...]
) -> None:
    done, _ = imported(tmp_path, rating("ref", "1"), rating("a b/../c", "1"), rating("Human.1", "1"), **target)
    assert done.references == references
    assert "a_b_.._c" in done.layout.outputs()
    named = "system ref is called refA, as the standard reference of the test set"
    assert (named in done.notes) == (references == ("refA",))


A = rating("A", "1")


@pytest.mark.parametrize(
    ("ratings", "target", "message"),
    [
        ([A], {"test_set": "a/b"}, r"test set 'a/b' is used as a file name"),
        ([A], {"lp": "a/b-c"}, "'en-de', not 'a/b-c'"),
        ([A], {"references": ["refC"]}, "reference 'refC' is not among the systems: A"),
        ([A], {"rename": {"who": "x"}}, "no system 'who' to rename"),
        ([rating("Human.1", "1")], {"references": ["Human.1"]}, "'Human.1' is not a valid reference name"),
        ([rating("A", "1", lp="de-en")], {"lp": "en-zh"}, "no ratings of en-zh; there are: de-en"),
        ([rating("a b", "1"), rating("a_b", "1")], {}, "change it with --rename"),
        ([rating("A", "1", "a b"), rating("A", "2", "a_b")], {}, "rater 'a_b' has the same file"),
        ([rating("A", "1", "merged"), rating("A", "2", "b")], {}, "rater 'merged' has the same file"),
        ([rating("A", "1", " ")], {}, "rater '' is used as a file name"),
        *(
            (ratings, {}, "is used as a file name")
            for name in (".hidden", "a\\b", "\x1b[2J", "x" * 300, "\ud800")
            for ratings in ([rating("A", "1", name)], [A, rating(name, "2")])
        ),
        *(
            ([rating(s, n, **odd) for s in "AB" for n in "12"], {}, r"cannot be stored in .*\(.*; nothing is imported")
            for odd in ({"source": "NUL \0"}, {"doc": " "}, {"doc": ""})
        ),
    ],
)
def test_what_the_layout_cannot_carry_is_not_imported(
    tmp_path: Path, ratings: list[Rating], target: dict[str, Any], message: str
) -> None:
    with pytest.raises(MbrEsdError, match=message):
        imported(tmp_path / "data", *ratings, **target)
    assert not list(tmp_path.iterdir())
    imported(tmp_path, A)
    before = content(tmp_path)
    with pytest.raises(MbrEsdError, match=message):
        imported(tmp_path, *ratings, overwrite=True, **target)
    assert content(tmp_path) == before


def test_a_test_set_is_not_overwritten_unasked_or_beside_scores_of_its_texts(tmp_path: Path) -> None:
    imported(tmp_path, rating("B", "1", "r7"), rating("ref", "1"))
    refused("already there.*--overwrite", imported, tmp_path, A)
    _, test_set = imported(tmp_path, A, overwrite=True)
    assert (set(test_set.outputs), test_set.references) == ({"A"}, {})
    assert [ratings.name for ratings in test_set.ratings] == ["mqm.merged", "mqm.r1"]
    score_test_set(test_set, make_scorer("empty"))
    source, other = test_set.layout.source(), rating("A", "1", translation="other")
    before = content(tmp_path)
    message = r"metric-scores/en-de and .*metric-ratings/en-de: scores of the texts .* \(empty-src.seg.score .*delete"
    refused(message, imported, tmp_path, other, overwrite=True)
    source.unlink()  # as a stopped import leaves it
    refused("scores of the texts", imported, tmp_path, other)
    assert content(tmp_path) | {source: b"source 1\n"} == before
    for path in test_set.layout.metric_files():
        path.unlink()
    assert imported(tmp_path, other)[1].outputs["A"] == ("other",)


def test_equal_sources_are_one_segment_where_the_names_do_not_say(tmp_path: Path) -> None:
    error = MqmError("major", "x", "translation", 4, 7)
    done, test_set = imported(
        tmp_path,
        rating("A", "1", doc="A_doc", source="s one"),
        rating("A", "1", doc="A_doc", source="s two"),
        rating("B", "5", doc="B_doc", source="s two", translation="the end", errors=(error,)),
        rating("B", "5", "r2", doc="B_doc", source="s two", translation="xy end"),
        rating("", "5", doc="B_doc", source="s two"),
    )
    assert "2 systems (references: none), 2 segments in 1 document, 4 ratings by 2 raters" in done.summary
    assert any("without a name" in note for note in done.notes)
    assert test_set.sources == ("s one", "s two")
    assert test_set.outputs["B"] == (None, "the end")


DATA = Path(__file__).parents[2] / "data" / "wmt"
#: Mean penalties of the systems of the TED talks, as the authors of the annotations publish them.
PUBLISHED = json.loads((Path(__file__).parents[2] / "golden" / "ted_means.json").read_text("utf-8"))["systems"]


def test_real_ted_talks_have_the_published_scores(mqm_folder: Path, tmp_path: Path, mbr_esd: Command) -> None:
    where = f"--lp en-de --test-set {tmp_path}/wmt21.tedtalks"
    out = mbr_esd("wmt import", mqm_folder / "mqm_ted_ende.tsv", where).out
    assert "unbalanced markers: counts in the score, has no span (line 6444)" in out
    assert "14 systems (references: refA), 529 segments in 5 documents, 7406 ratings by 4 raters" in out
    path = tmp_path / "wmt21.tedtalks" / "human-scores" / "en-de.mqm.sys.score"
    scores = dict(line.split() for line in path.read_text().splitlines())
    assert {system: -float(score) for system, score in scores.items()} == pytest.approx(PUBLISHED, abs=0.0089)
    test_set = load_test_set(tmp_path, "wmt21.tedtalks", "en-de")
    assert test_set.gold.shape == (13, 529)
    assert not np.isnan(test_set.gold).any()
    (merged,) = test_set.human_ratings()
    assert sum(len(a or ()) for s in test_set.systems for a in merged.annotations[s]) == 3811


def test_ratings_of_different_translations_are_refused(tmp_path: Path) -> None:
    texts = [
        rating("A", "1", f"r{n}", translation=t, line=n) for n, t in enumerate(("Ein Hund.", "Ein Hund!", "Wir sind"))
    ]
    done, _ = imported(tmp_path, *texts[:2])
    assert "1 rating of another spelling of a translation: the first one is kept" in done.notes
    with pytest.raises(InputError, match=r"some.tsv, lines 0 and 2: two texts of system A for segment 1 of d"):
        imported(tmp_path, *texts, test_set="b")
    refused(r"two-texts.tsv, lines 2 and 3: two texts of system A", read_mqm, DATA / "two-texts.tsv")


@pytest.fixture(scope="module")
def esa() -> TestSetTexts:
    """Three segments in two documents; C has 50 for each, and "A B" two annotations in en-uk, no score in en-de."""
    return read_esa([DATA / "wmt24-genmt-humeval.jsonl"])


def test_one_annotation_a_translation(esa: TestSetTexts, tmp_path: Path) -> None:
    refused("there are: cs-uk_UA, en-cs", import_texts, esa, Target(tmp_path, "made", "en-fr"))
    done = import_texts(esa, Target(tmp_path, "made", "en-cs"))
    assert "3 systems (references: refA), 3 segments in 2 documents, 5 ratings by 2 raters" in done.summary
    assert done.notes == ("2 times: error of text missing from the translation: has no span",)
    test_set = load_test_set(tmp_path, "made", "en-cs")
    assert test_set.info.gold == "esa"
    assert "esa are used instead" in test_set.notes[0]
    assert test_set.documents == (("news", "d1"), ("news", "d1"), ("social", "d2"))
    assert np.array_equal(test_set.gold, [[90.0, 70.0, np.nan], [50.0, 50.0, 50.0]], equal_nan=True)
    (ratings,) = test_set.human_ratings()
    assert ratings.name == "esa.merged"
    assert [None if a is None else len(a) for a in ratings.annotations["A_B"]] == [1, 1, None]
    lines = done.layout.human_file("esa.merged", "seg.rating").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[2:] for line in lines if line.startswith("A_B")] == [["r0"], ["r0"], []]  # for the toolkit
    assert read_scores(done.layout.human_file("esa", "sys.score"))["A_B"][0] == 80.0


def test_several_annotations_count_their_mean_and_each_by_itself(esa: TestSetTexts, tmp_path: Path) -> None:
    done = import_texts(esa, Target(tmp_path, "wmt24", "en-uk"))
    assert "up to 2 annotations a translation" in done.notes
    mean = load_test_set(tmp_path, "wmt24", "en-uk")
    assert mean.gold[0, 0] == 80.0
    assert [ratings.name for ratings in mean.human_ratings()] == ["esa-human1.merged", "esa-human2.merged"]
    second = load_test_set(tmp_path, "wmt24", "en-uk", gold="esa-human2")
    assert second.systems == ("A_B",)
    assert np.array_equal(second.gold, [[70.0, np.nan, np.nan]], equal_nan=True)
    import_texts(esa, Target(tmp_path, "wmt25", "cs-uk_UA"))
    first = load_test_set(tmp_path, "wmt25", "cs-uk_UA")  # the standard gold of WMT25 is the first annotation
    assert (first.info.gold, first.notes) == ("esa-human1", ())
    assert [ratings.name for ratings in first.human_ratings()] == ["esa-human1.merged"]
    for gold, name in (("mqm", "mqm.rater1.merged"), ("esa", "esa.merged")):
        assert choose_ratings(["esa.merged", "mqm.rater1.merged"], gold) == [name]


def test_annotations_without_a_score_are_mqm(esa: TestSetTexts, tmp_path: Path) -> None:
    import_texts(esa, Target(tmp_path, "wmt25", "en-de"))
    test_set = load_test_set(tmp_path, "wmt25", "en-de")
    assert (test_set.info.gold, test_set.gold[0, 0]) == ("mqm", -6.0)
    refused("some have none", import_texts, esa, Target(tmp_path, "mixed", "en-zh"))


def test_from_a_file_to_a_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command) -> None:
    """A test set named without its folder is in the one of the toolkit; what is written there is said before."""
    monkeypatch.setenv("HOME", str(tmp_path))
    place = f"{tmp_path}/.mt-metrics-eval/mt-metrics-eval-v2/wmt25"
    said = f"wmt25 is written to {place}; to write elsewhere, specify a folder, such as ./wmt25"
    assert said in mbr_esd("wmt import absent.tsv --test-set wmt25", status=1).err
    imported = mbr_esd("wmt import", DATA / "wmt25-genmt-humeval.jsonl", "--test-set wmt25")
    assert imported.err.startswith(said)
    assert "wmt25 cs-uk_UA" in imported.out
    where = "--test-set wmt25 --lp en-cs cs-uk_UA"
    assert said in mbr_esd("wmt score", where, "--model empty chrF").err
    assert said not in mbr_esd("wmt score", where, "--model empty --dry-run").err
    rows = {row["metric"]: row for row in json.loads(mbr_esd("leaderboard", where, "--k 0 --table json").out)["rows"]}
    assert rows["empty"]["cs-uk_UA"]["f1-corpus"] == 0.0
    assert rows["human"]["cs-uk_UA"]["major"] == 6
    assert "gold score of at least 85" in mbr_esd("leaderboard --view error-free", where).out


def test_scores_of_one_system_of_an_unrated_test_set(tmp_path: Path, mbr_esd: Command) -> None:
    mbr_esd("wmt import", DATA / "mteval-task2-test25.tsv", f"--test-set {tmp_path}/wmt25")
    where, file = f"--test-set {tmp_path}/wmt25 --lp cs-uk_UA", tmp_path / "scores.json"
    for mt, status, message in (
        (" 4", 0, "scores of 1 translation by 1 system"),
        ("", 1, "scores.json: no translation"),
    ):
        file.write_text(json.dumps({"A": [{"src": "s4", "mt": f"Gemini 3.1 Pro{mt}", "COMET": 0.5}]}, indent=4))
        assert message in "".join(mbr_esd(f"wmt import one={file} --overwrite", where, status=status))


_WMT25 = "doc_id\tsegment_id\tsource_lang\ttarget_lang\tset_id\tsystem_id"
_TEXTS = "source_segment\thypothesis_segment\treference_segment\tdomain_name\tmethod"
_SPANS = "start_indices\tend_indices\terror_types"
#: What a file begins with -> its kind, where no other test imports one.
BEGINNINGS = [
    (json.dumps({"lp": "de-en", "system": "A", "rater": "1", "src": "a", "mt": "b", "errors": []}), "mqm"),
    ("mt_system\tdoc_id\tseg_id\tannotator_id\tsource\ttarget\tstart_ids\tend_ids\terrors", "qe"),
    ("A\td\t1\tr\tdog\tHund\t-1\t-1\tno-error", "qe"),
    (json.dumps({"langs": "en-cs", "src": "a", "tgt": "b", "esa_spans": [], "esa_score": 90}), "esa"),
    ("\t".join((_WMT25, _TEXTS, _SPANS, "overall")), "esa"),
    ("\t".join(f'"{name}"' for name in f"{_WMT25}\t{_TEXTS}".split("\t")), "task"),
    (f"{_WMT25}\tdomain_name\tmethod\toverall", "wmt25-task1"),
    ("A\td\t1\t1\tr\ta\tb\tStyle\tminor\t{}", "mqm"),  # Marot's, without a header
]


SPANS_OF_WMT25 = "\t".join((_WMT25, _TEXTS, _SPANS))


def kind_of(folder: Path, beginning: str, name: str | None = None) -> str:
    (folder / "file").write_text(beginning, encoding="utf-8")
    return kind_of_import(folder / "file", name)


def test_a_file_says_what_it_is_or_the_name_does(tmp_path: Path) -> None:
    assert [kind_of(tmp_path, beginning) for beginning, _ in BEGINNINGS] == [kind for _, kind in BEGINNINGS]
    assert [kind_of(tmp_path, SPANS_OF_WMT25, name) for name in ("GemSpanEval", "people")] == ["wmt25-task2", "esa"]
    for content, message in {
        "some words\n": r"file: its first line is of no known format; supported are people's MQM",
        "": "file: the file is empty",
        "{]\n": "file, line 1",
        SPANS_OF_WMT25: "name the metric, NAME=.*people=.*file$",
    }.items():
        with pytest.raises(MbrEsdError, match=message):
            kind_of(tmp_path, content)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("X={}", "X= has no effect with {}, which is mqm"),
        ("{}", "{} has no language pair; set it with --lp"),
        ("{} {}", "import one file at a time; only esa accepts several files: {} is mqm"),
        ("{} --lp en-de --rename A", "--rename A: write OLD=NEW"),
    ],
)
def test_what_does_not_belong_to_a_kind_is_refused(words: str, message: str, tmp_path: Path, mbr_esd: Command) -> None:
    path = Path(__file__).parents[3] / "docs" / "examples" / "human.tsv"
    err = mbr_esd("wmt import", words.format(path, path), f"--test-set {tmp_path}/data/t", status=1).err
    assert message.format(path) in err
