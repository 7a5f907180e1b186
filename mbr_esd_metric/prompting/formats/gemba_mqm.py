"""`format=gemba-mqm`: the lists of critical, major and minor errors that GEMBA-MQM asks for (Kocmi and Federmann 2023).

    Critical:
    no-error
    Major:
    accuracy/mistranslation - "wrong words"
    Minor:
    fluency/grammar - "other words"

The quoted words of an omission are those of the source. `score=given` is the score of GEMBA's own reading, which
counts what a person would not (`gemba_score`).
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mbr_esd_metric.core.annotation import Annotation, Severity, Side
from mbr_esd_metric.errors import InputError, MissingDependencyError
from mbr_esd_metric.prompting.formats import AnswerFormat, spans_by_text
from mbr_esd_metric.prompting.formats.json import answer_category
from mbr_esd_metric.prompting.parse import AnswerParser, Invalid, Parsed, Written, is_omission
from mbr_esd_metric.prompting.pieces import grounded_spans, writable
from mbr_esd_metric.prompting.prompt import Prompt

NO_ERROR = "no-error"
#: The lists of an answer, in their order.
_LISTS = ("critical", "major", "minor")
#: A quotation mark has no escape, so words with one cannot be written.
_ESCAPES = MappingProxyType({'"': "\0"})
_CHARACTERS = r'[^"\x00-\x1f\x7f]'
_CATEGORY = r"[a-z][a-z -]*(/[a-z][a-z -]*)?"
#: GEMBA's penalties, of at most so many errors, and the highest sum of them.
_PENALTIES, _COUNTED, _HIGHEST = MappingProxyType({"critical": 25, "major": 5, "minor": 1}), 5, 25


class GembaMqmParser(AnswerParser):
    """The reader of lists of errors, in any letter case and with any white space at the ends of lines."""

    def read(self, text: str) -> Parsed | Invalid:
        """The range of a span is its line. Texts that cannot be read have GEMBA's score as well."""
        errors = self._errors(text)
        parsed = errors if isinstance(errors, Invalid) else self.located(errors)
        return replace(parsed, self_reported_score=gemba_score(text))

    def _errors(self, text: str) -> list[Written] | Invalid:
        errors: list[Written] = []
        without: set[str] = set()
        for listed, words, place in _lines(text):
            if listed is None:
                return Invalid("an error outside the lists")
            if words.lower() == NO_ERROR:
                without.add(listed)
                continue
            category, quoted = _parts(words)
            severity: Severity = "minor" if listed == "minor" and "non-translation" not in category else "major"
            side: Side = "translation"
            # The words of an omission are the source's, unless only the translation has them.
            if self.source is not None and is_omission(category):
                alone = quoted and quoted not in self.source and quoted in self.translation
                side = "translation" if alone else "source"
            errors.append(Written(severity, quoted, (side,), category or None, (place,)))
        # A list that was cut off must not look like one without errors.
        return errors if errors or without.issuperset(_LISTS) else Invalid("missing or unterminated list of errors")


class GembaMqmFormat(AnswerFormat):
    """Three lists of errors, critical, major and minor; each error a category and quoted words."""

    name = "gemba-mqm"
    reader = GembaMqmParser
    both_sides = True
    free = True

    def prompt(self, name: str) -> Prompt:
        """The prompt of that name; "gemba-mqm" is GEMBA's own question, from the package `gemba`."""
        return gemba_mqm_prompt() if name == "gemba-mqm" else super().prompt(name)

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        words: str | None = _CHARACTERS + "+"
        if grounded:
            spans = [some for text in (translation, source) if (some := grounded_spans(text, _ESCAPES)) is not None]
            words = f"({'|'.join(spans)})" if spans else None
        error = f'{_CATEGORY} - "{words}"'
        listed = NO_ERROR if words is None else f"({NO_ERROR}|{error}(\\n{error})*)"
        return "\\n".join(f"{name.capitalize()}:\\n{listed}" for name in _LISTS)

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """The lists of errors, none critical, without errors whose words also stand earlier in the text."""
        annotation, lists = Annotation(annotation), {name: [f"{name.capitalize()}:"] for name in _LISTS}
        for span, text in spans_by_text(annotation, translation, source):
            words = writable(text, _ESCAPES)
            if words is not None:
                category, sub = answer_category(span.category or ("omission" if span.side == "source" else None))
                name = category if sub in ("", category) else f"{category}/{sub}"
                lists[span.severity].append(f'{name} - "{words}"')
        written = sum(map(len, lists.values())) - len(_LISTS)
        lines = (line for errors in lists.values() for line in (errors if errors[1:] else [*errors, NO_ERROR]))
        return "\n".join(lines), len(annotation) - written


def _lines(text: str) -> Iterator[tuple[str | None, str, tuple[int, int]]]:
    """Each line but for heads and blank ones: the list that it is in, its words, and its characters of the text."""
    listed, at = None, 0
    for line in text.split("\n"):
        start, at = at, at + len(line) + 1
        words = line.strip()
        if words.endswith(":") and words[:-1].lower() in _LISTS:
            listed = words[:-1].lower()
        elif words:
            yield listed, words, (start, at - 1)


def _parts(line: str) -> tuple[str, str]:
    """Category and words of an error: those between the first and the last quotation mark; no words without two."""
    first, last = line.find('"'), line.rfind('"')
    if first == last:
        return line.lower(), ""
    return line[:first].rstrip().removesuffix("-").rstrip().lower(), line[first + 1 : last]


def gemba_score(text: str) -> float:
    """The score that GEMBA-MQM's own reading gives an answer, in [-25, 0], higher is better.

        max(-25, -sum of the penalties of the first five errors)

    A critical error costs 25, a major one 5, a minor one 1; critical errors come first. Any line of a list without
    "no-error" or "no error" is one, also without quoted words; one that names non-translation is critical.
    """
    counts = dict.fromkeys(_LISTS, 0)
    for listed, words, _ in _lines(text.lower()):
        if listed is not None and NO_ERROR not in words and "no error" not in words:
            counts["critical" if "non-translation" in words else listed] += 1
    penalties = [_PENALTIES[name] for name in _LISTS for _ in range(counts[name])][:_COUNTED]
    return float(-min(sum(penalties), _HIGHEST))


def gemba_mqm_prompt() -> Prompt:
    """The question of GEMBA-MQM, with its system message and three examples as earlier turns. Its wording is not ours
    to ship (CC BY-SA), so it is read from the package `gemba`. Raises `MissingDependencyError` if that is not
    installed, and `InputError` for another version of it."""
    spec = find_spec("gemba")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("gemba", "gemba", "prompt=gemba-mqm")
    path = Path(spec.origin).with_name("gemba_mqm_utils.py")
    names: dict[str, Any] = {}
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
        # The imports would start a debugger's and a service's libraries, and the question needs none.
        module.body = [node for node in module.body if not isinstance(node, ast.Import | ast.ImportFrom)]
        exec(compile(module, path, "exec"), names)
        messages = [(message["role"], message["content"]) for message in names["TEMPLATE_GEMBA_MQM"]]
        *turns, (_, template) = messages
    except Exception as error:  # another version's code may raise anything
        raise InputError(
            f"{path} has GEMBA's prompt in an unsupported form ({type(error).__name__}); install gemba 0.1.3"
        ) from None
    digest = hashlib.sha256(repr((turns, template)).encode()).hexdigest()[:8]
    return Prompt(f"gemba-mqm:{digest}", template, tuple(turns))
