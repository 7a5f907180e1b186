"""Parsing of event streams as one reply, because some gateways stream replies although this was not requested.

The format is that of server-sent events (HTML standard, section 9.2.6): lines with fields, and events separated by
blank lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

#: Matches a text that starts with a field of an event or with a comment.
_EVENTS = re.compile(r"\s*(?::|(?:data|event|id|retry):)")


def is_event_stream(content_type: str, text: str) -> bool:
    """Whether a body is an event stream, by its content type or its first line."""
    return content_type.lower().startswith("text/event-stream") or _EVENTS.match(text) is not None


def whole_reply(text: str) -> dict[str, Any]:
    """The chat completion that is assembled from the events of a stream. Raises `ValueError` if there is none."""
    reply: dict[str, Any] = {}
    choices: dict[object, dict[str, Any]] = {}
    for event in _events(text):
        value = json.loads(event)
        if not isinstance(value, Mapping):
            raise ValueError("an event that is not an object")
        if value.get("error"):
            return dict(value)
        given = value.get("choices")
        for choice in given if isinstance(given, list) else []:
            if isinstance(choice, Mapping):
                _add(choices.setdefault(choice.get("index"), {}), choice)
        reply |= {name: part for name, part in value.items() if name != "choices" and part is not None}
    if not choices:
        raise ValueError("no choice")
    return reply | {"choices": list(choices.values())}


def _events(text: str) -> Iterator[str]:
    """The data of each event, except for the end marker."""
    data: list[str] = []
    for line in [*re.split(r"\r\n|\n|\r", text), ""]:
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not line and data:
            if (event := "\n".join(data)).strip() not in ("", "[DONE]"):
                yield event
            data = []


def _add(whole: dict[str, Any], chunk: Mapping[str, Any]) -> None:
    """Merge a chunk into a choice: texts and lists are appended, other values are replaced."""
    for name, part in chunk.items():
        name = "message" if name == "delta" else name
        known = whole.get(name)
        if isinstance(part, Mapping):
            whole[name] = known if isinstance(known, dict) else {}
            _add(whole[name], part)
        elif isinstance(part, list) or isinstance(known, list):
            whole[name] = _parts(known) + _parts(part)
        elif isinstance(part, str) and isinstance(known, str) and name in _TEXTS:
            whole[name] = known + part
        elif part is not None or name not in whole:
            whole[name] = part


#: Fields of a message whose text is split over chunks.
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning", "thinking")


def _parts(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
