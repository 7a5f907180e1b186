"""The table of spoilt translations: its cases, its figures, and what it writes, with a metric that is known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import spoilt_table
from spoilt import Pair

SENTENCES = [
    Pair(
        f"The {n} dogs ran, and the {n} cats slept in the house.",
        f"Die {n} Hunde rannten, und die {n} Katzen schliefen im Haus.",
        "en-de",
    )
    for n in ("two", "three", "four", "five", "six")
]
RUSSIAN = Pair("Собаки бежали.", "The dogs ran.", "ru-en")
OTHERS = [*SENTENCES, RUSSIAN, RUSSIAN.swapped()]


def test_each_pair_is_spoilt_in_each_way() -> None:
    cases = spoilt_table.cases(SENTENCES, OTHERS)
    assert cases == spoilt_table.cases(SENTENCES, OTHERS)
    assert {case.row for case in cases} == set(spoilt_table.ROWS)
    by_row = {row: [case for case in cases if case.row == row] for row in spoilt_table.ROWS}
    assert all(len(cases) == len(SENTENCES) for cases in by_row.values())
    assert all(case.bad == case.source for case in by_row["the source copied"])
    for pair, case in zip(SENTENCES, by_row["second half left out"], strict=True):
        words = pair.translation.split()
        assert case.bad.split() == words[: (len(words) + 1) // 2]
        assert [*case.missing] == [(len(pair.source) // 2, len(pair.source))]
    assert all(case.bad in case.good != case.bad for case in by_row["one of two sentences left out"])


def test_auc_counts_ties_half() -> None:
    assert spoilt_table.auc([1.0, 0.5], [0.5, 0.0]) == 3.5 / 4
    assert spoilt_table.auc([0.0], [1.0]) == 0
    assert spoilt_table.auc([0.1, 0.4, 0.9], [0.1, 0.4, 0.9]) == 0.5


def test_the_table_of_a_metric_that_counts_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It scores a translation by its length, and marks the source's end where the translation is the shorter one."""

    class Known:
        def predict(self, rows: list[dict[str, str]], progress_bar: bool) -> SimpleNamespace:
            short = [len(row["mt"]) < len(row["src"]) for row in rows]
            omissions = [
                [{"start": len(row["src"]) - 9, "end": len(row["src"]), "severity": "major"}] if less else []
                for row, less in zip(rows, short, strict=True)
            ]
            return SimpleNamespace(
                scores=[float(len(row["mt"])) for row in rows],
                metadata=SimpleNamespace(error_spans=[[] for _ in rows], omissions=omissions),
            )

    pairs, output = tmp_path / "pairs.jsonl", tmp_path / "segments.jsonl"
    values = ({"lp": p.lp, "source": p.source, "translation": p.translation, "links": []} for p in OTHERS)
    pairs.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    monkeypatch.setattr(spoilt_table, "load_metric", lambda model: Known())
    rows = ["second half left out", "said twice"]
    command = ["spoilt_table.py", str(pairs), "--lp", "en-de", "--most", "4", "--rows", *rows, "-o", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    spoilt_table.main()
    head, _, half, twice, _, goods = capsys.readouterr().out.splitlines()
    assert head.startswith("| 4 pairs, en-de | cases |")
    assert half == "| second half left out | 4 | 1.00 | 1.00 | 1.00 | 1.00 |"
    assert twice == "| said twice | 4 | 0.00 | 0.00 | 0.00 | - |"
    assert goods == "good translations: 4, 0 of them with a mark, 0 with one on the source's side"
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 12
    assert {line["score"] for line in lines} == {float(len(line["mt"])) for line in lines}
