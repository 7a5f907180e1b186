"""Language: a translation in another language than its file says."""

from __future__ import annotations

from collections.abc import Iterator

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.prompting.languages import language_code, other_language


class Language(Check):
    """`check/language` (major): a translation of 40 letters or more that is surely in another language, such as
    Spanish in a German file. A text that the source has in that language, too, is a quotation."""

    name = "language"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """One error over the whole translation."""
        expected = context.target_language
        if not expected:
            return
        found = other_language(without_templates(translation), expected)
        if found is None:
            return
        of_source = context.source_language
        if of_source and language_code(of_source) != found and other_language(source, of_source) == found:
            return
        yield error("language", len(translation) - len(translation.lstrip()), len(translation.rstrip()))
