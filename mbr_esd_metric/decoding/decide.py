"""Public functions: `decide` for one segment, `decide_many` and `decide_corpus` for a test set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, repeat
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from mbr_esd_metric.core.annotation import AnnotationLike
from mbr_esd_metric.core.decision import Candidates, Decision
from mbr_esd_metric.core.panel import Panel
from mbr_esd_metric.decoding.options import DecisionFields, DecisionOptions
from mbr_esd_metric.decoding.segment import Case, annotator_scores, blank_decision, decide_cases, decide_segment
from mbr_esd_metric.errors import InputError, OptionError, labelled
from mbr_esd_metric.prompting.text import is_blank

if TYPE_CHECKING:
    from typing_extensions import Unpack

_T = TypeVar("_T")
_S = TypeVar("_S")
_Paired: TypeAlias = "tuple[tuple[Candidates, str], str | None]"  # candidates and translation; source


def decide(
    candidates: Candidates,
    translation: str,
    options: DecisionOptions | None = None,
    *,
    source: str | None = None,
    supports: Candidates | None = None,
    references: Iterable[AnnotationLike] | None = None,
    **fields: Unpack[DecisionFields],
) -> Decision:
    """Choose one annotation from the candidates of a segment.

    Args:
        candidates: the N candidates; texts are parsed against the translation.
        translation: t.
        options: the decision options; None for the defaults.
        source: s, needed for `checks` and for candidates that mark omissions (`json-omissions` and similar formats, or
            annotations), which are then compared over both texts. With it, `blank` applies to blank translations.
        supports: MBR's support set, if it is not the candidates themselves.
        references: human annotations for the rule "oracle", one per rater.
        **fields: fields of `DecisionOptions`, which override `options`.

    Returns:
        The decision. It does not depend on the order of duplicates.

    Raises:
        NoValidCandidateError: no candidate is valid (the caller adds the segment to the message).
        InputError: a candidate without text and annotation, a span past the end of the translation, or missing input
            for a rule or score.
        OptionError: an unknown name (with the closest valid ones); a rule that decides all segments of a test set
            together (see `decide_corpus`), or weights learnt from them.
    """
    chosen = DecisionOptions.of(options, fields)
    blank = None if source is None else blank_decision(source, translation, chosen)
    return blank or decide_segment(
        candidates, translation, chosen, source=source, supports=supports, references=references
    )


def decide_many(
    segments: Iterable[tuple[Candidates, str]],
    options: DecisionOptions | None = None,
    *,
    sources: Iterable[str] | None = None,
    **fields: Unpack[DecisionFields],
) -> list[Decision]:
    """`decide` for each segment of a test set, given its candidates, translation and optionally source. A rule such as
    `mbr-corpus` decides them together, and `weights=agreement` are learnt from them. Error messages start with "segment
    N"."""
    chosen = DecisionOptions.of(options, fields)
    if chosen.whole_set:
        return list(decide_corpus(segments, chosen, sources=sources).decisions)
    decisions = []
    paired: Iterable[_Paired] = _paired(segments, sources, "sources")
    if chosen.weights == "agreement":
        chosen = _with_learnt_weights(chosen, paired := list(paired))
    for number, ((candidates, translation), source) in enumerate(paired, 1):
        with labelled(f"segment {number}"):
            decisions.append(decide(candidates, translation, chosen, source=source))
    return decisions


def _with_learnt_weights(options: DecisionOptions, segments: Iterable[_Paired]) -> DecisionOptions:
    """The options, with `weights=agreement` replaced by the `Panel` learnt from these segments."""
    scores = []
    for number, ((candidates, translation), source) in enumerate(segments, 1):
        with labelled(f"segment {number}"):
            if not is_blank(translation):
                scores.append(annotator_scores(candidates, translation, options, source))
    return replace(options, weights=Panel.learnt(scores))


def _paired(values: Iterable[_T], others: Iterable[_S] | None, name: str) -> Iterator[tuple[_T, _S | None]]:
    """Pairs of values and partners, None without partners; raises `InputError` if their numbers differ."""
    try:
        yield from zip(values, repeat(None) if others is None else others, strict=others is not None)
    except ValueError as error:
        raise InputError(f"there are more or fewer {name} than segments; give one for each") from error


@dataclass(frozen=True)
class CorpusDecision:
    """The decisions of `decide_corpus`.

    Attributes:
        decisions: one per segment; expected utilities are those of the rule (``a - F b`` for `mbr-corpus`).
        ratios: the maximised value after each iteration (F for `mbr-corpus`); the last one is the result.
    """

    decisions: tuple[Decision, ...]
    ratios: tuple[float, ...]


def decide_corpus(
    segments: Iterable[tuple[Candidates, str]],
    options: DecisionOptions = DecisionOptions("mbr-corpus"),
    *,
    sources: Iterable[str | None] | None = None,
    supports: Iterable[Candidates] | None = None,
    labels: Iterable[str] | None = None,
) -> CorpusDecision:
    """Decide all segments of a test set together, by a rule such as `mbr-corpus`; other rules raise `OptionError`. The
    arguments have one value per segment: candidates, translation, and optionally source and supports as for `decide`.
    Error messages start with the label, by default "segment 1" and so on."""
    if not options.whole_set:
        raise OptionError(f"the rule {options.rule!r} decides segment by segment; call decide")
    names = iter(labels) if labels is not None else map("segment {}".format, count(1))
    with_sources: Iterable[_Paired] = _paired(segments, sources, "sources")
    if options.weights == "agreement":
        options = _with_learnt_weights(options, with_sources := list(with_sources))
    cases: Iterator[Case[Decision]] = (
        Case(next(names), candidates, translation, source, others)
        for ((candidates, translation), source), others in _paired(with_sources, supports, "sets of supports")
    )
    ratios: list[float] = []
    return CorpusDecision(tuple(decide_cases(cases, options, ratios=ratios)), tuple(ratios))
