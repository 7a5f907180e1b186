"""Scores a whole test set with a metric, and writes the scores into the layout; a stopped run goes on.

A metric is a model of this package, a COMET checkpoint, BLEU, chrF, or the empty annotation. Its scorer takes texts and
returns scores, and error spans if it has any, under one or several names. Higher is always better.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions, looks_like_checkpoint
from mbr_esd_metric.adapters.wmt.layout import EVERY_SYSTEM, SystemChoice
from mbr_esd_metric.adapters.wmt.metric_files import MetricFiles, WrittenMetric
from mbr_esd_metric.adapters.wmt.test_set import TestSet, references_of
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan, fold_severity, mqm_score
from mbr_esd_metric.errors import (
    EngineError,
    InputError,
    MissingCandidatesError,
    OptionError,
    logger,
    progress_bar,
    unknown,
)
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, with_pair
from mbr_esd_metric.metric.cards import CARD_NAMES, is_ours, load_card
from mbr_esd_metric.metric.data_warnings import data_warning, warnings
from mbr_esd_metric.metric.run import annotate, signature_of
from mbr_esd_metric.metric.sources import Segment, candidate_source

_T = TypeVar("_T")

#: Spans of xCOMET below this confidence are dropped in its rows "-Conf" (paper, Section 5.2).
_CONFIDENT = 0.7

#: Characters of a metric's name, as in a regular expression's brackets.
_NAME = r"\w.+=*-"

#: Options of a model name that say where and how it runs, not what it is. They are not in the name of the metric.
#: Those that change scores are in the signature, so that different scores are never taken for each other.
_SILENT = {"engine", "lp", "candidates", "store", "server", "price", "max_cost", "dtype", "concurrency", "vllm"}


@dataclass(frozen=True, slots=True)
class ScoredText(Segment):
    """One translation to score; not `supplied` if the folder has none of the segment, and the text is then empty."""

    reference: str | None = None
    supplied: bool = True


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of texts, in order, and their error spans if the metric has any."""

    scores: tuple[float, ...]
    annotations: tuple[Annotation, ...] | None = None


