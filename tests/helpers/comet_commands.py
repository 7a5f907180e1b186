"""Three segments with stored candidates."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "comet"
SOURCES, TRANSLATIONS = ((DATA / name).read_text(encoding="utf-8").splitlines() for name in ("src.txt", "mt.txt"))
#: What the model answered: the errors of each translation, three times each; and the scores of these.
ERRORS = ([("geöffnet", "major")], [("ein", "minor")], [])
SCORES = [0.8, 0.96, 1.0]
MODEL = "mbr-esd-demo?n=3&candidates=candidates.jsonl"


def write(name: str, *lines: str) -> None:
    """A text file of these lines."""
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
