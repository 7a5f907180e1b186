"""Reads the small YAML file of a model folder, which may come from anywhere.

It is flat: each line a key and a plain value. The file is read event by event, before YAML makes any value of it. So
what YAML can do beyond that (aliases, which 444 bytes turn into gigabytes; tags, which call converters; lists in lists)
is refused by name, and never done.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mbr_esd_metric.errors import InputError, printable

#: The most bytes of a file, and characters of a key or value.
LARGEST = 1 << 16
LONGEST_VALUE = 1000
_NULL = ("", "~", "null", "Null", "NULL")
_BOOLEAN = {"yes": "true", "true": "true", "on": "true", "no": "false", "false": "false", "off": "false"}


def read_flat(path: Path) -> dict[str, str | None]:
    """Key -> value of a flat YAML file, as text: numbers as they are written, booleans as "true" and "false".

    Raises:
        InputError: no file of UTF-8, too large, no YAML, or anything but keys with plain values; names file and key.
    """
    import yaml

    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise InputError(f"{path} has more than {LARGEST} bytes; it holds one option a line and no more")
    found: dict[str, str | None] = {}
    key: str | None = None
    try:
        for text in _scalars(path, content.decode("utf-8-sig")):
            if key is None:
                key = printable(str(text))
                if key in found:
                    raise InputError(f"{path}: {key} is given twice; keep one line")
            else:
                found[key], key = text, None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())[:300]}") from None
    return found


def _scalars(path: Path, text: str) -> Iterator[str | None]:
    """The keys and values of the only mapping, in order.

    Raises:
        InputError: anything else is there; names the key before it.
    """
    import yaml

    where, begun = str(path), False
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        plain = getattr(event, "anchor", None) is None and getattr(event, "tag", None) is None
        if isinstance(event, yaml.MappingStartEvent) and plain and number == 2:
            begun = True
        elif isinstance(event, yaml.ScalarEvent) and plain and begun:
            value = _value(event.value) if event.style is None else event.value
            if value is not None and (len(value) > LONGEST_VALUE or (value != printable(value) and "\n" not in value)):
                raise InputError(
                    f"{where}: no option has such a value: {value[:60]!r}; write it on the line of its key"
                )
            yield value
            where = f"{path}, after {event.value!r}"
        elif isinstance(event, yaml.NodeEvent) or (isinstance(event, yaml.DocumentStartEvent) and begun):
            raise InputError(f"{where}: no plain value; write one option a line, such as n: 16, and nothing nested")


def _value(plain: str) -> str | None:
    """A value without quotes: null and the words for true and false as YAML has them."""
    return None if plain in _NULL else _BOOLEAN.get(plain.lower(), plain)
