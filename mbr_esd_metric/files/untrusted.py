"""Read untrusted JSON and YAML: returns a value or raises `InputError` with the reason.

Not msgspec: it takes the last of a key that is given twice, so that one reader would see another value than the next.
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

#: The most digits of a whole number: any that is shorter can become a float.
_DIGITS = 300
#: The most bytes of a YAML file, and characters of a key or value.
LARGEST_YAML = 1 << 16
_LONGEST_VALUE = 1000


class _NoJson(ValueError):
    """JSON that Python's decoder would let pass."""


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
    """The value of a JSON text. A `writable` one has texts for files, which hold no half of a surrogate pair.

    Raises:
        InputError: no UTF-8 or JSON, nested too deeply, a key given twice, NaN, or a number of more than 300 digits.
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
    """The value of a JSON file, plain or compressed. `InputError`, with the path, where it is not strict JSON."""
    text = "\n".join(line for _, line in numbered_lines(path))
    with reading(str(path)):
        return parse_strict_json(text, writable=writable)


def json_objects(path: str | Path) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """The place ("FILE, line 3"), the number of the line and the object of each line that is not blank."""
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
    """Turn what goes wrong with the content of a line into an `InputError` that begins with its place."""
    try:
        yield
    except KeyError as error:
        raise InputError(f"{where}: no {error} in this line") from None
    except (InputError, ValueError, TypeError, AttributeError, ArithmeticError, LookupError, RecursionError) as error:
        raise InputError(f"{where}: {error}") from None


#: A number as JSON and people write it: no underscore, and no digits of other scripts, which `float` takes.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def finite(value: object) -> float:
    """A finite number, of JSON or written as a text; else an `InputError`."""
    written = isinstance(value, str) and len(value) <= _DIGITS and _NUMBER.fullmatch(value.strip(" "))
    number = math.nan
    if written or (isinstance(value, int | float) and not isinstance(value, bool)):
        with suppress(OverflowError):
            number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise InputError(f"{printable(str(value)[:60])!r} is not a finite number")
    return number


def text_of(item: Mapping[str, Any], key: str) -> str:
    """A name or text of an object; a number is taken as it is written. `KeyError` where there is none, `InputError` for
    another kind."""
    value = item[key]
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise InputError(f"{key!r} is {type(value).__name__}, not a text")


def read_flat_yaml(path: Path) -> dict[str, str | None]:
    """Key -> value of a YAML file with a key and a plain value a line, such as a model folder's ``hparams.yaml``.

    Values are text: numbers as they are written, "true" and "false" in lower case, null as None. YAML makes no value of
    the file, so no tag calls a converter, and no alias is expanded.

    Raises:
        InputError: no file of UTF-8, too large, no YAML, or anything but keys with plain values; names file and key.
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
