"""Few-shot examples: annotated translations, shown to the model as prompts and answers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, OptionError, labelled
from mbr_esd_metric.files.untrusted import json_objects
from mbr_esd_metric.prompting.formats import AnswerFormat
from mbr_esd_metric.prompting.parse import is_severity
from mbr_esd_metric.prompting.prompt import Prompt

#: Length of the character n-grams for comparing sources.
_GRAM = 4


def shots_file(option: str) -> tuple[str, int]:
    """The file in `shots=FILE` or `shots=FILE:3`, and the number of examples to show; 0 for all."""
    match = re.fullmatch(r"(.+):([1-9]\d*)", option)
    return (option, 0) if match is None else (match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class Shot:
    """An annotated translation."""

    source: str
    translation: str
    annotation: Annotation


class Shots:
    """The examples in the file of an option (see `shots_file`): JSON lines with "src", "mt" and "spans" (start, end,
    severity, and category or side).

    Raises:
        OptionError: a format without free-text answers (`tags`).
        InputError: an empty file, a malformed example, or errors that the format cannot express.
    """

    def __init__(self, option: str, answers: AnswerFormat) -> None:
        path, self.nearest = shots_file(option)
        if answers.engine:
            raise OptionError(f"shots={path}: format={answers.name} does not support examples; train the model instead")
        self.answers, self.shots = answers, [_shot(where, value, answers) for where, _, value in json_objects(path)]
        if not self.shots:
            raise InputError(f"{path} has no examples; it must contain JSON lines with src, mt and spans")
        self._grams = {shot.source: _grams(_plain(shot.source)) for shot in self.shots}

    def for_source(self, source: str) -> list[Shot]:
        """The examples for a source, the most similar last, without examples of the source itself. Similarity is the
        cosine of counts of character 4-grams, ignoring case; in ties, earlier examples in the file count as more
        similar."""
        text = _plain(source)
        others = [shot for shot in self.shots if _plain(shot.source) != text]
        if not self.nearest:
            return others
        grams = _grams(text)
        order = sorted(others, key=lambda shot: -_cosine(grams, self._grams[shot.source]))
        return order[: self.nearest][::-1]

    def turns(self, prompt: Prompt, source: str, lp: str | None) -> tuple[tuple[str, str], ...]:
        """The examples for a source as chat messages: a question and an answer for each."""
        turns: list[tuple[str, str]] = []
        for shot in self.for_source(source):
            answer, _ = self.answers.answer(shot.annotation, shot.translation, shot.source)
            turns += [("user", prompt.render(shot.source, shot.translation, lp)), ("assistant", answer)]
        return tuple(turns)


def _shot(where: str, value: Mapping[str, Any], answers: AnswerFormat) -> Shot:
    with labelled(where):
        texts = all(isinstance(value.get(key), str) for key in ("src", "mt"))
        if not texts or not isinstance(value.get("spans"), list):
            raise InputError("an example needs the texts src and mt, and the list spans")
        for span in value["spans"]:  # `Annotation` would drop this span, and the example would show no error
            severity = span.get("severity") if isinstance(span, dict) else None
            if isinstance(severity, str) and not is_severity(severity):
                raise InputError(f"an error span's severity must be 'major' or 'minor', got {severity!r}")
        annotation = Annotation(value["spans"])
        annotation.on("translation").check_length(len(value["mt"]))
        if any(span.end > len(value["src"]) for span in annotation.on("source")):
            raise InputError(f"an error span ends past the source, which has {len(value['src'])} characters")
    _, lost = answers.answer(annotation, value["mt"], value["src"])
    if lost:
        raise InputError(
            f"{where}: format={answers.name} cannot express {lost} of its errors (omissions, or words that also occur "
            "earlier in the text); remove them, or use another format"
        )
    return Shot(value["src"], value["mt"], annotation)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _grams(text: str) -> Counter[str]:
    return Counter(text[i : i + _GRAM] for i in range(max(len(text) - _GRAM + 1, 1)))


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    """The cosine of two vectors of counts, in [0, 1]."""
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    both = sum(count * many[gram] for gram, count in few.items() if gram in many)
    return both / math.sqrt(sum(c * c for c in one.values()) * sum(c * c for c in other.values()))
