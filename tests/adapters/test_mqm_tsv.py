"""Human MQM as published: every variant of the TSV that occurs, on small files of that form."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import RatingData
from mbr_esd_metric.adapters.wmt.rating_files import fit_to_text, read_ratings, write_ratings
from mbr_esd_metric.adapters.wmt.submissions import read_spans, write_spans
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import write_whole
from tests.helpers.refused import refused

FILES = Path(__file__).parents[1] / "data" / "ratings"
BIO = FILES / "bio_mqm.jsonl"
HEADER = "system doc doc_id seg_id rater source target category severity"


def read(folder: Path, *rows: str, header: str = HEADER) -> RatingData:
    """The ratings in a TSV of rows whose cells are separated by a bar."""
    lines = [header.replace(" ", "\t"), *(row.replace("|", "\t") for row in rows)]
    (folder / "a.tsv").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return read_mqm(folder / "a.tsv")


def spans(data: RatingData, index: int = 0) -> list[tuple[int, int, str]]:
    return [(e.start, e.end, e.severity) for e in data.ratings[index].errors if e.side == "translation"]


@pytest.mark.parametrize(
    ("numbers", "doc_segment"),
    [("doc_id seg_id", "2"), ("docSegId globalSegId", "2"), ("doc_seg_id global_seg_id", "2"), ("seg_id", "9")],
)
def test_columns_have_had_several_names(tmp_path: Path, numbers: str, doc_segment: str) -> None:
    header = f"system doc {numbers} rater source target category severity metadata #doc"  # of more cells than the rows
    places = "2|9" if " " in numbers else "9"
    data = read(tmp_path, f'A|d|{places}|r1|s|<v>t</v>|Other|Minor|{{"timing": 1}}', header=header)
    (rating,) = data.ratings
    assert (rating.doc_segment, rating.segment.label, len(rating.errors)) == (doc_segment, "9", 1)
    assert data.left_out == ()
    rows = ("A|d|1|7|r1|One|Eins|No-error|No-error|en-de", "A|d|1|7|r1|One|Uno|No-error|No-error|en-es")
    data = read(tmp_path, *rows, header=f"{HEADER} lp")
    assert [(one.lp, one.segment.translation) for one in data] == [("en-de", "Eins"), ("en-es", "Uno")]


def test_quotes_are_literal_unless_all_of_the_file_is_quoted(tmp_path: Path) -> None:
    row = 'A|d|1|1|r1|"s"|"Er sagte ""<v>ja</v>"""|Other|Minor'
    quoted = read(tmp_path, row)
    assert quoted.ratings[0].segment.translation == 'Er sagte "ja"'
    assert spans(quoted) == [(10, 12, "minor")]
    literal = read(tmp_path, row, 'B|d|1|1|r1|"s|"t" x|Other|Minor')
    assert literal.ratings[0].segment.translation == '"Er sagte ""ja"""'


NO_SPAN = "counts in the score, has no span"


@pytest.mark.parametrize(
    ("row", "score", "spans", "note"),
    [
        ("<v>t|Other|Minor", -1, 0, f"unbalanced markers: {NO_SPAN}"),
        ("t</v>|Other|Minor", -1, 0, f"unbalanced markers: {NO_SPAN}"),
        ("</v>t<v>|Other|Minor", -1, 0, f"unbalanced markers: {NO_SPAN}"),
        ("t<v></v>|Other|Minor", -1, 0, f"empty span: {NO_SPAN}"),
        ("t|Other|Minor", -1, 0, f"error without a marked span: {NO_SPAN}"),
        ("t<v> </v>|Other|Minor", -1, 0, f"span of white space at the end: {NO_SPAN}"),
        ("<v>t </v>|Fluency/Punctuation|Minor", -0.1, 1, None),
        ("<v>t</v>|Fluency/Punctuation|Major", -5, 1, None),
        ("<v>t</v>|Non-translation!|Major", -25, 1, None),
        ("<v>t</v>|Accuracy/Addition|critical", -5, 1, None),
        ("<v>t</v>|Style|Neutral", 0, 0, None),
        ("<v>t</v>|Style|Trivial", 0, 0, "severity 'trivial': has no penalty"),
    ],
)
def test_gold_scores_weigh_every_row_as_google_does(
    tmp_path: Path, row: str, score: float, spans: int, note: str | None
) -> None:
    """One without a usable span counts in the score only; a gold score has no floor."""
    data = read(tmp_path, f"A|d|1|1|r1|s|{row}")
    (rating,) = data.ratings
    assert (rating.segment.translation, rating.mqm(), len(rating.annotation)) == ("t", score, spans)
    assert data.report() == "a.tsv: 1 rating" + (f"\n       1  {note} (line 2)" if note else "")
    (rating,) = read(tmp_path, *[f"A|d|1|1|r1|s|{row}"] * 6)
    assert (rating.mqm(), len(rating.annotation)) == (pytest.approx(6 * score), 6 * spans)
    assert mqm_score(rating.annotation) >= -25
    assert len(set(rating.annotation.key)) == min(spans, 1)


