"""Human MQM as published: every variant of the TSV that occurs, on small files of that form and on the real ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.mqm_tsv import carry_span, read_mqm, read_mqm_tsv
from mbr_esd_metric.adapters.ratings import MqmData, read_mqm_json
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import write_whole

HEADER_2020 = "system doc doc_id seg_id rater source target category severity"
HEADER_2023 = "system doc docSegId globalSegId rater source target category severity metadata #doc"


def write(path: Path, header: str, *rows: str) -> Path:
    """A TSV of rows whose cells are separated by a bar."""
    lines = [header.replace(" ", "\t"), *(row.replace("|", "\t") for row in rows)]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def spans(data: MqmData, index: int = 0) -> list[tuple[int, int, str]]:
    return [(e.start, e.end, e.severity) for e in data.ratings[index].errors if e.side == "target"]


def test_one_row_per_error_is_one_rating_per_rater(tmp_path: Path) -> None:
    data = read_mqm_tsv(
        write(
            tmp_path / "a.tsv",
            HEADER_2020,
            "A|d|1|7|r1|Hello world|<v>Hallo</v> Welt|Style/Awkward|Minor",
            "A|d|1|7|r1|Hello world|Hallo <v>Welt</v>|Accuracy/Mistranslation|Major",
            "A|d|1|7|r2|Hello world|Hallo Welt|No-error|No-error",
        )
    )
    first, second = data.ratings
    assert (first.system, first.doc, first.doc_segment, first.segment, first.rater) == ("A", "d", "1", "7", "r1")
    assert (first.source, first.target) == ("Hello world", "Hallo Welt")
    assert spans(data) == [(0, 5, "minor"), (6, 10, "major")]
    assert first.annotation == Annotation(
        [{"start": 0, "end": 5, "severity": "minor"}, {"start": 6, "end": 10, "severity": "major"}]
    )
    assert second.errors == ()
    assert second.score() == 0
    assert data.left_out == ()


def test_a_table_of_several_language_pairs_says_them(tmp_path: Path) -> None:
    rows = ("A|d|1|7|r1|One|Eins|No-error|No-error|en-de", "A|d|1|7|r1|One|Uno|No-error|No-error|en-es")
    data = read_mqm_tsv(write(tmp_path / "a.tsv", f"{HEADER_2020} lp", *rows))
    assert [(one.lp, one.target) for one in data.ratings] == [("en-de", "Eins"), ("en-es", "Uno")]


@pytest.mark.parametrize(
    ("header", "doc_segment", "segment"),
    [
        ("system doc doc_id seg_id rater source target category severity", "2", "9"),
        ("system doc doc_id seg_id rater source target category severity comment", "2", "9"),
        ("system doc docSegId globalSegId rater source target category severity metadata", "2", "9"),
        ("system doc doc_seg_id global_seg_id rater source target category severity", "2", "9"),
    ],
)
def test_columns_have_had_several_names(tmp_path: Path, header: str, doc_segment: str, segment: str) -> None:
    row = "A|d|2|9|r1|s|<v>t</v>|Other|Minor" + "|x" * (len(header.split()) - 9)
    rating = read_mqm_tsv(write(tmp_path / "a.tsv", header, row)).ratings[0]
    assert (rating.doc_segment, rating.segment) == (doc_segment, segment)
    assert len(rating.errors) == 1


def test_only_a_global_segment_column_is_enough(tmp_path: Path) -> None:
    header = "system doc seg_id rater source target category severity"
    rating = read_mqm_tsv(write(tmp_path / "a.tsv", header, "A|d|9|r1|s|t|No-error|No-error")).ratings[0]
    assert (rating.doc_segment, rating.segment) == ("9", "9")


def test_a_header_with_more_cells_than_the_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", HEADER_2023, 'A|d|1|1|r1|s|<v>t</v>|Other|Major|{"timing": 1}')
    data = read_mqm_tsv(path)
    assert spans(data) == [(0, 1, "major")]
    assert data.left_out == ()


def test_quotes_are_literal_unless_all_of_the_file_is_quoted(tmp_path: Path) -> None:
    row = 'A|d|1|1|r1|"s"|"Er sagte ""<v>ja</v>"""|Other|Minor'
    quoted = read_mqm(write(tmp_path / "a.tsv", HEADER_2020, row))
    assert quoted.ratings[0].target == 'Er sagte "ja"'
    assert spans(quoted) == [(10, 12, "minor")]
    path = write(tmp_path / "b.tsv", HEADER_2020, row, 'B|d|1|1|r1|"s|"t" x|Other|Minor')
    assert read_mqm_tsv(path).ratings[0].target == '"Er sagte ""ja"""'


