"""The table of spoilt translations: its cases, its figures, and what it writes, with a metric that is known."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import spoilt_table

ENGLISH, GERMAN = (
    "The {0} dogs ran, and the {0} cats slept in the house.",
    "Die {0} Hunde rannten, und die {0} Katzen schliefen im Haus.",
)
PAIRS = [("en-de", ENGLISH.format(n), GERMAN.format(n)) for n in ("two", "three", "four", "five", "six")]
PAIRS.append(("ru-en", "Собаки бежали.", "The dogs ran."))


class Lengths:
    """Scores a translation by its length, and marks the source's end where the translation is the shorter one."""

    def predict(self, rows: list[dict[str, str]], progress_bar: bool) -> SimpleNamespace:
        ends = [len(row["src"]) if len(row["mt"]) < len(row["src"]) else 0 for row in rows]
        omissions = [[{"start": end - 9, "end": end, "severity": "major"}] if end else [] for end in ends]
        metadata = SimpleNamespace(error_spans=[[] for _ in rows], omissions=omissions)
        return SimpleNamespace(scores=[float(len(row["mt"])) for row in rows], metadata=metadata)


def test_the_table_of_a_metric_that_counts_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, output = tmp_path / "pairs.jsonl", tmp_path / "segments.jsonl"
    lines = ({"lp": lp, "source": source, "translation": mt, "links": []} for lp, source, mt in PAIRS)
    pairs.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    monkeypatch.setattr(spoilt_table, "load_metric", lambda model: Lengths())
    command = ["spoilt_table.py", str(pairs), "--lp", "en-de", "--most", "4", "-o", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    spoilt_table.main()
    head, _, *table, _, goods = capsys.readouterr().out.splitlines()
    assert head.startswith("| 4 pairs, en-de | cases |")
    assert [line.split(" | ")[0].removeprefix("| ") for line in table] == list(spoilt_table.ROWS)
    assert "| second half left out | 4 | 1.00 | 1.00 | 1.00 | 1.00 |" in table
    assert "| said twice | 4 | 0.00 | 0.00 | 0.00 | - |" in table
    assert goods.endswith(", 0 of them with a mark, 0 with one on the source's side")
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert all(line["score"] == len(line["mt"]) for line in written)
