"""Copies: a source sentence in place of its translation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mbr_esd_metric.checks.check import Check, Context, whole_error
from mbr_esd_metric.checks.templates import without_templates
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.core.words import UNSPACED
from mbr_esd_metric.prompting.languages import alike, is_likelier, language_code, language_of, script_of

_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"[.!?。！？؟।…][\"'”’»）)]*\s*$")
#: Marks of commands and code.
_CODE = re.compile(r"(?<!\S)--?[a-z]|[=<>|\\{}()\[\];_`]|::|[^\s:/]/[^\s/]|\$\w|\w\.[^\W\d]{2}|[^\W\d]{2}\.\w")
#: English words that hardly occur in other languages, or in English phrases that other languages use.
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        """
        you your yours please this these those they them our us he she his their are been will would cannot could should
        which when where because there here does did isn what who how
        """,
    )
)
#: English words that are also words of Dutch, Danish and other languages, those languages, and words next to which
#: they are English.
_ALSO_ENGLISH = frozenset({"we", "her", "is", "was", "were", "have", "has", "had"})
_NEAR_ENGLISH = frozenset({"af", "da", "nb", "nl", "nn", "no", "sv"})
_BESIDE = frozenset({"the", "it", "and", "that"})
#: English function words that other languages do not use in short phrases.
_FUNCTION = _ENGLISH | frozenset(
    re.findall(
        r"\w+",
        """
        the to of at for from with without within by about into before after until between during through while than on
        it its be can must may should if as or when what
        """,
    )
)
#: Languages in which a sentence may also be a sentence of a related language.
_SHARED = frozenset("la da nb nn no sv es pt gl an oc ca id ms hr sr bs cs sk bg mk ru uk be zh".split())  # noqa: SIM905
_FEW = 3
#: A text is prose if it has at least this many words, and this many words per mark of code, such as a bracket.
_MANY, _SIGNS = 10, 4


class Copies(Check):
    """`check/copy` (major): the source in place of the translation, up to case, whitespace and punctuation. Names,
    titles and commands may be copied, as may texts that are also valid in a related target language."""

    name = "copies"

    def errors(self, source: str, translation: str, context: Context) -> Iterator[ErrorSpan]:
        """One error over the whole translation."""
        if source[:1].casefold() != translation[:1].casefold() and source.strip()[:1] != translation.strip()[:1]:
            return
        source, translation = without_templates(source), without_templates(translation)
        words = _WORD.findall(source)
        if not words or [one.casefold() for one in words] != [one.casefold() for one in _WORD.findall(translation)]:
            return
        if _is_sentence(source, words) and _is_foreign(source, words, context):
            yield whole_error("copy", translation)


def _is_sentence(text: str, words: Sequence[str]) -> bool:
    """Whether a text is prose, not a name, title or command."""
    if len(UNSPACED.findall(text)) >= 8:
        return True
    plain = sum(one == one.lower() for one in words)
    signs = len(_CODE.findall(text.strip().rstrip(".")))
    is_prose = not signs or (len(words) >= _MANY and _SIGNS * signs <= len(words))
    return len(words) >= _FEW and len(text.split()) > 1 and 2 * plain > len(words) and is_prose


def _is_foreign(text: str, words: Sequence[str], context: Context) -> bool:
    """Whether a text is certainly not in the language of the translation."""
    source, target = (code and language_code(code) for code in (context.source_language, context.target_language))
    if target is not None and (target == source or (source is not None and alike(source, target))):
        return False
    small = {one.lower() for one in words if not one.isupper()}
    english = len(small & _ENGLISH) + (len(small & _ALSO_ENGLISH) if small & (_BESIDE | _ENGLISH) else 0)
    if source in (None, "en") and (english > 1 or (english and len(words) <= 12)):
        return target != "en"
    if len(UNSPACED.findall(text)) >= 8:
        return target not in ("zh", "ja", "yue") if target else _SENTENCE_END.search(text) is not None
    if source and target and not {source, target} <= _SHARED:
        one_script = script_of(context.source_language or "") == script_of(context.target_language or "")
        if source == "en":
            is_prose = _is_english_prose(text, words, target, one_script)
        else:
            is_prose = len(words) > _FEW and (not one_script or _SENTENCE_END.search(text) is not None)
        if is_prose and is_likelier(text, source, target):
            return True
    found = language_of(text)
    if found is None:
        return False
    return found != target and not alike(found, target) if target else found not in _SHARED


def _is_english_prose(text: str, words: Sequence[str], target: str, one_script: bool) -> bool:
    """Whether an English text is a sentence, not a title or a phrase that other languages use, too: it has a function
    word, and further ones or long words without a capital letter, more of them if punctuation at its end is missing."""
    function = {one.lower() for one in words} & (_FUNCTION if target in _NEAR_ENGLISH else _FUNCTION | _ALSO_ENGLISH)
    long = {one for one in words if one.islower() and len(one) > _FEW} - function
    if len(words) <= _FEW or not function:
        return False
    if _SENTENCE_END.search(text):
        return len(function | long) > 1
    return len(long) > 1 and len(function | long) > (_FEW if one_script else 2)