def test_a_source_side_span_has_its_place_in_the_source(tmp_path: Path) -> None:
    row = "A|d|1|1|r1|all <v>of it</v>|alles|Accuracy/Omission|Major"
    data = read_mqm_tsv(write(tmp_path / "a.tsv", HEADER_2020, row))
    (error,) = data.ratings[0].errors
    assert (error.side, error.start, error.end) == ("source", 4, 9)
    assert len(data.ratings[0].annotation) == 0
    assert data.ratings[0].score() == -5


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("<v>t", "unbalanced markers"),
        ("t</v>", "unbalanced markers"),
        ("</v>t<v>", "unbalanced markers"),
        ("t<v></v>", "empty span"),
        ("t", "error without a marked span"),
        ("t<v> </v>", "span of white space at the end"),
    ],
)
def test_an_error_without_a_usable_span_counts_in_the_score_only(tmp_path: Path, target: str, reason: str) -> None:
    path = write(tmp_path / "a.tsv", HEADER_2020, f"A|d|1|1|r1|s|{target}|Other|Minor")
    data = read_mqm_tsv(path)
    (rating,) = data.ratings
    assert rating.target == "t"
    assert rating.score() == -1
    assert len(rating.annotation) == 0
    ((line, why),) = [(item.line, item.reason) for item in data.left_out]
    assert line == 2
    assert why.startswith(reason)
    assert reason in data.report()


def test_attention_checks_and_short_rows_are_no_ratings(tmp_path: Path) -> None:
    data = read_mqm_tsv(
        write(
            tmp_path / "a.tsv",
            HEADER_2020,
            "A|d|1|1|r1|s|t|Found|HOTW-test",
            "A|d|1|1|r2|s|t",
            "A|d|1|1|r3|s|t|No-error|No-error",
        )
    )
    assert [rating.rater for rating in data] == ["r3"]
    assert [(item.line, item.reason) for item in data.left_out] == [
        (2, "attention check, not a rating"),
        (3, "row with too few columns"),
    ]


def test_neutral_and_unknown_severities_have_no_penalty(tmp_path: Path) -> None:
    data = read_mqm_tsv(
        write(
            tmp_path / "a.tsv",
            HEADER_2020,
            "A|d|1|1|r1|s|<v>t</v>|Style|Neutral",
            "A|d|1|1|r1|s|<v>t</v>|Style|Trivial",
        )
    )
    assert data.ratings[0].score() == 0
    assert len(data.ratings[0].annotation) == 0
    assert [item.reason for item in data.left_out] == ["severity 'trivial': has no penalty"]


@pytest.mark.parametrize(
    ("category", "severity", "score"),
    [
        ("Fluency/Punctuation", "Minor", -0.1),
        ("Fluency/Punctuation", "Major", -5),
        ("Non-translation!", "Major", -25),
        ("Accuracy/Addition", "critical", -5),
    ],
)
def test_gold_scores_weigh_as_google_does(tmp_path: Path, category: str, severity: str, score: float) -> None:
    path = write(tmp_path / "a.tsv", HEADER_2020, f"A|d|1|1|r1|s|<v>t</v>|{category}|{severity}")
    assert read_mqm_tsv(path).ratings[0].score() == score


def test_gold_scores_have_no_floor_and_count_every_row(tmp_path: Path) -> None:
    rows = ["A|d|1|1|r1|s|<v>t</v>|Other|Major"] * 6
    rating = read_mqm_tsv(write(tmp_path / "a.tsv", HEADER_2020, *rows)).ratings[0]
    assert rating.score() == -30
    assert len(rating.annotation) == 6
    assert mqm_score(rating.annotation) == -25
    assert rating.annotation == Annotation([ErrorSpan(0, 1, "major")])


def test_rows_whose_texts_differ_take_the_commonest(tmp_path: Path) -> None:
    data = read_mqm_tsv(
        write(
            tmp_path / "a.tsv",
            HEADER_2020,
            "A|d|1|1|r1|s|ein <v>guter</v> Tag|Style|Minor",
            "A|d|1|1|r1|s|ein guter <v>Tag</v>|Style|Minor",
            "A|d|1|1|r1|s|ein guter,  <v>Tag</v>|Style|Major",
            "A|d|1|1|r1|s|<v>ein</v> gutxr Tag|Style|Major",
            "A|d|1|1|r1|s|ein <v>gutxr</v> Tag|Style|Major",
        )
    )
    assert data.ratings[0].target == "ein guter Tag"
    assert spans(data) == [(4, 9, "minor"), (10, 13, "minor"), (10, 13, "major"), (0, 3, "major")]
    assert [(item.line, "differ" in item.reason) for item in data.left_out] == [(6, True)]


@pytest.mark.parametrize(
    ("start", "end", "text", "into", "expected"),
    [
        (0, 2, "ab cd", "ab cd", (0, 2)),
        (0, 2, "ab cd", "ab xx", (0, 2)),
        (3, 5, "ab cd", "abab cd", (5, 7)),
        (0, 6, "ab cd ", "ab cd", (0, 5)),
        (5, 6, "ab cd ", "ab cd", None),
        (3, 5, "ab cd ef", "xx cd yy", (3, 5)),
        (3, 5, "xb cd ef", "yy cd cd zz", None),
    ],
)
def test_spans_are_carried_between_forms_of_a_text(
    start: int, end: int, text: str, into: str, expected: tuple[int, int] | None
) -> None:
    assert carry_span(start, end, text, into) == expected
    if expected and end <= len(text.rstrip()):
        assert into[slice(*expected)] == text[start:end]


