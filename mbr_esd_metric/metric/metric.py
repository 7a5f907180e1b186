"""The metric that users call: samples in, scores and error spans out. Independent of COMET."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.generation.server.address import shown
from mbr_esd_metric.log import notes
from mbr_esd_metric.metric.card import DESCRIBED, ModelCard, ModelFields, settings
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import Annotated, CandidateSource, annotate, candidate_source
from mbr_esd_metric.metric.sources import Sampled

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Result(dict[str, Any]):
    """A dict whose keys are attributes too, as COMET's ``Prediction`` is. Type checkers see those that are declared."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(str(unknown("name in a prediction", name, self))) from None


class Metadata(_Result):
    """Lists with one item for each sample, and three facts about the run: summary, advice, signature."""

    error_spans: list[list[dict[str, Any]]]  #: as xCOMET's dicts; see `JudgedSegment.spans_json`
    omissions: list[list[dict[str, Any]]]  #: the same of the source; missing where the model marks none
    corrected: list[str]  #: translations with the corrections of their spans; missing where the model gives none
    sentences: list[list[dict[str, Any]]]  #: places and scores of those judged one by one; missing where there are none
    mqm_scores: list[float]  #: as the scores of the `Prediction`
    mqm: list[float]  #: Score(E) in [-25, 0]; with ``score=expected`` or ``given`` a mean over the candidates
    mqm_sd: list[float | None]  #: its standard deviation where it is a mean; else missing
    expected_utility: list[float]  #: of the chosen annotations
    valid: list[int]  #: numbers of candidates
    distinct: list[int]
    invalid: list[int]
    unsure: list[bool]  #: the model marks no error where a third or more of the candidates could not be read
    located: list[int]  #: error spans of all valid candidates that are in the translation, or the source
    dropped: list[int]  #: those that are in neither
    unplaced: list[int]  #: how many of these are omissions; missing as `omissions`
    refused: list[str | None]  #: the words of a server that will never answer; missing where there are none
    data_warning: list[str | None]  #: see `data_warnings.data_warning`
    summary: str  #: how many candidates and spans were lost, in a line; "" if none was
    advice: list[str]  #: what makes the scores say little, and the options that help
    signature: str  #: all that the scores depend on


class Prediction(_Result):
    """The result of `Metric.predict`, with the structure of COMET's ``Prediction``.

    Attributes:
        scores: in [0, 1], higher is better; NaN for what `blank=skip` leaves out, or a server will
            never answer.
        system_score: the mean of those that are numbers.
        metadata: see `Metadata`.
    """

    scores: list[float]
    system_score: float
    metadata: Metadata

    def rows(self) -> list[dict[str, Any]]:
        """One dict a sample, with its score and its part of the metadata: ``pandas.DataFrame(prediction.rows())``."""
        others = {"advice", "mqm_scores"}  # of the run; and the scores again, for callers of COMET
        columns = {"score": self.scores} | {
            name: values for name, values in self.metadata.items() if isinstance(values, list) and name not in others
        }
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


class DataFrame(Protocol):
    """The method of a pandas DataFrame that `predict` calls."""

    def to_dict(self, orient: Any, /) -> Any:
        """As in pandas."""


