"""`calibration.json`: a recalibration that was learnt from people's ratings, in a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.files.untrusted import decoded

if TYPE_CHECKING:
    from mbr_esd_metric.core.recalibration import Recalibration


def read_recalibration(path: str | Path) -> Recalibration:
    """The recalibration in a file.

    Raises:
        InputError: no such file, or something else in it.
    """
    from mbr_esd_metric.core.recalibration import Recalibration

    try:
        value = decoded(Path(path).expanduser().read_bytes())
    except (OSError, InputError) as error:
        raise InputError(f"{path}: no recalibration can be read there ({error})") from None
    try:
        return Recalibration.from_json(value)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_recalibration(path: str | Path, recalibration: Recalibration) -> None:
    """Write it, whole or not at all."""
    write_whole(path, json.dumps(recalibration.to_json(), indent=1) + "\n")
