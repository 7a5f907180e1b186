"""Placeholders of message templates, in the syntaxes of printf, Qt, Python, Ruby, Symfony, Fluent, Mustache and
shells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Formatter

_PERCENT = re.compile(
    r"%(?:(?P<literal>%)"
    r"|\((?P<python>[\w.-]{1,60})\)[-+#0 ]{0,5}\d{0,4}(?:\.\d{1,4})?[a-zA-Z]"
    r"|\{(?P<ruby>[\w.-]{1,60})\}|<(?P<typed>\w{1,60})>"
    r"|(?P<symfony>[A-Za-z_]\w{1,60})%(?![A-Za-z0-9_%])|(?P<boost>\d{1,2})%(?![A-Za-z0-9_%])"
    r"|(?:(?P<position>\d{1,2})\$)?[-+#0']{0,5}(?P<star>\*|\d{1,4})?(?:\.(?:\*|\d{1,4}))?"
    r"(?:hh?|ll?|I64|[qLjzt])?(?P<type>[diouxXeEfFgGaAcCsSp@])(?![A-Za-z_0-9])"
    r"|L?(?P<qt>\d{1,2})(?![A-Za-z0-9_$])|(?P<n>n)(?![A-Za-z0-9_]))"
)
#: Type of the printed value -> conversions of printf.
_TYPES = {
    **dict.fromkeys("diouxX", "integer"),
    **dict.fromkeys("eEfFgGaA", "real"),
    **dict.fromkeys("sS", "text"),
    **dict.fromkeys("cC", "character"),
    "@": "object",
    "p": "pointer",
}
#: A printf placeholder that may be followed by a letter: `%sAuthor`.
_CONVERSION = re.compile(
    r"%(?:\d{1,2}\$)?[-+#0']{0,5}(?:\*|\d{1,4})?(?:\.(?:\*|\d{1,4}))?(?:hh?|ll?|I64|[qLjzt])?"
    r"([diouxXeEfFgGaAcCsSp@])(?!\d)"
)
_BRACES = re.compile(r"[$#]?\{\{\{?[^{}]{1,80}\}?\}\}|[$#]?\{[^{}]{0,80}\}")
_FLUENT = re.compile(r"\s*(?:[A-Z]{1,20}\(\s*)?\$([A-Za-z][\w-]{0,60})[^{}]{0,80}")
_MUSTACHE = re.compile(r"([#/^&!>]?\s?[$@]?[\w.-]{1,60}(?:\s[\w.\s]{1,60}?)?)\s?(?:\|[^{}]{0,80})?")
_FIELD = re.compile(r"[\w.-]{0,60}(?:\[[\w.-]{1,60}\])*")
_SPECIFICATION = re.compile(r"(?:.?[<>=^])?[-+ ]?#?0?\d{0,4}[,_]?(?:\.\d{1,4})?[a-zA-Z%]?|[A-Za-z0-9#.,:/%-]{1,40}")
_FORMATTED = re.compile(
    r"\s*([\w.-]{1,60})\s*,\s*(?:number|date|time|spellout|ordinal|duration|list)\b[^{}]*|(\d{1,2}),-?\d{1,3}(?::.*)?"
)
#: Text before braces that are not placeholders: TeX commands, indices and exponents, regular expressions.
_NO_PLACEHOLDER = re.compile(r"(?:\\[A-Za-z]{1,30}\*?(?:\[[^\]{}]{0,60}\]|\{[^{}]{0,60}\}){0,3}|[_^\]\\]|\\[dws])$")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder with its position.

    Attributes:
        syntax: the name of its syntax, such as "printf".
        argument: its name or number; "" for the next argument in text order.
        type: for printf, the type of the printed value: "integer", "real", "text" ...; "" if the syntax does not have
            types.
    """

    start: int
    end: int
    syntax: str
    argument: str
    type: str = ""


def percent_placeholders(text: str) -> Iterator[Placeholder]:
    """The placeholders with a percent sign, in order. After a number or a placeholder in braces, the sign means
    percent."""
    last = 0
    for match in _PERCENT.finditer(text) if "%" in text else ():
        start, end = match.span()
        before = text[max(start - 2, 0) : start]
        of_number = before[-1:].isdigit() or (before[-1:].isspace() and before[:1].isdigit()) or before[-1:] == "}"
        if match["literal"] or (of_number and start != last):
            continue
        last = end
        kind = match.lastgroup or ""
        if match["type"]:
            # A width given as an argument shifts the numbers of the following arguments.
            kind = "printf*" if match["star"] == "*" else "printf"
            if text[end : end + 1] in ("'", "’") and text[end + 1 : end + 3].isalpha() and match["type"] in "dc":
                continue  # as in 5 %d'articles
            yield Placeholder(start, end, kind, match["position"] or "", _TYPES[match["type"]])
        else:
            yield Placeholder(start, end, "qt" if kind == "n" else kind, match[kind])