class Scorer(ABC):
    """Something that scores translations.

    Attributes:
        signatures: full metric name, such as "BLEU-refA" -> what its scores depend on.
        samples: whether it samples candidates. Then it gets all systems at once, because equal translations are sampled
            once and a rule may look at the whole test set, and by default only what is rated, because of the costs.
            Otherwise it gets one system after the other, and each is kept when done.
    """

    samples: ClassVar[bool] = False

    signatures: dict[str, str]

    @abstractmethod
    def score(self, texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        """Score texts, under each name in `signatures`."""

    def system_score(self, scores: Sequence[float], texts: Sequence[ScoredText]) -> float:
        """The score of a system with these texts: the mean, unless a metric has a formula of its own."""
        return sum(scores) / len(scores)


class EmptyScorer(Scorer):
    """Finds no errors: the baseline that every table of span metrics needs."""

    def __init__(self, name: str | None) -> None:
        self.name = f"{name or 'empty'}-src"
        self.signatures = {self.name: f"empty|v:{__version__}"}

    def score(self, texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        """Score(E) of nothing is 0."""
        return {self.name: Scored((0.0,) * len(texts), (EMPTY,) * len(texts))}


class SacrebleuScorer(Scorer):
    """BLEU or chrF of sacreBLEU: sentence scores, and the corpus score for the system. The target language, such as
    "de", chooses BLEU's tokeniser."""

    def __init__(self, kind: str, name: str | None, reference: str, target: str) -> None:
        from sacrebleu.metrics import BLEU, CHRF

        self.name = f"{name or kind}-{reference}"
        try:
            if kind == "BLEU":
                # Sentences have few 4-grams; the corpus score does not need the effective order.
                self._sentence: Any = BLEU(trg_lang=target, effective_order=True)
                self._corpus: Any = BLEU(trg_lang=target)
            else:
                self._sentence = self._corpus = CHRF()
        except (RuntimeError, ImportError) as error:
            raise EngineError(
                f"BLEU of {target} needs a tokeniser ({error}); install it with: pip install 'sacrebleu[{target}]'"
            ) from None
        # sacreBLEU knows the number of references after the first score only.
        self._corpus.corpus_score(["a"], [["a"]])
        self.signatures = {self.name: f"{kind}|{self._corpus.get_signature()}"}

    def score(self, texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        """In [0, 100]."""
        scores = (self._sentence.sentence_score(t.translation, [t.reference or ""]).score for t in texts)
        return {self.name: Scored(tuple(float(score) for score in scores))}

    def system_score(self, scores: Sequence[float], texts: Sequence[ScoredText]) -> float:
        """The corpus score."""
        references = [[text.reference or "" for text in texts]]
        return float(self._corpus.corpus_score([text.translation for text in texts], references).score)


class MbrEsdScorer(Scorer):
    """A model of this package: Score(E) of the annotation that its rule chooses, and that annotation. The samples stay
    in the candidate store in any case."""

    samples = True

    def __init__(self, model: str, name: str | None, lp: str | None = None) -> None:
        card = with_pair(load_card(model), lp, of_test_set=True)
        if card.decision.blank == "skip":
            raise OptionError("blank=skip gives no score, and a test set needs every segment's; take worst or perfect")
        self._card = card
        self._name = f"{name or default_name(model)}-src"
        self.signatures = {self._name: signature_of(card)}

    def score(self, texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        """In [-25, 0]. Raises `EngineError` where a server will not answer about a text."""
        segments = [text for text in texts if text.supplied]
        run = annotate(self._card, segments, progress=progress)
        if run.refused:
            raise EngineError("a test set needs the score of every segment; what was sampled is kept")
        data_warnings = [data_warning(one.source, one.translation, self._card.lp) for one in segments]
        if line := warnings(data_warnings, [segment.label for segment in segments], self._card.decision.blank):
            logger.warning(line)
        decisions = iter(run.decisions)
        of_texts = [next(decisions) if text.supplied else None for text in texts]
        scores = tuple(0.0 if d is None else d.mqm for d in of_texts)
        return {self._name: Scored(scores, tuple(EMPTY if d is None else d.annotation for d in of_texts))}


class CometScorer(Scorer):
    """Any COMET checkpoint; of xCOMET all its variants at once.

    A model that needs references gives NAME-REF, another NAME-src. xCOMET gives, with the reference and, under
    QE, without it: Reg, the model's own score; ESD, Score(E) of its spans (critical counts as major); and
    ESD-Conf, the same of the spans with a confidence of at least 0.7. Arguments as of `make_scorer`.
    """

    def __init__(self, model: str, name: str | None, reference: str | None) -> None:
        model, options = CometOptions.parse(model)
        self._checkpoint = CometCheckpoint(model, options)
        base = name or default_name(model)
        reference = None if options.reference == "no" else reference
        #: Metric's name -> whether the reference is given, variant.
        self._variants: dict[str, tuple[bool, str]] = {}
        if self._checkpoint.has_spans:
            for variant in _XCOMET_VARIANTS if reference else ():
                self._variants[f"{base}-{variant}-{reference}"] = True, variant
            for variant in _XCOMET_VARIANTS:
                self._variants[f"{base}-QE-{variant}-src"] = False, variant
        elif self._checkpoint.needs_references:
            if not reference:
                raise OptionError(f"{model} needs references; score a test set with a reference")
            self._variants[f"{base}-{reference}"] = True, "Reg"
        else:
            self._variants[f"{base}-src"] = False, "Reg"
        self.signatures = {
            name: f"{self._checkpoint.signature}|{'ref' if with_reference else 'src'}|{variant}"
            for name, (with_reference, variant) in self._variants.items()
        }

    def score(self, texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        """Reg as the model has it, ESD in [-25, 0]."""
        predictions = {}
        for with_reference in sorted({with_reference for with_reference, _ in self._variants.values()}):
            samples = [
                {"src": text.source, "mt": text.translation} | ({"ref": text.reference or ""} if with_reference else {})
                for text in texts
            ]
            predictions[with_reference] = self._checkpoint.predict(samples, progress)
            if note := self._checkpoint.cut_note(samples):
                logger.warning(note)
        return {name: _variant(variant, predictions[which], texts) for name, (which, variant) in self._variants.items()}


_XCOMET_VARIANTS = ("Reg", "ESD", "ESD-Conf")


def _variant(variant: str, prediction: Any, texts: Sequence[ScoredText]) -> Scored:
    if variant == "Reg":
        return Scored(tuple(float(score) for score in prediction.scores))
    least = _CONFIDENT if variant == "ESD-Conf" else 0.0
    annotations = tuple(
        xcomet_annotation(spans, text.translation, least)
        for spans, text in zip(prediction.metadata.error_spans, texts, strict=True)
    )
    return Scored(tuple(mqm_score(annotation) for annotation in annotations), annotations)


def xcomet_annotation(spans: Sequence[Mapping[str, Any]], translation: str, least: float = 0.0) -> Annotation:
    """xCOMET's spans with a confidence of at least `least`; those of special tokens alone have no characters."""
    marked = []
    for span in spans:
        severity = fold_severity(span["severity"])
        start, end = max(int(span["start"]), 0), min(int(span["end"]), len(translation))
        if severity is not None and span["confidence"] >= least and start < end:
            marked.append(ErrorSpan(start, end, severity, None, float(span["confidence"])))
    return Annotation(marked)


def make_scorer(model: str, *, name: str | None = None, reference: str | None = None, lp: str | None = None) -> Scorer:
    """The scorer of that name.

    Args:
        model: "empty", "BLEU", "chrF", a model of this package with options, or a COMET checkpoint (a .ckpt file,
            a folder, or a name on the hub, with a slash; options as of `CometOptions`).
        name: base of the metric's name, instead of the default.
        reference: the standard reference, if there is one and it may be used.
        lp: language pair, for prompts and BLEU's tokeniser.

    Raises:
        OptionError: unknown names, with the nearest ones; a `name` that no file can have; a metric that needs a
            reference without one.
        EngineError: a checkpoint that cannot be loaded.
    """
    if name is not None and not re.fullmatch(rf"[{_NAME}]+", name):
        raise OptionError(f"{name}={model}: a metric's name becomes a file's name, of letters, digits and _.+=*-")
    base = model.partition("?")[0]
    if model == "empty":
        return EmptyScorer(name)
    if model in ("BLEU", "chrF"):
        if reference is None:
            raise OptionError(
                f"{model} needs a reference, and this test set has none that may be used; leave BLEU and chrF out, or "
                "name one with --reference"
            )
        return SacrebleuScorer(model, name, reference, (lp or "").rpartition("-")[2].partition("_")[0])
    if is_ours(model):
        return MbrEsdScorer(model, name, lp)
    if looks_like_checkpoint(base):
        return CometScorer(model, name, reference)
    ours = unknown("model", base, ["empty", "BLEU", "chrF", *CARD_NAMES], "`mbr-esd models`")
    raise OptionError(f"{ours}, but for BLEU, chrF, empty and COMET's checkpoints")


def default_name(model: str) -> str:
    """A model's name as the base name of a metric: without folders, and without options that say where it runs."""
    base, _, query = model.partition("?")
    if base in (ANY_MODEL, LOCAL_MODEL):
        base = candidate_source(load_card(model)).card.title
        query = "&".join(part for part in query.split("&") if not part.startswith("model="))
    path = Path(base)
    if path.suffix == ".ckpt":
        path = path.parent.parent if path.parent.name == "checkpoints" else path.with_suffix("")
    options = [part for part in query.split("&") if part and part.partition("=")[0] not in _SILENT]
    return re.sub(rf"[^{_NAME}]", "_", "_".join([path.name, *options]))


def score_test_set(
    test_set: TestSet,
    scorer: Scorer,
    *,
    overwrite: bool = False,
    progress: bool = False,
    choice: SystemChoice = EVERY_SYSTEM,
    every: bool = True,
) -> list[WrittenMetric]:
    """Score every system of a test set and write ``.seg.score``, ``.sys.score`` and ``.seg.rating``.

    As the toolkit wants it, all systems are scored, evaluated or not, except the reference that a metric uses. Beside
    the scores, a file ``NAME.signature`` says what they depend on. Systems that have scores with the same signature are
    not scored again, and each system is written when it is done, so that a stopped run goes on.

    Args:
        choice: which systems are scored, in addition to those that already have such scores in the folder.
        every: score all translations; without, a scorer that samples scores only those that have gold, where some has.

    Raises:
        InputError: the folder has scores of that name with another signature, or no system is chosen.
        MbrEsdError: an error of the scorer; systems that were done before stay.
    """
    rated = only_rated(test_set, every) and scorer.samples
    values: dict[str, MetricFiles] = {}
    missing: dict[str, list[str]] = {}
    chosen: dict[str, list[str]] = {}
    for name, signature in scorer.signatures.items():
        stored = MetricFiles() if overwrite else _stored(test_set, name, signature)
        chosen[name] = _systems(test_set, name, choice, rated, stored.scores)
        missing[name] = [
            system
            for system in chosen[name]
            if system not in stored.scores
            or any(stored.scores[system][place] is None for place in _segments(test_set, system, rated))
        ]
        if missing[name] and scorer.samples:
            stored, missing[name] = MetricFiles(), chosen[name]
        values[name] = stored
    systems = sorted({system for each in missing.values() for system in each})
    texts = {system: _texts(test_set, system, rated) for system in systems}
    parts = [systems] if scorer.samples and systems else [[system] for system in systems]
    for part in progress_bar("scoring", "system", shown=progress and not scorer.samples, iterable=parts):
        try:
            results = scorer.score([text for s in part for text in texts[s]], progress and scorer.samples)
        except MissingCandidatesError as error:
            if set(error.systems) < set(systems):
                error.args = (f"{error}; to score the other systems: --exclude {' '.join(error.systems)}",)
            raise
        first = 0
        for system in part:
            piece = slice(first, first + len(texts[system]))
            first = piece.stop
            places = _segments(test_set, system, rated)
            for name in (name for name in missing if system in missing[name]):
                files, scores, annotations = values[name], results[name].scores[piece], results[name].annotations
                files.scores[system] = _spread(test_set, places, scores)
                files.annotations.pop(system, None)
                if annotations is not None:
                    files.annotations[system] = _spread(test_set, places, annotations[piece])
                files.system_scores[system] = scorer.system_score(scores, texts[system])
        for name in missing:
            if set(part) & set(missing[name]):
                values[name].write(test_set, name, scorer.signatures[name])
    written = []
    for name in scorer.signatures:
        count = sum(len(_segments(test_set, system, rated)) for system in chosen[name])
        without = len(chosen[name]) * test_set.segments - count
        written.append(WrittenMetric(name, len(chosen[name]), count, without, scored=bool(missing[name])))
    return sorted(written, key=lambda one: one.scored)


def only_rated(test_set: TestSet, every: bool) -> bool:
    """Whether only translations with gold are to be scored."""
    return not every and not bool(np.isnan(test_set.gold).all())


def texts_to_score(test_set: TestSet, name: str, choice: SystemChoice, rated: bool = False) -> list[ScoredText]:
    """Every translation that a metric of this full name would score if nothing was scored yet."""
    return [text for system in _systems(test_set, name, choice, rated) for text in _texts(test_set, system, rated)]


def _segments(test_set: TestSet, system: str, rated: bool) -> list[int]:
    """The numbers of the segments to score of a system."""
    if not rated:
        return list(range(test_set.segments))
    return [int(number) for number in np.flatnonzero(~np.isnan(test_set.gold[test_set.systems.index(system)]))]


def _spread(test_set: TestSet, places: Sequence[int], values: Sequence[_T]) -> list[_T | None]:
    """The values at their places among all segments."""
    by_place = dict(zip(places, values, strict=True))
    return [by_place.get(place) for place in range(test_set.segments)]


def _systems(
    test_set: TestSet, name: str, choice: SystemChoice, rated: bool, stored: Collection[str] = ()
) -> list[str]:
    """The systems to score with a metric: the chosen and the stored ones, without a reference that it uses."""
    used = references_of(name, tuple(test_set.references))
    able = [system for system in (test_set.systems if rated else test_set.outputs) if system not in used]
    chosen = [system for system in able if choice.takes(system, test_set.info)]
    if not chosen:
        raise InputError(
            f"{test_set.name} {test_set.lp}: no system is left for {name}; there are {', '.join(able) or 'none'}"
        )
    return [system for system in able if system in chosen or system in stored]


def _stored(test_set: TestSet, name: str, signature: str) -> MetricFiles:
    """The scores of the folder; empty where it has none."""
    path = test_set.layout.metric_file(name, "seg.score")
    if not path.is_file():
        return MetricFiles()
    stored = test_set.signature(name)
    if stored != signature:
        raise InputError(
            f"{path}: scores of that name are there, but not these ({stored or 'without a signature'} instead of "
            f"{signature}); choose another name, NAME=MODEL, or replace them with --overwrite"
        )
    return MetricFiles.read(test_set.layout, name)


def _texts(test_set: TestSet, system: str, rated: bool) -> list[ScoredText]:
    reference = test_set.references.get(test_set.info.standard_reference or "")
    return [
        ScoredText(
            test_set.sources[i],
            test_set.outputs[system][i] or "",
            f"{system}, segment {i + 1}",
            system,
            test_set.documents[i][1],
            reference=reference[i] if reference else None,
            supplied=test_set.outputs[system][i] is not None,
        )
        for i in _segments(test_set, system, rated)
    ]