def test_problems_are_errors_that_name_the_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_mqm_tsv(tmp_path / "none.tsv")
    (tmp_path / "empty.tsv").write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        read_mqm_tsv(tmp_path / "empty.tsv")
    with pytest.raises(InputError, match="line 1: no column 'severity'"):
        read_mqm_tsv(write(tmp_path / "a.tsv", "system doc seg_id rater source target category", "A|d|1|r|s|t|x"))
    with pytest.raises(InputError, match=r"no ratings.*1 rows.*attention check"):
        read_mqm_tsv(write(tmp_path / "b.tsv", HEADER_2020, "A|d|1|1|r1|s|t|Found|HOTW-test"))
    (tmp_path / "latin.tsv").write_bytes(HEADER_2020.replace(" ", "\t").encode() + b"\nA\xe4\n")
    with pytest.raises(InputError, match="line 2: byte 0xe4 is not UTF-8"):
        read_mqm_tsv(tmp_path / "latin.tsv")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_bio_mqm_is_one_rating_a_line(tmp_path: Path, suffix: str) -> None:
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    line = (
        '{"lp": "de-en", "system": "A", "doc": "d", "seg_id": "3", "rater": "9", "src": "Hallo", '
        '"mt": "Hello ", "errors": [{"start": 0, "end": 6, "severity": "Critical", "category": "x"}]}'
    )
    path = tmp_path / f"bio.jsonl{suffix}"
    write_whole(path, line + "\n")
    (rating,) = read_mqm(path)
    write_whole(path, line.replace('"lp"', '"direction"') + "\n")
    assert tuple(read_mqm(path)) == (rating,)
    assert (rating.lp, rating.system, rating.rater, rating.target) == ("de-en", "A", "9", "Hello")
    assert [(s.start, s.end, s.severity) for s in rating.annotation] == [(0, 5, "major")]
    path = tmp_path / "bad.jsonl"
    path.write_text(line + "\n" + line.replace('"end": 6', '"end": 7') + "\n")
    with pytest.raises(InputError, match=r"line 2: error span \[0, 7\)"):
        read_mqm_json(path)
    path.write_text(line.replace('"mt"', '"target"') + "\n")
    with pytest.raises(InputError, match="line 1: no 'mt'"):
        read_mqm_json(path)


def test_real_ted_talks(mqm_folder: Path) -> None:
    data = read_mqm(mqm_folder / "mqm_ted_ende.tsv")
    assert len(data) == 529 * 14
    assert sum(len(rating.errors) for rating in data) == 4031
    sides = Counter(error.side for rating in data for error in rating.errors)
    assert sides == {"target": 4016, "source": 14, None: 1}
    assert [item.line for item in data.left_out] == [6444]
    for rating in data:
        rating.annotation.check_length(len(rating.target))


def test_real_three_rater_set(mqm_folder: Path) -> None:
    data = read_mqm(mqm_folder / "sxs_mqm_generalMT2023_ende.3raters.tsv")
    assert len(data) == 104 * 10 * 3
    assert Counter(item.reason.split(":")[0] for item in data.left_out) == {
        "attention check, not a rating": 245,
        "span of white space at the end": 1,
    }
    raters = Counter((r.system, r.doc, r.segment) for r in data)
    assert set(raters.values()) == {3}


def test_real_biomedical_set(bio_mqm: Path) -> None:
    data = read_mqm(bio_mqm)
    assert Counter(rating.lp for rating in data) == {"de-en": 11444, "en-de": 9578}
    assert data.left_out == ()


@pytest.mark.parametrize("header", [True, False])
def test_marots_files(header: bool, tmp_path: Path) -> None:
    """Its columns; the header may be missing, segments may have no number of their own, rows may have no rater."""
    lines = [
        "system\tdoc\tdocSegId\tglobalSegId\trater\tsource\ttarget\tcategory\tseverity\tmetadata",
        'A\td\t1\t0\tr1\tone\t<v>eins</v>\tAccuracy/Mistranslation\tMajor\t{"timestamp": 1}',
        "A\td\t2\t0\tr1\ttwo\tzwei\tNo-error\tNo-error\t{}",
        'A\td\t2\t0\t\ttwo\tzwei\t\t\t{"segment": {"metrics": {"BLEURT-X": 0.5}}}',
    ]
    path = tmp_path / "marot.tsv"
    path.write_text("\n".join(lines[not header :]) + "\n", encoding="utf-8")
    data = read_mqm_tsv(path)
    found = [(rating.rater, rating.target, len(rating.errors)) for rating in data]
    assert found == [("r1", "eins", 1), ("r1", "zwei", 0)]
    assert [item.reason for item in data.left_out] == ["row of metadata, not a rating"]
