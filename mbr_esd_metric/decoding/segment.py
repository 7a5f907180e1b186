"""The decision for one segment, from the candidates' texts: parse, merge duplicates, choose.

A blank translation (no visible character) of a non-blank source needs no candidates: it is one critical error, which no
span can express. The paper's convention (SoftF1 at L = 0) treats it as error-free instead.

A single answer cannot be compared with other samples. The confidence of its span s is the probability with which the
model generated the span,

    confidence(s) = exp( sum_{i in T(s)} log M(y_i | y_1 ... y_{i-1}, x) )

T(s) are the tokens that spell the span: the start of the error, its words with their end, and its severity; with
`format=tags` the tags of its words. log M is at temperature 1 over the tokens that the grammar admits. It is lower than
the share of samples that would mark the same characters; `mbr-esd calibrate` can recalibrate it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mbr_esd_metric.core.annotation import (
    EMPTY,
    Annotation,
    AnnotationLike,
    ErrorSpan,
    SpanKey,
    as_annotation,
    mqm_score,
    unit_score,
    weights_of,
)
from mbr_esd_metric.core.decision import (
    Candidate,
    CandidateColumns,
    Candidates,
    Decision,
    with_errors,
)
from mbr_esd_metric.core.decision_problem import DecisionProblem, Hypotheses, decided
from mbr_esd_metric.core.rules import Choice, SegmentRule
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, labelled, no_effect_error
from mbr_esd_metric.prompting.formats import FORMATS, get_format
from mbr_esd_metric.prompting.parse import AnswerParser, Invalid, Parsed
from mbr_esd_metric.prompting.text import is_untranslated

if TYPE_CHECKING:
    from mbr_esd_metric.core.corrections import Place, Proposal

_T = TypeVar("_T")
#: Reason why a truncated candidate is invalid.
CUT = "cut by the length limit"
#: Description of `Decision.inexact` spans in summaries.
FOUND_INEXACTLY = "found with other blanks, quotation marks, hyphens, accents or escapes"
#: Maximum number of characters of an answer in messages.
_SHOWN = 120


def blank_decision(source: str, translation: str, options: DecisionOptions) -> Decision | None:
    """The decision for a blank translation, without spans or candidates; None for other translations. Its score is the
    lowest one (`blank=worst`) or NaN (`skip`); with `perfect`, candidates without errors decide."""
    if options.blank == "perfect" or not is_untranslated(source, translation):
        return None
    mqm = math.nan if options.blank == "skip" else weights_of(options.mqm).floor
    return Decision(None, EMPTY, unit_score(mqm, options.mqm), mqm, (), math.nan, 0, 0, 0)


def decide_segment(
    candidates: Candidates,
    translation: str,
    options: DecisionOptions,
    *,
    source: str | None = None,
    supports: Candidates | None = None,
    references: Iterable[AnnotationLike] | None = None,
) -> Decision:
    """`decide` for a non-blank translation."""
    rule = options.rule_instance
    if not isinstance(rule, SegmentRule):
        raise OptionError(
            f"the rule {rule.name!r} chooses for all segments of a test set together; call decide_corpus, or "
            f"`mbr-esd decide --rule {rule.name}`"
        )
    case: Case[Decision] = Case("", candidates, translation, source, supports, references)
    return next(decide_cases([case], options))


@dataclass(frozen=True, slots=True)
class Case(Generic[_T]):
    """A segment to decide: its label for messages, and the arguments of `decide` or a known outcome."""

    label: str
    candidates: Candidates
    translation: str
    source: str | None = None
    supports: Candidates | None = None
    references: Iterable[AnnotationLike] | None = None
    known: _T | None = None


def decide_cases(
    cases: Iterable[Case[_T]],
    options: DecisionOptions,
    unread: Callable[[str, NoValidCandidateError], _T] | None = None,
    ratios: list[float] | None = None,
) -> Iterator[Decision | _T]:
    """The decision or known outcome of each segment, in order. A rule for a whole test set reads all segments first,
    other rules one at a time. For a segment without a valid candidate, `unread` returns an outcome for its label
    instead of an error. The ratios of the `Choice` are added to `ratios`."""
    for some in [list(cases)] if options.whole_set else ([case] for case in cases):
        known = {at: case.known for at, case in enumerate(some) if case.known is not None}
        problems: dict[int, tuple[DecisionProblem, Counts]] = {}
        for at, case in enumerate(some):
            if at not in known:
                try:
                    with _named(case.label):
                        problems[at] = decision_problem(case, options)
                except NoValidCandidateError as error:
                    if unread is None:
                        raise
                    known[at] = unread(case.label, error)
        with _named("" if options.whole_set else some[0].label):
            choices = options.rule_instance.decide([problem for problem, _ in problems.values()])
        if ratios is not None and choices:
            ratios[:] = choices[0].ratios
        chosen = iter(choices)
        for at, case in enumerate(some):
            if at in known:
                yield known[at]
            else:
                with _named(case.label):
                    decision = decision_of(*problems[at], next(chosen), options)
                yield decision


def decision_of(problem: DecisionProblem, counts: Counts, choice: Choice, options: DecisionOptions) -> Decision:
    """The decision for a rule's choice."""
    decision = decided(problem, choice.answer, choice.values, options.mqm, options.score, choice.value)
    return counts.completed(decision, options)


