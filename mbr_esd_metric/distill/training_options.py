"""Training options by name: from YAML and from the command line, checked against the dataclass that defines them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from mbr_esd_metric.errors import OptionError, unknown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

#: Numbers that may be 0. All others must be above 0.
_MAY_BE_ZERO = {"lora_rank", "lora_first_layer", "warmup_steps", "weight_decay", "seed"}


def check_numbers(options: DataclassInstance) -> None:
    """Raise `OptionError` for the first number that is too small."""
    for name, value in dataclasses.asdict(options).items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not (value > 0 or (name in _MAY_BE_ZERO and value == 0)):
            raise OptionError(f"{name} must be {'0 or more' if name in _MAY_BE_ZERO else 'above 0'}, not {value!r}")


def with_changes(options: T, changes: Mapping[str, Any]) -> T:
    """`options` with values set by name. Texts are read as YAML reads them, but ``1e-6`` is a number.

    Raises:
        OptionError: an unknown option, or a value of the wrong kind.
    """
    import yaml

    known = get_type_hints(type(options))
    values: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in known:
            raise unknown("training option", name, known)
        kind = known[name]
        if isinstance(value, str) and str not in _alternatives(kind):
            value = yaml.safe_load(value)
        try:
            values[name] = _converted(kind, value)
        except (TypeError, ValueError):
            wanted = kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind)
            raise OptionError(f"{name}: {value!r} is no {wanted.replace('tuple', 'list')}") from None
    return dataclasses.replace(options, **values)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The types of ``X | None``; of any other type, itself."""
    return get_args(kind) if get_origin(kind) is UnionType else (kind,)


def _converted(kind: Any, value: Any) -> Any:
    """`value` as the type that an option is annotated with."""
    kinds = _alternatives(kind)
    if value is None or (value == "null" and NoneType in kinds):
        if NoneType not in kinds:
            raise TypeError
        return None
    kind = next(k for k in kinds if k is not NoneType)
    if get_origin(kind) is tuple:
        given = value if isinstance(value, list | tuple) else [value]
        items = get_args(kind)
        if items[-1] is Ellipsis:
            items = items[:1] * len(given)
        return tuple(_converted(item, v) for item, v in zip(items, given, strict=True))
    if kind is bool:
        if not isinstance(value, bool):
            raise TypeError
        return value
    if kind is int:
        if isinstance(value, bool) or int(value) != float(value):
            raise ValueError
        return int(value)
    if kind is float:
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
