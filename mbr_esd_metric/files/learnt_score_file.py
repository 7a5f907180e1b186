"""The file of a learnt score, `score.json` in a model folder."""

from __future__ import annotations

import json
from pathlib import Path

from mbr_esd_metric.core.learnt_score import LearntScore
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.files.untrusted import decoded

#: How the file's name ends: an option `score` with such a value names a file.
SUFFIX = ".json"


def read_learnt_score(path: str | Path) -> LearntScore:
    """What `write_learnt_score` wrote.

    Raises:
        InputError: no such file, or something else in it.
    """
    try:
        value = decoded(Path(path).expanduser().read_bytes())
    except (OSError, InputError) as error:
        raise InputError(f"{path}: no learnt score can be read there ({error})") from None
    try:
        return LearntScore.from_json(value)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_learnt_score(path: str | Path, score: LearntScore) -> None:
    """Write it, whole or not at all."""
    write_whole(path, json.dumps(score.to_json(), indent=1) + "\n")
