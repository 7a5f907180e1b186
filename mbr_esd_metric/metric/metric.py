"""The metric that users call: samples in, scores and error spans out. Knows nothing of COMET."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.core.annotation import Side
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.errors import InputError, OptionError, printable, unknown
from mbr_esd_metric.generation.server.address import shown
from mbr_esd_metric.metric.card import DESCRIBED, ModelCard, settings
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.data_warnings import counted, data_warning
from mbr_esd_metric.metric.pipeline import Annotated, annotate
from mbr_esd_metric.metric.plan import Segment, members


class _Result(dict[str, Any]):
    """A dict whose keys are attributes too, as COMET's ``Prediction`` is. Type checkers see those that are declared."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(str(unknown("name in a prediction", name, self))) from None


class Metadata(_Result):
    """What else is known of the samples.

    Attributes:
        error_spans: of each sample, as xCOMET's dicts; see `error_spans`.
        sentences: of each sample that was judged sentence by sentence, where they stand and their scores, in [0, 1];
            missing where no sample was.
        omissions: the same of the source, where the model says what is left out of it; else missing.
        mqm_scores: as the scores of the `Prediction`.
        mqm: Score(E) in [-25, 0]; with ``score=expected`` or ``conditional`` a mean over the candidates.
        mqm_sd: its standard deviation where it is a mean; else missing.
        expected_utility: of the chosen annotations.
        valid, distinct, invalid: numbers of candidates.
        dropped: error spans of all valid candidates that are not in the translation, or the source.
        unplaced: how many of these are omissions; missing as `omissions`.
        data_warnings: what looks like a mistake in a pair, or None.
        summary: how many candidates and spans were lost, in a line.
        advice: lines about what makes the scores say little, and the options that help.
        signature: what the scores depend on.
    """

    error_spans: list[list[dict[str, Any]]]
    sentences: list[list[dict[str, Any]]]
    omissions: list[list[dict[str, Any]]]
    mqm_scores: list[float]
    mqm: list[float]
    mqm_sd: list[float | None]
    expected_utility: list[float]
    valid: list[int]
    distinct: list[int]
    invalid: list[int]
    dropped: list[int]
    unplaced: list[int]
    data_warnings: list[str | None]
    summary: str
    advice: list[str]
    signature: str


class Prediction(_Result):
    """What `Metric.predict` returns, with the structure of COMET's ``Prediction``.

    Attributes:
        scores: in [0, 1], higher is better; NaN for what `blank=skip` leaves out.
        system_score: the mean of those that are numbers.
        metadata: lists with one item for each sample, and what is known of the run.
    """

    scores: list[float]
    system_score: float
    metadata: Metadata


#: Settings of a model that `repr` shows even where they are at their default.
_SHOWN = ("model", "n", "rule", "utility", "format", "score", "engine")


@dataclass(frozen=True, slots=True)
class Score:
    """A score of one translation or many.

    Attributes:
        name: of the metric.
        score: in [0, 1], higher is better; the mean of those of the translations.
        mqm: the same as Score(E), in [-25, 0].
        signature: what it depends on.
    """

    name: str
    score: float
    mqm: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name} = {self.score:.3f}"