def _named(label: str) -> AbstractContextManager[None]:
    return labelled(label) if label else nullcontext()


def decision_problem(case: Case[Any], options: DecisionOptions) -> tuple[DecisionProblem, Counts]:
    """The decision problem of a segment, and the counts of its candidates."""
    candidates, translation, source = case.candidates, case.translation, case.source
    supports, references = case.supports, case.references
    rule = options.rule_instance
    if options.weights == "agreement":
        raise OptionError("weights=agreement are learnt from a whole test set; use decide_many or `mbr-esd decide`")
    if references is not None and not rule.needs_references:
        raise no_effect_error("references", f"rule={rule.name}; they are for rule=oracle")
    if supports is not None and rule.needs_references:
        raise no_effect_error("supports", f"rule={rule.name}, which compares with the references")
    columns = CandidateColumns.of(candidates)
    text, sided = source, columns.annotations is not None or any(map(options.both_sides, columns.different_formats))
    if not sided:
        source = None  # annotations only have spans in the translation
    folded, counts = _hypotheses(columns, translation, source, options)
    if options.checks == "true":
        if text is None:
            raise InputError("checks=true compares a translation with its source; give the source as well")
        from mbr_esd_metric.checks.check import errors_of

        certain = [one for one in errors_of(text, translation) if sided or one.side == "translation"]
        counts = replace(counts, certain=certain)
    if rule.needs_references:
        # For comparing candidates: over both texts, or only over the translation.
        raters = [as_annotation(one) for one in references or ()]
        raters = raters if source is not None else [one.on("translation") for one in raters]
        supports = [Candidate(annotation=one) for one in raters] or None
    others: Hypotheses | None = None
    if supports is not None:
        others, _ = _hypotheses(CandidateColumns.of(supports), translation, source, options)
        counts = replace(counts, probabilities={})
    length = len(translation) + len(source or "")
    problem = DecisionProblem(folded, length, get_similarity(options.utility), options.weights, others)
    rule.check(problem)
    return problem, counts


