"""Conversion of regular expressions to GBNF, the grammar format of llama.cpp. Both match exactly the same texts.

Groups, alternatives and repetitions have the same syntax in both formats; literals and classes do not.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<group>\((?:\?:)?)|(?P<mark>[)|*+?]|\{\d+(?:,\d*)?\})|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<escape>\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.))|(?P<any>\.)|(?P<literal>[^\\])",
    re.DOTALL,
)
#: Escapes other than punctuation marks -> character.
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\r"}


@lru_cache(maxsize=64)
def gbnf(expression: str) -> str:
    """The grammar whose `root` matches a text if and only if the expression matches the whole text. Raises `ValueError`
    for constructs other than literals, escapes, classes, groups, alternatives and repetitions."""
    out: list[str] = []
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None or (match[0] == "(" and expression.startswith("(?", position)):
            raise ValueError(f"no GBNF for {expression[position : position + 10]!r}")
        position = match.end()
        kind, text = match.lastgroup, match[0]
        if kind == "group":
            out.append("(")
        elif kind == "mark":
            if text in ")|" and out[-1:] in (["("], ["|"], []):
                out.append('""')  # an empty alternative
            out.append(text)
        elif kind == "class":
            out.append(_class(text))
        elif kind == "any":
            out.append(r"[^\n]")
        elif text[0] == "\\" and text[1:] in _CLASSES:
            out.append(f"[{_CLASSES[text[1:]]}]")
        else:
            literal = f'"{_written(_character(text))}"'
            if out and out[-1][0] == '"' and out[-1] != '""' and expression[position : position + 1] not in set("*+?{"):
                literal = out.pop()[:-1] + literal[1:]
            out.append(literal)
    return _in_rules(out)


def _in_rules(pieces: list[str]) -> str:
    """The grammar of these pieces. A group with a counted repetition becomes a separate rule, because llama.cpp rejects
    nested groups, which it counts once for each repetition."""
    rules: list[str] = []
    opened: list[list[str]] = [[]]
    for piece, following in zip(pieces, [*pieces[1:], ""], strict=True):
        if piece == "(":
            opened.append([])
        elif piece == ")" and following.startswith("{"):
            rules.append(" ".join(opened.pop()))
            opened[-1].append(f"repeated-{len(rules)}")
        elif piece == ")":
            group = opened.pop()
            opened[-1] += ["(", *group, ")"]
        else:
            opened[-1].append(piece)
    root = " ".join(piece for part in opened for piece in part)
    return "\n".join([f"root ::= {root}", *(f"repeated-{at} ::= {rule}" for at, rule in enumerate(rules, 1))])


def _character(text: str) -> str:
    if not text.startswith("\\") or len(text) == 1:
        return text
    if text[1] in "xu" and len(text) > 2:
        return chr(int(text[2:], 16))
    if text[1].isalnum() and text[1] not in _ESCAPES:
        raise ValueError(f"no GBNF for {text!r}")
    return _ESCAPES.get(text[1], text[1])


def _class(text: str) -> str:
    inside = text[2:-1] if text.startswith("[^") else text[1:-1]
    out = []
    for piece in re.findall(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|.", inside, re.DOTALL):
        if piece == "-":
            out.append("-")
        elif piece[:1] == "\\" and piece[1:] in _CLASSES:
            out.append(_CLASSES[piece[1:]])
        else:
            out.append(_written(_character(piece), in_class=True))
    return ("[^" if text.startswith("[^") else "[") + "".join(out) + "]"


def _written(character: str, *, in_class: bool = False) -> str:
    code = ord(character)
    if character in '"\\' or (in_class and character in "[]^"):
        return "\\" + character if character in '"\\[]' else "\\x5E"
    if in_class and character == "-":
        return "\\x2D"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02X}"
    return character
