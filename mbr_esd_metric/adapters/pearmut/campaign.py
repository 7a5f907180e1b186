"""Export of annotators' screens as a campaign for `pearmut add`."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.words import UNSPACED
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.messages import number_of

Protocol = Literal["ESA", "MQM"]

#: Google's categories (Freitag et al. 2021), which WMT uses; WMT's scores have no weights for Pearmut's own categories.
MQM_CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "Accuracy": ("Addition", "Mistranslation", "Omission", "Untranslated text"),
    "Fluency": ("Character encoding", "Grammar", "Inconsistency", "Punctuation", "Register", "Spelling"),
    "Locale convention": ("Address", "Currency", "Date", "Name", "Telephone", "Time"),
    "Style": ("Awkward",),
    "Terminology": ("Inappropriate for context", "Inconsistent use"),
    "Non-translation": (),
    "Other": (),
    "Source error": (),
}

#: A word between spaces, or a character in scripts without spaces.
_WORD = re.compile(rf"{UNSPACED.pattern}|(?:(?!{UNSPACED.pattern})\S)+")


@dataclass(frozen=True, slots=True)
class Output:
    """A translation on a screen; its pre-filled spans, None for no pre-filling; and, for an attention check, the words
    from another segment."""

    text: str
    spans: Annotation | None = None
    check: ErrorSpan | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """A segment on a screen: name, source, and system -> output."""

    id: str
    source: str
    outputs: Mapping[str, Output]


@dataclass(frozen=True, slots=True)
class Screen:
    """The segments that are shown on one screen, in order."""

    name: str
    items: tuple[Item, ...]


def attention_checks(documents: Sequence[Screen], count: int, rng: random.Random) -> list[Screen]:
    """Repeated segments in which words of an unmarked translation are replaced by the same system's words for another
    segment, as in WMT. They replace an equal number of words in the middle, a third of the translation and at least 3,
    and are a major error.

    Raises:
        InputError: too few suitable translations.
    """
    items = [item for document in documents for item in document.items]
    unmarked = [(item, system) for item in items for system, output in item.outputs.items() if not output.spans]
    checks: list[Screen] = []
    # First one per translation, then with other words.
    for item, system in rng.sample(unmarked, len(unmarked)) * 3:
        if len(checks) == count:
            break
        output = item.outputs[system]
        others = [other.outputs[system].text for other in items if other is not item and system in other.outputs]
        drawn = (_with_words_of(output.text, other, rng) for other in rng.sample(others, len(others)))
        if edit := next(filter(None, drawn), None):
            outputs = {**item.outputs, system: replace(output, text=edit[0], check=edit[1])}
            checks.append(Screen(f"check {len(checks) + 1}", (replace(item, outputs=outputs),)))
    if len(checks) < count:
        raise InputError(
            f"{len(checks)} of {number_of(count, 'attention check')} can be made from the translations without marked "
            "spans; lower --checks, or give more segments"
        )
    return checks


def _with_words_of(text: str, other: str, rng: random.Random) -> tuple[str, ErrorSpan] | None:
    """The text with words of another text in its middle, and their position; None if there are too few, or they are
    equal."""
    words, foreign = list(_WORD.finditer(text)), list(_WORD.finditer(other))
    count = max(3, -(-len(words) // 3))
    if len(words) <= count or len(foreign) < count:
        return None
    first, at = (len(words) - count) // 2, rng.randint(0, len(foreign) - count)
    start, end = words[first].start(), words[first + count - 1].end()
    run = other[foreign[at].start() : foreign[at + count - 1].end()]
    span = ErrorSpan(start, start + len(run), "major")
    return None if run == text[start:end] else (text[:start] + run + text[end:], span)


def campaign(
    documents: Sequence[Screen],
    checks: Sequence[Screen],
    name: str,
    language_pair: str,
    annotators: Sequence[str],
    *,
    each: int = 1,
    protocol: Protocol = "ESA",
) -> dict[str, Any]:
    """The campaign for `pearmut add`. Documents are assigned to annotators in turn, in order. Checks are distributed
    evenly, at random positions.

    Args:
        each: number of annotators per document.
        protocol: spans and a score (ESA), or spans with categories (MQM).
    """
    if not 1 <= each <= len(annotators):
        raise OptionError(f"--each {each}: give a number from 1 to that of the annotators, {len(annotators)}")
    if not documents:
        raise InputError("no segments to annotate")
    systems = list(dict.fromkeys(name for document in documents for item in document.items for name in item.outputs))
    rng = random.Random(0)
    numbers = rng.sample(range(len(systems)), len(systems))
    codes = {name: f"system{number + 1}" for name, number in zip(systems, numbers, strict=True)}
    tasks: list[list[Screen]] = [[] for _ in annotators]
    for (number, document), copy in product(enumerate(documents), range(each)):
        tasks[(number + copy) % len(tasks)].append(document)
    for number, document in enumerate(checks):
        task = tasks[number % len(tasks)]
        task.insert(rng.randint(1, len(task)) if task else 0, document)
    info: dict[str, Any] = {
        "assignment": "task-based",
        "protocol": protocol,
        "users": list(annotators),
        "shuffle": False,  # done here
        "show_model_names": False,
    }
    if protocol == "MQM":
        info |= {"mqm_categories": {name: list(parts) for name, parts in MQM_CATEGORIES.items()}, "sliders": []}
    return {
        "campaign_id": name,
        "info": info,
        "data": [[_screen(document, codes, protocol, rng) for document in task] for task in tasks],
        "mbr_esd": {"language_pair": language_pair, "systems": {code: name for name, code in codes.items()}},
    }


def _screen(document: Screen, codes: Mapping[str, str], protocol: Protocol, rng: random.Random) -> list[dict[str, Any]]:
    names = [name for name in codes if any(name in item.outputs for item in document.items)]
    order = rng.sample(names, len(names))
    screen = []
    for item in document.items:
        outputs = {codes[name]: item.outputs[name] for name in order if name in item.outputs}
        one: dict[str, Any] = {"src": item.source, "tgt": {code: output.text for code, output in outputs.items()}}
        one |= {"item_id": f"{document.name} {item.id}", "document": document.name, "segment": item.id}
        spans = {
            code: [_suggested(span, output.text, protocol) for span in showable_spans(output.spans, output.text)]
            for code, output in outputs.items()
            if output.spans is not None
        }
        rules = {code: _rule(output.check, output.text) for code, output in outputs.items() if output.check}
        screen.append(one | ({"error_spans": spans} if spans else {}) | ({"validation": rules} if rules else {}))
    return screen


def showable_spans(spans: Annotation, text: str) -> list[ErrorSpan]:
    """The spans that Pearmut can show: of overlapping spans, only the more severe, then the longer; no spans of only
    line ends; and only one [missing], for the most severe omission."""
    shown: list[ErrorSpan] = []
    for span in sorted(spans.on("translation"), key=lambda one: (one.severity != "major", one.start - one.end)):
        visible = text[span.start : span.end].strip("\n\r\u2028\u2029")
        if visible and not any(span.start < other.end and other.start < span.end for other in shown):
            shown.append(span)
    worst = sorted(spans.on("source"), key=lambda one: one.severity != "major")[:1]
    return sorted(shown, key=lambda one: one.start) + worst


def _suggested(span: ErrorSpan, text: str, protocol: Protocol) -> dict[str, Any]:
    category = None if protocol == "ESA" else _category(span.category)
    error = {"severity": span.severity, "category": category, "confidence": span.confidence}
    if span.side == "source":
        behind = utf16_units(text, len(text))
        return {"start_i": behind, "end_i": behind, **error, "source": [span.start, span.end]}
    return {"start_i": utf16_units(text, span.start), "end_i": utf16_units(text, span.end) - 1, **error}


def _category(name: str | None) -> str | None:
    """The category in Pearmut's format, if it is one of `MQM_CATEGORIES`; otherwise, the annotator chooses it."""
    top, _, part = (name or "").lower().partition("/")
    category = next((category for category in MQM_CATEGORIES if category.lower() == top), None)
    if category is None or not MQM_CATEGORIES[category]:
        return category and f"{category}/{category}"
    return next((f"{category}/{one}" for one in MQM_CATEGORIES[category] if one.lower() == part.strip()), category)


def _rule(error: ErrorSpan, text: str) -> dict[str, Any]:
    """A rule that is satisfied by a marked span overlapping this error."""
    start, last = utf16_units(text, error.start), utf16_units(text, error.end) - 1
    return {"error_spans": [{"start_i": [0, last], "end_i": [start, utf16_units(text, len(text)) - 1]}]}


def utf16_units(text: str, at: int) -> int:
    """The number of UTF-16 units before a character."""
    return at + sum(character > "\uffff" for character in text[:at])


def character(text: str, unit: int) -> int:
    """The index of the character with this UTF-16 unit; the text's length for units after it."""
    return len(text.encode("utf-16-le")[: 2 * unit].decode("utf-16-le", "ignore"))
