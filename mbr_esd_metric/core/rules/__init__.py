"""Decision rules: which of the candidate annotations is the answer (paper, Section 3).

Each rule has its own file, named like it, so a new one needs no edit elsewhere. Other packages offer rules by entry
points. What computes is imported when a rule chooses: naming and describing the rules loads no numpy.
"""

from __future__ import annotations

from functools import cache

from mbr_esd_metric.core.discovery import Catalog
from mbr_esd_metric.core.rule import CorpusChoice, CorpusRule, Rule, SegmentRule, Shortlist

__all__ = ["RULES", "CorpusChoice", "CorpusRule", "Rule", "SegmentRule", "Shortlist", "get_rule", "rules"]


#: Entry points of other packages: ``mbr_esd_metric.rules``.
RULES = Catalog("rule", "rules", __name__, Rule)


@cache
def get_rule(name: str) -> Rule:
    """The rule of that name. Raises `OptionError` with the nearest names if there is none."""
    return RULES.get(name)()


def rules(*, references: bool = True) -> dict[str, Rule]:
    """Name -> rule: this package's by name, then those of other packages.

    Args:
        references: whether to list rules that need human annotations.
    """
    every = {name: get_rule(name) for name in RULES.all()}
    return {name: rule for name, rule in every.items() if references or not rule.needs_references}
