"""PO files with keys as messages: their texts are paired with those of a PO file in the source language."""

from __future__ import annotations

import re
from pathlib import Path

from mbr_esd_metric.adapters.documents.keys.entries import Entry, StringFile
from mbr_esd_metric.adapters.documents.po import messages_of, plural_forms, read_content


def read_po_keys(path: Path) -> StringFile:
    """The texts of a PO file by ``msgid``, prefixed by ``msgctxt|`` if present; the text of a message without
    translation, as in a template, is its ``msgid``. A plural form that the header's rule uses only for 1 is ``[one]``,
    the last one ``[other]``."""
    _, encoding, text = read_content(path)
    messages, header = messages_of(path, text, encoding)
    numbers = plural_forms(header.get("plural-forms", ""))
    entries = []
    for message in messages:
        texts, context = message.texts, message.texts.get("msgctxt")
        key = texts["msgid"] if context is None else f"{context}|{texts['msgid']}"
        forms = {int(re.sub(r"\D", "", name) or 0): one for name, one in texts.items() if name.startswith("msgstr")}
        plural = texts.get("msgid_plural")
        for form, text in forms.items():
            name = key
            if plural is not None:
                of_one = numbers.get(form) == frozenset({1}) if numbers else len(forms) > 1 and form == 0
                name += "[one]" if of_one else "[other]" if form == max(forms) else f"[{form}]"
            entries.append(Entry(name, text, message.start + 1, unready="fuzzy" if message.fuzzy else None))
    return StringFile(path, tuple(entries), header.get("language", ""), None, encoding)
