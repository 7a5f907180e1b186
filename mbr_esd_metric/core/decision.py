"""Input and output of a decision: `Candidate` and `Decision`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from numbers import Real
from typing import TypeAlias

from mbr_esd_metric.core.annotation import Annotation, AnnotationLike, ErrorSpan, unit_score, weights_of
from mbr_esd_metric.errors import InputError

#: How candidates are weighted as supports; see `Hypotheses.weights`.
WEIGHTINGS = ("uniform", "model", "agreement")

#: Kinds of a decision's score: of the chosen annotation, or the mean over the supports of their scores or of the scores
#: stated in the answers.
SCORES = ("chosen", "expected", "given")

#: Description of `Decision.unsure` segments in summaries and gates.
UNSURE = "unsure: the model marks no error, but a third or more of the candidates are invalid"
#: With fewer candidates, a model cannot be judged.
FEW = 8


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """The log-probability of each token of an answer.

    Attributes:
        sizes: number of UTF-8 bytes of the answer in each token, in order; 0 for the end token.
        logprobs: log M of each token, at most 0; `Candidate.logprob` is their sum.
    """

    sizes: tuple[int, ...]
    logprobs: tuple[float, ...]

    @classmethod
    def spelling(cls, pieces: Iterable[bytes], logprobs: Iterable[float], text: str) -> TokenLogprobs | None:
        """The tokens that spell a text, including the end tokens after it; None if they spell something else."""
        spelled, at, sizes = text.encode("utf-8", "surrogatepass"), 0, []
        for piece in pieces:
            # The last token may end in an incomplete character, which the text lacks.
            size = min(len(piece), len(spelled) - at)
            if spelled[at : at + size] != piece[:size]:
                return None
            sizes.append(size)
            at += size
        return cls(tuple(sizes), tuple(logprobs)) if at == len(spelled) else None

    def total(self, ranges: Iterable[tuple[int, int]]) -> float:
        """The sum over the tokens that contain a byte of these half-open ranges; each token counts once."""
        spelled, total = list(ranges), 0.0
        ends = accumulate(self.sizes)
        for size, end, logprob in zip(self.sizes, ends, self.logprobs, strict=True):
            if any(end - size < stop and start < end for start, stop in spelled if size):
                total += logprob
        return total


@dataclass(frozen=True, slots=True)
class Candidate:
    """One sampled annotation of a segment.

    Attributes:
        text: the model's answer, which is parsed against the translation when deciding.
        annotation: an annotation that needs no parsing; used instead of `text`.
        logprob: sum over the generated tokens (including the end token) of log M at temperature 1, over the tokens that
            the grammar admits, before top-k; None if unknown.
        truncated: whether it was cut by the length limit, or rejected or cut by a hosted service; such candidates are
            invalid.
        token_logprobs: log-probabilities of the tokens, from which the confidences of a single answer are computed;
            None if unknown.
        format: name of the text's answer format; None for the format in the decision options.
        tokens: the number of generated tokens; 0 if unknown.
        withheld: message of a hosted service that refused or filtered the answer; None if it did not.
        annotator: the model or person that produced it; None if unknown, or if all candidates are from one model.
    """

    text: str | None = None
    annotation: AnnotationLike | None = None
    logprob: float | None = None
    truncated: bool = False
    token_logprobs: TokenLogprobs | None = None
    format: str | None = None
    tokens: int = 0
    withheld: str | None = None
    annotator: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateColumns:
    """The candidates of one segment as columns. `annotations` and `annotators` are None if no candidate has one;
    `token_logprobs` are those of a single candidate. `format` is the common format of all texts; if they differ,
    `formats` has one per candidate."""

    texts: Sequence[str | None]
    logprobs: Sequence[float | None]
    truncated: Sequence[bool]
    annotations: Sequence[AnnotationLike | None] | None = None
    token_logprobs: TokenLogprobs | None = None
    format: str | None = None
    annotators: Sequence[str | None] | None = None
    formats: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The same as `Candidate` values."""
        unknown, formats = [None] * len(self), self.formats or [self.format] * len(self)
        each = (self.texts, self.annotations, self.logprobs, self.truncated, formats, self.annotators)
        return tuple(
            Candidate(text, annotation, logprob, cut, self.token_logprobs, form, annotator=annotator)
            for text, annotation, logprob, cut, form, annotator in zip(*(one or unknown for one in each), strict=True)
        )

    def first(self, count: int) -> CandidateColumns:
        """The first `count` candidates."""
        if count >= len(self):
            return self
        return replace(
            self,
            texts=self.texts[:count],
            logprobs=self.logprobs[:count],
            truncated=self.truncated[:count],
            annotations=self.annotations and self.annotations[:count],
            annotators=self.annotators and self.annotators[:count],
            formats=self.formats and self.formats[:count],
        )

    @property
    def different_formats(self) -> Sequence[str | None]:
        """The distinct formats of the candidates."""
        return [self.format] if self.formats is None else [*dict.fromkeys(self.formats)]

    @classmethod
    def of(cls, candidates: Candidates) -> CandidateColumns:
        """The columns of these candidates. Raises `InputError`, with the candidate's number from 1, for an item that is
        not a candidate, a text or annotator name that is not a string, or a log-probability that is not a number."""
        if isinstance(candidates, CandidateColumns):
            return candidates
        if not isinstance(candidates, Sequence):
            raise InputError(f"candidates are {type(candidates).__name__}; give a list of Candidates")
        for number, candidate in enumerate(candidates, 1):
            if not isinstance(candidate, Candidate):
                raise InputError(f"candidate {number} is {type(candidate).__name__}; give a Candidate")
        texts = [candidate.text for candidate in candidates]
        logprobs = [candidate.logprob for candidate in candidates]
        annotators = [candidate.annotator for candidate in candidates]
        columns: list[tuple[str, Sequence[object], type, str]]
        columns = [("text", texts, str, "a text"), ("logprob", logprobs, Real, "a number")]
        columns += [("annotator", annotators, str, "a name")]
        for name, values, kind, what in columns:
            # Check the set of types first: it is small, unlike the set of values.
            wrong = {one for one in set(map(type, values)) if one is bool or not issubclass(one, (kind, type(None)))}
            for number, value in enumerate(values if wrong else (), 1):
                if type(value) in wrong:
                    raise InputError(f"candidate {number}: {name} is {type(value).__name__}; give {what} or None")
        annotations = [candidate.annotation for candidate in candidates]
        formats = [candidate.format for candidate in candidates]
        of_texts = {candidate.format for candidate in candidates if candidate.annotation is None}
        several = len(of_texts) > 1
        truncated = [candidate.truncated for candidate in candidates]
        some = None if annotations.count(None) == len(annotations) else annotations
        tokens = candidates[0].token_logprobs if len(candidates) == 1 else None
        named = None if annotators.count(None) == len(annotators) else annotators
        form = None if several else next(iter(of_texts), None)
        return cls(texts, logprobs, truncated, some, tokens, form, named, formats if several else None)


