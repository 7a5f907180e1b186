"""Options are read by the types that the dataclass gives them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mbr_esd_metric.distill.training_options import with_changes
from mbr_esd_metric.errors import OptionError


@dataclass(frozen=True)
class Made:
    whole: int = 1
    number: float = 0.5
    flag: bool = False
    text: str = "a"
    maybe: str | None = None
    pair: tuple[float, float] = (0.0, 1.0)
    many: tuple[str, ...] = ()
    perhaps: tuple[float, ...] | None = None


@pytest.mark.parametrize(
    ("option", "given", "value"),
    [
        ("whole", "3", 3),
        ("whole", 4.0, 4),
        ("number", "1e-6", 1e-6),
        ("number", 2, 2.0),
        ("flag", "true", True),
        ("text", "1.0", "1.0"),
        ("text", True, "true"),
        ("text", "null", "null"),
        ("maybe", "null", None),
        ("maybe", None, None),
        ("maybe", "b", "b"),
        ("pair", "[1, 2]", (1.0, 2.0)),
        ("many", "sigmoid", ("sigmoid",)),
        ("many", ["a", "b"], ("a", "b")),
        ("perhaps", "0.5", (0.5,)),
        ("perhaps", "null", None),
    ],
)
def test_values_become_what_the_option_is(option: str, given: object, value: object) -> None:
    read = getattr(with_changes(Made(), {option: given}), option)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("option", "given", "message"),
    [
        ("whole", "2.5", "whole: 2.5 is no int"),
        ("whole", "true", "whole: True is no int"),
        ("number", "fast", "number: 'fast' is no float"),
        ("number", True, "number: True is no float"),
        ("flag", "1", "flag: 1 is no bool"),
        ("text", None, "text: None is no str"),
        ("pair", "[1]", r"pair: \[1\] is no list\[float, float\]"),
        ("pair", "null", r"pair: None is no list\[float, float\]"),
        ("perhaps", "[a]", r"perhaps: \['a'\] is no list\[float, ...\] | None"),
        ("wole", "1", "unknown training option 'wole'; did you mean 'whole'"),
    ],
)
def test_values_that_do_not_fit_are_named(option: str, given: object, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        with_changes(Made(), {option: given})
