"""Scoring of a whole test set with a metric. Scores are written to the data folder, and interrupted runs can be
resumed.

A metric is a model of this package, a COMET checkpoint, BLEU, chrF, or the empty annotation. Its scorer takes texts and
returns scores, and error spans if the metric has them, under one or several names. Higher is always better.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions, looks_like_checkpoint
from mbr_esd_metric.adapters.wmt.layout import EVERY_SYSTEM, SystemChoice, references_of
from mbr_esd_metric.adapters.wmt.metric_files import MetricFiles
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan, fold_severity, mqm_score
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import EngineError, InputError, OptionError, unknown
from mbr_esd_metric.log import logger, progress_bar
from mbr_esd_metric.metric.candidate_file import MissingCandidatesError
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, with_pair
from mbr_esd_metric.metric.cards import CARD_NAMES, is_ours, load_card
from mbr_esd_metric.metric.data_warnings import warnings
from mbr_esd_metric.metric.run import annotate, candidate_source, signature_of

#: The confidence threshold of the xCOMET variant "-Conf" (paper, Section 5.2).
_CONFIDENT = 0.7

#: The characters of a metric's name, as a character class of regular expressions.
_NAME = r"\w.+=*-"

#: Options of a model name that specify how the model runs. They are omitted from the name of the metric. Those that
#: change scores are part of the signature, so that different scores cannot be confused.
_SILENT = {"engine", "lp", "candidates", "store", "server", "price", "max_cost", "dtype", "concurrency", "vllm"}


@dataclass(frozen=True, slots=True)
class ScoredText(Segment):
    """One translation to score.

    Attributes:
        number: the number of the segment, from 0.
        reference: the reference translation, if there is one.
        supplied: whether the folder has this translation; if not, the text is empty.
    """

    number: int = 0
    reference: str | None = None
    supplied: bool = True


class Scored(NamedTuple):
    """The scores of texts, in order, and their error spans, if the metric has them."""

    scores: Sequence[float]
    annotations: Sequence[Annotation] | None = None


@dataclass(frozen=True, slots=True)
class Scorer:
    """A metric that scores translations.

    Attributes:
        signatures: full metric name, such as "BLEU-refA" -> signature of its scores.
        score: function from texts, and whether to show a progress bar, to the scores for each of these names.
        system_score: function from the texts of a system to its score; None for the mean of the segment scores.
        samples: whether the metric samples candidates. Then all systems are scored together, because equal translations
            are sampled once and rules may depend on the whole test set; and by default only rated translations, because
            of the cost. Otherwise, systems are scored and written one after the other.
    """

    signatures: Mapping[str, Signature]
    score: Callable[[Sequence[ScoredText], bool], Mapping[str, Scored]]
    system_score: Callable[[Sequence[ScoredText]], float] | None = None
    samples: bool = False


class Written(NamedTuple):
    """A metric in the data folder.

    Attributes:
        name: the full name.
        systems: the number of scored systems.
        translations: the number of translations with a score.
        without: the number of translations without a score.
        scored: whether this run scored any; False if all scores were already in the folder.
    """

    name: str
    systems: int
    translations: int
    without: int
    scored: bool


def _empty(name: str | None) -> Scorer:
    """The metric without errors, a baseline for span metrics. Its scores are 0, the Score(E) of the empty
    annotation."""
    full = f"{name or 'empty'}-src"

    def score(texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        return {full: Scored([0.0] * len(texts), [EMPTY] * len(texts))}

    return Scorer({full: Signature.of("empty", {}, __version__)}, score)


def _sacrebleu(kind: str, name: str | None, reference: str, target: str) -> Scorer:
    """BLEU or chrF by sacreBLEU, in [0, 100]: sentence scores for segments, and the corpus score for systems. The
    target language, such as "de", determines BLEU's tokeniser."""
    from sacrebleu.metrics import BLEU, CHRF

    full = f"{name or kind}-{reference}"
    try:
        # The effective order is for sentences, which may have few 4-grams; the corpus score does not need it.
        sentence: Any = BLEU(trg_lang=target, effective_order=True) if kind == "BLEU" else CHRF()
        corpus: Any = BLEU(trg_lang=target) if kind == "BLEU" else sentence
    except (RuntimeError, ImportError) as error:
        raise EngineError(
            f"BLEU of {target} needs a tokeniser ({error}); install it with: pip install 'sacrebleu[{target}]'"
        ) from None
    # The signature of sacreBLEU has the number of references only after the first score.
    corpus.corpus_score(["a"], [["a"]])

    def score(texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        return {full: Scored([float(sentence.sentence_score(t.translation, [t.reference or ""]).score) for t in texts])}

    def system_score(texts: Sequence[ScoredText]) -> float:
        references = [[text.reference or "" for text in texts]]
        return float(corpus.corpus_score([text.translation for text in texts], references).score)

    return Scorer({full: Signature.parse(f"{kind}|{corpus.get_signature()}")}, score, system_score)


def _model(model: str, name: str | None, lp: str | None) -> Scorer:
    """A model of this package: the annotations selected by its rule, and their Score(E), in [-25, 0]. Scoring raises
    `EngineError` if a server rejects a text; sampled candidates are kept."""
    card = with_pair(load_card(model), lp, of_test_set=True)
    if card.decision.blank == "skip":
        raise OptionError("blank=skip gives no score, but a test set needs all scores; use worst or perfect")
    full = f"{name or default_name(model)}-src"

    def score(texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        segments = [text for text in texts if text.supplied]
        run = annotate(card, segments, progress=progress)
        if any(one.refused for one in run.judged):
            raise EngineError("a test set needs the score of every segment; sampled candidates are kept")
        data_warnings = [one.data_warning for one in run.judged]
        if line := warnings(data_warnings, [segment.label for segment in segments], card.decision.blank):
            logger.warning(line)
        decisions = iter(run.decisions)
        of_texts = [next(decisions) if text.supplied else None for text in texts]
        return {full: Scored([d.mqm if d else 0.0 for d in of_texts], [d.annotation if d else EMPTY for d in of_texts])}

    return Scorer({full: signature_of(card)}, score, samples=True)


_XCOMET_VARIANTS = ("Reg", "ESD", "ESD-Conf")


def _comet(model: str, name: str | None, reference: str | None) -> Scorer:
    """A COMET checkpoint, as NAME-REF if it needs references, otherwise NAME-src. xCOMET has the following variants,
    with the reference and, as QE, without it: Reg, the score of the model; ESD, Score(E) of its spans (critical counts
    as major); and ESD-Conf, Score(E) of the spans with a confidence of at least 0.7."""
    model, options = CometOptions.parse(model)
    checkpoint = CometCheckpoint(model, options)
    base = name or default_name(model)
    reference = None if options.reference == "no" else reference
    #: Name of the metric -> whether it uses the reference, and the variant.
    variants: dict[str, tuple[bool, str]] = {f"{base}-src": (False, "Reg")}
    if checkpoint.has_spans:
        variants = {f"{base}-{one}-{reference}": (True, one) for one in _XCOMET_VARIANTS if reference}
        variants |= {f"{base}-QE-{one}-src": (False, one) for one in _XCOMET_VARIANTS}
    elif checkpoint.needs_references:
        if not reference:
            raise OptionError(f"{model} needs references, but the test set has none")
        variants = {f"{base}-{reference}": (True, "Reg")}

    def score(texts: Sequence[ScoredText], progress: bool) -> Mapping[str, Scored]:
        predictions = {}
        for with_reference in sorted({with_reference for with_reference, _ in variants.values()}):
            samples = [{"src": text.source, "mt": text.translation} for text in texts]
            if with_reference:
                samples = [{**one, "ref": text.reference or ""} for one, text in zip(samples, texts, strict=True)]
            predictions[with_reference] = checkpoint.predict(samples, progress)
        return {name: _variant(variant, predictions[which], texts) for name, (which, variant) in variants.items()}

    signatures = {
        name: checkpoint.signature.with_words("ref" if with_reference else "src", variant)
        for name, (with_reference, variant) in variants.items()
    }
    return Scorer(signatures, score)


def _variant(variant: str, prediction: Any, texts: Sequence[ScoredText]) -> Scored:
    if variant == "Reg":
        return Scored([float(score) for score in prediction.scores])
    least = _CONFIDENT if variant == "ESD-Conf" else 0.0
    annotations = [
        xcomet_annotation(spans, text.translation, least)
        for spans, text in zip(prediction.metadata.error_spans, texts, strict=True)
    ]
    return Scored([mqm_score(annotation) for annotation in annotations], annotations)


def xcomet_annotation(spans: Sequence[Mapping[str, Any]], translation: str, least: float = 0.0) -> Annotation:
    """xCOMET's spans with a confidence of at least `least`, without empty spans, which are those of special tokens."""
    marked = []
    for span in spans:
        severity = fold_severity(span["severity"])
        start, end = max(int(span["start"]), 0), min(int(span["end"]), len(translation))
        if severity is not None and span["confidence"] >= least and start < end:
            marked.append(ErrorSpan(start, end, severity, None, float(span["confidence"])))
    return Annotation(marked)


def make_scorer(model: str, *, name: str | None = None, reference: str | None = None, lp: str | None = None) -> Scorer:
    """The scorer of a model.

    Args:
        model: "empty", "BLEU", "chrF", a model of this package with options, or a COMET checkpoint (a .ckpt file,
            a folder, or a name on the hub, with a slash; with the options of `CometOptions`).
        name: the base name of the metric, instead of the default.
        reference: the standard reference, if there is one that may be used.
        lp: the language pair, for prompts and BLEU's tokeniser.

    Raises:
        OptionError: an unknown model, a `name` that is not a valid file name, or a missing reference.
        EngineError: a checkpoint that cannot be loaded.
    """
    if name is not None and not re.fullmatch(rf"[{_NAME}]+", name):
        raise OptionError(f"{name}={model}: names of metrics may only contain letters, digits and _.+=*-")
    base = model.partition("?")[0]
    if model == "empty":
        return _empty(name)
    if model in ("BLEU", "chrF"):
        if reference is None:
            raise OptionError(
                f"{model} needs a reference, but this test set has none that may be used; remove BLEU and chrF, or "
                "specify one with --reference"
            )
        return _sacrebleu(model, name, reference, (lp or "").rpartition("-")[2].partition("_")[0])
    if is_ours(model):
        return _model(model, name, lp)
    if looks_like_checkpoint(base):
        return _comet(model, name, reference)
    ours = unknown("model", base, ["empty", "BLEU", "chrF", *CARD_NAMES], "`mbr-esd models`")
    raise OptionError(f"{ours}, but for BLEU, chrF, empty and COMET's checkpoints")


def default_name(model: str) -> str:
    """The base name of a metric for a model name: without folders, and without options that specify how it runs."""
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
) -> list[Written]:
    """Score the systems of a test set, except the reference that a metric uses, and write the files to the data folder.

    Systems with existing scores of the same signature are not scored again. Each system is written when it is complete,
    so that an interrupted run can be resumed.

    Args:
        test_set: the test set.
        scorer: the metric.
        overwrite: whether to replace existing scores.
        progress: whether to show a progress bar.
        choice: the systems to score, in addition to those with existing scores.
        every: whether to score all translations. Otherwise, a scorer that samples only scores translations with gold
            scores, if there are any.

    Raises:
        InputError: the folder has scores with this name and another signature, or no system is selected.
        MbrEsdError: an error of the scorer. Systems that were completed before are kept.
    """
    texts = {system: _texts(test_set, system, not every and scorer.samples) for system in test_set.outputs}
    files: dict[str, MetricFiles] = {}
    chosen: dict[str, list[str]] = {}
    missing: set[str] = set()
    written = []
    for name, signature in scorer.signatures.items():
        files[name] = MetricFiles() if overwrite else _stored(test_set, name, signature)
        stored = files[name].scores
        chosen[name] = _systems(test_set, name, choice, texts, stored)
        unscored = {
            system
            for system in chosen[name]
            if system not in stored or any(stored[system][text.number] is None for text in texts[system])
        }
        if unscored and scorer.samples:
            files[name], unscored = MetricFiles(), set(chosen[name])
        missing |= unscored
        count = sum(len(texts[system]) for system in chosen[name])
        without = len(chosen[name]) * test_set.segments - count
        written.append(Written(name, len(chosen[name]), count, without, bool(unscored)))
    systems = sorted(missing)
    parts = [systems] if scorer.samples and systems else [[system] for system in systems]
    for part in progress_bar("scoring", "system", shown=progress and not scorer.samples, iterable=parts):
        try:
            results = scorer.score([text for s in part for text in texts[s]], progress and scorer.samples)
        except MissingCandidatesError as error:
            if set(error.systems) < missing:
                error.args = (f"{error}; to score the other systems: --exclude {' '.join(error.systems)}",)
            raise
        for name, scored in results.items():
            values = iter(zip(scored.scores, scored.annotations or repeat(None), strict=False))
            for system in part:
                row = {text.number: next(values) for text in texts[system]}
                if system not in chosen[name]:
                    continue
                cells = [row.get(number, (None, None)) for number in range(test_set.segments)]
                files[name].scores[system] = [value for value, _ in cells]
                if scored.annotations is not None:
                    files[name].annotations[system] = [annotation for _, annotation in cells]
                files[name].system_scores.pop(system, None)
                if scorer.system_score:
                    files[name].system_scores[system] = scorer.system_score(texts[system])
            if set(part) & set(chosen[name]):
                files[name].write(test_set, name, scorer.signatures[name])
    return sorted(written, key=lambda one: one.scored)


def texts_to_score(test_set: TestSet, name: str, choice: SystemChoice, rated: bool) -> list[ScoredText]:
    """All translations that a metric with this full name would score without existing scores."""
    texts = {system: _texts(test_set, system, rated) for system in test_set.outputs}
    return [text for system in _systems(test_set, name, choice, texts) for text in texts[system]]


def _systems(
    test_set: TestSet,
    name: str,
    choice: SystemChoice,
    texts: Mapping[str, Sequence[ScoredText]],
    stored: Collection[str] = (),
) -> list[str]:
    """The systems to score with a metric: selected ones and those with scores, without a reference that it uses."""
    used = references_of(name, tuple(test_set.references))
    able = [system for system in texts if texts[system] and system not in used]
    chosen = [system for system in able if choice.takes(system, test_set.info)]
    if not chosen:
        raise InputError(
            f"{test_set.name} {test_set.lp}: no system is selected for {name}; available: {', '.join(able) or 'none'}"
        )
    return [system for system in able if system in chosen or system in stored]


def _stored(test_set: TestSet, name: str, signature: Signature) -> MetricFiles:
    """The existing scores in the folder; empty if there are none."""
    path = test_set.layout.metric_file(name, "seg.score")
    if not path.is_file():
        return MetricFiles()
    stored = test_set.signature(name)
    if stored != signature:
        raise InputError(
            f"{path}: existing scores have another signature ({stored or 'none'} instead of {signature}); choose "
            "another name, NAME=MODEL, or replace them with --overwrite"
        )
    return MetricFiles.read(test_set.layout, name)


def _texts(test_set: TestSet, system: str, rated: bool) -> list[ScoredText]:
    """The translations of a system; if `rated`, only those with gold scores, if any system has gold scores."""
    numbers = range(test_set.segments)
    if rated and not np.isnan(test_set.gold).all():
        of_gold = dict(zip(test_set.systems, ~np.isnan(test_set.gold), strict=True))
        numbers = np.flatnonzero(of_gold.get(system, [])).tolist()
    reference = test_set.references.get(test_set.info.standard_reference or "")
    return [
        ScoredText(
            test_set.sources[i],
            test_set.outputs[system][i] or "",
            f"{system}, segment {i + 1}",
            system,
            test_set.documents[i][1],
            number=i,
            reference=reference[i] if reference else None,
            supplied=test_set.outputs[system][i] is not None,
        )
        for i in numbers
    ]
