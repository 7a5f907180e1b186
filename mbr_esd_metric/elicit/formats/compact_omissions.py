"""`format=compact-omissions`: one line that also says what is left out, ``omitted major <words of the source>``."""

from __future__ import annotations

from types import MappingProxyType

from mbr_esd_metric.elicit.formats.compact import BRACKET_CHARACTERS, OMITTED_WORD, CompactFormat, answers, in_brackets
from mbr_esd_metric.elicit.grounded import grounded_spans

_V1 = """\
You check translations as a professional MQM annotator. Mark the errors in the translation below, and what it leaves \
out.
Answer in one line. Without errors, answer: none
Otherwise write each error as its severity and, in angle brackets, the wrong words, copied exactly from the \
translation: major <wrong words> minor <other wrong words>
Write what is left out with the word omitted before it and words copied exactly from the source: \
omitted major <missing words>
major: hard to understand or wrong in meaning. minor: noticed, but does not hinder.

Source in {source_lang}:
{source}

Translation in {target_lang}:
{translation}"""


class CompactOmissionsFormat(CompactFormat):
    """As `compact`, and what the translation leaves out: ``omitted``, then as other errors."""

    name = "compact-omissions"
    templates = MappingProxyType({"v1": _V1})
    both_sides = True

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        spans = [(before, BRACKET_CHARACTERS + "+") for before in ("", OMITTED_WORD)]
        if grounded:
            pieces = (grounded_spans(translation, in_brackets), grounded_spans(source, in_brackets))
            spans = [(before, some) for (before, _), some in zip(spans, pieces, strict=True) if some is not None]
        return answers([f"{before}(major|minor) <{some}>" for before, some in spans])
