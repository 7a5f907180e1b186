"""Three segments with stored candidates, and what a command of COMET's leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mbr_esd_metric.prompting.formats.json import render_answer

SOURCES = ("The shop is closed on Monday.", "She eats an apple.", "Good morning!")
TRANSLATIONS = ("Der Laden ist am Montag geöffnet.", "Sie isst ein Apfel.", "Guten Morgen!")
#: What the model answered: one annotation a translation, three times each.
ERRORS = (("geöffnet", "accuracy/mistranslation", "major"), ("ein", "fluency/grammar", "minor"), None)


def answer(error: tuple[str, str, str] | None) -> str:
    """A candidate's text."""
    if error is None:
        return render_answer([])
    span, category, severity = error
    category, sub_category = category.split("/")
    return render_answer(
        [{"error_span": span, "category": category, "sub_category": sub_category, "severity": severity}]
    )


@dataclass(frozen=True)
class Files:
    """`src.txt`, `mt.txt` and the candidates for them, in the current folder."""

    folder: Path
    sources: str = "src.txt"
    translations: str = "mt.txt"
    model: str = "mbr-esd-demo?n=3&candidates=candidates.jsonl"

    def write(self, name: str, *lines: str) -> str:
        """A text file of these lines; returns its name."""
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return name


@dataclass(frozen=True)
class Outcome:
    """Exit status and what was written."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The error's line; there is exactly one, and no traceback."""
        lines = [line for line in self.err.splitlines() if line.startswith("comet-")]
        assert len(lines) == 1, repr(self.err)
        assert "Traceback" not in self.err
        assert self.status != 0
        return lines[0]
