"""The reproducibility signature of a run, in the manner of sacreBLEU: key:value pairs joined by bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.severity import BETA, GAMMA
from mbr_esd_metric.decoding.options import FIELDS, DecisionOptions
from mbr_esd_metric.elicit.prompt import CONTEXT_VERSION
from mbr_esd_metric.generation.embedded import EMBEDDED
from mbr_esd_metric.generation.model_files import file_digest, model_name
from mbr_esd_metric.metric.card import OPTIONS
from mbr_esd_metric.metric.plan import Plan

#: Options of a decision that are said whatever their value is, or that others say. Every other one is said where it is
#: not at its default.
_PLACED = ("rule", "utility", "weights", "mqm", "format", "location", "invalid", "blank", "score")


def signature(plans: Sequence[Plan]) -> str:
    """The signature of a run of one model, or of several that are pooled.

    ``mbr-esd|model:...|n:256|t:2.0|k:10|u:softf1|b:1|g:0.5|prompt:v1|invalid:drop|v:...``: everything that can change a
    score; what is at its default and rarely changed is left out. Of candidates from a file (``engine=replay``) nobody
    knows what sampled them, so eight digits of the file's SHA-256 stand for model, sampling and prompt:
    ``mbr-esd|candidates:0a1b2c3d|engine:replay|d:mbr|n:256|u:softf1|...``.
    """
    return f"{joined([_fields(one) for one in plans])}|v:{__version__}"


def signature_of_file(path: str | Path, decision: DecisionOptions) -> str:
    """The signature of a decision over a file of candidates, without a model."""
    fields = {"candidates": _digest(str(path)), **_said(decision, "rule")}
    fields |= {**_utility_of(decision), **_mqm(decision), **_read(decision)}
    return f"{joined([{name: str(value) for name, value in fields.items()}])}|v:{__version__}"


def joined(read: Sequence[Mapping[str, str]]) -> str:
    """The fields of one run or of several: what they share once, where they differ one value for each."""
    names = dict.fromkeys(name for fields in read for name in fields)
    values = {name: [fields.get(name, "-") for fields in read] for name in names}
    shown = (f"{name}:{found[0] if len(set(found)) == 1 else '+'.join(found)}" for name, found in values.items())
    return "|".join(["mbr-esd", *shown])


def _fields(todo: Plan) -> Mapping[str, str]:
    """Name -> value, the version apart."""
    sampled, decision = todo.engine_class.stored, todo.card.decision
    fields = {
        **(_model(todo) if sampled else {"candidates": _digest(todo.options.model)}),
        "engine": todo.engine,
        **_said(decision, "rule"),
        **_number(todo),
        **(_sampling(todo) if sampled else {}),
        **_utility_of(decision),
        **_mqm(decision),
        **(_question(todo) if sampled else {}),
        **_read(decision),
        **({} if todo.card.calibration is None else {_short("calibration"): _digest(todo.card.calibration)}),
    }
    return {name: str(value) for name, value in fields.items()}


def _utility_of(decision: DecisionOptions) -> dict[str, object]:
    return _utility(decision) if decision.decided_by.by_utility else {}


def _mqm(decision: DecisionOptions) -> dict[str, object]:
    return {"mqm": decision.described()["mqm"]}


def _read(decision: DecisionOptions) -> dict[str, object]:
    said = _said(decision, "location", "invalid", "blank")
    return {
        **_changed(decision, "format"),
        **said,
        **_changed(decision, "score", *(name for name in FIELDS if name not in _PLACED)),
    }


def _model(todo: Plan) -> dict[str, object]:
    model, options = todo.card.model, todo.options
    if model in EMBEDDED:  # by its hub id, not the folder of the download
        options = replace(options, model=model)
    identity = todo.engine_class.identity(todo.options)
    told = {name: identity[name] for name in ("dialect", "reasoning_effort") if name in identity}
    return {"model": model_name(options), **told}


def _number(todo: Plan) -> dict[str, object]:
    n = f"auto/{todo.card.samples}" if todo.card.adaptive else todo.card.samples
    return {"n": n}


def _sampling(todo: Plan) -> dict[str, object]:
    sampling, dtype = todo.sampling, todo.card.dtype
    drawn: dict[str, object] = {"temperature": float(sampling.temperature)}
    if not sampling.greedy:
        drawn |= {name: getattr(sampling, name) for name in ("top_k", "top_p", "seed")}
    if sampling.min_p:
        drawn["min_p"] = sampling.min_p
    drawn |= dict.fromkeys(todo.engine_class.left_out(todo.options, sampling), "-")
    drawn["max_tokens"] = sampling.max_tokens
    return {_short(name): value for name, value in drawn.items()} | ({} if dtype == "auto" else {"dtype": dtype})


def _utility(decision: DecisionOptions) -> dict[str, object]:
    return {_short("utility"): decision.maximised, **_said(decision, "weights"), "b": f"{BETA:g}", "g": f"{GAMMA:g}"}


def _question(todo: Plan) -> dict[str, object]:
    card = todo.card
    fields: dict[str, object] = {"prompt": todo.prompt.version}
    if (card.unit, card.context) != ("segment", "segment"):
        if not todo.answers.engine:
            fields["prompt"] = f"{todo.prompt.version}+{CONTEXT_VERSION}"
        fields["unit"] = f"{card.unit}/mean"  # how the scores of a segment's sentences become one
        if card.context != "segment":
            fields["context"] = card.context
    if card.shots is not None:
        fields["shots"] = _digest(card.shots) + (f"/{card.nearest}" if card.nearest else "")
    if card.grounded:
        fields["grounded"] = "true"
    if card.lp:
        fields["lp"] = card.lp
    return fields


def _said(decision: DecisionOptions, *names: str) -> dict[str, object]:
    return {_short(name): getattr(decision, name) for name in names}


def _changed(decision: DecisionOptions, *names: str) -> dict[str, object]:
    """Those of these options that are not at their default."""
    return _said(decision, *(name for name in names if getattr(decision, name) != FIELDS[name].default))


def _short(name: str) -> str:
    """What a signature calls an option."""
    return str((OPTIONS.get(name) or FIELDS[name]).metadata["short"] or name)


def _digest(path: str) -> str:
    return file_digest(Path(path)).hex()[:8]
