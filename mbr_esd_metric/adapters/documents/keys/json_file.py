"""JSON files of i18next, vue-i18n, Chrome and Flutter (ARB): nested objects and lists of texts.

The standard parser validates the JSON but does not record positions, so the tokens are scanned again here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mbr_esd_metric.adapters.documents.keys.entries import Entry, Lines, StringFile, decoded
from mbr_esd_metric.errors import InputError

#: A string, bracket, number or word, after colons, commas and white space.
_TOKEN = re.compile(r'[\s,:]*("[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|[^\s{}\[\]",:]+)')


class Item(NamedTuple):
    """A value in a JSON file: its path of keys and indices, its text (None for an object, list, number or word, see
    `token`), and the offset of its key."""

    path: tuple[str | int, ...]
    text: str | None
    token: str
    at: int


def items(path: Path, content: str) -> Iterator[Item]:
    """The values of a JSON text, objects before their content. Raises `InputError` with the line of an error."""
    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg}); fix the file") from None
    except RecursionError:
        raise InputError(f"{path}: objects nested too deeply") from None
    parents: list[tuple[str | int, ...]] = []
    indices: list[int | None] = []  # the next index of a list, None for an object
    key: str | None = None
    at = 0
    end = 0
    while (match := _TOKEN.match(content, end)) is not None:
        token, end = match[1], match.end()
        if token in "}]":
            parents.pop()
            indices.pop()
            continue
        in_object = bool(indices) and indices[-1] is None
        if in_object and key is None:
            key, at = json.loads(token), match.start(1)
            continue
        if in_object:
            here: tuple[str | int, ...] = (*parents[-1], key or "")
        elif parents:
            here, at = (*parents[-1], indices[-1] or 0), match.start(1)
            indices[-1] = (indices[-1] or 0) + 1
        else:
            here = ()
        key = None
        yield Item(here, json.loads(token) if token[0] == '"' else None, token, at)
        if token in "{[":
            parents.append(here)
            indices.append(None if token == "{" else 0)


def key_of(path: tuple[str | int, ...]) -> str:
    """The keys joined by dots, and indices in brackets: ``home.days[0]``."""
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path).removeprefix(".")


def read_json(path: Path) -> StringFile:
    """The texts of a JSON file. In ARB, entries starting with "@" are metadata, and ``@@locale`` is the language; in
    Chrome's ``messages.json``, the "message" of each entry is its text."""
    content, encoding = decoded(path)
    lines, texts, language = Lines(content), [], ""
    arb = path.suffix.lower() == ".arb"
    for item in items(path, content):
        first = item.path[0] if item.path else ""
        if arb and isinstance(first, str) and first.startswith("@"):
            language = item.text or "" if item.path == ("@@locale",) else language
        elif item.text is not None:
            texts.append(item)
    if path.name == "messages.json" and all(len(one.path) > 1 for one in texts):
        texts = [one._replace(path=one.path[:1]) for one in texts if one.path[1:] == ("message",)] or texts
    entries = (Entry(key_of(one.path), one.text or "", *lines.place(one.at)) for one in texts)
    return StringFile(path, tuple(entries), language, None, encoding)