class Metric:
    """A metric: a model card that scores samples.

    Args:
        card: what `mbr_esd_metric.metric.cards.load_card` returns.
    """

    def __init__(self, card: ModelCard) -> None:
        self.card = card

    def annotate(self, segments: Sequence[Segment], *, progress: bool = False) -> Annotated:
        """One decision for each segment, in order, and the run's signature; see
        `mbr_esd_metric.metric.pipeline.annotate`."""
        return annotate(self.card, segments, progress=progress)

    def __repr__(self) -> str:
        usual = settings(ModelCard(self.card.name))
        said = [
            f"{name}={','.join(map(shown, value)) if isinstance(value, tuple) else value}"
            for name, value in settings(self.card).items()
            if name not in DESCRIBED and (name in _SHOWN or value != usual[name])
        ]
        return f"Metric({self.card.name}: {', '.join(said)})"

    def predict(
        self,
        samples: Sequence[Mapping[str, str]] | Mapping[str, Sequence[str]],
        batch_size: int = 16,
        gpus: int = 1,
        devices: Sequence[int] | str | int | None = None,
        mc_dropout: int = 0,
        progress_bar: bool = True,
        accelerator: str = "auto",
        num_workers: int | None = None,
        length_batching: bool = True,
    ) -> Prediction:
        """Scores and error spans, with the arguments and the result of COMET's ``predict``.

        Args:
            samples: dicts with the texts "src" and "mt"; perhaps "system", which tells equal translations apart if
                candidates come from a file, and "doc", the document for ``context=document``; other keys, such
                as "ref", are ignored. Or one dict of such lists.
            gpus: 0 keeps the model on the CPU, unless its name says ``device=``; with any other number the engine
                chooses.
            mc_dropout: must be 0.
            progress_bar: show progress on standard error.
            batch_size, devices, accelerator, num_workers, length_batching: not used; the model's name takes
                ``device=``, ``concurrency=``, ``tensor_parallel=`` and ``data_parallel=``.

        Returns:
            A `Prediction`. Empty `samples` give empty lists and a system score of NaN.

        Raises:
            InputError: no samples, lists of different lengths, or a sample without "src" or "mt" or with a value that
                is not a text; names it.
            OptionError: `mc_dropout` is not 0.
            EngineError, StoreError, NoValidCandidateError: what was sampled before stays in the store.
        """
        if mc_dropout:
            raise OptionError("mc_dropout is for COMET's regression models; leave it at 0 with this model")
        if isinstance(samples, Mapping):
            samples = _rows(samples)
        if not isinstance(samples, Iterable):
            raise InputError(f"samples are {type(samples).__name__}; give a list of dicts with 'src' and 'mt'")
        segments = [_segment(sample, index) for index, sample in enumerate(samples)]
        on_cpu = gpus == 0 and self.card.device == "auto"
        metric = Metric(replace(self.card, device="cpu")) if on_cpu else self
        return metric.predict_segments(segments, progress=progress_bar)

    def corpus_score(self, hypotheses: Sequence[str], sources: Sequence[str]) -> Score:
        """The mean score of translations, as sacreBLEU's metrics have it, with sources for references.

        Raises:
            InputError: lists of different lengths; and as `predict`.
        """
        return self._score({"src": sources, "mt": hypotheses})

    def sentence_score(self, hypothesis: str, source: str) -> Score:
        """The score of one translation; errors as `predict`."""
        return self._score({"src": [source], "mt": [hypothesis]})

    def _score(self, samples: Mapping[str, Sequence[str]]) -> Score:
        found = self.predict(samples, progress_bar=False)
        return Score(self.card.name, found.system_score, mean(found.metadata.mqm), found.metadata.signature)

    def predict_segments(self, segments: Sequence[Segment], *, progress: bool = False) -> Prediction:
        """`predict` of segments whose labels messages name; errors are the same."""
        run = self.annotate(segments, progress=progress)
        decisions = run.decisions
        spans = [error_spans(d, s.translation) for d, s in zip(decisions, segments, strict=True)]
        left_out = [error_spans(d, s.source, "source") for d, s in zip(decisions, segments, strict=True)]
        for decision, marked, missing in zip(decisions, spans, left_out, strict=True):
            for span, models in zip([*marked, *missing], decision.models, strict=bool(decision.models)):
                span["models"] = list(models)
        mqm = [decision.mqm for decision in decisions]
        averaged = self.card.decision.score != "chosen"
        both = any(card.decision.both_sides() for card in members(self.card))
        scores = [decision.score for decision in decisions]
        sentences = [
            [{"start": p.start, "end": p.end, "score": p.score} for p in decision.parts] for decision in decisions
        ]
        return Prediction(
            scores=scores,
            system_score=mean(scores),
            metadata=Metadata(
                error_spans=spans,
                **({"omissions": left_out} if both else {}),
                **({"sentences": sentences} if any(sentences) else {}),
                mqm_scores=list(scores),
                mqm=mqm,
                **({"mqm_sd": [decision.mqm_sd for decision in decisions]} if averaged else {}),
                expected_utility=[decision.expected_utility for decision in decisions],
                valid=[decision.valid for decision in decisions],
                distinct=[decision.distinct for decision in decisions],
                invalid=[decision.invalid for decision in decisions],
                dropped=[decision.dropped for decision in decisions],
                **({"unplaced": [decision.unplaced for decision in decisions]} if both else {}),
                data_warnings=[data_warning(s.source, s.translation) for s in segments],
                summary=run.summary.line,
                advice=list(run.summary.advice),
                signature=run.signature,
            ),
        )


