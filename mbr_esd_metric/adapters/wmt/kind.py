"""Tells which of `IMPORT_KINDS` a file that is imported into a test set is, by its first record.

WMT25's table of error spans has the same columns whether people or a metric found them. That is the one file that does
not say what it is.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from mbr_esd_metric.adapters.qe_tsv import is_qe
from mbr_esd_metric.adapters.rating_formats import is_rating_format
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.files.tables import is_quoted
from mbr_esd_metric.files.untrusted import parse_strict_json, reading

#: Kind -> a few words for `--help`.
IMPORT_KINDS = {
    "mqm": "human MQM, Google's TSV or JSON lines",
    "qe": "human spans, a table of WMT's quality estimation task",
    "esa": "human ESA of WMT24 and WMT25",  # in any of the published forms, and that of `annotate import`
    "cesa": "human ESA of WMT26",  # Pearmut's log of several campaigns
    "task": "a task's test set, before there is gold",
    **{name: f"a submission to {form.description}" for name, form in SUBMISSION_FORMATS.items()},
    "comet": "a metric's output, of comet-score --to_json or mbr-esd score --to_json",
}
#: Columns of WMT25's tables.
_WMT25 = {"doc_id", "segment_id", "source_lang", "target_lang", "system_id"}
#: The first key of an entry of Pearmut's log, and where it is looked for.
_PEARMUT = re.compile(r'^\s*\{\s*"[^"]*":\s*\[(\s*\{\s*"(annotation|actions|user_id|item)":|\s*\]?,?$)')
_BEGINNING = 10_000


def kind_of_import(path: str | Path, *, submission: bool = False) -> str:
    """The kind of a file, one of `IMPORT_KINDS`.

    Args:
        path: the file, plain or compressed; for wmt25-task1 also its folder.
        submission: whether it is a metric's, where its columns do not say.
    """
    path = Path(path)
    if path.is_dir():
        return "wmt25-task1"
    lines = [line for _, (_, line) in zip(range(4), numbered_lines(path), strict=False)]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise InputError(f"{path}: the file is empty")
    kind = _kind_of_record(path, lines) if first.lstrip().startswith("{") else _kind_of_table(path, first)
    if kind is None and len(first.split("\t")) == 2:
        raise InputError(
            f"{path}: two columns, as a system and its score; such a file goes into the data folder as it is "
            "(docs/leaderboards.md, scores of your own)"
        )
    if kind is None:
        raise InputError(f"{path}: its first line is of no form that is known; give --kind {' | '.join(IMPORT_KINDS)}")
    if kind == "people or metric":
        if submission:
            return "wmt25-task2"
        raise OptionError(
            f"{path}: people and metrics give error spans in this form; add --name NAME for a metric's submission, or "
            "--kind esa for people's annotations"
        )
    return kind


def _kind_of_record(path: Path, lines: list[str]) -> str | None:
    line = next(line for line in lines if line.strip())
    # The keys that Pearmut writes first; a log of one line may be large.
    if plain_name(path).endswith(".json") and _PEARMUT.search("\n".join(lines)[:_BEGINNING]):
        return "cesa"
    if line.strip() == "{":
        return "comet"  # the one object that goes over several lines
    with reading(f"{path}, line 1"):
        item = parse_strict_json(line)
    if not isinstance(item, dict):
        return None
    if item and all(isinstance(rows, list) for rows in item.values()):
        return "comet"
    if "item_id" in item:
        return "task" if "hyps" in item else "wmt26"
    if "esa_spans" in item or ("scores" in item and "tgt_text" in item):
        return "esa"
    if not {"src", "mt", "errors"} <= set(item):
        return "mqm" if is_rating_format(line) else None
    # Ratings of `annotate import`; a campaign with categories asks for no score.
    return "mqm" if item.get("score") is None else "esa"


def _kind_of_table(path: Path, first: str) -> str | None:
    cells = next(csv.reader([first], delimiter="\t")) if first[0] == '"' and is_quoted(path) else first.split("\t")
    names = set(cells)
    if names >= _WMT25:
        texts, spans = "hypothesis_segment" in names, "error_types" in names
        if not texts:
            return "wmt25-task1" if "overall" in names else None
        if "overall" in names:
            return "esa"
        return "people or metric" if spans else "task"
    if is_qe(first):
        return "qe"
    return "mqm" if is_rating_format(first) else None
