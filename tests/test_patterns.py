"""Every regular expression that sees foreign text takes a time that grows with the text, not with its square."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import string
import time
from collections.abc import Callable, Iterator

import pytest

import mbr_esd_metric

#: Modules that need packages which this environment may lack, and have no pattern for foreign text.
_HEAVY = ("mbr_esd_metric.distill.", "mbr_esd_metric.adapters.comet", "mbr_esd_metric.adapters.mtme")
LENGTH = 30_000
SECONDS = 0.5


def patterns() -> Iterator[tuple[str, tuple[re.Pattern[str], set[str]]]]:
    """Name, pattern, and the methods that its module calls."""
    for module in pkgutil.walk_packages(mbr_esd_metric.__path__, "mbr_esd_metric."):
        if module.name.startswith(_HEAVY) or module.name.endswith("__main__"):
            continue
        try:
            imported = importlib.import_module(module.name)
        except ImportError:
            continue
        for name, value in vars(imported).items():
            several = value if isinstance(value, dict) else {None: value}
            for key, pattern in several.items():
                if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
                    used = set(re.findall(rf"\b{name}(?:\[\w+\])?\.(\w+)", inspect.getsource(imported)))
                    yield f"{module.name}.{name}" + ("" if key is None else f"[{key}]"), (pattern, used)


def hostile(pattern: str) -> Iterator[str]:
    """Long texts of what the pattern looks for, again and again, and never the end of it."""
    literal = [piece for piece in re.split(r"\\.|[\[\](){}*+?|^$.]", pattern) if piece]
    words = re.findall(r"[\w<>\"' :/@{\[(-]+", pattern)
    others = ("a", "1", " ", "\n", "aa ", "1.", "a-", "\\\\", '\\"', "//")
    for piece in {*literal, *words, *string.punctuation, *others}:
        yield piece * (LENGTH // len(piece)) + "\x00"
    for begin in literal[:3]:
        yield begin + "a" * LENGTH
        yield begin + " " * LENGTH + "!"


def seconds(call: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    call(text)
    return time.process_time() - began


PATTERNS = dict(patterns())


@pytest.mark.parametrize("name", PATTERNS)
def test_a_long_hostile_text_takes_no_long_time(name: str) -> None:
    pattern, used = PATTERNS[name]
    calls: dict[str, Callable[[str], object]] = {
        "match": pattern.match,
        "fullmatch": pattern.fullmatch,
        "search": lambda text: sum(1 for _ in pattern.finditer(text)),
    }
    anchored = used & set(calls)
    for text in hostile(pattern.pattern):
        for way in anchored or {"search"}:
            # The best of three: garbage that is collected meanwhile is not the pattern's time.
            assert any(seconds(calls[way], text) < SECONDS for _ in range(3)), f"{way} in {text[:20]!r} ..."


def test_patterns_of_tables_and_of_no_table_are_tested() -> None:
    assert {"mbr_esd_metric.prompting.formats.compact._ERROR[True]", "mbr_esd_metric.messages._UNFIT"} <= set(PATTERNS)
