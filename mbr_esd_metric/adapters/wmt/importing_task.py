"""Writes a WMT task's test set, as participants get it, in the layout of mt-metrics-eval: texts without gold.

    wmt25    mteval-task1-test25.tsv, mteval-task2-test25.tsv: one row a segment and system
    wmt26    mteval-test26.jsonl: one segment a line, item_id, src, ref and hyps

The task's own names of systems and numbers of segments are kept, so that a submission can use them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.esa_files import EsaSegment, read_table_segments
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.importing import Imported
from mbr_esd_metric.adapters.wmt.importing_esa import layout_names, ordered, write_texts
from mbr_esd_metric.adapters.wmt.submissions import read_items
from mbr_esd_metric.adapters.wmt.target import Target, replacing
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import plain_name


def read_task(path: str | Path, *, quoted: bool = False) -> tuple[EsaSegment, ...]:
    """The official segments of a task's test set, in the file's order; rows of challenge sets are left out.

    Args:
        path: a .tsv of WMT25 or a .jsonl of WMT26, plain or compressed.
        quoted: fields of the .tsv are quoted as in CSV.

    Raises:
        InputError: another format; the message names the line.
    """
    path = Path(path)
    of_wmt26 = plain_name(path).endswith(".jsonl")
    segments = read_items(path, _wmt26) if of_wmt26 else read_table_segments(path, quoted=quoted)
    if not segments:
        raise InputError(f"{path}: no official segment in this file")
    return tuple(segments)


def _wmt26(item: Mapping[str, Any], lp: str, domain: str, document: str, place: str) -> list[EsaSegment]:
    outputs = {str(system): str(text) for system, text in item["hyps"].items()}
    reference = (item.get("ref") or {}).get("text")
    if reference:
        outputs["refA"] = str(reference)
    return [EsaSegment(lp, domain, document, place, str(item["src"]), outputs)]


def import_task(segments: Sequence[EsaSegment], target: Target) -> Imported:
    """Write the texts of one language pair in the layout of mt-metrics-eval.

    Raises:
        InputError: nothing in that language pair, a name that the layout cannot carry, the test set is there, or metric
            scores of its older texts are.
        OptionError: a test set or a language pair whose name the layout cannot carry.
    """
    layout, lp = target.layout(), target.lp
    own = ordered([segment for segment in segments if segment.lp == lp])
    if not own:
        there = ", ".join(sorted({segment.lp for segment in segments}))
        raise InputError(f"nothing of {lp}; there are: {there}")
    names = layout_names(own, target)
    systems = tuple(sorted(set(names.values())))
    references = target.references_among(systems)
    with replacing(layout, [segment.source for segment in own]) as new:
        write_texts(new, own, names, references)
        files.write_lines(new.task("systems"), (f"{name}\t{old}" for old, name in sorted(names.items())))
        files.write_lines(new.task("segments"), (segment.number for segment in own))
    documents = len({segment.document for segment in own})
    return Imported(layout, systems, references, (), len(own), documents, 0, ())
