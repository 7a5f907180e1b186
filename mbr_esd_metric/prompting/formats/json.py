"""`format=json`: the error list of the paper, in exactly the spacing of Python's ``json.dumps``.

With free white space a model at temperature 2.0 wanders for hundreds of tokens, and without any it closes the list at
once: so the spacing is what models write by habit. `json-omissions` also lists omissions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.prompting.formats import AnswerFormat, spans_by_text
from mbr_esd_metric.prompting.parse import KEYS, OMITTED_KEY, JsonParser
from mbr_esd_metric.prompting.prompt import CATEGORIES, SEVERITIES

#: The inside of a JSON string: anything but quote, backslash and control characters, or a short escape.
ANY_WORDS = r'([^"\\\x00-\x1f\x7f]|\\["\\/bfnrt])+'
#: The same, or nothing.
_ANY_TEXT = ANY_WORDS.removesuffix("+") + "*"
#: Escapes of `json.dumps` in its short form; other control characters cannot be in a span.
_ESCAPES = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_SUB_CATEGORY = r"[a-zA-Z][a-zA-Z /-]*"
#: Second-level names of published MQM typologies -> the prompt's category. First-level names are found by themselves.
_PARENTS = {
    **dict.fromkeys(("mistranslation", "untranslated", "addition", "omission"), "accuracy"),
    **dict.fromkeys(("wrong term", "inconsistent use of terminology"), "terminology"),
    **dict.fromkeys(("grammar", "spelling", "punctuation", "register", "non fluent", "unintelligible"), "fluency"),
    **dict.fromkeys(("linguistic conventions", "character encoding"), "fluency"),
}
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_NOT_LETTERS = re.compile(r"[^a-z]+")


def output_grammar(
    error_span: str | None = ANY_WORDS, omitted_span: str | None = None, *, more: Sequence[str] = ()
) -> str:
    """The regular expression of an answer, ``{"errors": [...]}``, from those for the inside of the JSON strings of
    error spans and of omitted words, None where there can be none; and `more` keys of an error."""
    spans = [f'"{key}": "{words}"' for key, words in ((KEYS[0], error_span), (OMITTED_KEY, omitted_span)) if words]
    if not spans:
        return r'\{"errors": \[\]\}'
    first = spans[0] if len(spans) == 1 else f"({'|'.join(spans)})"
    category, severity = (f"({'|'.join(names)})" for names in (CATEGORIES, SEVERITIES))
    others = f'"category": "{category}", "sub_category": "{_SUB_CATEGORY}", "severity": "{severity}"'
    others += "".join(f', "{key}": "{_ANY_TEXT}"' for key in more)
    error = rf"\{{{first}, {others}\}}"
    return rf'\{{"errors": \[({error}(, {error})*)?\]\}}'


def output_schema(omissions: bool = False, more: Sequence[str] = ()) -> dict[str, Any]:
    """The answer, with omissions or without, as a strict JSON schema for servers that take no grammar: every key, and
    every one of `more`, is required, and no other is allowed."""
    items = []
    for first in (KEYS[0], OMITTED_KEY) if omissions else (KEYS[0],):
        error = {
            first: {"type": "string"},
            "category": {"type": "string", "enum": list(CATEGORIES)},
            "sub_category": {"type": "string"},
            "severity": {"type": "string", "enum": list(SEVERITIES)},
            **{key: {"type": "string"} for key in more},
        }
        items.append({"type": "object", "properties": error, "required": list(error), "additionalProperties": False})
    return {
        "type": "object",
        "properties": {"errors": {"type": "array", "items": {"anyOf": items} if omissions else items[0]}},
        "required": ["errors"],
        "additionalProperties": False,
    }


def render_answer(errors: Sequence[dict[str, str]]) -> str:
    """An answer in the grammar's spacing; each error has error_span, category, sub_category and severity."""
    return json.dumps({"errors": list(errors)}, ensure_ascii=False)


class JsonFormat(AnswerFormat):
    """``{"errors": [{"error_span": ..., "category": ..., "sub_category": ..., "severity": ...}]}``."""

    name = "json"
    reader: ClassVar[type[JsonParser]] = JsonParser
    schema = json.dumps(output_schema())

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        texts = (translation, source) if self.both_sides else (translation,)
        words: list[str | None] = [ANY_WORDS for _ in texts]
        if grounded:
            from mbr_esd_metric.prompting.pieces import grounded_spans

            words = [grounded_spans(text, _ESCAPES) for text in texts]
        return output_grammar(*words, more=self.reader.more_keys)

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """The errors in the order of the text, without those whose words also stand earlier in it."""
        errors = []
        annotation = Annotation(annotation if self.both_sides else annotation.on("translation"))
        for span, text in spans_by_text(annotation, translation, source):
            if any(ord(character) < 32 for character in text):
                continue
            key = KEYS[0] if span.side == "translation" else OMITTED_KEY
            category, sub_category = answer_category(span.category or ("omission" if key == OMITTED_KEY else None))
            error = {key: text, "category": category, "sub_category": sub_category, "severity": span.severity}
            errors.append(error | self.more(span, text))
        return render_answer(errors), len(annotation) - len(errors)

    def more(self, span: ErrorSpan, words: str) -> dict[str, str]:
        """What the answer has behind the usual keys of an error."""
        return {}


class JsonOmissionsFormat(JsonFormat):
    """The answer of `json`, and what the translation leaves out: ``{"omitted_span": words of the source, ...}``."""

    name = "json-omissions"
    schema = json.dumps(output_schema(omissions=True))
    both_sides = True


def answer_category(published: str | None) -> tuple[str, str]:
    """Category and sub-category, in the answer's vocabulary, of a published MQM category.

    >>> answer_category("Accuracy/Omission (Translation 2)")
    ('accuracy', 'omission')
    """
    names = [_NOT_LETTERS.sub(" ", part.lower()).strip() for part in _IN_BRACKETS.sub("", published or "").split("/")]
    top, sub = names[0], names[-1]
    if top.startswith("non translation"):
        return "non-translation", "non-translation"
    category = top if top in CATEGORIES else _PARENTS.get(top, "other")
    return category, sub or category