def test_attention_checks_and_short_rows_are_no_ratings(tmp_path: Path) -> None:
    rows = ("A|d|1|1|r1|s|t|Found|HOTW-test", "A|d|1|1|r2|s|t", "A|d|1|1|r3|s|t|No-error|No-error")
    data = read(tmp_path, *rows)
    assert [rating.rater for rating in data] == ["r3"]
    reasons = {2: "attention check, not a rating", 3: "row with too few columns"}
    assert {item.line: item.reason for item in data.left_out} == reasons


def test_rows_of_different_texts_take_the_commonest(tmp_path: Path) -> None:
    data = read(
        tmp_path,
        "A|d|1|1|r1|s|ein <v>guter</v> Tag|Style|Minor",
        "A|d|1|1|r1|s|ein guter <v>Tag</v>|Style|Minor",
        "A|d|1|1|r1|s|ein guter,  <v>Tag</v>|Style|Major",
        "A|d|1|1|r1|s|<v>ein</v> gutxr Tag|Style|Major",
        "A|d|1|1|r1|s|ein <v>gutxr</v> Tag|Style|Major",
        "A|d|1|1|r1|s|ein Tag <v>e</v>xtra|Style|Major",
    )
    assert data.ratings[0].segment.translation == "ein guter Tag"
    assert spans(data) == [(4, 9, "minor"), (10, 13, "minor"), (10, 13, "major"), (0, 3, "major")]
    assert [(item.line, "differ" in item.reason) for item in data.left_out] == [(6, True), (7, True)]


def test_problems_are_errors_that_name_the_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: no column 'severity'"):
        read(tmp_path, "A|d|1|r|s|t|x", header="system doc seg_id rater source target category")
    refused(r"no ratings.*1 rows.*attention check", read, tmp_path, "A|d|1|1|r1|s|t|Found|HOTW-test")
    (tmp_path / "empty.tsv").touch()
    refused("the file is empty", read_mqm, tmp_path / "empty.tsv")


def test_bio_mqm_is_one_rating_a_line(tmp_path: Path) -> None:
    rating, same = read_mqm(BIO)
    assert rating == same
    segment = rating.segment
    assert (rating.lp, segment.system, rating.rater, segment.translation) == ("de-en", "A", "9", "Hello")
    assert [(s.start, s.end, s.severity) for s in rating.annotation] == [(0, 5, "major")]
    for old, new, message in (('"end": 6', '"end": 7', r"line 1: error span \[0, 7\)"), ('"mt"', '"tgt"', "no 'mt'")):
        write_whole(tmp_path / "bio.jsonl.gz", BIO.read_text(encoding="utf-8").replace(old, new))
        refused(message, read_mqm, tmp_path / "bio.jsonl.gz")


@pytest.mark.parametrize("header", [True, False])
def test_marots_files(header: bool, tmp_path: Path) -> None:
    lines = (FILES / "marot.tsv").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "marot.tsv"
    path.write_text("\n".join(lines[not header :]) + "\n", encoding="utf-8")
    data = read_mqm(path)
    ratings = [(rating.rater, rating.segment.translation, len(rating.errors)) for rating in data]
    assert ratings == [("r1", "eins", 1), ("r1", "zwei", 0)]
    assert [item.reason for item in data.left_out] == ["row of metadata, not a rating"]


def test_omissions_in_the_source_are_spans_of_its_side(tmp_path: Path) -> None:
    """Errors of the source itself are not."""
    (rating,) = read(
        tmp_path,
        "A|d|1|1|r|A big dog <v>barks at night</v>.|Ein Hund.|Accuracy/Omission|Major",
        "A|d|1|1|r|A <v>big</v> dog barks at night.|Ein Hund.|Omission|Minor",
        "A|d|1|1|r|A big <v>dog</v> barks at night.|Ein Hund.|Source issue|Major",
        "A|d|1|1|r|A big dog barks at night.|Ein <v>Hund</v>.|Accuracy/Omission|Minor",
        "A|d|1|1|r|A <v>big</v> dog barks at night.|Ein Hund.|Omission|Neutral",
    )
    omissions = [(s.side, s.start, s.end, s.severity) for s in rating.both.on("source")]
    assert omissions == [("source", 2, 5, "minor"), ("source", 10, 24, "major")]
    assert [(s.side, s.start, s.end) for s in rating.annotation] == [("translation", 4, 8)]
    assert rating.mqm() == -12.0  # of all rows, the source issue among them, as ever


def test_omissions_of_a_metric_are_stored_and_read(tmp_path: Path) -> None:
    spans = [ErrorSpan(0, 3, "minor"), ErrorSpan(50, 60, "major", "accuracy/omission", 0.25, "source")]
    annotation = Annotation(spans).with_unplaced(["minor"])
    write_ratings(tmp_path / "ratings", {"sys": [annotation, None]})
    stored, none = read_ratings(tmp_path / "ratings")["sys"]
    assert none is None
    assert (stored, list(stored or ())) == (annotation, list(annotation))
    # The translation has ten characters; the source may have more.
    assert fit_to_text(annotation, 10) == annotation
    # WMT25's format has no place for an omission.
    assert write_spans(annotation) == ("0 missing missing", "3 missing missing", "minor major minor")
    assert read_spans(*write_spans(annotation)) == Annotation([ErrorSpan(0, 3, "minor")]).with_unplaced(
        ["major", "minor"]
    )