@dataclass(frozen=True)
class Counts:
    """Counts and facts of the candidates for `Decision`.

    Attributes:
        candidates: the number of candidates.
        emptied: the number of candidates whose errors were all dropped.
        sides: the length of the translation, if annotations of both texts are joined; otherwise None.
        probabilities: for a single answer, the confidence of each span.
        certain: the rule-based errors.
        proposals: the candidates' corrections for each position.
    """

    candidates: int
    reasons: Mapping[str, int]
    dropped: int
    inexact: int = 0
    malformed: int = 0
    unplaced: int = 0
    emptied: int = 0
    sides: int | None = None
    probabilities: Mapping[SpanKey, float] = field(default_factory=dict)
    certain: Sequence[ErrorSpan] = ()
    proposals: Mapping[Place, Sequence[Proposal]] = field(default_factory=dict)

    def completed(self, decision: Decision, options: DecisionOptions) -> Decision:
        """The decision with these counts, confidences, corrections and rule-based errors, and its annotation split into
        sides."""
        annotation = decision.annotation
        if self.sides is not None:
            annotation = annotation.split_sides(self.sides)
        if self.probabilities:
            spans = [replace(one, confidence=self.probabilities.get(one.key, one.confidence)) for one in annotation]
            annotation = annotation.with_spans(spans)
        if self.proposals:
            from mbr_esd_metric.core.corrections import with_corrections

            annotation = with_corrections(annotation, self.proposals)
        decision = decision if annotation is decision.annotation else replace(decision, annotation=annotation)
        if self.certain:
            decision = with_certain_errors(decision, self.certain, options)
        if not self.reasons and not self.dropped and not self.inexact and not self.malformed:
            return decision
        invalid = sum(self.reasons.values())
        return replace(
            decision,
            valid=self.candidates - invalid,
            invalid=invalid,
            dropped=self.dropped,
            inexact=self.inexact,
            malformed=self.malformed,
            unplaced=self.unplaced,
            unmarked=decision.unmarked - self.emptied,
            reasons=self.reasons,
            unsure=3 * invalid >= self.candidates and not annotation,
        )


def with_certain_errors(decision: Decision, errors: Iterable[ErrorSpan], options: DecisionOptions) -> Decision:
    """The decision with rule-based errors added to its annotation, and their penalties subtracted from its score."""
    # For a single answer, the mean is its own score, and the confidences come from its tokens.
    own = options.score == "expected" and decision.valid == 1
    return with_errors(decision, errors, options.mqm, "chosen" if own else options.score)


def _other_format(columns: CandidateColumns, translation: str, source: str | None, options: DecisionOptions) -> str:
    """The end of a message if all candidates are in another format; otherwise ""."""
    read_as = columns.format or options.format
    for name in FORMATS.all() if columns.formats is None else ():
        if name != read_as:
            parsed = _parsed(replace(columns, format=name), translation, source or "", options)
            if parsed and not any(isinstance(one, Invalid) for one in parsed):
                fix = "fix their format in the file"
                if columns.format is None:
                    fix = f"say so with --format {name} (in a model's name, format={name})"
                return f"; they are in the format {name}, and were read as {read_as}: {fix}"
    return ""


def _hypotheses(
    columns: CandidateColumns, translation: str, source: str | None, options: DecisionOptions
) -> tuple[Hypotheses, Counts]:
    """The merged candidates and their counts; sides are joined if a source is given."""
    parsed = _parsed(columns, translation, source, options)
    invalid = Counter(one.reason for one in parsed if isinstance(one, Invalid))
    annotations: list[Annotation | None] = [None if isinstance(one, Invalid) else one.annotation for one in parsed]
    own = annotations
    if source is not None:
        joined = {id(a): a.concatenate_sides(len(translation)) for a in annotations if a is not None}
        annotations = [None if a is None else joined[id(a)] for a in annotations]
    if invalid and options.invalid == "empty":
        annotations = [EMPTY if a is None else a for a in annotations]
    self_reported = [one.self_reported_score for one in parsed] if options.score == "given" else None
    try:
        folded = Hypotheses(annotations, columns.logprobs, columns.texts, self_reported, columns.annotators)
    except NoValidCandidateError as error:
        why = ", ".join(f"{count} {reason}" for reason, count in invalid.most_common())
        text = next(filter(None, columns.texts), "")
        example = f"; the first answer is {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'!r}" if text else ""
        fix = example + _other_format(columns, translation, source, options)
        raise NoValidCandidateError(f"{error} ({why}){fix}" if why else f"{error}{fix}") from None
    proposed: Mapping[Place, Sequence[Proposal]] = {}
    formats = [get_format(form or options.format) for form in columns.different_formats]
    if columns.annotations is not None or any(form.corrections for form in formats):
        from mbr_esd_metric.core.corrections import proposals

        unknown = options.weights == "model" and None in columns.logprobs
        weights = folded.candidate_weights("uniform" if unknown else options.weights)
        proposed = proposals(own, weights.tolist(), columns.logprobs)
    valid = [one for one in parsed if isinstance(one, Parsed)]
    counts = Counts(
        len(columns),
        dict(invalid),
        sum([one.dropped for one in valid]),
        sum([one.inexact for one in valid]),
        sum([one.malformed for one in valid]),
        sum([one.unplaced for one in valid]),
        sum([one.dropped > 0 and not one.annotation for one in valid]),
        None if source is None else len(translation),
        _probabilities(columns, options.parser(translation, columns.format, source)) if valid else {},
        proposals=proposed,
    )
    return folded, counts


