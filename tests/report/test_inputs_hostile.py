"""Data from elsewhere: every reader of JSON lines and tables gives its values or one line that names file and line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.esa_files import read_esa
from mbr_esd_metric.adapters.file_kinds import kind_of_input
from mbr_esd_metric.adapters.ratings import read_rating_lines
from mbr_esd_metric.adapters.wmt.layout import read_scores, read_text
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.judged import read_judged
from mbr_esd_metric.files.records import read_candidates, read_decisions
from mbr_esd_metric.files.untrusted import parse_strict_json
from tests.helpers.refused import refused

FILES = Path(__file__).parents[1] / "data" / "ratings"
#: A file, of which the second line is taken if it has several, and its reader.
READERS: dict[str, Callable[[Path], object]] = {
    "candidates.jsonl": lambda path: [list(record.candidates) for record in read_candidates(path)],
    "decisions.jsonl": lambda path: [record.to_json() for record in read_decisions(path)],
    "comet.json": lambda path: (kind_of_input(path), read_judged(path)),
    "bio_mqm.jsonl": read_rating_lines,
    "wmt25-genmt-humeval.jsonl": lambda path: read_esa([path]),
    "wmt24_esa.jsonl": lambda path: read_esa([path]),
    "wmt26-submission.jsonl": lambda path: SUBMISSION_FORMATS["wmt26"].read(path),
    "sources.jsonl": lambda path: read_text(path, "source"),
}
#: JSON texts that stand in for a value.
HOSTILE = {
    "400 digits": "1" + "0" * 400,
    "minus 400 digits": "-1" + "0" * 400,
    "5,000 digits": "9" * 5000,
    "a float beyond all": "1e400",
    "not a number": "NaN",
    "infinity": "-Infinity",
    "nested deeply": "[" * 100_000,
    "nested deeply and closed": "[" * 50_000 + "]" * 50_000,
    "half a pair": '"\\ud800"',
    "null": "null",
    "true": "true",
    "a list": "[[]]",
    "an object": '{"a": {}}',
    "a number": "7",
    "a text": '"x"',
    "NUL": '"\\u0000"',
    "an empty text": '""',
    "a key twice": '{"a": 1, "a": 2}',
}


NEVER = ("400 digits", "nested deeply", "not a number")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a value."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def spoilt(value: dict[str, Any], place: tuple[Any, ...], text: str) -> str:
    """The value with that JSON text at the place."""
    changed: Any = [copy.deepcopy(value)]
    inner = changed
    for key in (0, *place)[:-1]:
        inner = inner[key]
    inner[(0, *place)[-1]] = "@@HERE@@"
    return json.dumps(changed[0]).replace('"@@HERE@@"', text)


@pytest.mark.parametrize("name", READERS)
def test_whatever_stands_in_a_line_is_read_or_an_input_error(name: str, tmp_path: Path) -> None:
    read, lines = READERS[name], (FILES / name).read_text(encoding="utf-8").splitlines()
    path, value = tmp_path / name, json.loads(lines[:2][-1])
    path.write_text(json.dumps(value) + "\n")
    read(path)
    for place in places(value):
        for what, text in HOSTILE.items():
            path.write_text(spoilt(value, place, text) + "\n")
            message = str(path)
            try:
                read(path)
            except InputError as error:
                message = str(error)
            except Exception as error:
                pytest.fail(f"{what} at {place}: {type(error).__name__}: {error}")
            if str(path) not in message:
                pytest.fail(f"{what} at {place}: {message}")
    key = next(iter(value))  # what no reader takes, wherever it stands
    for more in (f'"{key}": {json.dumps(value[key])}', *(f'"more": {HOSTILE[what]}' for what in NEVER)):
        path.write_text("{" + more + ", " + json.dumps(value)[1:] + "\n")
        with pytest.raises(InputError):
            read(path)


@pytest.mark.parametrize("score", ["1_000", "\u0663", "1e400", "nan", "inf", "0x10", "١٢", "1 0", "-", "."])
def test_scores_are_numbers_as_json_writes_them(score: str, tmp_path: Path) -> None:
    path = tmp_path / "lp.seg.score"
    path.write_text(f"A\t{score}\n", encoding="utf-8")
    refused(r"line 1", read_scores, path)


def test_texts_that_are_read() -> None:
    assert parse_strict_json('\ufeff{"a": [1, 2.5, null, "\\ud800"]}'.encode()) == {"a": [1, 2.5, None, "\ud800"]}
    refused("unpaired surrogate", parse_strict_json, '"\\ud800"', writable=True)
