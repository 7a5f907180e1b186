"""Clean pairs from post-edits: texts put together again, links of words, and what is left out."""

from __future__ import annotations

import sys
from pathlib import Path

import clean_pairs
import pytest
from spoilt import Pair


@pytest.mark.parametrize(
    ("tokens", "language", "text"),
    [
        ("He said : \" it 's a well @-@ known ( old ) house , isn 't it ? \"", "en",
         "He said: \"it's a well-known (old) house, isn't it?\""),
        ("Er sagte : „ Das ist ein Haus . “", "de", "Er sagte: „Das ist ein Haus.“"),
        ("我 明天 去 北京 。", "zh", "我明天去北京。"),
        ("s- a dus într -un oraș", "ro", "s-a dus într-un oraș"),
    ],
)  # fmt: skip
def test_tokens_become_a_text_and_keep_their_places(tokens: str, language: str, text: str) -> None:
    joined, places = clean_pairs.detokenised(tokens.split(), language)
    assert joined == text
    assert [text[start:end] for start, end in places] == [token.replace("@-@", "-") for token in tokens.split()]


def folder_of(rows: list[tuple[str, str, str, str]], where: Path, lp: str = "en-de") -> Path:
    """Source, machine translation, correction and links, as the archives have them."""
    (where / f"{lp}-dev").mkdir(parents=True)
    for number, name in enumerate(("src", "mt", "pe", "src-mt.alignments")):
        (where / f"{lp}-dev" / f"dev.{name}").write_text("".join(row[number] + "\n" for row in rows), encoding="utf-8")
    return where


def test_pairs_are_written_and_read_with_their_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        ("A red house .", "Ein rotes Haus .", "Ein rotes Haus .", "0-0 1-1 2-2 9-9"),
        ("A red house .", "Eine rote Maus .", "Ein rotes Haus .", "0-0 1-1 2-2"),
        ("Two words", "Zwei Wörter", "Zwei Wörter", "0-0"),
        ("A red house .", "Ein", "Ein sehr langer Satz , der mehr sagt als hier steht .", ""),
        ("Berlin Paris Rom", "Berlin Paris Rom", "Berlin Paris Rom", ""),
    ]
    output = tmp_path / "pairs.jsonl"
    command = ["clean_pairs.py", str(folder_of(rows, tmp_path / "data")), "--lp", "en-de", "--part", "dev", "-o"]
    monkeypatch.setattr(sys, "argv", [*command, str(output)])
    clean_pairs.main()
    assert capsys.readouterr().out == f"{output}: 2 pairs\n"
    linked, corrected = clean_pairs.read_pairs(output)
    assert linked == Pair(
        "A red house.", "Ein rotes Haus.", "en-de", (((0, 1), (0, 3)), ((2, 5), (4, 9)), ((6, 11), (10, 14)))
    )
    assert corrected == Pair("A red house.", "Ein rotes Haus.", "en-de", ())


def test_a_set_without_alignments_has_pairs_without_links(tmp_path: Path) -> None:
    folder = folder_of([("我们 明天 去 北京 。", "We go .", "We go to Beijing .", "")], tmp_path, "zh-en")
    (folder / "zh-en-dev" / "dev.src-mt.alignments").unlink()
    assert not list(clean_pairs.pairs(folder, "zh-en", "dev"))  # English is longer than 1.9 times the Chinese
    folder = folder_of([("We go to Beijing .", "我 去 。", "我 明天 去 北京 。", "")], tmp_path / "other", "en-zh")
    (folder / "en-zh-dev" / "dev.src-mt.alignments").unlink()
    assert list(clean_pairs.pairs(folder, "en-zh", "dev")) == [Pair("We go to Beijing.", "我明天去北京。", "en-zh", ())]
