"""Candidates of a file, joined to the translations of a test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mbr_esd_metric.adapters.wmt.joining import joined_records
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import read_candidates
from mbr_esd_metric.metaeval.choosing import Sampled


def read_sampled(
    test_set: TestSet, path: str, choosing: Sequence[str] = (), answers: str = "json"
) -> list[list[Sampled | None]]:
    """A file of candidates, joined to the translations. Error spans are located in the texts of the test set.

    Args:
        test_set: its translations.
        path: of the file.
        choosing: names of the rules that will choose.
        answers: the answer format of candidates that do not say theirs.

    Raises:
        InputError: a line that cannot be read or belongs to no translation; a translation whose candidates have no
            log-probability, which one of the rules needs.
    """
    records = (
        replace(one, columns=replace(one.columns, format=one.columns.format or answers))
        for one in read_candidates(path)
    )
    rows = joined_records(test_set, ((record.place, record.candidates) for record in records), path)
    sampled = [
        [
            None
            if found is None
            else Sampled(translation or "", found, f"segment {number} of {system}", _left_out_of(source, found))
            for number, (found, translation, source) in enumerate(
                zip(row, test_set.outputs[system], test_set.sources, strict=True), 1
            )
        ]
        for system, row in zip(test_set.systems, rows, strict=True)
    ]
    without = [name for name, rule in rules().items() if not rule.needs_logprobs]
    needing = [name for name in choosing if name in rules() and name not in without]
    for cell in (cell for row in sampled for cell in row if cell is not None) if needing else ():
        if all(candidate.logprob is None for candidate in cell.candidates):
            left = [name for name in choosing if name not in needing] or ["mbr", "majority"]
            raise InputError(
                f"{path}: {cell.label} has no log-probabilities, which the rule {needing[0]} needs; leave the rule "
                f"out: --rules {' '.join(left)}"
            )
    return sampled


def _left_out_of(source: str, candidates: Sequence[Candidate]) -> str | None:
    """The source, where candidates say what is left out of it."""
    return DecisionOptions().source_of(source, candidates[0].format) if candidates else None
