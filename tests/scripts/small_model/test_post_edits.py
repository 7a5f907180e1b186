"""Rows of training from post-edits, from the files as they are published."""

from __future__ import annotations

import sys
from pathlib import Path

import post_edits
import pytest

from mbr_esd_metric.adapters.qe_tsv import read_qe


def test_what_the_correction_changes_is_marked_and_the_worst_rated_have_major_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = [(f"The {i} dogs.", f"Die {i} Katzen.", f"Die {i} Hunde.", 10.0 * i) for i in range(10)]
    sentences += [
        ("A tree.", "Ein Baum.", "Ein Baum.", 5.0),
        ("A very small house.", "Ein sehr kleines Haus.", "Ein großes Haus.", 95.0),
        ("A small house.", "Ein Haus.", "Ein kleines Haus.", 5.0),  # words are added alone
        ("Like this.", "ganz anders hier", "so geht es nicht", 5.0),  # a text that is written anew
    ]
    folder, output = tmp_path / "en-de-dev", tmp_path / "mlqe_en-de.tsv"
    folder.mkdir()
    (folder / "dev.pe").write_text("".join(f"{corrected}\n" for _, _, corrected, _ in sentences))
    rows = "".join(f"{source}\t{translation}\t{rating}\n" for source, translation, _, rating in sentences)
    (folder / "dev.ende.df.short.tsv").write_text(f"original\ttranslation\tmean\n{rows}")
    monkeypatch.setattr(sys, "argv", ["post_edits.py", str(tmp_path), "--lp", "en-de", "-o", str(output)])
    post_edits.main()
    ratings = read_qe(output).ratings
    assert [r.errors[0].severity for r in ratings[:10]] == ["major"] * 3 + ["minor"] * 7
    texts = [[r.segment.translation[span.start : span.end] for span in r.annotation] for r in ratings]
    assert texts == [*[["Katzen"]] * 10, [], ["sehr kleines"]]
