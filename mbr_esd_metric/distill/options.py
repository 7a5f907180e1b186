"""Training options by name: from YAML and from the command line, checked against the dataclass that defines them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from mbr_esd_metric.errors import OptionError, unknown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

#: Numbers that may be 0; every other one must be above.
_MAY_BE_ZERO = {"lora_rank", "warmup_steps", "weight_decay", "seed"}


def check_numbers(options: DataclassInstance) -> None:
    """Raise `OptionError` for the first number that is below what it may be."""
    for name, value in dataclasses.asdict(options).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not (value > 0 or (name in _MAY_BE_ZERO and value == 0)):
            raise OptionError(f"{name} must be {'0 or more' if name in _MAY_BE_ZERO else 'above 0'}, not {value!r}")


def with_changes(options: T, changes: Mapping[str, Any]) -> T:
    """`options` with values set by name; texts are read as YAML would read them, so that ``1e-6`` is a number.

    Raises:
        OptionError: an unknown option, or a value of the wrong kind.
    """
    import yaml

    known = {field.name: field for field in dataclasses.fields(options)}
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise unknown("training option", name, known)
        kind = str(known[name].type)
        if isinstance(value, str) and (kind.startswith("tuple") or "str" not in kind):
            value = yaml.safe_load(value)
        try:
            values[name] = _converted(kind, value)
        except (TypeError, ValueError):
            raise OptionError(f"{name}: {value!r} is no {kind.replace('tuple', 'list')}") from None
    return dataclasses.replace(options, **values)


def _converted(kind: str, value: Any) -> Any:
    """`value` as the type that an option is annotated with."""
    if value is None or (value == "null" and "None" in kind):
        if "None" not in kind:
            raise TypeError
        return None
    kind = kind.removesuffix(" | None")
    if kind.startswith("tuple"):
        item = float if "float" in kind else str
        items = tuple(item(v) for v in (value if isinstance(value, list | tuple) else [value]))
        if kind == "tuple[float, float]" and len(items) != 2:
            raise ValueError
        return items
    if kind == "bool":
        if not isinstance(value, bool):
            raise TypeError
        return value
    if kind == "int":
        if isinstance(value, bool) or int(value) != float(value):
            raise ValueError
        return int(value)
    if kind == "float":
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_yaml(options: DataclassInstance) -> str:
    """All options with their values, as a recipe that gives the same options again."""
    import yaml

    values = {
        name: list(value) if isinstance(value, tuple) else value for name, value in dataclasses.asdict(options).items()
    }
    return str(yaml.safe_dump(values, sort_keys=False))
