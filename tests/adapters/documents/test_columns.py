"""The columns of a table: by usual names, languages, or names that a user gives; and the rows that are not ready."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.columns import parse_columns
from mbr_esd_metric.adapters.documents.document import Document, Selection
from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.core.segment import Context
from mbr_esd_metric.errors import OptionError
from tests.adapters.test_documents import _mark
from tests.helpers.refused import refused

PAIR = [("A door.", "Eine Tür.")]


def read(
    path: Path, header: str, *rows: str, lp: str | None = None, columns: tuple[str, str] | None = None
) -> Document:
    path.write_text("\n".join((header, *rows, "")), encoding="utf-8")
    return read_document(path, Selection(lp=lp, columns=columns))


def texts(document: Document) -> list[tuple[str, str]]:
    return [(unit.segment.source, unit.segment.translation) for unit in document.units]


@pytest.mark.parametrize(
    ("header", "lp"),
    [
        ("key,en,de", "en-de"),
        ("id,English,German", "en-de"),
        ("id,en-US,DE_de", "en-de"),
        ("notes,source,German", "en-de"),
        ("nr,English (US),Deutsch", "en-de"),
        ("de-AT,en,de-DE", "en-de_DE"),
        ("x,en,id", "en-id"),
    ],
)
def test_columns_are_named_by_the_languages_of_the_pair(tmp_path: Path, header: str, lp: str) -> None:
    document = read(tmp_path / "t.csv", header, "k1,A door.,Eine Tür.", lp=lp)
    assert texts(document) == PAIR
    assert _mark(document, tmp_path / "o.csv").decode().splitlines()[1] == "k1,A door.,Eine Tür.,0.5,[]"


def test_columns_have_any_names_where_the_user_says_them(tmp_path: Path) -> None:
    header, row = '"Text, old";source;Ours', "A door.;x;Eine Tür."
    assert texts(read(tmp_path / "t.csv", header, row, columns=("Text, old", "ours"))) == PAIR
    assert parse_columns('"Text, old",Ours') == ("Text, old", "Ours")
    named = read(tmp_path / "n.csv", "English,German", "A door.,Eine Tür.", columns=("English", "German"))
    assert named.units[0].segment.known == Context("en", "de")
    refused("no column Theirs in the header", read, tmp_path / "t.csv", header, row, columns=("Text, old", "Theirs"))
    for wrong in ("a", "a,", "a,b,c", ""):
        with pytest.raises(OptionError, match="give the columns of source and target"):
            parse_columns(wrong)
    po = tmp_path / "p.po"
    po.write_text('msgid "A door."\nmsgstr "Eine Tür."\n', encoding="utf-8")
    with pytest.raises(OptionError, match="--columns has no effect with .*, which is not a table"):
        read_document(po, Selection(columns=("a", "b")))


def test_what_is_missing_is_said_with_the_options_that_help(tmp_path: Path) -> None:
    path, row = tmp_path / "t.csv", "k1,A door.,Eine Tür."
    refused(
        r"line 1: no column source.* \(key, en, de\); .*--columns SOURCE,TARGET or --lp en-de",
        read,
        path,
        "key,en,de",
        row,
    )
    refused("line 1: no column target .*--columns SOURCE,TARGET$", read, path, "key,source,other", row)
    refused("line 2: no column source", read, path, "sep=,", "key,en,de", row)


@pytest.mark.parametrize("separator", [";", "\t", ",", "^"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_line_by_which_excel_knows_the_separator(tmp_path: Path, separator: str, quote: str) -> None:
    lines = [f"{quote}sep={separator}{quote}", separator.join(("source", "target")), separator.join(PAIR[0])]
    document = read(tmp_path / "t.csv", "\ufeff" + lines[0], *lines[1:])
    assert texts(document) == PAIR
    assert [unit.segment.label for unit in document.units] == ["1"]
    marked = _mark(document, tmp_path / "o.csv").decode().splitlines()
    added = [[], ["mbr_esd_score", "mbr_esd_errors"], ["0.5", "[]"]]
    assert marked == [
        separator.join((line, *more)) for line, more in zip(["\ufeff" + lines[0], *lines[1:]], added, strict=True)
    ]
    assert read_document(tmp_path / "o.csv").units == document.units


@pytest.mark.parametrize(
    ("column", "ready", "not_ready", "why"),
    [
        ("fuzzy", ("False", "", "0", "no"), ("True", "1", "x", "yes"), "fuzzy"),
        ("Approved", ("yes", "TRUE", "1", ""), ("no", "False", "0"), 'approved="{}"'),
        ("state", ("translated", "final", "", "CA"), ("new", "needs-translation", "Needs editing"), 'state="{}"'),
    ],
)  # fmt: skip
def test_rows_that_are_not_ready_are_left_out(
    tmp_path: Path, column: str, ready: tuple[str, ...], not_ready: tuple[str, ...], why: str
) -> None:
    cells = [*ready, *not_ready]
    document = read(tmp_path / "t.csv", f"id,source,target,{column}", *(f"{one},A,B,{one}" for one in cells))
    assert [unit.segment.label for unit in document.units] == [one or "2" for one in ready] or len(
        document.units
    ) == len(ready)
    assert list(document.unready.values()) == [why.format(one) for one in not_ready]
    assert len(read_document(tmp_path / "t.csv", Selection(every=True)).units) == len(cells)
    marked = _mark(document, tmp_path / "o.csv").decode().splitlines()
    assert all(line.endswith(",,") for line in marked[1 + len(ready) :])
