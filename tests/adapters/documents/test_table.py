"""Tables: what is read from them, the same bytes with our columns, and tables of errors."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric.adapters.documents.document import Checked
from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.adapters.documents.table import write_errors
from mbr_esd_metric.core.annotation import Annotation
from tests.adapters.test_documents import _mark, _read

COLUMNS = ("mbr_esd_score", "mbr_esd_errors")


def test_quotation_marks_of_a_tsv_are_characters(tmp_path: Path) -> None:
    """One that is never closed swallows no line. A table in which all fit is quoted as in CSV."""
    content = 'source\ttarget\nA dog\t"Ein Hund\nA cat\tEine "Katze"\nYes\t"Ja"\n'
    table = _read(tmp_path, "t.tsv", content)
    assert [unit.segment.translation for unit in table.units] == ['"Ein Hund', 'Eine "Katze"', '"Ja"']
    quoted = 'source\ttarget\nYes\t"=1+1 ""Ja"\n'
    assert [unit.segment.translation for unit in _read(tmp_path, "q.tsv", quoted).units] == ['=1+1 "Ja']
    lines = _mark(table, tmp_path / "o.tsv", u2="Katze").decode().splitlines()
    assert [line.split("\t")[:2] for line in lines] == [line.split("\t") for line in content.splitlines()]
    assert json.loads(lines[2].split("\t")[3])[0]["start"] == 6
    table.mark([Checked(Annotation(), number) for number in (0.5, 1.0, float("nan"))], tmp_path / "o.tsv")
    assert (tmp_path / "o.tsv").read_text(encoding="utf-8").splitlines()[2:] == [
        'A cat\tEine "Katze"\t1.0\t[]',
        'Yes\t"Ja"\t\t[]',
    ]


def test_a_second_run_replaces_the_columns_of_the_first(tmp_path: Path) -> None:
    """Wherever they stand, together or not; the user's own columns stay."""
    content = "mbr_esd_errors,source,Score,Errors,target,mbr_esd_score\n-,A dog,7,-,Ein Hund,-\n"
    marked = _mark(_read(tmp_path, "m.csv", content), tmp_path / "n.csv")
    assert marked.decode() == content.replace("\n-,", "\n[],").replace("Hund,-", "Hund,0.5")


_FORMULAS = st.text("'=+-@\t\r ab1", max_size=4)


@given(st.lists(st.tuples(_FORMULAS, _FORMULAS), min_size=1), st.floats(-2, 2))
def test_no_text_of_the_errors_is_a_formula_and_all_come_back(texts: list[tuple[str, str]], number: float) -> None:
    texts = [*texts, ("=1+1", "'-x"), ("@a", "\tb"), ("-1", "+1"), ("a\rb", "c\rd")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "e.csv")
        names = ("id", "text", "confidence", "source", "translation")
        write_errors(path, [dict(zip(names, (f"i{s}", t, number, f"a{s}", t), strict=True)) for s, t in texts])
        with path.open(encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file)
        assert not any(cell.startswith(tuple("=+-@\t\r")) for row in rows for cell in (*row[:8], *row[9:]))
        assert {float(row[8]) for row in rows} == {round(number, 6)}
        assert [unit.segment.translation for unit in read_document(path).units] == [text.strip() for _, text in texts]


@pytest.mark.parametrize(
    "content",
    [
        'id,source,target\r\n1,A dog,Ein Hund\r\n2,"A cat","Eine\rKatze"\r\n',
        '"source","target"\n"A dog","Ein ""Hund"""\n"A cat",Eine "Katze"',
        'id;source;target;"notes, other"\n1;A dog;=HYPERLINK("x");+1\n2;A cat;"two\nlines";\' @me \n',
        "notes; or more\tsource\ttarget\n,\tA dog\tEin Hund\n|\tA cat\tEine Katze\n",
        "source^target\nA dog^Ein Hund\nA cat^Eine Katze\n",
        '"a\nb,c";target;source\n1;Ein Hund;A dog\n2;Eine Katze;A cat\n',
        "\ufeffsource,target\nA dog,Ein Hund\nA cat,Eine Katze\n\n",
        "\ufeffsource;target\nA dog;Ein Hund\nA cat;Eine Katze\r\n\r\n",
        "source\ttarget\nA dog\tEin Hund\nA cat\tEine Katze\n \n",
    ],
)
def test_every_byte_but_our_columns_stays(tmp_path: Path, content: str) -> None:
    """Line ends, quotation marks that nothing needs, a carriage return in a cell, any delimiter of the header, blank
    last lines and the byte order mark."""
    table = _read(tmp_path, "t.csv", content)
    assert [unit.segment.source for unit in table.units] == ["A dog", "A cat"]
    delimiter = next(one for one in ";,\t^" if f"source{one}" in content.replace('"', "") or f"{one}source" in content)
    marked = _mark(table, tmp_path / "o.csv").decode()
    ours = tuple(f'"{name}"' if content.startswith('"source') else name for name in COLUMNS)
    for column in (*ours, "0.5", "[]", '"0.5"', '"[]"'):
        marked = marked.replace(delimiter + column, "")
    assert marked == content
    assert read_document(tmp_path / "o.csv").units == table.units


def test_cells_of_any_length_are_read(tmp_path: Path) -> None:
    long = "ein Wort " * 20_000
    for cell in (long.strip(), f'"{long}"'):
        assert _read(tmp_path, "t.csv", f"source,target\nA word,{cell}\n").units[0].segment.translation == long.strip()


def test_rows_without_a_source_have_our_columns_too(tmp_path: Path) -> None:
    """Else the table could not be read again; where no row is judged, it stays as it is."""
    content = "source,target\nA dog,Ein Hund\n,Eine Katze\n\n"
    table = _read(tmp_path, "t.csv", content)
    marked = _mark(table, tmp_path / "o.csv").decode()
    assert marked.splitlines()[1:] == ["A dog,Ein Hund,0.5,[]", ",Eine Katze,,", ""]
    assert read_document(tmp_path / "o.csv").units == table.units
    table.mark([None], tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == content
