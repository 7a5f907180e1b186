"""CSV and TSV with named columns: `source` and `target`, and `id` and `lp` if there are any. Scores and errors become
columns. A row without a translation has one that is blank."""

from __future__ import annotations

import codecs
import csv
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Checked, Document, TranslationUnit
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import json_text, table_rows, whole_file

#: Our name of a column -> what files call it.
_NAMES = {
    "source": ("source", "src"),
    "target": ("target", "translation", "mt", "tgt"),
    "id": ("id", "key"),
    "lp": ("lp", "language_pair"),
}


def read_table(path: Path, every: bool = False) -> Document:
    """The rows of a table with a header; those without a source are left out. No row says that it is not ready.

    Raises:
        InputError: no header with the two columns, or a row of another length.
    """
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows = [cells for _, cells in table_rows(path, delimiter)]
    header = [name.strip().lower() for name in rows[0]] if rows else []
    at = {name: next((header.index(one) for one in names if one in header), None) for name, names in _NAMES.items()}
    for name in ("source", "target"):
        if at[name] is None:
            raise InputError(f"{path}, line 1: no column {' or '.join(_NAMES[name])} in the header")
    units, numbers, empty = [], [], []
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(header):
            raise InputError(f"{path}, row {number}: {len(row)} columns, and {len(header)} in the header")
        cell = {name: row[place].strip() if place is not None else "" for name, place in at.items()}
        name = cell["id"] or str(number)
        if not cell["source"]:
            empty.append(name)
            continue
        pair = cell["lp"].partition("-")
        units.append(TranslationUnit(name, cell["source"], cell["target"], (pair[0], pair[2])))
        numbers.append(number)
    return Document(path, tuple(units), partial(_mark, rows, numbers, delimiter), tuple(empty))


def _mark(
    rows: Sequence[Sequence[str]], numbers: Sequence[int], delimiter: str, checked: Sequence[Checked], output: Path
) -> None:
    said = dict(zip(numbers, checked, strict=True))
    with whole_file(output) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file), delimiter=delimiter, lineterminator="\n")
        writer.writerow([*rows[0], "score", "errors"])
        for number, row in enumerate(rows[1:], 1):
            one = said.get(number)
            # A score that is no number is that of a blank translation which was left out (blank=skip).
            score = "" if one is None or math.isnan(one.score) else one.score
            writer.writerow([*row, score, "" if one is None else _errors(one.annotation)])


def _errors(annotation: Annotation) -> str:
    return json_text(
        [
            {"start": s.start, "end": s.end, "severity": s.severity, "category": s.category, "side": s.side}
            for s in annotation
        ]
    )
