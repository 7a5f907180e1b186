"""Subtitles in SRT and WebVTT: cues by start time, or by number if the times differ.

Subtitle libraries do not keep line numbers, so the two simple formats are parsed here.
"""

from __future__ import annotations

import html
import re
from pathlib import Path

from mbr_esd_metric.adapters.documents.keys.entries import Entry, StringFile, decoded

_TIME = r"(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}"
_TIMES = re.compile(rf"\s*({_TIME})\s*-->\s*({_TIME})(?:\s.*)?")
#: Markup: tags of both formats, and positions.
_MARKUP = re.compile(r"</?[a-zA-Z0-9.:][^<>]*>|\{\\[^{}]*\}")


def read_subtitles(path: Path) -> StringFile:
    """The cues of a subtitle file, with the start time as key, without tags and positions."""
    content, encoding = decoded(path, "windows-1252")
    lines = content.splitlines()
    starts = [at for at, line in enumerate(lines) if _TIMES.fullmatch(line)]
    entries = []
    for number, at in enumerate(starts, 1):
        times = _TIMES.fullmatch(lines[at])
        assert times is not None
        end = at + 1
        while end < len(lines) and lines[end].strip():
            end += 1
        text = _MARKUP.sub("", "\n".join(line.strip() for line in lines[at + 1 : end]))
        if path.suffix.lower() == ".vtt":
            text = html.unescape(text)
        entries.append(Entry(_clock(times[1]), text, at + 1, number=str(number)))
    return StringFile(path, tuple(entries), "", None, encoding)


def _clock(time: str) -> str:
    """A time with hours, minutes, seconds and thousandths."""
    hours, minutes, seconds = ["0", *time.replace(",", ".").split(":")][-3:]
    whole, _, rest = seconds.partition(".")
    return f"{int(hours):02}:{int(minutes):02}:{int(whole):02}.{rest:<03}"
