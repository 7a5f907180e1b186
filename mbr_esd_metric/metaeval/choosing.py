"""The choice of each rule, and of the oracle, among the first N candidates of each translation.

The oracle knows the raters. From each translation's candidates it takes the one with the highest mean similarity to the
human annotations, so no rule over the same candidates can do better. With one rater it can follow that rater's habits;
with several it is the multi-annotator bound that the paper leaves to future work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.core.similarities import Similarity, get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_corpus, decide_segment
from mbr_esd_metric.errors import InputError, OptionError, labelled, unknown
from mbr_esd_metric.metaeval.matrices import cell_name
from mbr_esd_metric.metaeval.spans import AnnotationMatrix


@dataclass(frozen=True, slots=True)
class Sampled:
    """One translation and its candidates, in the order in which they were sampled.

    Messages name it by its label, or by its place in the matrix. The source is there if candidates name omissions.
    """

    translation: str
    candidates: Sequence[Candidate]
    label: str = ""
    source: str | None = None


#: Systems x segments; None if there are no candidates.
SampledMatrix: TypeAlias = Sequence[Sequence[Sampled | None]]

_T = TypeVar("_T")


def choosing_rules() -> list[str]:
    """Names of the rules that do not know the raters, except those that take the only candidate."""
    return [name for name, rule in rules(references=False).items() if rule.candidates != "one"]


def choose_all(
    sampled: SampledMatrix, options: DecisionOptions, size: int | None = None
) -> list[list[Annotation | None]]:
    """The choice of one of `choosing_rules` for each translation, None if there are no candidates.

    `size` uses only the first candidates of each; the rule "map" needs log-probabilities.

    Raises:
        InputError: a translation has fewer candidates than `size`, or no valid one; names it.
        OptionError: another rule.
    """
    if options.rule not in choosing_rules():
        raise unknown("rule", options.rule, choosing_rules())
    prefixes = _each(
        sampled,
        lambda cell, i, j: replace(
            cell, candidates=_prefix(cell.candidates, size), label=cell.label or cell_name(i, j)
        ),
    )
    if not options.whole_set:
        return _each(
            prefixes,
            lambda cell, *_: decide_segment(cell.candidates, cell.translation, options, source=cell.source).annotation,
        )
    cells = [cell for row in prefixes for cell in row if cell is not None]
    pairs = [(cell.candidates, cell.translation) for cell in cells]
    sources, labels = [cell.source for cell in cells], [cell.label for cell in cells]
    chosen = iter(decide_corpus(pairs, options, sources=sources, labels=labels).decisions)
    return _each(prefixes, lambda *_: next(chosen).annotation)


def oracle(
    sampled: SampledMatrix,
    human: Sequence[AnnotationMatrix],
    utility: str | Similarity = "softf1",
    size: int | None = None,
) -> list[list[Annotation | None]]:
    """The candidate of each translation that is most similar to its human annotations, None if nobody rated it.

    Of several raters the mean counts. `size` uses only the first candidates of each.

    Raises:
        InputError: a rated translation without candidates, with fewer than `size`, or without a valid one.
    """
    options = DecisionOptions("oracle", get_similarity(utility))

    def chosen(cell: Sampled, i: int, j: int) -> Annotation | None:
        if not (references := _references(human, i, j)):
            return None
        prefix = _prefix(cell.candidates, size)
        return decide_segment(prefix, cell.translation, options, source=cell.source, references=references).annotation

    for i, row in enumerate(sampled):
        for j, cell in enumerate(row):
            if cell is None and _references(human, i, j):
                raise InputError(f"no candidates for {cell_name(i, j)}, which is rated")
    return _each(sampled, chosen)


def _references(human: Sequence[AnnotationMatrix], i: int, j: int) -> list[AnnotationLike]:
    return [annotation for rater in human if (annotation := rater[i][j]) is not None]


def _prefix(candidates: Sequence[Candidate], size: int | None) -> Sequence[Candidate]:
    if size is not None and size < 1:
        raise OptionError(f"{size} candidates are too few to choose from; give 1 or more")
    if size is not None and len(candidates) < size:
        raise InputError(f"there are {len(candidates)} candidates, fewer than {size}")
    return candidates[:size]


def _each(sampled: SampledMatrix, of: Callable[[Sampled, int, int], _T]) -> list[list[_T | None]]:
    """`of` of every cell and its place, in order; None where there is no cell. Errors name the cell."""
    matrix: list[list[_T | None]] = []
    for system, row in enumerate(sampled):
        matrix.append([])
        for segment, cell in enumerate(row):
            if cell is None:
                matrix[-1].append(None)
                continue
            with labelled(cell.label or cell_name(system, segment)):
                matrix[-1].append(of(cell, system, segment))
    return matrix
