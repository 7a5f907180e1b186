"""Reads human error annotations in any of their formats."""

from __future__ import annotations

from pathlib import Path

from mbr_esd_metric.adapters.mqm_tsv import MqmData, read_mqm_json, read_mqm_tsv
from mbr_esd_metric.adapters.qe_tsv import is_qe, read_qe
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines


def read_mqm(path: str | Path, quoted: bool = False) -> MqmData:
    """Google's TSV, a table of WMT's quality estimation task, or ratings as JSON lines; plain or compressed.

    JSON lines have a name that ends in .jsonl or .json, and a table of the task is told by its first row.
    """
    if plain_name(path).endswith((".jsonl", ".json")):
        return read_mqm_json(path)
    first = next(iter(numbered_lines(Path(path))), (0, ""))[1]
    return read_qe(path) if is_qe(first) and not quoted else read_mqm_tsv(path, quoted)
