"""Test sets in the folder layout: two that are stored, and others from texts."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mbr_esd_metric.adapters.wmt.layout import Layout, write_documents, write_text
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan

DATA = Path(__file__).parents[1] / "data" / "wmt"
#: What is in `DATA / "made"`.
SYSTEMS = ("A", "B", "C", "D", "refB")
SEGMENTS = 24
DOCUMENTS = [("news", "n1")] * 8 + [("news", "n2")] * 4 + [("talks", "t1")] * 12


def write_folder(data: Path, test_set: str = "made", lp: str = "en-de") -> Layout:
    """Copy a stored test set in one language pair: "tiny" (en-de), of three segments; or under any name "made" (en-de,
    zh-en, or en-de called otherwise), with two domains, three documents, ties, unrated segments, and metrics:
    "length-src" scores segments and systems, "noise-refA" segments, "spans-src" has error spans, "flat-src" is constant
    and marks nothing, "systems-refA" scores systems alone."""
    folder, stored = DATA / ("tiny" if test_set == "tiny" else "made"), lp if lp == "zh-en" else "en-de"
    for path in folder.rglob(f"*{stored}*"):
        name = data / test_set / str(path.relative_to(folder)).replace(stored, lp)
        name.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, name)
    return Layout(data, test_set, lp)


def write_texts(layout: Layout, sources: Sequence[str], outputs: Mapping[str, Sequence[str | None]]) -> None:
    """Write sources and translations; those of systems called ref, refA and so on are references as well."""
    write_documents(layout.documents, [("all", "d")] * len(sources))
    write_text(layout.source(), sources)
    for system, texts in outputs.items():
        write_text(layout.output(system), texts)
        if system.startswith("ref"):
            write_text(layout.reference(system), texts)


def spans(rng: random.Random, text: str, most: int) -> Annotation:
    """Words, each marked at most once, with confidences of one decimal."""
    marked = []
    words = text.split()
    for word in rng.sample(words, min(len(words), rng.randint(0, most))):
        start = text.index(word)
        severity = "major" if rng.randint(0, 1) else "minor"
        marked.append(ErrorSpan(start, start + len(word), severity, "style", rng.randint(0, 10) / 10))
    return Annotation(marked)