def mean(scores: Sequence[float]) -> float:
    """The mean of the scores that are not NaN (`blank=skip` gives NaN); NaN if there are none."""
    numbers = [score for score in scores if not math.isnan(score)]
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def warnings(data_warnings: Sequence[str | None], labels: Sequence[str], blank: str) -> str | None:
    """One line for users about pairs that look like mistakes in the data; None if there are none."""
    line = counted(data_warnings, labels)
    if line is not None and "blank translation" in data_warnings:
        means = {"worst": "get the lowest score", "skip": "are left out", "perfect": "count as having no error"}
        line += f"; blank translations {means[blank]} (blank={blank})"
    return line


def error_spans(decision: Decision, text: str, side: Side = "translation") -> list[dict[str, Any]]:
    """The chosen spans of one side as xCOMET's dicts: text, confidence, severity, start, end; and category.

    A model wrote the category. COMET prints and writes it unchanged, so characters that UTF-8 lacks are removed here.
    """
    return [
        {
            "text": text[span.start : span.end],
            "confidence": span.confidence,
            "severity": span.severity,
            "start": span.start,
            "end": span.end,
            "category": span.category and printable(span.category),
        }
        for span in decision.annotation.on(side)
    ]


def _rows(lists: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Parallel lists as one dict a sample."""
    for key, texts in lists.items():
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise InputError(f"samples[{key!r}] is {type(texts).__name__}; give a list of texts, or one dict a sample")
    lengths = {key: len(texts) for key, texts in lists.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{key!r} {length}" for key, length in lengths.items())
        raise InputError(f"the lists of samples have different lengths: {said}")
    return [dict(zip(lists, texts, strict=True)) for texts in zip(*lists.values(), strict=True)]


def _segment(sample: Mapping[str, str], index: int) -> Segment:
    if not isinstance(sample, Mapping):
        raise InputError(f"samples[{index}] is {type(sample).__name__}; give a dict with 'src' and 'mt'")
    for key in ("src", "mt"):
        if key not in sample:
            raise InputError(f"samples[{index}] has no {key!r}; give a dict with 'src' and 'mt'")
        if not isinstance(sample[key], str):
            raise InputError(f"samples[{index}]: {key!r} is {type(sample[key]).__name__}, not a text")
    system, document = sample.get("system", ""), sample.get("doc", "")
    for key, value in (("system", system), ("doc", document)):
        if not isinstance(value, str):
            raise InputError(f"samples[{index}]: {key!r} is {type(value).__name__}, not a text")
    return Segment(sample["src"], sample["mt"], f"samples[{index}]", system, document)


def load_metric(name: str, **options: object) -> Metric:
    """The metric for a model name, or for a model folder; loads weights only when they are needed.

    Args:
        name: with options, as in "mbr-esd-llama?n=64".
        **options: more of them, as in ``n=64``; they stand at the end of the name.

    Raises:
        OptionError, InputError: as `load_card`.
    """
    return Metric(load_card(name, {option: str(value) for option, value in options.items()}))
