"""The one output grammar of every engine: a regular expression, in exactly the spacing of Python's ``json.dumps``.

A grammar with free whitespace lets a model at temperature 2.0 wander for hundreds of tokens; a fully compact one makes
models close the list at once. Both would bias what is sampled, so the spacing is fixed to what models write by habit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from mbr_esd_metric.elicit.parse import KEYS, OMITTED_KEY
from mbr_esd_metric.elicit.prompt import ASKED_CATEGORIES, ASKED_SEVERITIES

#: The inside of a JSON string: anything but quote, backslash and control characters, or a short escape.
STRING_CHARACTERS = r'([^"\\\x00-\x1f\x7f]|\\["\\/bfnrt])'
_SUB_CATEGORY = r"[a-zA-Z][a-zA-Z /-]*"


def _one_of(values: Sequence[str]) -> str:
    return "(" + "|".join(re.escape(value).replace(r"\-", "-") for value in values) + ")"


def output_grammar(error_span: str | None = STRING_CHARACTERS + "+", omitted_span: str | None = None) -> str:
    """The regular expression of an answer: ``{"errors": [...]}``.

    Args:
        error_span: regular expression for the inside of the JSON string of an error span; the default admits any text.
            None: nothing can be wrong in the translation.
        omitted_span: the same for what the translation leaves out; None: an answer does not say that.
    """
    spans = [f'"{key}": "{words}"' for key, words in ((KEYS[0], error_span), (OMITTED_KEY, omitted_span)) if words]
    if not spans:
        return r'\{"errors": \[\]\}'
    error = (
        r"\{"
        + (spans[0] if len(spans) == 1 else f"({'|'.join(spans)})")
        + r', "category": "'
        + _one_of(ASKED_CATEGORIES)
        + r'", "sub_category": "'
        + _SUB_CATEGORY
        + r'", "severity": "'
        + _one_of(ASKED_SEVERITIES)
        + r'"\}'
    )
    return r'\{"errors": \[(' + error + "(, " + error + r")*)?\]\}"


def output_schema(omissions: bool = False) -> dict[str, Any]:
    """The answer as a JSON schema, for servers that take no grammar; strict: every key is required, and no other.

    Args:
        omissions: an error may be one of what the translation leaves out.
    """

    def item(first: str) -> dict[str, Any]:
        error = {
            first: {"type": "string"},
            "category": {"type": "string", "enum": list(ASKED_CATEGORIES)},
            "sub_category": {"type": "string"},
            "severity": {"type": "string", "enum": list(ASKED_SEVERITIES)},
        }
        return {"type": "object", "properties": error, "required": list(error), "additionalProperties": False}

    items = {"anyOf": [item(KEYS[0]), item(OMITTED_KEY)]} if omissions else item(KEYS[0])
    return {
        "type": "object",
        "properties": {"errors": {"type": "array", "items": items}},
        "required": ["errors"],
        "additionalProperties": False,
    }


def render_answer(errors: Sequence[dict[str, str]]) -> str:
    """An answer in the grammar's spacing; each error has error_span, category, sub_category and severity."""
    return json.dumps({"errors": list(errors)}, ensure_ascii=False)
