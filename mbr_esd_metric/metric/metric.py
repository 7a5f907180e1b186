"""The metric that users call: samples in, scores and error spans out. Knows nothing of COMET."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.mqm import unit_score
from mbr_esd_metric.errors import InputError, number_of, printable
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import Annotated, Segment, annotate
from mbr_esd_metric.metric.suspects import counted, suspicion


class Prediction(dict[str, Any]):
    """A dict whose keys are attributes too, with the structure of COMET's ``Prediction``.

    Keys: ``scores`` (a list, in [0, 1], higher is better; NaN for what `blank=skip` leaves out), ``system_score``
    (the mean of those that are numbers), ``metadata`` with ``error_spans``, ``mqm_scores`` (as ``scores``), ``mqm``
    (Score(E) in [-25, 0]; with ``score=expected`` or ``conditional`` a mean over the candidates, and its standard
    deviation in ``mqm_sd``), ``expected_utility`` (of the chosen annotation), ``valid``, ``distinct`` and ``invalid``
    (numbers of candidates), ``dropped`` (error spans of all valid candidates that are not in the translation) and
    ``suspects`` (what looks like a mistake in a pair, or None), each a list with one item for each sample; and
    ``signature``.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a prediction has {', '.join(self)}, not {name!r}") from None


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

    def predict(self, samples: Sequence[Mapping[str, str]], *, progress_bar: bool = True, **_: object) -> Prediction:
        """Scores and error spans, with the arguments and the result of COMET's ``predict``.

        Args:
            samples: dicts with the texts "src" and "mt", and perhaps "system", which tells equal translations apart if
                candidates come from a file; other keys, such as "ref", are ignored.
            progress_bar: show progress on standard error.
            **_: COMET's other arguments (batch_size, gpus, accelerator, num_workers, length_batching), which have no
                meaning here; devices are options of the model name.

        Returns:
            A `Prediction`. Empty `samples` give empty lists and a system score of NaN.

        Raises:
            InputError: not a list, or a sample without "src" or "mt" or with a value that is not a text; names it.
            EngineError, StoreError, NoValidCandidateError: what was sampled before stays in the store.
        """
        if not isinstance(samples, Iterable):
            raise InputError(f"samples are {type(samples).__name__}; give a list of dicts with 'src' and 'mt'")
        return self.predict_segments(
            [_segment(sample, index) for index, sample in enumerate(samples)], progress=progress_bar
        )

    def predict_segments(self, segments: Sequence[Segment], *, progress: bool = False) -> Prediction:
        """`predict` of segments whose labels messages name; errors are the same."""
        run = self.annotate(segments, progress=progress)
        decisions = run.decisions
        spans = [error_spans(d, s.translation) for d, s in zip(decisions, segments, strict=True)]
        for marked, models in zip(spans, run.origins, strict=False):
            for span, which in zip(marked, models, strict=True):
                span["models"] = list(which)
        mqm = [decision.score for decision in decisions]
        averaged = self.card.decision.score != "chosen"
        scores = [unit_score(score, self.card.decision.mqm) for score in mqm]
        return Prediction(
            scores=scores,
            system_score=mean(scores),
            metadata=Prediction(
                error_spans=spans,
                mqm_scores=list(scores),
                mqm=mqm,
                **({"mqm_sd": [decision.score_sd for decision in decisions]} if averaged else {}),
                expected_utility=[decision.value for decision in decisions],
                valid=[decision.valid for decision in decisions],
                distinct=[decision.distinct for decision in decisions],
                invalid=[decision.invalid for decision in decisions],
                dropped=[decision.dropped for decision in decisions],
                suspects=[suspicion(s.source, s.translation) for s in segments],
                signature=run.signature,
            ),
        )


def mean(scores: Sequence[float]) -> float:
    """The mean of the scores that are not NaN (`blank=skip` gives NaN); NaN if there are none."""
    numbers = [score for score in scores if not math.isnan(score)]
    return sum(numbers) / len(numbers) if numbers else math.nan


def losses(metadata: Mapping[str, Any]) -> str:
    """One line for users: how many candidates could not be read, and how many error spans were not found."""
    invalid, dropped = sum(metadata["invalid"]), sum(metadata["dropped"])
    candidates = invalid + sum(metadata["valid"])
    if not candidates:
        return "no candidates, as there is nothing to mark in blank translations"
    lost = number_of(dropped, "error span")
    return f"{invalid} of {number_of(candidates, 'candidate')} could not be read, {lost} not found in the translation"


def warnings(metadata: Mapping[str, Any], blank: str) -> str | None:
    """One line for users about pairs that look like mistakes in the data; None if there are none.

    Args:
        metadata: of the prediction.
        blank: what blank translations count as.
    """
    line = counted(metadata["suspects"])
    if line is not None and "blank translation" in metadata["suspects"]:
        means = {"worst": "get the lowest score", "skip": "are left out", "perfect": "count as having no error"}
        line += f"; blank translations {means[blank]} (blank={blank})"
    return line


def error_spans(decision: Decision, translation: str) -> list[dict[str, Any]]:
    """The chosen spans as xCOMET's dicts: text, confidence, severity, start, end; and category.

    A model wrote the category. COMET prints and writes it unchanged, so characters that UTF-8 lacks are removed here.
    """
    return [
        {
            "text": translation[span.start : span.end],
            "confidence": span.confidence,
            "severity": span.severity,
            "start": span.start,
            "end": span.end,
            "category": span.category and printable(span.category),
        }
        for span in decision.annotation
    ]


def _segment(sample: Mapping[str, str], index: int) -> Segment:
    if not isinstance(sample, Mapping):
        raise InputError(f"samples[{index}] is {type(sample).__name__}; give a dict with 'src' and 'mt'")
    for key in ("src", "mt"):
        if key not in sample:
            raise InputError(f"samples[{index}] has no {key!r}; give a dict with 'src' and 'mt'")
        if not isinstance(sample[key], str):
            raise InputError(f"samples[{index}]: {key!r} is {type(sample[key]).__name__}, not a text")
    system = sample.get("system", "")
    if not isinstance(system, str):
        raise InputError(f"samples[{index}]: 'system' is {type(system).__name__}, not a text")
    return Segment(sample["src"], sample["mt"], f"samples[{index}]", system)


def load_metric(name: str) -> Metric:
    """The metric for a model name with its options, or for a model folder; loads weights only when they are needed.

    Raises:
        OptionError, InputError: as `load_card`.
    """
    return Metric(load_card(name))
