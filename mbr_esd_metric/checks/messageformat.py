"""ICU MessageFormat: the arguments of messages whose text depends on a number or a word.

Languages have different plural branches, but each message has a branch "other". Its text, with that of the branches
"other" in it, is the general form, by which messages are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_HEAD = re.compile(r"\{\s{0,9}[\w.-]{1,60}\s{0,9},\s{0,9}(?:plural|selectordinal|select)\s{0,9},")
_BRACE = re.compile("[{}]")
_PLURALS = {"zero", "one", "two", "few", "many", "other"}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a message, with its position.

    Attributes:
        shown: whether its value is inserted in the text, as by `{n}` or `#`, rather than only used for a choice.
        general: whether it is in the general form.
    """

    start: int
    end: int
    name: str
    shown: bool
    general: bool


@dataclass(frozen=True, slots=True)
class Message:
    """A part of a text with branches.

    Attributes:
        arguments: the arguments in all branches; None for a syntax error.
        words: argument -> the values of its select branches.
        wrong: plural branches that do not exist in any language.
        is_complete: whether each choice has the branch "other", which is mandatory.
        hidden: the positions of everything but the text of the general form.
    """

    start: int
    end: int
    arguments: tuple[Argument, ...] | None
    words: Mapping[str, frozenset[str]]
    wrong: frozenset[str] = frozenset()
    is_complete: bool = True
    hidden: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=8)
def messages(text: str) -> tuple[Message, ...]:
    """The top-level messages with branches, in order."""
    if "{" not in text:
        return ()
    found: list[Message] = []
    at = 0
    while match := _HEAD.search(text, at):
        end = _closing(text, match.start())
        found.append(_message(text, match.start(), end))
        at = end
    return tuple(found)


def _closing(text: str, start: int) -> int:
    """The position after the brace that closes the one at the start; the end of the text if there is none."""
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def _message(text: str, start: int, end: int) -> Message:
    from pyicumessageformat import Parser

    tokens: list[dict[str, str]] = []
    try:
        # Unsupported branches, such as a select without "other", are not errors here.
        tree = Parser({"include_indices": True, "require_other": False}).parse(text[start:end], tokens)
    except SyntaxError:
        return Message(start, end, None, {}, hidden=((start, end),))
    arguments: list[Argument] = []
    words: dict[str, frozenset[str]] = {}
    wrong: set[str] = set()
    is_complete = True
    for node, general in _nodes(tree):
        name, kind, options = node["name"], node.get("type", ""), node.get("options")
        shown = not isinstance(options, dict)
        arguments.append(Argument(start + node["start"], start + node["end"], name, shown, general))
        is_complete &= not isinstance(options, dict) or "other" in options
        if isinstance(options, dict) and kind == "select":
            words[name] = words.get(name, frozenset()) | options.keys()
        elif isinstance(options, dict):
            wrong |= {one for one in options if one not in _PLURALS and not re.fullmatch(r"=\d+", one)}
    hidden = tuple(_hidden(tokens, start))
    return Message(start, end, tuple(arguments), words, frozenset(wrong), is_complete, hidden)


def _nodes(tree: Sequence[Any], general: bool = True) -> Iterator[tuple[dict[str, Any], bool]]:
    """The arguments of a parsed message, outer ones first, and whether each is in the general form."""
    for node in tree:
        if isinstance(node, dict) and "name" in node:
            yield node, general
            options = node.get("options")
            if isinstance(options, dict):
                for name, branch in options.items():
                    yield from _nodes(branch, general and (name == "other" or "other" not in options))


def _hidden(tokens: Sequence[Mapping[str, str]], at: int) -> Iterator[tuple[int, int]]:
    """The positions of the tokens of a message from a position that are not text of the general form."""
    general, branch = [True], "other"
    for token in tokens:
        end = at + len(token["text"])
        if token["type"] != "text" or not general[-1]:
            yield at, end
        if token["type"] == "selector":
            branch = token["text"]
        elif token["text"] == "{" and token["type"] == "syntax":
            general.append(general[-1] and branch == "other")
            branch = "other"
        elif token["text"] == "}" and token["type"] == "syntax":
            general.pop()
        at = end