def _probabilities(columns: CandidateColumns, parser: AnswerParser) -> Mapping[SpanKey, float]:
    """The confidence of each span of a single candidate; empty without a text or tokens."""
    text, tokens = columns.texts[0], columns.token_logprobs
    if text is None or tokens is None or columns.annotations is not None:
        return {}

    def in_bytes(end: int) -> int:
        return len(text[:end].encode("utf-8", "surrogatepass"))

    return {
        # Rounding may bring a sum above 0.
        key: math.exp(min(tokens.total([(in_bytes(start), in_bytes(end)) for start, end in ranges]), 0.0))
        for key, ranges in parser.ranges(text).items()
    }


def read_annotations(
    candidates: Candidates, translation: str, options: DecisionOptions, source: str | None = None
) -> list[Annotation | Invalid]:
    """The annotation of each candidate, including omissions, or the reason why it is invalid. Raises `InputError` for a
    candidate without text and annotation."""
    parsed = _parsed(CandidateColumns.of(candidates), translation, source, options)
    return [one if isinstance(one, Invalid) else one.annotation for one in parsed]


def annotator_scores(
    candidates: Candidates, translation: str, options: DecisionOptions, source: str | None = None
) -> dict[str, float]:
    """Annotator -> MQM score of a segment (the mean over the annotator's valid candidates), for `Panel.learnt`."""
    columns = CandidateColumns.of(candidates)
    read = read_annotations(columns, translation, options, source)
    scores: dict[str, list[float]] = {}
    for name, one in zip(columns.annotators or (), read, strict=False):
        if name is not None and (isinstance(one, Annotation) or options.invalid == "empty"):
            scores.setdefault(name, []).append(mqm_score(EMPTY if isinstance(one, Invalid) else one, options.mqm))
    return {name: sum(values) / len(values) for name, values in scores.items()}


def _parsed(
    columns: CandidateColumns, translation: str, source: str | None, options: DecisionOptions
) -> list[Parsed | Invalid]:
    """Each parsed candidate; equal texts share one object."""
    parsers = {form: options.parser(translation, form, source) for form in columns.different_formats}
    plain = columns.annotations is None and columns.formats is None
    if plain and True not in columns.truncated and None not in columns.texts:
        parser = parsers[columns.format]
        return [parser.parse(text) for text in columns.texts if text is not None]
    parsed: list[Parsed | Invalid] = []
    annotations = columns.annotations or [None] * len(columns)
    formats = columns.formats or [columns.format] * len(columns)
    values = zip(columns.texts, columns.truncated, annotations, formats, strict=True)
    for number, (text, cut, spans, form) in enumerate(values, 1):
        parser = parsers[form]
        if cut:
            parsed.append(Invalid(CUT, None if text is None else parser.parse(text).self_reported_score))
        elif spans is not None:
            parsed.append(Parsed(as_annotation(spans)))
        elif text is None:
            raise InputError(f"candidate {number} has neither a text nor an annotation")
        else:
            parsed.append(parser.parse(text))
    return parsed
