"""Repetition: a repeated word."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mbr_esd_metric.checks.check import Check, Context, error
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.prompting.languages import language_code

#: A word that is followed by the same word.
_REPEATED = re.compile(r"(?<![\w'’-])([^\W\d_]+)[ \u00a0]{1,3}(\1)(?![\w'’-])", re.IGNORECASE)
#: A more permissive pattern for repetitions in the source, which justify those in the translation.
_REPEATED_SOURCE = re.compile(r"(?<!\w)(\S{1,40})[\s,.!?-]{1,3}\1(?!\w)|([\u3040-\u9fff]{2,4})\2", re.IGNORECASE)
#: Words that are never repeated in their language, and that do not exist in languages where they would be repeated.
_NEVER = frozenset(
    re.findall(
        r"\w+",
        """
        the a an of and with from or your our their my its
        und oder eine einen einem eines keine kein
        et les une pour dans avec aux cette votre
        los las una con para del el sus
        os uma com dos ao il gli della nella dei
        och ett eller av og til
        oraz jest dla przez jsou jako pro
        для или из от при это або та від
        ja sekä és hogy
        """,
    )
)
#: Languages that repeat words only for emphasis; the following words are exceptions.
_RARELY = frozenset({"en", "de", "nl", "sv", "da", "nb", "nn", "no", "fr", "pl", "cs", "sk"})
_EMPHASIS = re.compile(
    r"(?:real|tru|utter|total|absolut|very|always|never|again|super|extrem|vraiment|toujours|jamais|beaucoup|wirklich"
    r"|immer|wieder|niemals|lange|echt|heel|altijd|väldigt|verkligen|meget|virkelig|bardzo|naprawd|velmi|opravdu|please"
    r"|thank|danke|merci|hurra|bravo|hello|million|billion|tausend)"
)
#: Words of these languages that may grammatically be repeated, as in "die, die die Stadt" and "que vous vous".
_TWICE = frozenset(
    re.findall(
        r"\w+",
        """
        die das der dem den denen deren sie ihr ihnen uns etwas sehr was wie wer doch nein that had her you such run now
        bye nous vous que tout bien très pas oui non dat het zijn leven haar hun van wat heel det som var man har til
        for men coś tak nie jen ale mit auf aus von bei nach für unter über vor faire met out wir mich dich
        has have was were are did does can will there where them haben hat hatte hatten sind war waren werden wird
        wurde wurden ist sein est sont ont avoir être fait gehad geweest hebben heeft waren worden werd är hade er var
        blir være ble blev jest był była być byl byla být
        """,
    )
)
#: The minimum length of words that are not particles or interjections.
_LONG = 3


class Repetition(Check):
    """`check/repetition` (minor): a repeated word, if the source has no repetition. Because many languages repeat words
    on purpose, it only covers words such as articles; and any long word in languages known not to repeat words."""

    name = "repetition"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """The errors on the second of two equal words."""
        if not _REPEATED.search(translation):
            return
        if _REPEATED_SOURCE.search(without_templates(source)):
            return
        language = language_code(context.target_language) if context.target_language else None
        for match in _REPEATED.finditer(without_templates(translation)):
            first, word = match[1], match[2]
            # A name may start with the preceding word: in der Der Spiegel.
            same = first == word or (first[1:] == word[1:] and first[0].isupper())
            never = word in _NEVER
            rarely = language in _RARELY and len(word) >= _LONG and word.islower() and word not in _TWICE
            rarely = rarely and not _EMPHASIS.match(word)
            if same and (never or rarely):
                yield error("repetition", *match.span(2), "minor")
