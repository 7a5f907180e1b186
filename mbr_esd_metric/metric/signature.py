"""The signature of a run, from its card and engine."""

from __future__ import annotations

import os
from typing import Any

from mbr_esd_metric.core.signature import CANDIDATES, Signature
from mbr_esd_metric.decoding.signature import short_digest, signature_of_decision
from mbr_esd_metric.generation.engine import Engine
from mbr_esd_metric.metric.card import ANY_MODEL, OPTIONS, ModelCard
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.prompt import CONTEXT_VERSION


def signature(card: ModelCard, engine: Engine | None) -> Signature:
    """The signature of a run of a card, with its engine, or with a candidates file.

    ``mbr-esd|model:...|engine:vllm|d:mbr|n:256|t:2.0|k:10|seed:0|max:2048|u:softf1|w:uniform|b:1|g:0.5|mqm:paper|``
    ``prompt:v1|loc:first|invalid:drop|blank:worst|v:...``: everything that can change a score, except rarely changed
    options at their defaults. The origin of candidates in a file is unknown, so eight digits of the file's SHA-256
    replace model, engine, sampling and prompt: ``mbr-esd|candidates:0a1b2c3d|d:mbr|n:256|...``.
    """
    decision, sampling = card.decision, card.sampling
    model: dict[str, Any] = {}
    draw: dict[str, Any] = {}
    question: dict[str, Any] = {}
    if engine is None:
        model = {CANDIDATES: short_digest(os.path.expanduser(card.candidates or ""))}
    else:
        model = {"model": engine.model}
        model |= {key: engine.identity[key] for key in ("dialect", "reasoning_effort") if key in engine.identity}
        model["engine"] = engine.name
        drawn: dict[str, Any] = {"temperature": float(sampling.temperature)}
        drawn |= {} if sampling.greedy else {"top_k": sampling.top_k, "seed": sampling.seed}
        drawn |= {**dict.fromkeys(engine.unsupported_settings(sampling), "-"), "max_tokens": sampling.max_tokens}
        draw = {OPTIONS[name].metadata["short"] or name: value for name, value in drawn.items()}
        draw |= {} if card.dtype == "auto" else {"dtype": card.dtype}
        answers = get_format(decision.format)
        question["prompt"] = answers.prompt(card.prompt).version
        if (card.unit, card.context) != ("segment", "segment"):
            question["prompt"] += "" if answers.engine else f"+{CONTEXT_VERSION}"
            question["unit"] = f"{card.unit}/{card.join}"
            question |= {} if card.context == "segment" else {"context": card.context}
        if card.shots is not None:
            from mbr_esd_metric.metric.shots import shots_file

            file, number = shots_file(card.shots)
            question["shots"] = short_digest(file) + (f"/{number}" if number else "")
        question |= {"grounded": "true"} if card.grounded else {}
        question |= {"lp": card.lp} if card.lp else {}
    calibration = {"cal": short_digest(card.calibration)} if card.calibration else {}
    return signature_of_decision(
        decision, {**model, "rule": decision.rule, "n": card.samples, **draw}, question, calibration
    )


def model_title(card: ModelCard, signature: Signature | None) -> str:
    """The model's name in rows of scores: its card's title, or the name of the model on the user's server."""
    served = None if signature is None else signature.get("model")
    return served if card.name == ANY_MODEL and served else card.title
