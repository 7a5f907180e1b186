"""MBR's choices as annotations to learn from: the cheaper way to distil, by supervised training."""

from __future__ import annotations

from collections.abc import Iterable

from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.distill.supervision import HumanAnnotation
from mbr_esd_metric.errors import InputError, NoValidCandidateError
from mbr_esd_metric.files.records import CandidateRecord


def choices(records: Iterable[CandidateRecord], options: DecisionOptions, lp: str) -> list[HumanAnnotation]:
    """The annotation that is chosen for each segment. A segment without a valid candidate is left out.

    Args:
        records: the candidates of each segment.
        options: how one is chosen.
        lp: such as "en-de".

    Raises:
        InputError: as `decide`, with the segment; or no segment at all has a valid candidate.
    """
    found, why = [], ""
    for record in records:
        try:
            decision = decide_segment(
                record.columns, record.mt, options, source=options.source_of(record.src, record.columns.format)
            )
        except NoValidCandidateError as error:
            why = f"{record.label}: {error}"
            continue
        except InputError as error:
            raise InputError(f"{record.label}: {error}") from None
        found.append(HumanAnnotation(record.src, record.mt, lp, decision.annotation))
    if why and not found:
        raise InputError(f"no segment has a valid candidate; {why}")
    return found
