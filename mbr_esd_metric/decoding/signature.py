"""The signature of a decision: its options, and the known settings of its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.kernels import BETA, GAMMA
from mbr_esd_metric.core.signature import CANDIDATES, Signature
from mbr_esd_metric.decoding.options import FIELDS, DecisionOptions

#: Options that are always in the signature, or at a fixed position. Other options are only included if not at their
#: defaults.
_PLACED = ("rule", "utility", "weights", "mqm", "format", "location", "invalid", "blank")


def signature_of_decision(
    decision: DecisionOptions,
    draw: Mapping[str, Any],
    question: Mapping[str, Any] = {},
    calibration: Mapping[str, Any] = {},
) -> Signature:
    """The fields for sampling, the decision, the prompt, and the options for parsing and scoring answers. Except for
    three, the latter are omitted at their defaults; so are utility and weights if the rule does not use them."""
    changed = [name for name in FIELDS if str(getattr(decision, name)) != FIELDS[name].default]
    compared = {"utility": decision.effective_utility, "weights": decision.weights}
    if decision.rule_instance.by_utility:
        choice = {**compared, "b": f"{BETA:g}", "g": f"{GAMMA:g}"}
    else:  # they still change expected utilities, and the weights confidences
        choice = {name: value for name, value in compared.items() if name in changed}
    choice["mqm"] = decision.mqm
    reading = [name for name in ("format",) if name in changed] + ["location", "invalid", "blank"]
    reading += [name for name in changed if name not in _PLACED]
    values = {**draw, **choice, **question, **{name: getattr(decision, name) for name in reading}, **calibration}
    fields = {_short(name): value for name, value in values.items()}
    return Signature.of("mbr-esd", fields, __version__)


def _short(name: str) -> str:
    return FIELDS[name].metadata["short"] or name if name in FIELDS else name


def signature_of_file(path: str | Path, decision: DecisionOptions) -> Signature:
    """The signature of decisions on a candidates file, without a model."""
    return signature_of_decision(decision, {CANDIDATES: short_digest(path), "rule": decision.rule})


def short_digest(path: str | Path) -> str:
    """Eight digits of the SHA-256 of a file."""
    from mbr_esd_metric.files.streams import file_digest

    return file_digest(path).hex()[:8]
