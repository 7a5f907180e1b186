"""Texts of messages: fit for any terminal, without keys and passwords; counts with their nouns."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

#: Control characters, line ends, characters that turn the direction of writing, halves of surrogate pairs, and what XML
#: forbids.
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
#: Variables that hold a key, and the keys and passwords of addresses in use.
_KEY_VARIABLES = ("MBR_ESD_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_secrets: set[str] = set()


def hide(*secrets: str) -> None:
    """Let `masked` know of keys or passwords."""
    _secrets.update(secrets)


def masked(text: str) -> str:
    """The text with ``***`` in place of each key and password in use: of a short one where it stands alone, and never
    of one of up to three characters, such as that of a server that wants none."""
    keys = {*_secrets, *(os.environ.get(name, "").strip() for name in _KEY_VARIABLES)}
    for key in sorted((key for key in keys if len(key) > 3 and key in text), key=len, reverse=True):
        text = text.replace(key, "***") if len(key) > 11 else re.sub(rf"(?<!\w){re.escape(key)}(?!\w)", "***", text)
    return text


def printable(text: str) -> str:
    """A text as one line that no terminal obeys: control characters as pictures, line ends as spaces."""
    return _UNFIT.sub(_picture, text)


def encodable(text: str) -> str:
    """The text, as long as before, without halves of surrogate pairs, which no tokenizer and no UTF-8 takes."""
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    if character in "\n\r\t\u2028\u2029":
        return " "
    return chr(0x2400 + ord(character)) if character < " " else "\N{REPLACEMENT CHARACTER}"


def number_of(count: int, what: str) -> str:
    """A count with its noun: "1 segment", "2 segments"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def first_of(items: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first items, and how many more there are: "a, b and 3 more"."""
    more = f"{between.strip(', ')} and {len(items) - most} more" if len(items) > most else ""
    return between.join(items[:most]) + more