def conversions(text: str) -> set[str]:
    """The types of the printf placeholders that a text may have, also of those before a letter: `%sAuthor`."""
    return {_TYPES[match[1]] for match in _CONVERSION.finditer(text)}


def brace_placeholders(text: str) -> Iterator[Placeholder]:
    """The placeholders in braces, in order, except ICU messages with branches."""
    for match in _BRACES.finditer(text) if "{" in text else ():
        start, end = match.span()
        if text[max(start - 1, 0) : start] == "%" or _NO_PLACEHOLDER.search(text, max(start - 100, 0), start):
            continue
        inner = match[0].lstrip("$#")
        braces = len(inner) - len(inner.lstrip("{"))
        content = inner[braces:-braces]
        if match[0][0] in "$#":
            yield Placeholder(start, end, match[0][0], "".join(content.split()))
        elif braces > 1:
            found = _MUSTACHE.fullmatch(content.strip())
            if found is not None:
                yield Placeholder(start, end, "mustache", "".join(found[1].split()))
        elif fluent := _FLUENT.fullmatch(content):
            yield Placeholder(start, end, "fluent", fluent[1])
        elif formatted := _FORMATTED.fullmatch(content):
            yield Placeholder(start, end, "braces", formatted[1] or formatted[2])
        elif (field := _field(content)) is not None:
            yield Placeholder(start, end, "braces", field)


def _field(content: str) -> str | None:
    """The field name in braces, in the syntax of Python and similar ones; None if there is none."""
    try:
        ((_, field, specification, _),) = Formatter().parse("{" + content + "}")
    except ValueError:
        return None
    if field is None or (not field.strip() and content.strip() != content) or _FIELD.fullmatch(field.strip()) is None:
        return None
    return field.strip() if _SPECIFICATION.fullmatch(specification or "") else None


#: Directive of a date format -> the component that it shows.
_SHOWN = {
    **dict.fromkeys("dej", "day"),
    **dict.fromkeys("bBhm", "month"),
    **dict.fromkeys("yYGC", "year"),
    **dict.fromkeys("HIkl", "hour"),
    "M": "minute",
}
_WHOLE = {
    "D": ("day", "month", "year"),
    "F": ("day", "month", "year"),
    "T": ("hour", "minute"),
    "R": ("hour", "minute"),
    "r": ("hour", "minute"),
}
_DATE = re.compile(r"%[-_0^#]?(?!(?:hh?|ll?|[jztL])[diouxXeEfgs])([A-Za-z%])")
#: Directives that printf lacks.
_OF_DATES = set("bBhmMyYHIjklDFTRrwWZ")
_KNOWN = {*_SHOWN, *_WHOLE, *"aApPSsuUVWwzZntf"}


def date_parts(text: str) -> dict[str, tuple[int, int]] | None:
    """Component of a date or time -> its position in a date format; None if the text is not a date format, or its
    directives depend on the locale."""
    every = list(_DATE.finditer(text)) if "%" in text else []
    directives = [match for match in every if match[1] != "%"]
    if 2 * len(every) - len(directives) != text.count("%"):
        return None
    if not directives or not {match[1] for match in directives} & _OF_DATES:
        return None
    if len(directives) < 2 and len(directives[0][0]) < len(text.strip()):
        return None
    if any(match[1] not in _KNOWN for match in directives):
        return None
    return {
        part: match.span()
        for match in directives
        for part in _WHOLE.get(match[1]) or filter(None, [_SHOWN.get(match[1])])
    }


def numbered(placeholders: Sequence[Placeholder], first: int) -> list[Placeholder]:
    """The placeholders, with those for the next argument numbered from `first`."""
    numbers = iter(range(first, first + len(placeholders)))
    return [
        one if one.argument else Placeholder(one.start, one.end, one.syntax, str(next(numbers)), one.type)
        for one in placeholders
    ]
