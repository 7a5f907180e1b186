"""Decisions of rules and of the oracle on the first N candidates of each translation.

The oracle selects the candidate with the highest mean similarity to the human annotations of the translation, which is
an upper bound for all rules on the same candidates. With one rater, it can overfit to that rater; with several, it is
the multi-annotator bound that the paper leaves to future work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.decision import Candidate, Decision
from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import Case, decide_cases
from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.metaeval.matrices import cell_name
from mbr_esd_metric.metaeval.spans import AnnotationMatrix


@dataclass(frozen=True, slots=True)
class Sampled:
    """One translation and its candidates, in sampling order.

    Attributes:
        label: the name in messages; if empty, the position in the matrix is used.
        source: the source, needed to locate omissions.
    """

    translation: str
    candidates: Sequence[Candidate]
    label: str = ""
    source: str | None = None


#: Systems x segments; None if there are no candidates.
SampledMatrix: TypeAlias = Sequence[Sequence[Sampled | None]]


def choosing_rules() -> list[str]:
    """Names of the rules that do not use human annotations, except those for a single candidate."""
    return [name for name, rule in rules(references=False).items() if rule.candidates != "one"]


def choose_all(
    sampled: SampledMatrix, options: DecisionOptions, size: int | None = None, human: Sequence[AnnotationMatrix] = ()
) -> list[list[Annotation | None]]:
    """The decision of a rule for each translation, None without candidates.

    Args:
        sampled: the translations and their candidates.
        options: the options, with one of `choosing_rules` or "oracle"; the rule "map" needs log-probabilities.
        size: the number of candidates to use, from the first; None for all.
        human: the annotations of each rater, for the oracle, which only decides rated translations and uses the mean
            similarity over raters.

    Raises:
        InputError: a translation has fewer candidates than `size`, has no valid candidate, or is rated and has no
            candidates. The message names the translation.
        OptionError: another rule.
    """
    if options.rule not in [*choosing_rules(), *(["oracle"] if human else [])]:
        raise unknown("rule", options.rule, choosing_rules())
    if size is not None and size < 1:
        raise OptionError(f"the number of candidates must be at least 1 (got {size})")
    places: list[tuple[int, int]] = []
    cases: list[Case[Decision]] = []
    for i, row in enumerate(sampled):
        for j, cell in enumerate(row):
            references = [annotation for rater in human if (annotation := rater[i][j]) is not None]
            if cell is None and references:
                raise InputError(f"no candidates for {cell_name(i, j)}, which is rated")
            if cell is None or (human and not references):
                continue
            few, label = cell.candidates[:size], cell.label or cell_name(i, j)
            if size is not None and len(few) < size:
                raise InputError(f"{label}: only {len(few)} candidates, fewer than {size}")
            cases.append(Case(label, few, cell.translation, cell.source, references=references or None))
            places.append((i, j))
    chosen: list[list[Annotation | None]] = [[None] * len(row) for row in sampled]
    for (i, j), decision in zip(places, decide_cases(cases, options), strict=True):
        chosen[i][j] = decision.annotation
    return chosen
