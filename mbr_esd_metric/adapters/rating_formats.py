"""The formats of human MQM annotations, told apart by a file's first line; and the one reader of them all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mbr_esd_metric.adapters.mqm_tsv import is_mqm_tsv, read_mqm_tsv
from mbr_esd_metric.adapters.qe_tsv import is_qe, read_qe
from mbr_esd_metric.adapters.ratings import MqmData, read_mqm_json
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines

#: Whether a file that begins with this line is of a format -> its reader. A new format is a row.
FORMATS: dict[Callable[[str], bool], Callable[[Path], MqmData]] = {is_mqm_tsv: read_mqm_tsv, is_qe: read_qe}


def is_rating_format(line: str) -> bool:
    """Whether a table that begins with this line holds human annotations."""
    return any(recognises(line) for recognises in FORMATS)


def read_mqm(path: str | Path) -> MqmData:
    """A table in one of the `FORMATS`, or ratings as JSON lines, whose name ends in .jsonl or .json; plain or
    compressed. A table that no format recognises is read as Google's TSV, which may lack its header."""
    path = Path(path)
    if plain_name(path).endswith((".jsonl", ".json")):
        return read_mqm_json(path)
    first = next(iter(numbered_lines(path)), (0, ""))[1]
    reader = next((read for recognises, read in FORMATS.items() if recognises(first)), read_mqm_tsv)
    return reader(path)
