"""The question to the model: a zero-shot MQM prompt in the manner of GEMBA-MQM, in versions, or a template file
(`prompt=PATH`). Each of `PLACEHOLDERS` in it is replaced once; all other braces stay as they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.prompting.languages import language_names

#: Error categories that prompt and grammar agree on (GEMBA-MQM's taxonomy).
CATEGORIES = ("accuracy", "fluency", "style", "terminology", "non-translation", "other")
#: Severities that prompt and grammar agree on; critical counts as major.
SEVERITIES = ("critical", "major", "minor")

TEXTS_V1 = """\
Source in {source_lang}:
{source}

Translation in {target_lang}:
{translation}"""
#: What the keys of an error in JSON mean, and the two texts.
KEYS_V1 = f"""\
category: {", ".join(CATEGORIES)}.
sub_category: for instance addition, mistranslation, omission, untranslated text, grammar, punctuation, spelling, \
register, inconsistency, awkward, inappropriate for context.
severity: critical (the meaning is lost or dangerous), major (hard to understand or wrong in meaning), minor (noticed, \
but does not hinder).
Without errors, answer {{"errors": []}}.

{TEXTS_V1}"""
_V1 = f"""\
You check translations as a professional MQM annotator. Mark the errors in the translation below.
Answer in JSON only: {{"errors": [{{"error_span": "...", "category": "...", "sub_category": "...", \
"severity": "..."}}]}}
error_span: the wrong words, copied exactly from the translation.
{KEYS_V1}"""

_ANSWER_V1 = f"""\
Answer in JSON only: {{"errors": [{{"error_span": "...", "category": "...", "sub_category": "...", \
"severity": "..."}}]}}, or {{"errors": []}} without errors. error_span: the wrong words, copied exactly from the \
translation. category: {", ".join(CATEGORIES)}. severity: {", ".join(SEVERITIES)}."""
#: In the manner of AutoMQM (Fernandes et al. 2023, arXiv 2308.07286), in our own words.
_AUTOMQM_V1 = f"""\
{TEXTS_V1}

Given the source, name the major and the minor errors of this translation. Major errors are errors of translation or \
grammar. Minor errors are small imperfections and matters of taste.
{_ANSWER_V1}"""
#: In the manner of EAPrompt (Lu et al. 2024, arXiv 2303.13809), in our own words: the major errors first.
_EAPROMPT_V1 = f"""\
You evaluate the quality of a translation by error analysis.
{TEXTS_V1}

First find the major errors: words that change the meaning, that are missing, or that do not belong there. Then find \
the minor errors: what reads badly, is spelt wrongly or has the wrong register, while the meaning is kept. List the \
major errors before the minor ones.
{_ANSWER_V1}"""

#: Built-in prompt texts of `format=json` by version.
#: A text never changes once released: a better one gets a new version.
TEMPLATES: Mapping[str, str] = {"v1": _V1, "automqm-v1": _AUTOMQM_V1, "eaprompt-v1": _EAPROMPT_V1}

_OMISSIONS_V1 = f"""\
You check translations as a professional MQM annotator. Mark the errors in the translation below, and what it leaves \
out.
Answer in JSON only: {{"errors": [{{"error_span": "...", "category": "...", "sub_category": "...", \
"severity": "..."}}, {{"omitted_span": "...", "category": "accuracy", "sub_category": "omission", "severity": "..."}}]}}
error_span: the wrong words, copied exactly from the translation.
omitted_span: words whose meaning is missing from the translation, copied exactly from the source.
{KEYS_V1}"""

#: Those of `format=json-omissions`.
OMISSION_TEMPLATES: Mapping[str, str] = {"v1": _OMISSIONS_V1}

#: The text around the question about one part of a text: the whole text first, so that the prompts of all its parts
#: begin alike and a server keeps the beginning, and the place of the part last.
CONTEXT_VERSION = "context-v1"
_BEFORE_V1 = """\
Below is a text with its translation, in numbered parts. Then you are asked about one of the parts; the others are \
there so that you understand it.
"""
_PASSAGE_V1 = """
Source in {source_lang}:
{source}
Translation in {target_lang}:
{translation}
"""
_AFTER_V1 = """

This is part {number} of the text above. Look for errors in this part alone. What another part of the translation says \
is not left out."""

#: Placeholder -> its meaning. The second group is the spelling of the authors' released code.
PLACEHOLDERS = {
    "source": "source",
    "translation": "translation",
    "source_lang": "source_lang",
    "target_lang": "target_lang",
    "source_seg": "source",
    "target_seg": "translation",
}
_FIELD = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive parts of a text: as many of the source as of the translation."""

    sources: tuple[str, ...]
    translations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """The text around the part that a model marks: passages, the last with the part, and the number of the part among
    all their parts, from 1."""

    passages: tuple[Passage, ...]
    number: int

    @property
    def source(self) -> str:
        """The source of the passage with the part."""
        return " ".join(self.passages[-1].sources)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt template.

    Attributes:
        version: in the signature: "v1", or "file:" and eight digits of the text's SHA-256.
        template: the text with its placeholders.
        turns: messages before it, such as examples: role and text of each, as they are.
    """

    version: str
    template: str
    turns: tuple[tuple[str, str], ...] = ()

    @property
    def names_languages(self) -> bool:
        """Whether it has a placeholder for a language."""
        return any(PLACEHOLDERS[field].endswith("_lang") for field in _FIELD.findall(self.template))

    def render(self, source: str, translation: str, lp: str | None = None, context: Context | None = None) -> str:
        """The user message for one segment, or for one part of the text in `context`. Without a language pair such as
        "en-de" it says "the source language"."""
        question = _filled(self.template, source, translation, lp)
        if context is None:
            return question
        text, first = [_BEFORE_V1], 1
        for passage in context.passages:
            sources, translations = _numbered(passage.sources, first), _numbered(passage.translations, first)
            text.append(_filled(_PASSAGE_V1, sources, translations, lp))
            first += len(passage.sources)
        return "".join([*text, "\n", question, _AFTER_V1.replace("{number}", str(context.number))])


def _filled(template: str, source: str, translation: str, lp: str | None) -> str:
    values = {"source": source, "translation": translation}
    if "_lang}" in template:  # a prompt that names no language takes every language pair
        values |= zip(("source_lang", "target_lang"), language_names(lp), strict=True)
    return _FIELD.sub(lambda match: values[PLACEHOLDERS[match.group(1)]], template)


def _numbered(parts: Sequence[str], first: int) -> str:
    return "\n".join(f"[{number}] {part}" for number, part in enumerate(parts, first))


def load_prompt(name: str = "v1", templates: Mapping[str, str] = TEMPLATES) -> Prompt:
    """The built-in prompt of that version among the templates of an answer format, or the template file at that path.

    Raises:
        OptionError: neither a version nor a file.
        InputError: a file that is not UTF-8, or that has no field for the source or the translation.
    """
    if name in templates:
        return Prompt(name, templates[name])
    path = Path(name).expanduser()
    if not path.is_file():
        if path.suffix or len(path.parts) > 1:
            raise OptionError(f"{name}: there is no such prompt file (in the folder {Path.cwd()})")
        raise OptionError(f"{unknown('prompt', name, templates)}, or the path of a template file")
    try:
        template = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"prompt file {path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    fields = {PLACEHOLDERS[field] for field in _FIELD.findall(template)}
    for field in ("source", "translation"):
        if field not in fields:
            raise InputError(f"prompt file {path} has no {{{field}}}; the model would never see the {field}")
    return Prompt("file:" + hashlib.sha256(template.encode()).hexdigest()[:8], template)
