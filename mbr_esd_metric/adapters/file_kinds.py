"""Detect the kind of a file by its beginning.

`kind_of_input` is for files to show, compare or train from, `kind_of_import` for files to import into a data folder of
mt-metrics-eval.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from mbr_esd_metric.adapters.qe_tsv import is_qe
from mbr_esd_metric.adapters.rating_formats import is_rating_format
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import plain_name
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.files.untrusted import parse_strict_json, reading

Kind = Literal["comet", "decisions", "candidates", "mqm"]
#: Kind of a metric's output -> its description.
SUBMISSIONS = {
    **{name: f"a submission to {form.description}" for name, form in SUBMISSION_FORMATS.items()},
    "comet": "a metric's output, of comet-score --to_json or mbr-esd score --to_json",
}
#: The beginning of comet-score's output.
_LIST_OF_SYSTEM = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[')
#: A key of the first JSON line -> the kind of the file.
_KEYS: Mapping[str, Kind] = {"candidates": "candidates", "error_spans": "decisions"}
#: Columns of WMT25's tables.
_WMT25 = {"doc_id", "segment_id", "source_lang", "target_lang", "system_id"}
#: The first key of an entry in Pearmut's log, and the number of bytes to search.
_PEARMUT = re.compile(r'^\s*\{\s*"[^"]*":\s*\[(\s*\{\s*"(annotation|actions|user_id|item)":|\s*\]?,?$)')
_BEGINNING = 10_000


def kind_of_input(path: Path) -> Kind:
    """The kind of a file, by its first line. Raises `InputError` for a missing file or an unknown kind."""
    name = plain_name(path)
    if name.endswith(".tsv"):
        return "mqm"  # Google's may lack its header
    head, second = ([*islice((line for _, line in numbered_lines(path) if line.strip()), 2), "", ""])[:2]
    if not head:
        raise InputError(f"{path}: the file is empty")
    try:
        first = parse_strict_json(head)
    except InputError:
        first = None  # the first line of an indented object
    if isinstance(first, Mapping) and (kinds := [kind for key, kind in _KEYS.items() if key in first]):
        return kinds[0]
    if name.endswith(".gen.json"):
        return "candidates"
    if is_rating_format(head):
        return "mqm"
    if head.lstrip().startswith("{"):
        if not _LIST_OF_SYSTEM.match(head + second):
            raise InputError(
                f"{path}: its first object is not that of comet-score --to_json, an object with a list of segments a "
                'system, and has neither "candidates" nor "error_spans" in one line; jq -c . makes lines of a file'
            )
        return "comet"
    raise InputError(
        f"{path}: neither the output of comet-score --to_json, nor decisions, nor candidates, nor human MQM; its "
        f"first line is {head[:60]!r}"
    )


def kind_of_import(path: str | Path, name: str | None = None) -> str:
    """The kind of a file or folder, by its first record: people's "mqm", "qe", "esa" or "cesa" (WMT26's), a "task"
    without gold, or one of `SUBMISSIONS`. WMT25's table of error spans does not specify whether humans or a metric
    marked them: this is determined by `name`, the metric's name or "people"; without a name, it raises `OptionError`.
    Raises `InputError` for other formats."""
    path = Path(path)
    if path.is_dir():
        return "wmt25-task1"
    lines = [line for _, (_, line) in zip(range(4), numbered_lines(path), strict=False)]
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise InputError(f"{path}: the file is empty")
    kind = _kind_of_record(path, first, lines) if first.lstrip().startswith("{") else _kind_of_table(first)
    if kind is None:
        raise InputError(
            f"{path}: its first line is of no known format; supported are people's MQM, ESA or table of the quality "
            f"estimation task; a task's test set; {'; '.join(SUBMISSIONS.values())}; scores of systems go into the "
            "folder as they are (docs/leaderboards.md)"
        )
    if kind == "people or metric":
        if name is None:
            raise OptionError(
                f"{path}: people and metrics give error spans in this form; name the metric, NAME={path}, or import "
                f"people's annotations as people={path}"
            )
        return "esa" if name == "people" else "wmt25-task2"
    return kind


def _kind_of_record(path: Path, line: str, lines: Sequence[str]) -> str | None:
    # The first keys in Pearmut's log, whose single line may be long.
    if plain_name(path).endswith(".json") and _PEARMUT.search("\n".join(lines)[:_BEGINNING]):
        return "cesa"
    if line.strip() == "{":
        return "comet"  # a single object over several lines
    with reading(f"{path}, line 1"):
        item = parse_strict_json(line)
    if item and all(isinstance(rows, list) for rows in item.values()):
        return "comet"
    if "item_id" in item:
        return "task" if "hyps" in item else "wmt26"
    if "esa_spans" in item or ("scores" in item and "tgt_text" in item):
        return "esa"
    if not {"src", "mt", "errors"} <= set(item):
        return "mqm" if is_rating_format(line) else None
    # Ratings of `annotate import`; campaigns with categories have no scores.
    return "mqm" if item.get("score") is None else "esa"


def _kind_of_table(first: str) -> str | None:
    names = set(first.replace('"', "").split("\t"))
    if names >= _WMT25:
        if "hypothesis_segment" not in names:
            return "wmt25-task1" if "overall" in names else None
        return "esa" if "overall" in names else "people or metric" if "error_types" in names else "task"
    return "qe" if is_qe(first) else "mqm" if is_rating_format(first) else None
