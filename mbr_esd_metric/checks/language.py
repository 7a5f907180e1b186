"""Language: a translation that is not in the declared target language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from mbr_esd_metric.checks.check import Check, Context, whole_error
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.prompting.languages import language_code, other_language

_WORD = re.compile(r"[^\W\d_]+")
#: A text in which the share of capitalised words exceeds this consists of names.
_OF_NAMES = 0.5


class Language(Check):
    """`check/language` (major): a translation of at least 40 letters that is certainly in another language, such as
    Spanish in a German file. Names are ignored, and so are words that are also in the source, such as quotations,
    unless the translation is in the source language."""

    name = "language"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """One error over the whole translation."""
        expected = context.target_language
        if not expected:
            return
        text = without_templates(translation)
        found = other_language(text, expected)
        if found is None:
            return
        words = _WORD.findall(text)
        if context.source_language is None or language_code(context.source_language) != found:
            known = set(_WORD.findall(_plain(source)))
            words = [word for word in words if _plain(word) not in known]
        of_names = sum(word[0].isupper() for word in words) > _OF_NAMES * len(words) and not text.isupper()
        if not of_names and other_language(" ".join(words), expected) == found:
            yield whole_error("language", translation)


def _plain(text: str) -> str:
    """The text in lower case, without accents."""
    letters = unicodedata.normalize("NFD", text.casefold())
    return "".join(one for one in letters if not unicodedata.combining(one))
