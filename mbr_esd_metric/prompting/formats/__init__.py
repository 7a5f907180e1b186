"""Answer formats; each is prompt, grammar and parser together (see `answer_format.AnswerFormat`).

Each format has its own file, named like it, so a new one needs no edit elsewhere. Other packages offer formats by entry
points.
"""

from __future__ import annotations

from functools import cache

from mbr_esd_metric.plugins import Catalog
from mbr_esd_metric.prompting.answer_format import AnswerFormat
from mbr_esd_metric.prompting.parse import AnswerParser

__all__ = ["FORMATS", "AnswerFormat", "AnswerParser", "get_format"]

#: Formats of both sides stand beside those of one.
_OMISSIONS = {f"{name}-omissions": name for name in ("compact", "json")}
#: Entry points of other packages: ``mbr_esd_metric.formats``.
FORMATS = Catalog("format", "formats", __name__, AnswerFormat, _OMISSIONS)  # type: ignore[type-abstract]


@cache
def get_format(name: str) -> AnswerFormat:
    """The answer format of that name. Raises `OptionError` with the nearest names if there is none."""
    return FORMATS.get(name)()