#: Accepted by every function as the candidates of a segment.
Candidates: TypeAlias = Sequence[Candidate] | CandidateColumns


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """The characters ``[start, end)`` of a translation that were annotated separately, and their score."""

    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The annotation chosen for one segment.

    Attributes:
        index: index of the chosen candidate; of duplicates, the most probable, then the first. None if the answer is
            not a candidate.
        annotation: its error spans; each one's confidence, in [0, 1], is the mean over its characters of the weighted
            share of supports that mark the character, or, for a single answer, its probability (`decoding.segment`).
        score: `mqm` on the scale of [0, 1], ``(25 + mqm) / 25``; NaN for a skipped translation.
        mqm: MQM score of the annotation, in [-25, 0]; or the mean of the supports' scores, if requested.
        expected_utilities: the expected utility of each candidate; NaN for an invalid one.
        expected_utility: the expected utility of the annotation.
        valid, distinct, invalid: numbers of valid candidates, of different annotations among them, and of invalid
            candidates.
        dropped: error spans of the valid candidates that could not be located in the translation, or in the source.
        reasons: reason -> number of invalid candidates.
        mqm_sd: standard deviation of the supports' scores, if `mqm` is their mean; otherwise None.
        unplaced: number of omissions among the dropped spans.
        inexact: number of located spans whose text has different spaces, quotation marks, hyphens or similar.
        located: error spans of the valid candidates that could be located, summed over candidates.
        unmarked: number of valid candidates without errors.
        malformed: errors of the valid candidates that could not be parsed.
        unsure: whether the model marks no error, but a third or more of the candidates are invalid: error-free answers
            are rarely malformed, so malformed ones may contain errors.
        parts: the sentences, if they were decided separately; otherwise empty.
    """

    index: int | None
    annotation: Annotation
    score: float
    mqm: float
    expected_utilities: tuple[float, ...]
    expected_utility: float
    valid: int
    distinct: int
    invalid: int
    dropped: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    mqm_sd: float | None = None
    unplaced: int = 0
    inexact: int = 0
    located: int = 0
    unmarked: int = 0
    malformed: int = 0
    unsure: bool = False
    parts: tuple[ScoredPart, ...] = ()


def mostly_lost(candidates: int, located: int, dropped: int) -> bool:
    """Whether most error spans of this number of candidates could not be located, so that scores are unreliable; for
    few candidates, whether none could."""
    return dropped > located and (candidates >= FEW or not located)


def with_errors(decision: Decision, errors: Iterable[ErrorSpan], mqm: str, score: str) -> Decision:
    """The decision with rule-based errors added to its annotation, and their penalties subtracted from its score, minus
    what the model has already subtracted for marks on the same characters: the full penalty for a score of the
    annotation, a share for a mean over the candidates. A stated score (`score=given`) need not include any."""
    weights, annotation, points = weights_of(mqm), decision.annotation, decision.mqm
    lost = {"given": 0.0, "chosen": 1.0}
    for error in errors:
        marked = [one for one in decision.annotation.on(error.side) if one.start < error.end and error.start < one.end]
        taken = sum(lost.get(score, one.confidence or 0.0) * weights.of(one) for one in marked)
        points += min(weights.of(error) - taken, 0.0)
        annotation = annotation.with_spans([error, *annotation])
    points = max(points, weights.floor)
    return replace(decision, annotation=annotation, mqm=points, score=unit_score(points, mqm))
