"""PO, with errors as translators' comments.

The file is processed line by line, without a library: libraries change line wrapping and file ends, and have a
restrictive licence (translate-toolkit) or grammar (polib).
"""

from __future__ import annotations

import codecs
import gettext
import io
import re
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mbr_esd_metric.adapters.documents.document import (
    READY,
    Checked,
    Document,
    MissingKey,
    Names,
    Selection,
    TranslationUnit,
    issue_comment,
)
from mbr_esd_metric.adapters.documents.keys.file_language import language_of
from mbr_esd_metric.checks.templates import Templates
from mbr_esd_metric.core.segment import Context, Segment
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import read_bytes, whole_file
from mbr_esd_metric.prompting.languages import language_code, language_of_texts

#: Prefix of our comments, optionally followed by the number of the plural form.
_COMMENT = "# mbr-esd: "
_CHARSET = re.compile(rb"Content-Type:[^\n]*charset=([\w.:-]+)", re.IGNORECASE)
#: A keyword and a quoted text, or the continuation of a text.
_LINE = re.compile(r'(?:(msgctxt|msgid_plural|msgid|msgstr(?:\s*\[\s*\d+\s*\])?)\s*)?"([^"\\]*(?:\\.[^"\\]*)*)"')
#: Characters of a text as the numbers of their bytes, of two hexadecimal or up to three octal digits; any other escape.
_ESCAPE = re.compile(r"((?:\\x[0-9A-Fa-f]{1,2}|\\[0-7]{1,3})+)|\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
#: Numbers for testing plural rules, which depend on the last two digits, and on millions.
_NUMBERS = (*range(1001), 10**6)
#: The first line of a message, the text of its comments after `_COMMENT`, and its segment.
_Place = tuple[int, str, Segment]


class Message(NamedTuple):
    """The first line with a keyword, whether it is fuzzy, and keyword -> text."""

    start: int
    fuzzy: bool
    texts: dict[str, str]


def read_po(path: Path, selection: Selection = READY) -> Document:
    """The messages of a PO file; each plural form is a unit, such as "7[1]". Fuzzy messages are skipped unless
    `selection.every`. The plural form that the header's rule uses only for 1 is paired with `msgid`, others with
    `msgid_plural`, unless only the placeholders of the other one match.
    """
    content, encoding, text = read_content(path)
    messages, header = messages_of(path, text, encoding)
    languages = (header.get("x-source-language", ""), header.get("language", ""))
    forms_of = plural_forms(header.get("plural-forms", ""))
    units, places, empty, unready, names, notes = list[TranslationUnit](), list[_Place](), [], {}, Names(), set()
    missing: list[MissingKey] = []
    for number, message in enumerate(messages, 1):
        context, plural = message.texts.get("msgctxt", ""), message.texts.get("msgid_plural")
        name = names.unique(context or str(number))
        forms = [(key, text) for key, text in message.texts.items() if key.startswith("msgstr")]
        for key, target in forms or [("msgstr", "")]:
            form = int(re.sub(r"\D", "", key) or 0)
            unit_name = name if plural is None else f"{name}[{form}]"
            if not target.strip():
                empty.append(unit_name)
                missing.append(MissingKey(unit_name, message.start + 1, source=f"{context}|{message.texts['msgid']}"))
            elif message.fuzzy and not selection.every:
                unready[unit_name] = "fuzzy"
            else:
                numbers: frozenset[int] | None = None
                if plural is not None and not forms_of:
                    notes.add("no plural rule in the header (Plural-Forms), so form 0 is treated as the singular")
                elif plural is not None:
                    numbers = forms_of.get(form, frozenset())
                singular = numbers == frozenset({1}) or (numbers is None and form == 0)
                source, other = message.texts["msgid"], plural
                if plural is not None and not singular:
                    source, other = plural, source
                known = Context(languages[0] or None, languages[1] or None, numbers)
                if other is not None and (singular or (numbers and 1 in numbers)):
                    source = with_placeholders_of(target, source, other, known)
                segment = Segment(source, target, unit_name, known=known)
                units.append(TranslationUnit(segment, context, message.start + 1))
                places.append((message.start, "" if plural is None else f"[{form}] ", segment))
    if missing and _is_of_source(path, languages, messages):
        missing.clear()
    mark = partial(_mark, content, encoding, places)
    return Document(path, tuple(units), mark, tuple(empty), unready, tuple(notes), missing=tuple(missing))


def _is_of_source(path: Path, languages: tuple[str, str], messages: Sequence[Message]) -> bool:
    """Whether a file is in the language of its sources, and so needs no translations."""
    target = languages[1] or language_of(path)
    if not target:
        return False
    source = languages[0] or language_of_texts(one.texts["msgid"] for one in messages) or "en"
    return language_code(target) == language_code(source)


def read_content(path: Path) -> tuple[bytes, str, str]:
    """The bytes of a PO file, the encoding in its header, and its text. Raises `InputError` if decoding fails."""
    content = read_bytes(path)
    charset = _CHARSET.search(content)
    encoding = "utf-8" if charset is None or charset[1] == b"CHARSET" else charset[1].decode()
    try:
        return content, encoding, content.removeprefix(codecs.BOM_UTF8).decode(encoding)
    except LookupError as error:
        raise InputError(f"{path}: {error}; save the file as UTF-8") from None
    except UnicodeError as error:
        line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InputError(f"{path}, line {line}: not {encoding}; is the charset of the header right?") from None


def messages_of(path: Path, text: str, encoding: str) -> tuple[list[Message], dict[str, str]]:
    """The messages of a PO file, without obsolete ones, and the fields of its header, in lower case. Raises
    `InputError` with the line for invalid PO."""
    messages = _messages(path, text, encoding)
    headers = (one.texts for one in messages if not one.texts["msgid"] and "msgctxt" not in one.texts)
    fields = next(headers, {}).get("msgstr", "").split("\n")
    header = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    return [one for one in messages if one.texts["msgid"]], header


def _unescape(encoding: str, found: re.Match[str]) -> str:
    """The text of an escape sequence."""
    if not found[1]:
        return _ESCAPED.get(found[2], found[2])
    numbers = (int(one, 16 if digit else 8) for digit, one in re.findall(r"\\(x?)([0-9A-Fa-f]+)", found[1]))
    return bytes(number & 255 for number in numbers).decode(encoding, "replace")


def _messages(path: Path, text: str, encoding: str) -> list[Message]:
    """The messages, without obsolete ones, but with the header. Raises `InputError` with the line."""
    messages: list[Message] = []
    fuzzy, keyword = False, ""
    for at, line in enumerate(text.split("\n")):
        line = line.strip()
        if not line or line.startswith("#"):
            if line.startswith("#,"):
                fuzzy |= "fuzzy" in re.split(r"[,\s]+", line)
            fuzzy &= not line.startswith("#~")
            continue
        found = _LINE.fullmatch(line)
        if found is not None and found[1]:
            keyword = re.sub(r"\s", "", found[1])
            if keyword == "msgctxt" or (keyword == "msgid" and not (messages and "msgid" not in messages[-1].texts)):
                messages.append(Message(at, fuzzy, {}))
                fuzzy = False
            if messages:
                messages[-1].texts[keyword] = ""
        if found is None or not messages:
            raise InputError(f"{path}, line {at + 1}: invalid PO ({line[:60]}); is a quotation mark missing?")
        messages[-1].texts[keyword] += _ESCAPE.sub(partial(_unescape, encoding), found[2])
    return [message for message in messages if "msgid" in message.texts]


def plural_forms(rule: str) -> dict[int, frozenset[int]]:
    """Plural form -> the tested numbers that it is used for; empty without a valid rule."""
    try:
        expression = re.search(r"\bplural\s*=\s*([^;]+)", rule)
        form_of = gettext.c2py(expression[1] if expression else "")
        forms: dict[int, set[int]] = defaultdict(set)
        for number in _NUMBERS:
            forms[form_of(number)].add(number)
    except (ValueError, ArithmeticError):
        return {}
    return {form: frozenset(numbers) for form, numbers in forms.items()}


def with_placeholders_of(target: str, source: str, other: str, known: Context) -> str:
    """The source, or the other one if only that has the placeholders of the translation."""
    if "%" not in target + source and "{" not in target + source:
        return source
    check = Templates()
    wrong, other_wrong = (any(check.errors(one, target, known)) for one in (source, other))
    return other if wrong and not other_wrong else source


def _mark(
    content: bytes, encoding: str, places: Sequence[_Place], checked: Sequence[Checked | None], output: Path
) -> None:
    """Write the file with comments about the units' errors, replacing older ones; all other bytes are unchanged."""
    old: dict[int, tuple[bytes, ...]] = defaultdict(tuple)
    new: dict[int, list[str]] = defaultdict(list)
    for (start, form, segment), one in zip(places, checked, strict=True):
        if one is not None:
            old[start] += ((_COMMENT + form).encode(),)
            # One comment per position, for its most severe error, which is the first in the annotation.
            worst = {(span.side, span.start, span.end): span for span in reversed(one.annotation.spans)}
            for span in reversed(worst.values()):
                words = span.text_in(segment.source, segment.translation)
                new[start].append(_COMMENT + form + issue_comment(span, words))
    lines = io.BytesIO(content).readlines()
    done = 0
    with whole_file(output) as file:
        for start in old:
            top = start
            while top and lines[top - 1].startswith(b"#") and not lines[top - 1].startswith(b"#~"):
                top -= 1
            # Our comments come after the translators' comments.
            of_people = [at for at in range(top, start) if lines[at].rstrip() == b"#" or lines[at].startswith(b"# ")]
            before = of_people[-1] + 1 if of_people else top
            ending = b"\r\n" if lines[start].endswith(b"\r\n") else b"\n"
            file.writelines(lines[done:top])
            file.writelines(line for line in lines[top:before] if not line.startswith(old[start]))
            file.writelines(" ".join(line.split()).encode(encoding, "replace") + ending for line in new[start])
            done = before
        file.writelines(lines[done:])
