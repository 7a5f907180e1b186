"""The numbers behind the plots."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.errors import InputError


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a plot. A `guide` is no data but what data are compared with."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    guide: bool = False


#: What a plot calls a quantity -> its key in the trainer's log.
_LOGGED = {"loss": "loss", "reward accuracy": "rewards/accuracies", "reward margin": "rewards/margins"}


def loss_curves(path: Path) -> dict[str, list[Curve]]:
    """Quantity -> training and validation curve over the steps, from the trainer's ``trainer_state.json``.

    Raises:
        InputError: no such file, or no list of logged steps in it.
    """
    state = path / "trainer_state.json" if path.is_dir() else path
    try:
        history: Any = json.loads(state.read_text(encoding="utf-8"))["log_history"]
        logged = [(float(entry["step"]), entry) for entry in history]
    except OSError as error:
        raise InputError(f"{state}: {(error.strerror or 'cannot be read').lower()}") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{state}: no log of a training run; give its folder, or its trainer_state.json") from None
    curves: dict[str, list[Curve]] = {}
    for name, key in _LOGGED.items():
        for label, prefix in (("training", ""), ("validation", "eval_")):
            points = [(step, float(entry[prefix + key])) for step, entry in logged if prefix + key in entry]
            if points:
                x, y = zip(*points, strict=True)
                curves.setdefault(name, []).append(Curve(label, x, y))
    if not curves:
        raise InputError(f"{state}: the log has no losses")
    return curves
