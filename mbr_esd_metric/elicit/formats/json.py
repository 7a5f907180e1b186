"""`format=json`: the error list of the paper, in the spacing of Python's ``json.dumps``.

`json-omissions` also says what is left out.
"""

from __future__ import annotations

import json
import re

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.elicit.answer_format import AnswerFormat
from mbr_esd_metric.elicit.grammar import STRING_CHARACTERS, output_grammar, output_schema, render_answer
from mbr_esd_metric.elicit.grounded import grounded_grammar, grounded_spans, in_json
from mbr_esd_metric.elicit.parse import KEYS, OMITTED_KEY, CandidateParser
from mbr_esd_metric.elicit.prompt import ASKED_CATEGORIES, OMISSION_TEMPLATES, TEMPLATES

#: Second-level names of published MQM typologies -> the prompt's category. First-level names are found by themselves.
_PARENTS = {
    "mistranslation": "accuracy",
    "untranslated": "accuracy",
    "addition": "accuracy",
    "omission": "accuracy",
    "wrong term": "terminology",
    "inconsistent use of terminology": "terminology",
    "grammar": "fluency",
    "spelling": "fluency",
    "punctuation": "fluency",
    "register": "fluency",
    "non fluent": "fluency",
    "unintelligible": "fluency",
    "linguistic conventions": "fluency",
    "character encoding": "fluency",
}
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_NOT_LETTERS = re.compile(r"[^a-z]+")


class JsonFormat(AnswerFormat):
    """``{"errors": [{"error_span": ..., "category": ..., "sub_category": ..., "severity": ...}]}``."""

    name = "json"
    templates = TEMPLATES
    reader = CandidateParser
    schema = json.dumps(output_schema())

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        return grounded_grammar(translation) if grounded else output_grammar()

    def answer(self, annotation: Annotation, translation: str, source: str = "") -> tuple[str, int]:
        """The errors in the order of the text; each can be said where its text is first found at its own place.

        Of several with one text and one place in the answer (a doubly marked word) each is said.
        """
        errors = []
        annotation = Annotation(annotation if self.both_sides else annotation.on("translation"))
        for span in annotation:
            whole, key = (translation, KEYS[0]) if span.side == "translation" else (source, OMITTED_KEY)
            text = whole[span.start : span.end]
            if whole.find(text) != span.start or any(ord(character) < 32 for character in text):
                continue
            category, sub_category = answer_category(span.category or ("omission" if key == OMITTED_KEY else None))
            errors.append({key: text, "category": category, "sub_category": sub_category, "severity": span.severity})
        return render_answer(errors), len(annotation) - len(errors)


class JsonOmissionsFormat(JsonFormat):
    """As `json`, and what the translation leaves out: ``{"omitted_span": words of the source, "category": ...}``."""

    name = "json-omissions"
    templates = OMISSION_TEMPLATES
    schema = json.dumps(output_schema(omissions=True))
    both_sides = True

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        if grounded:
            return output_grammar(grounded_spans(translation, in_json), grounded_spans(source, in_json))
        return output_grammar(omitted_span=STRING_CHARACTERS + "+")


def answer_category(published: str | None) -> tuple[str, str]:
    """Category and sub-category, in the answer's vocabulary, of a published MQM category.

    >>> answer_category("Accuracy/Omission (Translation 2)")
    ('accuracy', 'omission')
    """
    names = [_NOT_LETTERS.sub(" ", part.lower()).strip() for part in _IN_BRACKETS.sub("", published or "").split("/")]
    top, sub = names[0], names[-1]
    if top.startswith("non translation"):
        return "non-translation", "non-translation"
    category = top if top in ASKED_CATEGORIES else _PARENTS.get(top, "other")
    return category, sub or category
