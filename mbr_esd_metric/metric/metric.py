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
    """A dict whose keys are also attributes, like COMET's ``Prediction``. Type checkers see the declared attributes."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(str(unknown("name in a prediction", name, self))) from None


class Metadata(_Result):
    """Lists with one item per sample, and the summary, advice and signature of the run."""

    error_spans: list[list[dict[str, Any]]]  #: in the form of xCOMET; see `JudgedSegment.spans_json`
    omissions: list[list[dict[str, Any]]]  #: omissions in the source; absent if the model does not mark them
    corrected: list[str]  #: translations with corrected spans; absent if the model does not correct
    sentences: list[list[dict[str, Any]]]  #: sentences scored separately, with scores; absent if none
    mqm_scores: list[float]  #: the scores of the `Prediction`
    mqm: list[float]  #: Score(E) in [-25, 0]; a mean over the candidates with ``score=expected`` or ``given``
    mqm_sd: list[float | None]  #: its standard deviation, if it is a mean; otherwise absent
    expected_utility: list[float]  #: of the chosen annotations
    valid: list[int]  #: numbers of candidates
    distinct: list[int]
    invalid: list[int]
    unsure: list[bool]  #: whether the model marks no error and a third or more of the candidates are invalid
    located: list[int]  #: number of error spans of valid candidates that occur in the translation or source
    dropped: list[int]  #: number of spans that occur in neither
    unplaced: list[int]  #: number of omissions among these; absent like `omissions`
    refused: list[str | None]  #: message of a server that rejected the request; absent if there are none
    data_warning: list[str | None]  #: see `data_warnings.data_warning`
    summary: str  #: a line with the numbers of lost candidates and spans; "" if there are none
    advice: list[str]  #: problems that make the scores uninformative, with options that help
    signature: str  #: all settings that the scores depend on


class Prediction(_Result):
    """The result of `Metric.predict`, with the structure of COMET's ``Prediction``.

    Attributes:
        scores: in [0, 1], higher is better; NaN for translations skipped by `blank=skip` or rejected by a server.
        system_score: the mean of the scores that are not NaN.
        metadata: see `Metadata`.
    """

    scores: list[float]
    system_score: float
    metadata: Metadata

    def rows(self) -> list[dict[str, Any]]:
        """One dict per sample, with its score and metadata: ``pandas.DataFrame(prediction.rows())``."""
        others = {"advice", "mqm_scores"}  # values of the run, and a copy of the scores for COMET
        columns = {"score": self.scores} | {
            name: values for name, values in self.metadata.items() if isinstance(values, list) and name not in others
        }
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


class DataFrame(Protocol):
    """The method of a pandas DataFrame that `predict` uses."""

    def to_dict(self, orient: Any, /) -> Any:
        """As in pandas."""


class PolarsFrame(Protocol):
    """The method of a polars DataFrame that `predict` uses."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """As in polars."""


#: Input of a metric; see `Metric.predict`.
Samples: TypeAlias = "Sequence[Mapping[str, Any] | Segment] | Mapping[str, Sequence[str]] | DataFrame | PolarsFrame"

#: Settings that `repr` shows even at their defaults.
_SHOWN = ("model", "n", "rule", "utility", "format", "score", "engine")
#: Attributes of a decision that are columns of the metadata.
_FACTS: tuple[str, ...] = ("mqm", "mqm_sd", "expected_utility", "valid", "distinct", "invalid", "unsure")
_FACTS += ("located", "dropped", "unplaced")


class Metric:
    """A metric: a model card (see `mbr_esd_metric.metric.cards.load_card`) that scores samples.

    A model in this process stays loaded between calls of `predict`, until `close`, the end of a ``with`` block, or the
    deletion of the metric. `predict` is thread-safe; calls with such a model are serialised.
    """

    def __init__(self, card: ModelCard) -> None:
        self.card = card
        self._lock = threading.Lock()
        #: The loaded source, its card, and its `close`, which is called when the metric is freed at the latest.
        self._kept: tuple[CandidateSource, ModelCard, weakref.finalize[..., Metric]] | None = None

    def __enter__(self) -> Metric:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Metric], tuple[ModelCard]]:
        """Copies, also in other processes, load their own model."""
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
        """`annotate`, reusing the loaded source if it belongs to this card."""
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
            samples: dicts with the texts "src" and "mt", and optionally "system" (to distinguish equal translations if
                candidates come from a file) and "doc" (the document for ``context=document``); other keys, such as
                "ref", are ignored. Or a dict of such lists, a pandas or polars DataFrame with such columns, or
                `Segment`s.
            gpus: 0 runs the model on the CPU; for other values, the engine chooses the devices.
            mc_dropout: must be 0.
            progress_bar: show progress on standard error.
            batch_size, devices, accelerator, num_workers, length_batching: not used; the model's name takes
                ``concurrency=`` and ``vllm=``.

        Raises:
            InputError: lists of different lengths, or a sample without "src" or "mt", or with a value that is not a
                text.
            OptionError: `mc_dropout` is not 0.
            EngineError, StoreError, NoValidCandidateError: earlier samples stay in the store.
        """
        return self.prediction(self.judge(samples, gpus=gpus, mc_dropout=mc_dropout, progress=progress_bar))

    def judge(self, samples: Samples, *, gpus: int = 1, mc_dropout: int = 0, progress: bool = True) -> Annotated:
        """The judged segments with their decisions; for arguments and exceptions, see `predict`."""
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
    """Convert parallel lists to one dict per sample."""
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
        name: such as ``mbr-esd-llama?n=64``.
        **options: options of the name, such as ``n=64``, ``server=["http://one:8000/v1"]`` or ``price=(0.1, 0.5)``;
            None leaves one as it is.

    Raises:
        OptionError: an unknown name, option or value; the message names the nearest valid ones.
        InputError: a folder whose ``hparams.yaml`` is not one of ours.
    """
    return Metric(load_card(name, options))
