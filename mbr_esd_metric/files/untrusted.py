"""Parse untrusted JSON and YAML: return a value or raise `InputError` with the reason.

msgspec is not used, because it accepts duplicate keys (the last one wins), which other parsers may read differently.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.messages import printable

#: Maximum number of digits of an integer, so that it can be converted to a float.
_DIGITS = 300
#: Maximum numbers of bytes of a YAML file, and of characters of a key or value.
LARGEST_YAML = 1 << 16
_LONGEST_VALUE = 1000


class _NoJson(ValueError):
    """Invalid JSON that Python's decoder accepts."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _NoJson(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    return value


def _whole(text: str) -> int:
    if len(text) > _DIGITS:
        raise _NoJson(f"a number of {len(text)} digits")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise _NoJson(f"{name} is not a JSON number; use null for a missing value")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_whole, parse_constant=_no_constant)


def parse_strict_json(text: str | bytes, *, writable: bool = False) -> Any:
    """The value of a JSON text. With `writable`, strings must not contain unpaired surrogates, so that they can be
    written to files.

    Raises:
        InputError: invalid UTF-8 or JSON, too deep nesting, duplicate keys, NaN, or a number of more than 300 digits.
    """
    try:
        value = _DECODER.decode(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
        if writable:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 (byte {error.start})") from None
    except UnicodeEncodeError:
        raise InputError("unpaired surrogate: not a valid Unicode character") from None
    except RecursionError:
        raise InputError("JSON nested too deeply") from None
    except ValueError as error:
        fix = "" if isinstance(error, _NoJson) else "; give one JSON object per line"
        raise InputError(f"not JSON ({error}){fix}") from None
    return value


def read_json(path: str | Path, *, writable: bool = False) -> Any:
    """The value of a JSON file, plain or compressed. Raises `InputError`, with the path, if it is not strict JSON."""
    text = "\n".join(line for _, line in numbered_lines(path))
    with reading(str(path)):
        return parse_strict_json(text, writable=writable)


def json_objects(path: str | Path) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """The place ("FILE, line 3"), the line number and the object of each non-blank line."""
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        with reading(where):
            value = parse_strict_json(line, writable=True)
            if not isinstance(value, dict):
                raise InputError(f"expected one JSON object per line, not {type(value).__name__}")
        yield where, number, value


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Convert exceptions about the content of a line to `InputError`, with its place at the start of the message."""
    try:
        yield
    except KeyError as error:
        raise InputError(f"{where}: no {error} in this line") from None
    except (InputError, ValueError, TypeError, AttributeError, ArithmeticError, LookupError, RecursionError) as error:
        raise InputError(f"{where}: {error}") from None


#: A number as in JSON: without underscores or digits of other scripts, which `float` accepts.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def finite(value: object) -> float:
    """A finite number, given as a number or text; otherwise raises `InputError`."""
    written = isinstance(value, str) and len(value) <= _DIGITS and _NUMBER.fullmatch(value.strip(" "))
    number = math.nan
    if written or (isinstance(value, int | float) and not isinstance(value, bool)):
        with suppress(OverflowError):
            number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise InputError(f"{printable(str(value)[:60])!r} is not a finite number")
    return number


def text_of(item: Mapping[str, Any], key: str) -> str:
    """A string in an object; numbers are converted to text. Raises `KeyError` if the key is missing, `InputError` for
    other types."""
    value = item[key]
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{key!r} is {type(value).__name__}, not a text")


def read_flat_yaml(path: Path) -> dict[str, str | None]:
    """Key -> value of a YAML file with one key and plain value per line, such as a model folder's ``hparams.yaml``.
    Values are text: numbers as written, "true" and "false" in lower case, null as None. No YAML values are constructed,
    so tags do not call converters, and aliases are not expanded.

    Raises:
        InputError: not UTF-8, too large, invalid YAML, or anything except keys with plain values (with file and key).
    """
    import yaml

    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_YAML + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_YAML:
        raise InputError(f"{path} has more than {LARGEST_YAML} bytes; write one option per line and nothing else")
    try:
        root = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())[:300]}") from None
    values: dict[str, str | None] = {}
    for key, value in root.value if isinstance(root, yaml.MappingNode) else [(root, root)]:
        if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode) or key is value:
            raise InputError(f"{path}: nested values are not supported; write one option per line, such as n: 16")
        name, text = printable(key.value), value.value
        if name in values:
            raise InputError(f"{path}: {name} is given twice; keep one line")
        if len(text) > _LONGEST_VALUE or (text != printable(text) and "\n" not in text):
            raise InputError(f"{path}: unexpected value: {text[:60]!r}; write it on the same line as its key")
        plain = value.style is None
        values[name] = None if plain and text in _NULL else text.lower() if plain and text in _BOOLEANS else text
    return values


_NULL = ("", "~", "null", "Null", "NULL")
_BOOLEANS = ("True", "TRUE", "False", "FALSE")
