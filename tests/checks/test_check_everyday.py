"""Everyday sentences with one wrong word, and the same sentences translated well."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, Context, errors_of

with (Path(__file__).parent / "everyday.tsv").open(encoding="utf-8", newline="") as file:
    PAIRS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
#: Kind of word -> the fewest that are found.
FOUND = {"weekday": 29, "month": 27, "territory": 24, "unit": 24, "currency": 18, "number": 22}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("kind", FOUND)
def test_wrong_words_are_found(kind: str, known: bool) -> None:
    found = 0
    for pair in PAIRS:
        context = Context(*pair["lp"].split("-")) if known else UNKNOWN
        errors = errors_of(pair["source"], pair["wrong"], context)
        found += pair["kind"] == kind and any(one.category == f"check/{kind}" for one in errors)
    assert found >= FOUND[kind]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["source"])
def test_right_words_are_none(pair: dict[str, str]) -> None:
    source, target = pair["lp"].split("-")
    assert errors_of(pair["source"], pair["right"]) == ()
    assert errors_of(pair["source"], pair["right"], Context(source, target)) == ()
    assert errors_of(pair["right"], pair["source"], Context(target, source)) == ()