class PolarsFrame(Protocol):
    """The method of a polars DataFrame that `predict` calls."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """As in polars."""


#: What a metric scores; see `Metric.predict`.
Samples: TypeAlias = "Sequence[Mapping[str, Any] | Segment] | Mapping[str, Sequence[str]] | DataFrame | PolarsFrame"

#: Settings of a model that `repr` shows even where they are at their default.
_SHOWN = ("model", "n", "rule", "utility", "format", "score", "engine")
#: Attributes of a decision that are columns of the metadata.
_FACTS: tuple[str, ...] = ("mqm", "mqm_sd", "expected_utility", "valid", "distinct", "invalid", "unsure")
_FACTS += ("located", "dropped", "unplaced")


class Metric:
    """A metric: a model card (see `mbr_esd_metric.metric.cards.load_card`) that scores samples.

    A model in this process stays loaded from one `predict` to the next, until `close`, the end of a ``with`` block, or
    that of the metric itself. Several threads may call `predict`; with such a model one waits for the other.
    """

    def __init__(self, card: ModelCard) -> None:
        self.card = card
        self._lock = threading.Lock()
        #: The source that is kept, its card, and its `close`, which is called at the latest when the metric is freed.
        self._kept: tuple[CandidateSource, ModelCard, weakref.finalize[..., Metric]] | None = None

    def __enter__(self) -> Metric:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Metric], tuple[ModelCard]]:
        """A copy, here or in another process, loads a model of its own."""
        return type(self), (self.card,)

    def close(self) -> None:
        """Free the model; the next `predict` loads it again."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        if self._kept is not None:
            self._kept[2]()
            self._kept = None

    def _annotate(self, card: ModelCard, segments: Sequence[Segment], progress: bool) -> Annotated:
        """`annotate`, with the source that is kept where it is one of this card."""
        if not segments:
            return annotate(card, segments)
        with self._lock:
            if self._kept is None or self._kept[1] != card:
                self._release()
                with notes(progress):
                    source = candidate_source(card, keep=True)
                if isinstance(source, Sampled) and source.keeps:
                    self._kept = source, card, weakref.finalize(self, source.close)
            if self._kept is not None:
                return annotate(card, segments, progress=progress, source=self._kept[0])
        return annotate(card, segments, progress=progress, source=source)

    def __repr__(self) -> str:
        usual = settings(ModelCard(self.card.name))
        values = [
            f"{name}={','.join(shown(str(one)) for one in value) if isinstance(value, tuple) else value}"
            for name, value in settings(self.card).items()
            if name not in DESCRIBED and (name in _SHOWN or value != usual[name])
        ]
        return f"Metric({self.card.name}: {', '.join(values)})"

    def predict(
        self,
        samples: Samples,
        batch_size: int = 16,
        gpus: int = 1,
        devices: Sequence[int] | str | int | None = None,
        mc_dropout: int = 0,
        progress_bar: bool = True,
        accelerator: str = "auto",
        num_workers: int | None = None,
        length_batching: bool = True,
    ) -> Prediction:
        """Scores and error spans, with the arguments and the result of COMET's ``predict``; NaN for no samples.

        Args:
            samples: dicts with the texts "src" and "mt"; perhaps "system", which tells equal translations apart if
                candidates come from a file, and "doc", the document for ``context=document``; other keys, such
                as "ref", are ignored. Or one dict of such lists, a DataFrame of pandas or polars with such columns, or
                `Segment`s, which messages name by their labels.
            gpus: 0 keeps the model on the CPU; with any other number the engine chooses.
            mc_dropout: must be 0.
            progress_bar: show progress on standard error.
            batch_size, devices, accelerator, num_workers, length_batching: not used; the model's name takes
                ``concurrency=`` and ``vllm=``.

        Raises:
            InputError: lists of different lengths, or a sample without "src" or "mt" or with a value that
                is not a text; names it.
            OptionError: `mc_dropout` is not 0.
            EngineError, StoreError, NoValidCandidateError: what was sampled before stays in the store.
        """
        return self.prediction(self.judge(samples, gpus=gpus, mc_dropout=mc_dropout, progress=progress_bar))

    def judge(self, samples: Samples, *, gpus: int = 1, mc_dropout: int = 0, progress: bool = True) -> Annotated:
        """The judged segments with their decisions; arguments and errors are those of `predict`."""
        if mc_dropout:
            raise OptionError("mc_dropout only applies to COMET's regression models; set it to 0")
        rows: Any = _rows(samples) if isinstance(samples, Mapping) else samples
        if hasattr(rows, "to_dicts"):
            rows = rows.to_dicts()
        elif hasattr(rows, "to_dict"):
            rows = rows.to_dict("records")
        if not isinstance(rows, Iterable):
            raise InputError(f"samples is {type(rows).__name__}; pass a list of dicts with 'src' and 'mt'")
        segments = [_segment(sample, index) for index, sample in enumerate(rows)]
        return self._annotate(self.card if gpus else replace(self.card, device="cpu"), segments, progress)

    def prediction(self, run: Annotated) -> Prediction:
        """The result of `judge` with the structure of COMET's ``Prediction``."""
        decisions, judged, options = run.decisions, run.judged, self.card.decision
        scores = [decision.score for decision in decisions]
        metadata: dict[str, Any] = {"error_spans": [one.spans_json() for one in judged]}
        if run.answers.both_sides:
            metadata["omissions"] = [one.spans_json("source") for one in judged]
        if run.answers.corrections:
            metadata["corrected"] = [one.corrected for one in judged]
        if any(one.parts for one in judged):
            metadata["sentences"] = [[asdict(part) for part in one.parts] for one in judged]
        metadata["mqm_scores"] = list(scores)
        for name in _FACTS:
            if (name != "mqm_sd" or options.score != "chosen") and (name != "unplaced" or run.answers.both_sides):
                metadata[name] = [getattr(decision, name) for decision in decisions]
        if any(one.refused for one in judged):
            metadata["refused"] = [one.refused for one in judged]
        metadata["data_warning"] = [one.data_warning for one in judged]
        summary = {"summary": run.summary, "advice": list(run.advice), "signature": str(run.signature or "")}
        return Prediction(scores=scores, system_score=mean(scores), metadata=Metadata(**metadata, **summary))


def mean(scores: Sequence[float]) -> float:
    """The mean of the scores that are not NaN (`blank=skip` gives NaN); NaN if there are none."""
    numbers = [score for score in scores if not math.isnan(score)]
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def _rows(lists: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Parallel lists as one dict a sample."""
    for key, texts in lists.items():
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise InputError(
                f"samples[{key!r}] is {type(texts).__name__}; pass a list of texts, or one dict per sample"
            )
    lengths = {key: len(texts) for key, texts in lists.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key!r} {length}" for key, length in lengths.items())
        raise InputError(f"the lists of samples have different lengths: {listed}")
    return [dict(zip(lists, texts, strict=True)) for texts in zip(*lists.values(), strict=True)]


def _segment(sample: Mapping[str, Any] | Segment, index: int) -> Segment:
    if isinstance(sample, Segment):
        return sample
    if not isinstance(sample, Mapping):
        raise InputError(f"samples[{index}] is {type(sample).__name__}; pass a dict with 'src' and 'mt'")
    texts = {"system": "", "doc": "", **sample}
    for key in ("src", "mt", "system", "doc"):
        if key not in texts:
            raise InputError(f"samples[{index}] has no {key!r}; pass a dict with 'src' and 'mt'")
        if not isinstance(texts[key], str):
            raise InputError(f"samples[{index}]: {key!r} is {type(texts[key]).__name__}, not a text")
    return Segment(texts["src"], texts["mt"], f"samples[{index}]", texts["system"], texts["doc"])


def load_metric(name: str, **options: Unpack[ModelFields]) -> Metric:
    """The metric for a model name or model folder. Weights are loaded only when they are needed.

    Args:
        name: as ``mbr-esd-llama?n=64``.
        **options: options of the name, such as ``n=64``, ``server=["http://one:8000/v1"]`` or ``price=(0.1, 0.5)``;
            None leaves one as it is.

    Raises:
        OptionError: an unknown name, option or value; the message names the nearest valid ones.
        InputError: a folder whose ``hparams.yaml`` is not one of ours.
    """
    return Metric(load_card(name, options))
