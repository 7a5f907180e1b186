"""Joins the records of a file to the translations of a test set."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.join import Join, SegmentKey, occurrences

_T = TypeVar("_T")


def joined_records(test_set: TestSet, records: Iterable[tuple[SegmentKey, _T]], where: str) -> list[list[_T | None]]:
    """The record for each translation of the evaluated systems; None for an unrated one without a record.

    Args:
        test_set: systems and texts.
        records: each with the place of its translation; `files.join` says how places are matched.
        where: the file, for messages.

    Raises:
        InputError: a translation with a gold score is not in the file; with the system and the segment, from 1.
    """
    join = Join(records, test_set.outputs)
    rows: list[list[_T | None]] = []
    for number, system in enumerate(test_set.systems):
        places = [
            SegmentKey(system, source, translation or "")
            for source, translation in zip(test_set.sources, test_set.outputs[system], strict=True)
        ]
        rows.append([join.find(*asked) for asked in zip(places, occurrences(places), strict=True)])
        missing = [
            segment
            for segment, found in enumerate(rows[-1])
            if found is None and not math.isnan(test_set.gold[number, segment])
        ]
        if missing:
            first = places[missing[0]]
            more = f" (nor on {len(missing) - 1} more of them)" if len(missing) > 1 else ""
            raise InputError(
                f"{where}: nothing on segment {missing[0] + 1} of system {system} in {test_set.lp}, which has "
                f"a gold score{more}: {first.translation[:60]!r} of {first.source[:60]!r}"
            )
    return rows
