"""Scorers of a test set: this package's models, COMET checkpoints, BLEU and chrF, and the empty annotation.

A scorer takes texts and returns scores, and error spans if it has any, under one or several metric names. Higher is
always better.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions, looks_like_checkpoint
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan, fold_severity, mqm_score
from mbr_esd_metric.errors import EngineError, OptionError, logger, no_effect_error, unknown
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, with_pair
from mbr_esd_metric.metric.cards import CARD_NAMES, is_ours, load_card
from mbr_esd_metric.metric.data_warnings import data_warning, warnings
from mbr_esd_metric.metric.run import annotate, signature_of
from mbr_esd_metric.metric.sources import Segment, candidate_source

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

    def __init__(self) -> None:
        self.signatures = {"empty-src": f"empty|v:{__version__}"}

    def score(self, texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        """Score(E) of nothing is 0."""
        return {"empty-src": Scored((0.0,) * len(texts), (EMPTY,) * len(texts))}


class SacrebleuScorer(Scorer):
    """BLEU or chrF of sacreBLEU: sentence scores, and the corpus score for the system. The target language, such as
    "de", chooses BLEU's tokeniser."""

    def __init__(self, kind: str, reference: str, target: str) -> None:
        from sacrebleu.metrics import BLEU, CHRF

        self.name = f"{kind}-{reference}"
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
        card = load_card(model)
        card = with_pair(card, None if card.lp else lp)
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
        name: base of the metric's name, instead of the default; not for "empty", "BLEU" and "chrF".
        reference: the standard reference, if there is one and it may be used.
        lp: language pair, for prompts and BLEU's tokeniser.

    Raises:
        OptionError: unknown names, with the nearest ones; a `name` that no file can have, or where it changes
            nothing; a metric that needs a reference without one.
        EngineError: a checkpoint that cannot be loaded.
    """
    if name is not None and not re.fullmatch(rf"[{_NAME}]+", name):
        raise OptionError(f"{name}={model}: a metric's name becomes a file's name, of letters, digits and _.+=*-")
    base = model.partition("?")[0]
    if name is not None and model in ("empty", "BLEU", "chrF"):
        raise no_effect_error(f"{name}=", f"--model {model}")
    if model == "empty":
        return EmptyScorer()
    if model in ("BLEU", "chrF"):
        if reference is None:
            raise OptionError(
                f"{model} needs a reference, and this test set has none that may be used; leave BLEU and chrF out, or "
                "name one with --reference"
            )
        return SacrebleuScorer(model, reference, (lp or "").rpartition("-")[2].partition("_")[0])
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
