"""The question to the model: a template, which is a file, ours (`prompts/FORMAT/VERSION.txt`) or the user's
(`prompt=PATH`). Each placeholder in it is replaced once; all other braces stay as they are.

Ours are zero-shot, in our own words, in the manner of GEMBA-MQM, `automqm-v1` of AutoMQM (Fernandes et al. 2023, arXiv
2308.07286), `eaprompt-v1` of EAPrompt (Lu et al. 2024, arXiv 2303.13809). A released text never changes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mbr_esd_metric.core.segment import PartContext
from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.prompting.languages import language_names

#: Error categories that prompt and grammar agree on (GEMBA-MQM's taxonomy).
CATEGORIES = ("accuracy", "fluency", "style", "terminology", "non-translation", "other")
#: Severities that prompt and grammar agree on; critical counts as major.
SEVERITIES = ("critical", "major", "minor")

#: The version of the text around a question about a part of a text (`around`).
CONTEXT_VERSION = "context-v1"
#: The placeholders; `source_seg` and `target_seg` are the spelling of the authors' released code.
_FIELD = re.compile(r"\{(source|source_seg|translation|target_seg|source_lang|target_lang)\}")


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
        return any(field.endswith("_lang") for field in _FIELD.findall(self.template))

    def render(self, source: str, translation: str, lp: str | None = None) -> str:
        """The user message for one segment. Without a language pair, the prompt uses "the source language"."""
        values = {"source": source, "source_seg": source, "translation": translation, "target_seg": translation}
        if "_lang}" in self.template:  # a prompt that names no language takes every language pair
            values |= zip(("source_lang", "target_lang"), language_names(lp), strict=True)
        return _FIELD.sub(lambda match: values[match[1]], self.template)


@cache
def built_in(form: str) -> Mapping[str, str]:
    """Version -> our template for that answer format."""
    files = sorted(Path(__file__).with_name("prompts").joinpath(form).glob("*.txt"))
    return {file.stem: file.read_text(encoding="utf-8").removesuffix("\n") for file in files}


def load_prompt(name: str = "v1", templates: Mapping[str, str] | None = None) -> Prompt:
    """The built-in prompt of that version among the templates of an answer format (by default those of `format=json`),
    or the template file at that path.

    Raises `OptionError` for neither, and `InputError` for a file that is not UTF-8 or does not show both texts."""
    templates = built_in("json") if templates is None else templates
    if name in templates:
        return Prompt(name, templates[name])
    path = Path(name).expanduser()
    if not path.is_file():
        if path.suffix or len(path.parts) > 1:
            raise OptionError(f"{name}: prompt file not found (in the folder {Path.cwd()})")
        raise OptionError(f"{unknown('prompt', name, templates)}, or the path of a template file")
    try:
        template = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"prompt file {path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    for field, other in (("source", "source_seg"), ("translation", "target_seg")):
        if not {field, other} & {*_FIELD.findall(template)}:
            raise InputError(f"prompt file {path} has no {{{field}}}; the model would never see the {field}")
    return Prompt("file:" + hashlib.sha256(template.encode()).hexdigest()[:8], template)


def around(context: PartContext, question: str, lp: str | None) -> str:
    """The prompt with the question about a part (`prompts/context`). The text comes first, so that the prompts of all
    its parts begin alike and a server keeps the beginning, and the number of the part last."""
    passages, first = "", 1
    passage_text = Prompt("", "\nSource in {source_lang}:\n{source}\nTranslation in {target_lang}:\n{translation}\n")
    for passage in context.passages:
        sides = (passage.sources, passage.translations)
        sources, translations = ("\n".join(f"[{n}] {part}" for n, part in enumerate(side, first)) for side in sides)
        passages += passage_text.render(sources, translations, lp)
        first += len(passage.sources)
    before, after = built_in("context")["v1"].split("{question}")
    return before.replace("{passages}", passages) + question + after.replace("{number}", str(context.number))
