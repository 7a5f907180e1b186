"""Three segments with stored candidates, and what a command of COMET's leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

SOURCES = ("The shop is closed on Monday.", "She eats an apple.", "Good morning!")
TRANSLATIONS = ("Der Laden ist am Montag geöffnet.", "Sie isst ein Apfel.", "Guten Morgen!")
#: What the model answered: the errors of each translation, three times each; and the scores of these.
ERRORS = ([("geöffnet", "major")], [("ein", "minor")], [])
SCORES = [0.8, 0.96, 1.0]
MODEL = "mbr-esd-demo?n=3&candidates=candidates.jsonl"


def write(name: str, *lines: str) -> None:
    """A text file of these lines."""
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


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
        assert (len(lines), "Traceback" in self.err, self.status == 0) == (1, False, False), repr(self.err)
        return lines[0]


class Comet(Protocol):
    """Runs `comet-score` or `comet-compare` with the stored candidates and these further words."""

    def __call__(self, name: str, words: str = "") -> Outcome: ...
