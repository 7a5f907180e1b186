"""The tables of WMT's quality estimation task: both shapes, and nothing erroneous read as clean."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.qe_tsv import is_qe, read_qe
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import MqmError
from tests.helpers.command import Command
from tests.helpers.refused import refused

TABLE = Path(__file__).parents[1] / "data" / "ratings" / "2022_en-de_dev.tsv"
LAST = ["lp\tsid\tsource\ttarget\tstart_ids\tend_ids\terrors", "en-ru\t0\tdog\tпёс\t0\t3\tminor"]


def write(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        file.write("".join(line + "\n" for line in lines))
    return path


@pytest.mark.parametrize("header", [True, False])
def test_nine_fields(tmp_path: Path, header: bool) -> None:
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    data = read_mqm(write(tmp_path, "2022_en-de_dev.tsv.gz", lines[not header :]))
    first, clean, third = data.ratings
    assert {rating.lp for rating in data} == {"en-de"}
    assert (first.segment.system, first.segment.document, first.segment.label) == ("A", "doc", "1")
    assert (first.rater, first.segment.translation) == ("r1", 'Der "Hund" bellt.')
    assert first.annotation.key == ((0, 3, "minor"), (4, 10, "major"))
    assert not clean.errors
    # Cut at the end; white space at the end and an empty span are points, a neutral error has no place.
    assert third.annotation.key == ((3, 5, "major"),)
    assert third.annotation.points == ((5, "minor"), (2, "major"))
    minor, major = MqmError("minor", "", "translation", 5, 5), MqmError("major", "", "translation", 2, 2)
    assert third.errors[1:] == (minor, major, MqmError("neutral", ""))
    assert third.mqm("paper") == -11
    report = data.report()
    for reason in ("do not fit together", "neither errors nor no-error", "neither 7 nor 9 fields", "cut to the end"):
        assert reason in report
    assert "3 ratings" in report


@pytest.mark.parametrize("text", ['Er sagte: "Ja" und ging.', '"Er sagte: ""Ja"" und ging."'])
def test_quoted_texts_whichever_text_the_offsets_are_of(tmp_path: Path, text: str) -> None:
    words = ("sagte", "Ja", "und", "ging.")
    starts = " ".join(str(text.index(word)) for word in words)
    ends = " ".join(str(text.index(word) + len(word)) for word in words)
    rows = 5 * [
        f'A\tdoc\t1\tr1\t"He said: ""Yes"" and left."\t"Er sagte: ""Ja"" und ging."\t{starts}\t{ends}\t' + "major " * 4,
        'A\tdoc\t2\tr1\t"Yes", he said, "please."\t"Ja", sagte er, "gern."\t0\t4\tminor',
    ]
    data = read_qe(write(tmp_path, "2022_en-de.tsv.gz", rows))
    one, other, *_ = data.ratings
    first, second = one.segment, other.segment
    of = "quoted" if text.startswith('"') else "unquoted"
    assert sum(f"of the {of} text" in note.reason for note in data.left_out) == 5
    assert (first.source, first.translation) == ('He said: "Yes" and left.', 'Er sagte: "Ja" und ging.')
    assert tuple(first.translation[error.start : error.end] for error in one.errors) == words
    assert (second.source, second.translation) == ('"Yes", he said, "please."', '"Ja", sagte er, "gern."')
    assert second.translation[other.errors[0].start : other.errors[0].end] == '"Ja"'


def test_texts_without_blanks_show_nothing(tmp_path: Path) -> None:
    row = 'A\tdoc\t1\tr\tx\t"他说:""你好吗"",我不知道。"\t10\t13\tmajor'
    (first, *_) = read_qe(write(tmp_path, "2022_en-zh.tsv.gz", 200 * [row])).ratings
    assert [first.segment.translation[error.start : error.end] for error in first.errors] == ["不知道"]


def test_rows_with_a_tab_at_the_end(tmp_path: Path) -> None:
    row = 'A\tdoc\t1\tr\t"Remember her answer?\tErinnern Sie sich?"\t-1\t-1\tno-error\t'
    (only,) = read_qe(write(tmp_path, "2022_en-de.tsv.gz", [row])).ratings
    assert (only.segment.source, only.segment.translation) == ("Remember her answer?", "Erinnern Sie sich?")
    assert only.errors == ()


@pytest.mark.parametrize("header", ["1\n1\n1", "lp\tgold\tsid\tmt\tstart_id\tend_id\terror"])
@pytest.mark.parametrize("tab", ["", "\t"])
def test_files_without_sources_are_refused(tmp_path: Path, header: str, tab: str) -> None:
    path = write(tmp_path, "x.tsv.gz", [*header.split("\n"), "en-de\tm\t0\tHund\t-1\t-1\tno-error" + tab])
    assert not is_qe("en-de\tm\t0\tHund\t-1\t-1\tno-error")
    refused(r"line \d: no sources, as in a submission", read_qe, path)
    refused("wmt import", read_qe, write(tmp_path, "other.tsv.gz", ["a\tb"]))


def test_seven_fields_say_their_language_pair(tmp_path: Path) -> None:
    path = write(tmp_path, "two-en-ru.tsv.gz", [*LAST, "en-de\t1\tdog\tHund\t-1\t-1\tno-error"])
    (first, second) = read_qe(path)
    assert (first.lp, first.segment.label, first.segment.source) == ("en-ru", "0", "dog")
    assert (first.annotation.key, second.lp) == (((0, 3, "minor"),), "en-de")


@pytest.mark.parametrize("rows", [5, 30])
def test_ends_three_characters_further(tmp_path: Path, rows: int) -> None:
    lines = [f"A\tdoc\t{k}\tr\tdog\tпёс спит тихо, да.\t0 4 9\t6 11 16\tmajor minor minor" for k in range(rows)]
    lines.append("A\tdoc\tx\tr1\tdog\tпёс спит\t1 -1\t3 -1\tminor minor")
    data = read_qe(write(tmp_path, "2021_en-ru.tsv.gz", lines))
    first = data.ratings[0]
    words = [first.segment.translation[error.start : error.end] for error in first.errors]
    assert words == (["пёс", "спит", "тихо"] if rows == 30 else ["пёс сп", "спит ти", "тихо, д"])
    assert next((error.start, error.end) for error in data.ratings[-1].errors) == (1, 3)
    assert any("3 characters" in note.reason for note in data.left_out) == (rows == 30)


def test_import(tmp_path: Path, mbr_esd: Command) -> None:
    where = f"--test-set {tmp_path}/data/qe22"
    assert "--lp" in mbr_esd("wmt import", shutil.copy(TABLE, tmp_path / "dev.tsv"), where, status=1).err
    two = write(tmp_path, "two.tsv.gz", [*LAST, "en-de\t1\tdog\tHund\t-1\t-1\tno-error"])
    assert "2 ratings" in mbr_esd("wmt import", two, where).out
    assert {path.stem for path in (tmp_path / "data" / "qe22" / "sources").iterdir()} == {"en-de", "en-ru"}
