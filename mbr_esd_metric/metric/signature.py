"""The reproducibility signature of a run, in the manner of sacreBLEU: key:value pairs joined by bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.severity import BETA, GAMMA
from mbr_esd_metric.decoding.options import FIELDS, DecisionOptions
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engines.replay import ReplayEngine
from mbr_esd_metric.generation.model_files import file_digest, model_name
from mbr_esd_metric.generation.registry import ENGINES, engine_class
from mbr_esd_metric.metric.card import OPTIONS, ModelCard

#: Options of a decision that are said in a place of their own. Every other one is said where it is not at its default.
_PLACED = ("rule", "utility", "weights", "mqm", "format", "location", "invalid", "blank", "preset")


def signature(runs: Sequence[tuple[ModelCard, str]]) -> str:
    """The signature of a run: of a model and its engine, or of several that are pooled.

    Raises:
        EngineError, OptionError: as `signature_fields`.
    """
    return joined([signature_fields(card, engine) for card, engine in runs])


def joined(read: Sequence[Mapping[str, str]]) -> str:
    """The fields of one run or of several: what they share once, where they differ one value for each; the version
    last."""
    names = sorted(dict.fromkeys(name for fields in read for name in fields), key=lambda name: name == "v")
    values = {name: [fields.get(name, "-") for fields in read] for name in names}
    shown = (f"{name}:{found[0] if len(set(found)) == 1 else '+'.join(found)}" for name, found in values.items())
    return "|".join(["mbr-esd", *shown])


def signature_fields(card: ModelCard, engine: str) -> Mapping[str, str]:
    """Name -> value: ``mbr-esd|model:...|n:256|t:2.0|k:10|u:softf1|b:1|g:0.5|prompt:v1|invalid:drop|v:...``.

    Everything that can change a score is in it; what is at its default and rarely changed is left out. Of candidates
    from a file (``engine=replay``) nobody knows what sampled them, so eight digits of the file's SHA-256 stand for
    model, sampling and prompt: ``mbr-esd|candidates:0a1b2c3d|engine:replay|d:mbr|n:256|u:softf1|...``.

    Raises:
        EngineError: the file of candidates, or the adapter's folder, does not exist.
        OptionError: no file of candidates is named.
    """
    replayed = engine == "replay"
    sampling, decision = card.sampling, card.decision
    fields: list[tuple[str, object]] = []
    left_out: tuple[str, ...] = ()
    if replayed:
        fields.append(("candidates", _digest(card)))
    else:
        options = card.engine_options(engine, fetch=False)
        fields.append(("model", model_name(options)))
        if engine in ENGINES.names():  # "auto" where there is nothing to sample
            identity = engine_class(engine).identity(options)
            fields += [(name, identity[name]) for name in ("dialect", "reasoning_effort") if name in identity]
            left_out = engine_class(engine).left_out(options, sampling)
    n = f"auto/{card.samples}" if card.adaptive else card.samples
    fields += [("engine", engine), ("d", decision.rule), ("n", n)]
    if card.role != "both":
        fields.append(("role", card.role))
    if not replayed:
        drawn: dict[str, object] = {"temperature": float(sampling.temperature)}
        if not sampling.greedy:
            drawn |= {name: getattr(sampling, name) for name in ("top_k", "top_p", "seed")}
        if sampling.min_p:
            drawn["min_p"] = sampling.min_p
        drawn |= dict.fromkeys(left_out, "-")
        fields += [(_short(name), value) for name, value in drawn.items()]
        fields.append(("max", sampling.max_tokens))
        if card.dtype != "auto":
            fields.append(("dtype", card.dtype))
    if decision.decided_by.by_utility:
        fields += [("u", decision.maximised), ("w", decision.weights), ("b", f"{BETA:g}"), ("g", f"{GAMMA:g}")]
    fields.append(("mqm", decision.described()["mqm"]))
    if not replayed:
        fields.append(("prompt", get_format(decision.format).prompt(card.prompt).version))
        if card.shots is not None:
            fields.append(
                ("shots", file_digest(Path(card.shots)).hex()[:8] + (f"/{card.nearest}" if card.nearest else ""))
            )
        if card.grounded:
            fields.append(("grounded", "true"))
        if card.lp:
            fields.append(("lp", card.lp))
    if decision.format != "json":
        fields.append(("format", decision.format))
    fields += [("loc", decision.location), ("invalid", decision.invalid), ("blank", decision.blank)]
    changed = _changed(decision)
    if "score" in changed:
        fields.append(("score", changed.pop("score")))
    if card.calibration is not None:
        fields.append(("cal", file_digest(Path(card.calibration)).hex()[:8]))
    fields += changed.items()
    if decision.preset is not None:
        fields.append(("preset", decision.preset))
    fields.append(("v", __version__))
    return {key: str(value) for key, value in fields}


def _short(name: str) -> str:
    """What a signature calls an option of a model."""
    return str(OPTIONS[name].metadata["short"] or name)


def _changed(decision: DecisionOptions) -> dict[str, object]:
    """The options of a decision that have no place of their own above and are not at their default."""
    values = {name: getattr(decision, name) for name in FIELDS if name not in _PLACED}
    return {name: value for name, value in values.items() if value != FIELDS[name].default}


def _digest(card: ModelCard) -> str:
    options = card.engine_options("replay")
    if problem := ReplayEngine.problem(options):
        raise EngineError(problem)
    return file_digest(Path(options.model)).hex()[:8]
