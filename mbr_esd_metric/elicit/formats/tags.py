"""`format=tags`: the answers of `engine=tagger`, as in `marked-omissions`, and a score behind them."""

from __future__ import annotations

import re
from dataclasses import replace

from mbr_esd_metric.elicit.formats.marked import MarkedOmissionsFormat, MarkedParser
from mbr_esd_metric.elicit.parse import Invalid, Parsed

_SCORE = re.compile(r"\nScore: (-?[0-9]{1,2}(?:\.[0-9]{1,6})?)\Z")


class TagsParser(MarkedParser):
    """Reads tags, and the score behind them, which may be absent."""

    def read(self, text: str) -> Parsed | Invalid:
        score = _SCORE.search(text)
        if score is None:
            return super().read(text)
        return replace(super().read(text[: score.start()]), stated=max(-25.0, min(0.0, float(score[1]))))


class TagsFormat(MarkedOmissionsFormat):
    """Translation and source, each word with its tag; then, in a line of its own, a score."""

    name = "tags"
    reader = TagsParser
    engine = "tagger"

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        return super().grammar(translation, grounded, source) + r"(\nScore: -?[0-9]{1,2}(\.[0-9]{1,6})?)?"
