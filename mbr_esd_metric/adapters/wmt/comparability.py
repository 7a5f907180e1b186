"""Which segments SPA compares systems on, where they are not all rated."""

from __future__ import annotations

import numpy as np

from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.matrices import Missing


def missing_notes(test_set: TestSet, missing: Missing) -> list[str]:
    """A line that says which segments SPA uses, if systems are rated on different ones.

    Raises:
        InputError: with "toolkit", which cannot compare systems with different numbers of ratings.
    """
    rated = ~np.isnan(test_set.gold)
    if (rated == rated[0]).all():
        return []
    counts, shared = rated.sum(axis=1), int(rated.all(axis=0).sum())
    most, least = int(np.argmax(counts)), int(np.argmin(counts))
    equal = bool(counts[most] == counts[least])
    if equal:
        said = f"in {test_set.lp} systems are rated on {counts[0]} segments each, but not on the same ones"
    else:
        said = (
            f"in {test_set.lp} system {test_set.systems[least]} has {counts[least]} rated segments and "
            f"{test_set.systems[most]} has {counts[most]}"
        )
    if missing == "common":
        return [f"{said}: SPA is computed on the {shared} segments that all systems have"]
    if equal:
        return [f"{said}: SPA compares different segments, as mt-metrics-eval does; all systems have {shared}"]
    raise InputError(
        f"{said}, and mt-metrics-eval's SPA needs equal numbers; leave systems out with --exclude, or give "
        "--missing common"
    )
