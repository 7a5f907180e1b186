"""From the candidates of a segment, as a model wrote them, to a decision: parse, fold duplicates, choose."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, repeat
from typing import cast

import numpy as np

from mbr_esd_metric.core.annotation import EMPTY, Annotation, AnnotationLike, SpanKey, as_annotation
from mbr_esd_metric.core.candidate import NO_SPANS, Candidate, CandidateColumns
from mbr_esd_metric.core.case import Case
from mbr_esd_metric.core.decision import Decision, choose, decided
from mbr_esd_metric.core.hypotheses import Hypotheses
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.mqm import MqmWeights
from mbr_esd_metric.core.rules import CorpusChoice, CorpusRule, SegmentRule, Shortlist
from mbr_esd_metric.core.similarity import Similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.single import span_probabilities, with_probabilities
from mbr_esd_metric.elicit.formats import FORMATS, AnswerParser
from mbr_esd_metric.elicit.parse import Invalid
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError


def decide(
    candidates: Sequence[Candidate] | CandidateColumns,
    translation: str,
    rule: str = "mbr",
    utility: str | Similarity = "softf1",
    weights: str = "uniform",
    invalid: str = "drop",
    *,
    supports: Sequence[Candidate] | CandidateColumns | None = None,
    references: Iterable[AnnotationLike] | None = None,
    mqm: str | MqmWeights = "paper",
    location: str = "first",
    preset: str | None = None,
    format: str = "json",
    span_cost: float = 0.0,
    score: str = "chosen",
) -> Decision:
    """Choose one annotation among the candidates of a segment.

    Args:
        candidates: N of them; texts are parsed against the translation.
        translation: t.
        rule: "mbr", "map" (highest log-probability), "majority" (most frequent annotation), "greedy" (the only
            candidate), "oracle" (MBR whose supports are `references`), "consensus" (the best annotation of
            all, not of the candidates alone), "empty" (no error), or the name of another rule that decides segment by
            segment.
        utility: similarity by name, a mean such as "softf1+scoresim", or a `Similarity`.
        weights: of the supports: "uniform", or "model" for the model's probabilities of the distinct
            hypotheses.
        invalid: what happens to a candidate that cannot be parsed or was cut. "drop" counts it and uses it neither as
            a candidate nor as a support; "empty" counts it as "no error", like the released code.
        supports: MBR's support set, if it is not the candidates themselves.
        references: human annotations for "oracle", one for each rater.
        mqm: weights of the MQM score, "paper" or "google".
        location: "first", or "successive" for repeated span texts.
        preset: "released-code" decides as the authors' released code does.
        format: how texts are written whose candidates do not say it, "json", "compact" or "marked".
        span_cost: price of a span in units of the utility, for rules such as "consensus" that make an annotation
            themselves.
        score: "chosen" for the MQM score of the answer, "expected" for the mean over the supports, "conditional" for
            the mean of what the model expected along each support (see `ExpectedSpans`).

    Returns:
        The decision. It does not depend on the order in which duplicates arrive.

    Raises:
        NoValidCandidateError: no candidate is valid (the caller names the segment).
        InputError: a candidate without text and annotation, a span past the end of the translation, a rule or a score
            that lacks what it needs.
        OptionError: an unknown name, with the nearest valid ones.
    """
    options = DecisionOptions(rule, utility, weights, invalid, mqm, location, preset, format, span_cost, score)
    return decide_segment(candidates, translation, options, supports=supports, references=references)


def decide_segment(
    candidates: Sequence[Candidate] | CandidateColumns,
    translation: str,
    options: DecisionOptions,
    *,
    supports: Sequence[Candidate] | CandidateColumns | None = None,
    references: Iterable[AnnotationLike] | None = None,
) -> Decision:
    """`decide` with its options as one value; arguments and errors are the same."""
    rule = options.decided_by
    if not isinstance(rule, SegmentRule):
        raise OptionError(
            f"the rule {rule.name!r} chooses for all segments of a test set together; call decoding.decide_corpus, or "
            f"`mbr-esd decide --rule {rule.name}`"
        )
    preset = options.decider
    if preset is not None:
        if supports is not None or references is not None:
            raise OptionError(f"the preset {options.preset!r} has no supports but the candidates; leave them out")
        columns = CandidateColumns.of(candidates)
        if columns.format not in (None, preset.format):
            raise InputError(
                f"the candidates are in the format {columns.format}, and the preset {options.preset!r} reads "
                f"{preset.format}; leave the preset out"
            )
        return preset.decide(columns, translation, rule.name, str(options.utility))
    case, counts = read_case(candidates, translation, options, supports=supports, references=references)
    return counts.on(choose(case, rule, options.scored_by, options.score))


def read_case(
    candidates: Sequence[Candidate] | CandidateColumns,
    translation: str,
    options: DecisionOptions,
    *,
    supports: Sequence[Candidate] | CandidateColumns | None = None,
    references: Iterable[AnnotationLike] | None = None,
) -> tuple[Case, Counts]:
    """One segment as a rule sees it, and the counts of its candidates. Arguments and errors are those of `decide`."""
    columns = CandidateColumns.of(candidates)
    parser = options.parser(translation, columns.format)
    if columns.models is not None and options.decided_by.needs_logprobs and len(set(columns.models)) > 1:
        raise OptionError(
            f"the rule {options.rule!r} compares log-probabilities, which those of several models cannot be; take mbr"
        )
    try:
        folded, counts = _hypotheses(columns, translation, parser, options.invalid)
    except NoValidCandidateError as error:
        raise NoValidCandidateError(f"{error}{_other_format(columns, translation, options)}") from None
    others: Hypotheses | None = None
    if options.decided_by.needs_references:
        raters = [as_annotation(reference) for reference in references or ()]
        others = Hypotheses(raters) if raters else None
    elif supports is not None:
        given = CandidateColumns.of(supports)
        if given.format != columns.format:
            parser = options.parser(translation, given.format)
        others, _ = _hypotheses(given, translation, parser, options.invalid)
    if others is None:
        counts = replace(counts, probabilities=span_probabilities(columns, parser))
    case = Case(folded, len(translation), options.similarity, options.weights, others, options.span_cost)
    return case, counts


@dataclass(frozen=True)
class CorpusDecision:
    """The decisions of `decide_corpus`.

    Attributes:
        decisions: one for each segment; expected utilities are those of the rule, of `mbr-corpus` ``a - F b`` in its
            terms.
        ratios: what the rule maximises after each pass, of `mbr-corpus` F; the last is what the choice reaches.
    """

    decisions: tuple[Decision, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class CorpusSegment:
    """One segment of `decide_corpus`.

    Attributes:
        rule: that decides.
        statistics: of its hypotheses, shape (n, k).
        shortlist: the answers that may be chosen.
    """

    case: Case
    rule: CorpusRule
    statistics: Floats
    shortlist: Shortlist
    counts: Counts
    options: DecisionOptions

    def decision(self, position: int, choice: CorpusChoice | None) -> Decision:
        """The decision for a position in the shortlist. Without the choice for the test set, its utilities are
        NaN."""
        if choice is None:
            values: Floats = np.full(len(self.statistics), np.nan)
            value = math.nan
        else:
            values = self.rule.values(self.statistics, choice)
            value = float(self.rule.values(self.shortlist.statistics, choice)[position])
        answer, options = self.shortlist.answers[position], self.options
        return self.counts.on(decided(self.case, answer, values, options.scored_by, options.score, value))


def corpus_segment(
    candidates: Sequence[Candidate] | CandidateColumns,
    translation: str,
    options: DecisionOptions,
    *,
    supports: Sequence[Candidate] | CandidateColumns | None = None,
) -> CorpusSegment:
    """One segment for a rule that decides over the whole test set; arguments and errors as for `decide`.

    Raises:
        OptionError: the rule decides segment by segment.
    """
    rule = options.decided_by
    if not isinstance(rule, CorpusRule):
        raise OptionError(f"the rule {rule.name!r} decides segment by segment; call decide")
    case, counts = read_case(candidates, translation, options, supports=supports)
    statistics = rule.statistics(case)
    return CorpusSegment(case, rule, statistics, rule.shortlist(case, statistics), counts, options)


def decide_corpus(
    segments: Iterable[tuple[Sequence[Candidate] | CandidateColumns, str]],
    options: DecisionOptions,
    *,
    supports: Iterable[Sequence[Candidate] | CandidateColumns] | None = None,
    labels: Iterable[str] | None = None,
) -> CorpusDecision:
    """Choose for all segments of a test set together, by a rule such as `mbr-corpus`.

    Args:
        segments: candidates and translation of each.
        options: the rule, and the rest as for `decide`.
        supports: for each segment its support set, where it is not the candidates themselves.
        labels: how messages name the segments; by default "segment 1" and so on.

    Raises:
        NoValidCandidateError, InputError, OptionError: as for `decide`; begins with the segment's label.
    """
    rule = options.decided_by
    if not isinstance(rule, CorpusRule):
        raise OptionError(f"the rule {rule.name!r} decides segment by segment; call decide")
    read: list[tuple[str, CorpusSegment]] = []
    given = iter(supports) if supports is not None else repeat(None)
    names = iter(labels) if labels is not None else map("segment {}".format, count(1))
    for candidates, translation in segments:
        label = next(names)
        with _labelled(label):
            read.append((label, corpus_segment(candidates, translation, options, supports=next(given))))
    choice = rule.settle([segment.shortlist.statistics for _, segment in read])
    decisions: list[Decision] = []
    for (label, segment), position in zip(read, choice.chosen, strict=True):
        with _labelled(label):
            decisions.append(segment.decision(int(position), choice))
    return CorpusDecision(tuple(decisions), choice.ratios)


@contextmanager
def _labelled(label: str) -> Iterator[None]:
    """Let errors name the segment."""
    try:
        yield
    except (InputError, NoValidCandidateError) as error:
        raise type(error)(f"{label}: {error}") from None


@dataclass(frozen=True)
class Counts:
    """What is known of the candidates beside their annotations.

    Attributes:
        candidates: how many there are.
        reasons: why some are invalid, and how many for each reason.
        dropped: error spans that could not be located.
        probabilities: of a single answer, the confidence of each span.
    """

    candidates: int
    reasons: Mapping[str, int]
    dropped: int
    probabilities: Mapping[SpanKey, float] = field(default_factory=dict)

    def on(self, decision: Decision) -> Decision:
        """The decision with these counts and confidences."""
        if self.probabilities:
            decision = replace(decision, annotation=with_probabilities(decision.annotation, self.probabilities))
        if not self.reasons and not self.dropped:
            return decision
        invalid = sum(self.reasons.values())
        return replace(
            decision, valid=self.candidates - invalid, invalid=invalid, dropped=self.dropped, reasons=self.reasons
        )


def _other_format(columns: CandidateColumns, translation: str, options: DecisionOptions) -> str:
    """The mend where all candidates are answers in another format, for the end of a message; else ""."""
    read_as = columns.format or options.format
    for name in FORMATS:
        if name != read_as:
            read = _read(columns, options.parser(translation, name))
            if read and not any(isinstance(annotation, Invalid) for annotation in read):
                mend = f"say so with --answers {name}" if columns.format is None else "mend their format in the file"
                return f"; they are in the format {name}, and were read as {read_as}: {mend}"
    return ""


def _hypotheses(
    columns: CandidateColumns, translation: str, parser: AnswerParser, invalid: str
) -> tuple[Hypotheses, Counts]:
    """The folded candidates and their counts. Where there is no word to mark, no error was expected."""
    texts, read = columns.texts, _read(columns, parser)
    reasons: Counter[str] = Counter()
    annotations = cast("list[Annotation | None]", read)
    expected = columns.expected if translation.strip() else [NO_SPANS] * len(columns)
    if Invalid in set(map(type, read)):
        reasons.update(annotation.reason for annotation in read if isinstance(annotation, Invalid))
        stand_in = EMPTY if invalid == "empty" else None
        annotations = [stand_in if isinstance(annotation, Invalid) else annotation for annotation in read]
        if expected is not None:
            expected = [NO_SPANS if isinstance(a, Invalid) else e for a, e in zip(read, expected, strict=True)]
    try:
        folded = Hypotheses(annotations, columns.logprobs, texts, columns.models, expected)
    except NoValidCandidateError as error:
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        raise NoValidCandidateError(f"{error} ({why})" if why else str(error)) from None
    return folded, Counts(len(columns), dict(reasons), parser.not_found(texts))


def read_annotations(
    candidates: Sequence[Candidate] | CandidateColumns, translation: str, options: DecisionOptions
) -> list[Annotation | Invalid]:
    """What each candidate says of the translation, or why it is invalid.

    Raises:
        InputError: a candidate without text and annotation.
    """
    columns = CandidateColumns.of(candidates)
    return _read(columns, options.parser(translation, columns.format))


def _read(columns: CandidateColumns, parser: AnswerParser) -> list[Annotation | Invalid]:
    if columns.annotations is None and True not in columns.truncated and None not in columns.texts:
        return parser.annotations(cast("Sequence[str]", columns.texts))
    return [_annotation(index, columns, parser) for index in range(len(columns))]


def _annotation(index: int, columns: CandidateColumns, parser: AnswerParser) -> Annotation | Invalid:
    if columns.truncated[index]:
        return Invalid("cut by the length limit")
    given = columns.annotations[index] if columns.annotations is not None else None
    if given is not None:
        return as_annotation(given)
    text = columns.texts[index]
    if text is None:
        raise InputError(f"candidate {index + 1} has neither a text nor an annotation")
    return parser.annotations([text])[0]
