"""Human MQM into the layout: order, gold scores, ratings, references, and what cannot be carried."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.adapters.mqm_tsv import read_mqm
from mbr_esd_metric.adapters.ratings import MqmData, MqmError, MqmRating
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.importing import Target, import_mqm
from mbr_esd_metric.adapters.wmt.scorers import make_scorer
from mbr_esd_metric.adapters.wmt.scoring import score_test_set
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, OptionError


def rating(system: str, segment: str, rater: str = "r1", doc: str = "d", **fields: object) -> MqmRating:
    values = {"source": f"source {segment}", "target": f"{system} {segment}", "errors": (), "lp": None}
    values.update(fields)
    return MqmRating(system, doc, segment, segment, rater, **values)  # type: ignore[arg-type]


def data(*ratings: MqmRating) -> MqmData:
    return MqmData(Path("some.tsv"), ratings, ())


def test_segments_are_in_order_and_documents_in_one_piece(tmp_path: Path) -> None:
    ratings = [rating(s, n, doc=d) for s in "AB" for n, d in (("10", "x"), ("9", "y"), ("2", "x"), ("11", "y"))]
    import_mqm(data(*ratings), Target(tmp_path, "t", "en-de"))
    test_set = load_test_set(tmp_path, "t", "en-de")
    assert test_set.sources == ("source 2", "source 10", "source 9", "source 11")
    assert [document for _, document in test_set.documents] == ["x", "x", "y", "y"]


def test_gold_is_the_mean_over_raters_and_nan_where_nobody_rated(tmp_path: Path) -> None:
    minor, major = MqmError("minor", "Style", "target", 0, 1), MqmError("major", "x", "source", 0, 1)
    import_mqm(
        data(
            rating("A", "1", "r1", errors=(minor, minor)),
            rating("A", "1", "r2", errors=(major,)),
            rating("A", "2", "r1"),
            rating("B", "1", "r1", errors=(MqmError("minor", "Fluency/Punctuation"),)),
        ),
        Target(tmp_path, "t", "en-de"),
    )
    test_set = load_test_set(tmp_path, "t", "en-de")
    np.testing.assert_array_equal(test_set.gold, [[-3.5, 0], [-0.1, np.nan]])
    assert test_set.outputs["B"] == ("B 1", None)
    first, second = test_set.human_ratings()
    assert (first.name, second.name) == ("mqm.r1", "mqm.r2")
    assert second.annotations["A"] == (Annotation(), None)  # the source side is no span of the translation
    assert first.annotations["B"] == (Annotation(), None)  # an error without a place is none either


def test_what_is_of_another_language_pair_is_counted(tmp_path: Path) -> None:
    both = data(rating("A", "1", lp="en-de"), rating("A", "2", lp="de-en"))
    assert import_mqm(both, Target(tmp_path, "t", "en-de")).notes == ("1 ratings of other language pairs are left out",)


def test_one_rater_a_translation_makes_a_merged_set(tmp_path: Path) -> None:
    import_mqm(
        data(rating("A", "1", "r1"), rating("A", "2", "r2"), rating("B", "1", "r2")), Target(tmp_path, "t", "en-de")
    )
    (merged,) = load_test_set(tmp_path, "t", "en-de").human_ratings()
    assert merged.name == "mqm.merged"
    assert merged.raters == {"A": ("r1", "r2"), "B": ("r2", None)}


def test_the_paper_weights_instead_of_googles(tmp_path: Path) -> None:
    errors = (MqmError("minor", "Fluency/Punctuation"), MqmError("major", "Non-translation!"))
    import_mqm(data(rating("A", "1", errors=errors)), Target(tmp_path, "t", "en-de", weights="paper"))
    assert load_test_set(tmp_path, "t", "en-de").gold.item() == -6


def test_references_are_found_named_and_renamed(tmp_path: Path) -> None:
    three = data(rating("ref", "1"), rating("A", "1"), rating("Human.1", "1"))
    done = import_mqm(three, Target(tmp_path, "wmt21.tedtalks", "en-de"))
    assert done.references == ("refA",)
    assert "refA" in done.notes[0]
    assert import_mqm(three, Target(tmp_path, "t", "en-de")).references == ("ref",)
    done = import_mqm(three, Target(tmp_path, "u", "en-de", references=["refB"], rename={"Human.1": "refB"}))
    assert done.references == ("refB",)
    with pytest.raises(OptionError, match="no system 'refC' to be a reference; there are: A, Human.1, ref"):
        import_mqm(three, Target(tmp_path, "v", "en-de", references=["refC"]))
    with pytest.raises(OptionError, match="no system 'who' to rename"):
        import_mqm(three, Target(tmp_path, "v", "en-de", rename={"who": "x"}))
    with pytest.raises(InputError, match="'Human.1' is no name of a reference"):
        import_mqm(three, Target(tmp_path, "v", "en-de", references=["Human.1"]))


def test_names_that_are_no_file_names(tmp_path: Path) -> None:
    done = import_mqm(data(rating("a b/../c", "1")), Target(tmp_path, "s", "en-de"))
    assert done.systems == ("a_b_.._c",)
    for names in ((".a",), ("a b", "a_b")):
        with pytest.raises(InputError, match="change it with --rename"):
            import_mqm(data(*(rating(name, "1") for name in names)), Target(tmp_path, "t", "en-de"))


@pytest.mark.parametrize(("test_set", "lp"), [("a/b", "en-de"), ("..", "en-de"), ("t", "ende"), ("t", "a/b-c")])
def test_names_that_are_no_test_set_or_language_pair(tmp_path: Path, test_set: str, lp: str) -> None:
    with pytest.raises(OptionError, match=r"such as ('en-de', not '(ende|a/b-c)'|wmt21\.tedtalks)$"):
        import_mqm(data(rating("A", "1")), Target(tmp_path, test_set, lp))
    assert not list(tmp_path.iterdir())


def test_a_test_set_is_not_overwritten_unasked(tmp_path: Path) -> None:
    import_mqm(data(rating("A", "1"), rating("ref", "1")), Target(tmp_path, "t", "en-de"))
    with pytest.raises(InputError, match="already there.*--overwrite"):
        import_mqm(data(rating("B", "1")), Target(tmp_path, "t", "en-de"))
    import_mqm(data(rating("B", "1", "r7")), Target(tmp_path, "t", "en-de", overwrite=True))
    test_set = load_test_set(tmp_path, "t", "en-de")
    assert (set(test_set.outputs), test_set.references) == ({"B"}, {})
    assert [ratings.name for ratings in test_set.ratings] == ["mqm.merged", "mqm.r7"]


def test_scores_of_other_texts_do_not_stay(tmp_path: Path) -> None:
    import_mqm(data(rating("A", "1"), rating("ref", "1")), Target(tmp_path, "t", "en-de"))
    score_test_set(load_test_set(tmp_path, "t", "en-de"), make_scorer("empty"))
    layout = load_test_set(tmp_path, "t", "en-de").layout
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    message = r"metric-scores/en-de and .*metric-ratings/en-de: scores of the texts .* \(empty-src.seg.score .*delete"
    with pytest.raises(InputError, match=message):
        import_mqm(data(rating("A", "1", target="other")), Target(tmp_path, "t", "en-de", overwrite=True))
    layout.source().unlink()  # as a stopped import leaves it
    with pytest.raises(InputError, match="scores of the texts"):
        import_mqm(data(rating("A", "1", target="other")), Target(tmp_path, "t", "en-de"))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} | {layout.source(): b"source 1\n"} == before
    for path in layout.metric_files():
        path.unlink()
    import_mqm(data(rating("A", "1", target="other")), Target(tmp_path, "t", "en-de"))
    assert load_test_set(tmp_path, "t", "en-de").outputs["A"] == ("other",)


def test_a_rater_rates_a_translation_once(tmp_path: Path) -> None:
    minor = MqmError("minor", "x", "target", 0, 1)
    done = import_mqm(data(rating("A", "1"), rating("A", "1", errors=(minor,))), Target(tmp_path, "t", "en-de"))
    assert done.notes[0].startswith("1 ratings by a rater who had rated the same translation")
    assert load_test_set(tmp_path, "t", "en-de").gold.item() == 0


def test_equal_sources_are_one_segment_where_the_names_do_not_say(tmp_path: Path) -> None:
    error = MqmError("major", "x", "target", 4, 7)
    done = import_mqm(
        data(
            rating("A", "1", doc="A_doc", source="s one", lp="de-en"),
            rating("A", "1", doc="A_doc", source="s two", lp="de-en"),
            rating("B", "5", doc="B_doc", source="s two", target="the end", errors=(error,), lp="de-en"),
            rating("B", "5", "r2", doc="B_doc", source="s two", target="xy end", lp="de-en"),
            rating("", "5", doc="B_doc", source="s two", lp="de-en"),
            rating("C", "5", doc="B_doc", source="s two", lp="en-de"),
        ),
        Target(tmp_path, "bio", "de-en"),
    )
    assert (done.systems, done.segments, done.ratings) == (("A", "B"), 2, 4)
    assert any("without a name" in note for note in done.notes)
    test_set = load_test_set(tmp_path, "bio", "de-en")
    assert test_set.sources == ("s one", "s two")
    assert test_set.outputs["B"] == (None, "the end")
    with pytest.raises(InputError, match="no ratings of en-zh; there are: de-en"):
        import_mqm(data(rating("A", "1", lp="de-en")), Target(tmp_path, "x", "en-zh"))


#: System means of the TED talks, as the authors of the annotations publish them (google/wmt-mqm-human-evaluation,
#: README, table "TED talks, English to German"): mean penalties, so with the opposite sign. Two digits, of which
#: one is cut rather than rounded (eTranslation: 1.9688).
PUBLISHED = {
    "refA": 0.91,
    "Facebook-AI": 1.06,
    "Online-W": 1.12,
    "VolcTrans-AT": 1.24,
    "metricsystem3": 1.44,
    "VolcTrans-GLAT": 1.49,
    "HuaweiTSC": 1.50,
    "metricsystem1": 1.63,
    "metricsystem2": 1.69,
    "metricsystem5": 1.72,
    "UEdin": 1.77,
    "metricsystem4": 1.78,
    "eTranslation": 1.96,
    "Nemo": 2.14,
}


def test_real_ted_talks_have_the_published_scores(
    mqm_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["wmt", "import", str(mqm_folder / "mqm_ted_ende.tsv"), "--lp", "en-de"]
    assert main([*command, "--test-set", f"{tmp_path}/wmt21.tedtalks"]) == 0
    out = capsys.readouterr().out
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


def test_real_biomedical_set_imports(bio_mqm: Path, tmp_path: Path) -> None:
    human = read_mqm(bio_mqm)
    done = import_mqm(human, Target(tmp_path, "bio", "en-de", rename={"reference": "refA"}))
    assert "refA" in done.references
    test_set = load_test_set(tmp_path, "bio", "en-de")
    assert test_set.segments == done.segments
    assert np.isfinite(test_set.gold).sum() > 4000


@pytest.mark.parametrize("name", ["r\0", "..", ".hidden", "a\\b", "\x1b[2J", "x" * 300, "\ud800"])
def test_a_name_out_of_data_never_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    for ratings in (data(rating("A", "1", rater=name)), data(rating("A", "1"), rating(name, "2"))):
        with pytest.raises(InputError, match="becomes a file's name"):
            import_mqm(ratings, Target(tmp_path / "data", "t", "en-de"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("raters", "said"),
    [
        (("a b", "a_b"), "rater 'a_b' has the same file"),
        (("merged", "b"), "rater 'merged' has the same file"),
        ((" ",), "no name of its rater"),
    ],
)
def test_two_raters_never_share_a_file(tmp_path: Path, raters: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        import_mqm(data(*(rating("A", str(n), name) for n, name in enumerate(raters))), Target(tmp_path, "t", "en-de"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lp", ["en-de", "de-en"])
def test_ref_has_one_name_in_every_language_pair(tmp_path: Path, lp: str) -> None:
    """Also in a language pair that the table of test sets does not have."""
    done = import_mqm(data(*(rating(s, "1") for s in ("A", "B", "ref"))), Target(tmp_path, "wmt21.tedtalks", lp))
    assert "system ref is called refA, as the standard reference of the test set" in done.notes
    assert load_test_set(tmp_path, "wmt21.tedtalks", lp).systems == ("A", "B")


@pytest.mark.parametrize(
    "odd", [{"source": "NUL \0 in a text"}, {"source": "\ufeffa mark at the beginning"}, {"doc": " "}, {"doc": ""}]
)
def test_what_cannot_be_read_back_is_not_imported(odd: dict[str, str], tmp_path: Path) -> None:
    made = data(*(rating(s, n, **odd) for s in "AB" for n in "12"))  # type: ignore[arg-type]
    message = rf"cannot be kept in mt-metrics-eval's layout \({tmp_path}.*; nothing is imported"
    with pytest.raises(InputError, match=message):
        import_mqm(made, Target(tmp_path / "data", "t", "en-de"))
    assert not list(tmp_path.iterdir())
    import_mqm(data(rating("A", "1")), Target(tmp_path, "t", "en-de"))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    with pytest.raises(InputError, match=message):
        import_mqm(made, Target(tmp_path, "t", "en-de", overwrite=True))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_ratings_of_different_translations_are_refused(tmp_path: Path) -> None:
    row = {"lp": "en-de", "system": "A", "doc": "d", "seg_id": "1", "src": "A dog barks.", "errors": []}
    path = tmp_path / "r.jsonl"

    def write(*translations: str) -> None:
        rows = [{**row, "rater": f"r{n}", "mt": text} for n, text in enumerate(translations)]
        path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")

    write("Ein Hund bellt.", "Ein Hund bellt!")
    done = import_mqm(read_mqm(path), Target(tmp_path, "a", "en-de"))
    assert "1 ratings of another spelling of a translation: the first one is kept" in done.notes
    write("Ein Hund bellt.", "Ein Hund bellt.", "Wir sind zu spät.")
    with pytest.raises(InputError, match=r"r.jsonl, lines 1 and 3: two texts of system A for segment 1 of d"):
        import_mqm(read_mqm(path), Target(tmp_path, "b", "en-de"))
    header = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
    lines = [f"A\td\t1\t1\tr{n}\tA dog.\t{text}\tno-error\tno-error\n" for n, text in enumerate(["Hund.", "Wir sind"])]
    (tmp_path / "m.tsv").write_text(header + "".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=r"m.tsv, lines 2 and 3: two texts of system A"):
        read_mqm(tmp_path / "m.tsv")
