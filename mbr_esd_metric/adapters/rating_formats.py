"""The table of human annotation formats, and `read_mqm`, which reads all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mbr_esd_metric.adapters.mqm_tsv import is_mqm_tsv, read_mqm_tsv
from mbr_esd_metric.adapters.qe_tsv import is_qe, read_qe
from mbr_esd_metric.adapters.ratings import RatingData, is_rating_lines, read_rating_lines
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines

#: Predicate on the first line of a file -> reader of the format. A new format is a new row.
FORMATS: dict[Callable[[str], bool], Callable[[Path], RatingData]] = {
    is_mqm_tsv: read_mqm_tsv,
    is_qe: read_qe,
    is_rating_lines: read_rating_lines,
}


def is_rating_format(line: str) -> bool:
    """Whether a file with this first line contains human annotations."""
    return any(recognises(line) for recognises in FORMATS)


def read_mqm(path: str | Path, *, marked: bool = True) -> RatingData:
    """Human annotations in one of the `FORMATS`, plain or compressed. Unrecognised files are read as JSON lines if
    their names end in .jsonl or .json, otherwise as Google's TSV, which may lack its header. With `marked`, raises
    `InputError` for ratings without error annotation."""
    path = Path(path)
    first = next(iter(numbered_lines(path)), (0, ""))[1]
    usual = read_rating_lines if plain_name(path).endswith((".jsonl", ".json")) else read_mqm_tsv
    data = next((read for recognises, read in FORMATS.items() if recognises(first)), usual)(path)
    if marked and (line := next((one.line for one in data if not one.marked), None)):
        why = "a score without errors (direct assessment); only `wmt import` and `annotate report` read it"
        raise InputError(f"{path}, line {line}: {why}")
    return data
