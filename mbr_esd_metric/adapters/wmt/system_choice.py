"""Which systems of a test set are evaluated."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from mbr_esd_metric.adapters.wmt.meta_info import TestSetInfo

#: Which references count as systems: "others" are all except the standard one, "none" is mtme's choice, and "all"
#: includes the standard one.
HumanSystems = Literal["others", "none", "all"]


_REFERENCE = re.compile(r"ref([A-Za-z0-9_]*)")


def is_reference_name(system: str) -> bool:
    """Whether a system is called as references are: ref, refA, refB and so on."""
    return _REFERENCE.fullmatch(system) is not None


@dataclass(frozen=True, slots=True)
class SystemChoice:
    """Which of the systems that have gold scores are evaluated.

    Attributes:
        only: evaluate exactly these systems; if empty, the other attributes decide.
        exclude: do not evaluate these systems.
        outliers: whether WMT's outliers take part.
        human: which references take part as systems.
    """

    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    outliers: bool = False
    human: HumanSystems = "others"

    def takes(self, system: str, info: TestSetInfo, references: Collection[str]) -> bool:
        """Whether a system is evaluated.

        People's translations are the references, and the systems that are called as references are: a folder may have
        such a system without a file in ``references``.
        """
        if system in self.exclude:
            return False
        if self.only:
            return system in self.only
        if system in info.outliers and not self.outliers:
            return False
        standard = system == info.standard_reference
        if standard or system in references or is_reference_name(system):
            return self.human == "all" or (self.human == "others" and not standard)
        return True
