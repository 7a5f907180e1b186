"""Clean pairs from post-edits: texts put together again, links of words, and what is left out."""

from __future__ import annotations

import sys
from pathlib import Path

import clean_pairs
import pytest
from spoilt import Pair

#: Source, machine translation, correction and links, as the archives have them; the third correction says more.
SENTENCES = (
    ("A red house .", "Ein rotes Haus .", "Ein rotes Haus .", "0-0 1-1 2-2 9-9"),
    ('He said : " it \'s well @-@ known "', "Er sagte .", "Er sagte : „ Es ist bekannt “", "0-0 1-1"),
    ("A red house .", "Ein", "Ein sehr langer Satz , der mehr sagt als hier steht .", ""),
    ("Two words", "Zwei Wörter", "Zwei Wörter", "0-0"),
)


def test_pairs_are_written_and_read_with_their_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, name in enumerate(("src", "mt", "pe", "src-mt.alignments")):
        path = tmp_path / "en-de-dev" / f"dev.{name}"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{sentence[number]}\n" for sentence in SENTENCES), encoding="utf-8")
    output = tmp_path / "pairs.jsonl"
    command = ["clean_pairs.py", str(tmp_path), "--lp", "en-de", "--part", "dev", "-o", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    clean_pairs.main()
    links = (((0, 1), (0, 3)), ((2, 5), (4, 9)), ((6, 11), (10, 14)))
    assert clean_pairs.read_pairs(output) == [
        Pair("A red house.", "Ein rotes Haus.", "en-de", links),
        Pair('He said: "it\'s well-known"', "Er sagte: „Es ist bekannt“", "en-de"),
    ]
