"""Rows of training from post-edits: spans, what is left out, severities, and the files as they are published."""

from __future__ import annotations

import sys
from pathlib import Path

import post_edits
import pytest

from mbr_esd_metric.adapters.qe_tsv import read_qe


def marked(translation: str, corrected: str) -> list[str] | None:
    spans = post_edits.changed(translation, corrected)
    return None if spans is None else [translation[start:end] for start, end in spans]


def test_what_the_correction_changes_is_marked() -> None:
    assert marked("Das ist ein kleines Haus.", "Das ist ein kleines Haus.") == []
    assert marked("Das ist ein kleines Haus.", "Das war ein kleines Haus .") == ["ist"]
    assert marked("Das ist ein sehr kleines Haus.", "Das ist ein großes Haus.") == ["sehr kleines"]
    assert marked("Er hat das Haus gekauft, oder nicht?", "Er kaufte das Haus, oder?") == ["hat", "gekauft", "nicht"]
    assert marked("我明天去北京。", "我昨天去北京。") == ["明"]


def test_only_added_words_or_a_text_written_anew_give_nothing() -> None:
    assert marked("Das ist ein Haus.", "Das ist ein kleines Haus.") is None
    assert marked("ganz anders hier", "so geht es nicht") is None


def folder_of(sentences: list[tuple[str, str, str, float]], where: Path) -> Path:
    (where / "en-de-dev").mkdir(parents=True)
    (where / "en-de-dev" / "dev.pe").write_text("".join(f"{corrected}\n" for _, _, corrected, _ in sentences))
    table = "index\toriginal\ttranslation\tscores\tmean\n" + "".join(
        f"{number}\t{source}\t{translation}\t[{rating}]\t{rating}\n"
        for number, (source, translation, _, rating) in enumerate(sentences)
    )
    (where / "en-de-dev" / "dev.ende.df.short.tsv").write_text(table)
    return where


def test_the_worst_rated_have_major_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = [(f"The {i} dogs.", f"Die {i} Katzen.", f"Die {i} Hunde.", 10.0 * i) for i in range(10)]
    sentences.append(("A tree.", "Ein Baum.", "Ein Baum.", 5.0))
    folder, output = folder_of(sentences, tmp_path / "data"), tmp_path / "mlqe_en-de.tsv"
    monkeypatch.setattr(sys, "argv", ["post_edits.py", str(folder), "--lp", "en-de", "-o", str(output)])
    post_edits.main()
    assert "11 translations, 1 of them without a change" in capsys.readouterr().out
    ratings = read_qe(output).ratings
    assert [(r.source, r.target, r.lp) for r in ratings[:1]] == [("The 0 dogs.", "Die 0 Katzen.", "en-de")]
    assert [r.errors[0].severity for r in ratings[:10]] == ["major"] * 3 + ["minor"] * 7
    assert [(s.start, s.end) for s in ratings[0].annotation.spans] == [(6, 12)]
    assert not ratings[10].errors
