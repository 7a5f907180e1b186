"""The signature of a run, made from its card and its engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.kernels import BETA, GAMMA
from mbr_esd_metric.core.signature import CANDIDATES, Signature
from mbr_esd_metric.decoding.options import FIELDS, DecisionOptions
from mbr_esd_metric.generation.engine import Engine
from mbr_esd_metric.metric.card import ANY_MODEL, OPTIONS, ModelCard
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.prompt import CONTEXT_VERSION

#: Options of a decision that are in every signature, or in a place of their own. The others are there where they are
#: not at their default.
_PLACED = ("rule", "utility", "weights", "mqm", "format", "location", "invalid", "blank")


def signature(card: ModelCard, engine: Engine | None) -> Signature:
    """The signature of a run of a card, with its engine, or without one over a file of candidates.

    ``mbr-esd|model:...|engine:vllm|d:mbr|n:256|t:2.0|k:10|seed:0|max:2048|u:softf1|w:uniform|b:1|g:0.5|mqm:paper|``
    ``prompt:v1|loc:first|invalid:drop|blank:worst|v:...``: everything that can change a score; what is at its default
    and rarely changed is left out. Of candidates from a file nobody knows what sampled them, so eight digits of the
    file's SHA-256 stand for model, engine, sampling and prompt: ``mbr-esd|candidates:0a1b2c3d|d:mbr|n:256|...``.
    """
    decision, sampling = card.decision, card.sampling
    model: dict[str, Any] = {}
    draw: dict[str, Any] = {}
    question: dict[str, Any] = {}
    if engine is None:
        model = {CANDIDATES: _digest(os.path.expanduser(card.candidates or ""))}
    else:
        model = {"model": engine.model}
        model |= {key: engine.identity[key] for key in ("dialect", "reasoning_effort") if key in engine.identity}
        model["engine"] = engine.name
        draw = {"temperature": float(sampling.temperature)}
        draw |= {} if sampling.greedy else {"top_k": sampling.top_k, "seed": sampling.seed}
        draw |= {**dict.fromkeys(engine.unsupported_settings(sampling), "-"), "max_tokens": sampling.max_tokens}
        draw |= {} if card.dtype == "auto" else {"dtype": card.dtype}
        answers = get_format(decision.format)
        question["prompt"] = answers.prompt(card.prompt).version
        if (card.unit, card.context) != ("segment", "segment"):
            question["prompt"] += "" if answers.engine else f"+{CONTEXT_VERSION}"
            question["unit"] = f"{card.unit}/mean"  # how the scores of a segment's sentences become one
            question |= {} if card.context == "segment" else {"context": card.context}
        if card.shots is not None:
            from mbr_esd_metric.metric.shots import shots_file

            file, number = shots_file(card.shots)
            question["shots"] = _digest(file) + (f"/{number}" if number else "")
        question |= {"grounded": "true"} if card.grounded else {}
        question |= {"lp": card.lp} if card.lp else {}
    n = f"auto/{card.samples}" if card.adaptive else str(card.samples)
    calibration = {"cal": _digest(card.calibration)} if card.calibration else {}
    return _joined(decision, {**model, "rule": decision.rule, "n": n, **draw}, question, calibration)


def model_title(card: ModelCard, signature: Signature | None) -> str:
    """What rows of scores call the model: its card's title, or the model that a server of the user's serves."""
    served = None if signature is None else signature.get("model")
    return served if card.name == ANY_MODEL and served else card.title


def signature_of_file(path: str | Path, decision: DecisionOptions) -> Signature:
    """The signature of a decision over a file of candidates, without a model."""
    return _joined(decision, {CANDIDATES: _digest(str(path)), "rule": decision.rule})


def _joined(
    decision: DecisionOptions,
    draw: Mapping[str, Any],
    question: Mapping[str, Any] = {},
    calibration: Mapping[str, Any] = {},
) -> Signature:
    """The fields, each under the short name of its option: those of the draw, of the choice, of the question, and the
    options by which answers are read and scored. Of these, those at their default are left out, but for three."""
    choice: dict[str, Any] = {}
    if decision.rule_instance.by_utility:
        choice = {"utility": decision.effective_utility, "weights": decision.weights}
        choice |= {"b": f"{BETA:g}", "g": f"{GAMMA:g}"}
    choice["mqm"] = decision.mqm
    changed = [name for name in FIELDS if getattr(decision, name) != FIELDS[name].default]
    reading = [name for name in ("format",) if name in changed] + ["location", "invalid", "blank"]
    reading += [name for name in changed if name not in _PLACED]
    values = {**draw, **choice, **question, **{name: getattr(decision, name) for name in reading}, **calibration}
    options = {**FIELDS, **OPTIONS}
    short = {name: options[name].metadata["short"] for name in values if name in options}
    return Signature.of("mbr-esd", {short.get(name) or name: value for name, value in values.items()}, __version__)


def _digest(path: str) -> str:
    from mbr_esd_metric.files.streams import file_digest

    return file_digest(Path(path)).hex()[:8]
