"""The files of what is learnt from people's ratings: `calibration.json` and `score.json` in a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.files.untrusted import decoded

if TYPE_CHECKING:
    from mbr_esd_metric.core.learnt_score import LearntScore
    from mbr_esd_metric.core.recalibration import Recalibration

_Learnt = TypeVar("_Learnt", "LearntScore", "Recalibration")

#: How a file's name ends: an option `score` with such a value names a file.
SUFFIX = ".json"


def read_learnt(kind: type[_Learnt], path: str | Path) -> _Learnt:
    """What `write_learnt` wrote.

    Raises:
        InputError: no such file, or something else in it.
    """
    try:
        value = decoded(Path(path).expanduser().read_bytes())
    except (OSError, InputError) as error:
        raise InputError(f"{path}: no {kind.what} can be read there ({error})") from None
    try:
        return kind.from_json(value)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_learnt(path: str | Path, learnt: LearntScore | Recalibration) -> None:
    """Write it, whole or not at all."""
    write_whole(path, json.dumps(learnt.to_json(), indent=1) + "\n")
