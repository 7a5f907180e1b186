"""Java's ``.properties``, in UTF-8 or, as before Java 9, in Latin-1."""

from __future__ import annotations

from pathlib import Path

from mbr_esd_metric.adapters.documents.keys.entries import HASH, Entry, StringFile, decoded
from mbr_esd_metric.errors import InputError


def read_properties(path: Path) -> StringFile:
    """The texts of a properties file. Raises `InputError` with the line of an invalid escape."""
    import javaproperties

    text, encoding = decoded(path, "iso-8859-1")
    entries: list[Entry] = []
    line = 1
    try:
        for part in javaproperties.parse(text):
            if isinstance(part, javaproperties.KeyValue):
                entries.append(Entry(part.key, part.value, line))
            line += part.source.count("\n")
    except javaproperties.InvalidUEscapeError as error:
        raise InputError(f"{path}, line {line}: {error}; write four hexadecimal digits after \\u") from None
    return StringFile(path, tuple(entries), "", HASH, encoding)
