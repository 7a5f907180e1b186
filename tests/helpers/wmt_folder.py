"""A made-up test set in the folder layout: two domains, three documents, ties, unrated segments, several metrics."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from mbr_esd_metric.adapters.wmt.layout import Layout, write_documents, write_scores, write_text
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, mqm_score

SYSTEMS = ("A", "B", "C", "D", "refB")
SEGMENTS = 24
DOCUMENTS = [("news", "n1")] * 8 + [("news", "n2")] * 4 + [("talks", "t1")] * 12
WORDS = ["der", "graue", "Hund", "sieht", "einen", "alten", "Baum", "am", "Ufer", "und", "bellt", "laut"]


def spans(rng: random.Random, text: str, most: int) -> Annotation:
    """Words, each marked at most once, with confidences of one decimal."""
    marked = []
    words = text.split()
    for word in rng.sample(words, min(len(words), rng.randint(0, most))):
        start = text.index(word)
        severity = "major" if rng.randint(0, 1) else "minor"
        marked.append(ErrorSpan(start, start + len(word), severity, "style", rng.randint(0, 10) / 10))
    return Annotation(marked)


def write_texts(
    layout: Layout,
    sources: Sequence[str],
    outputs: Mapping[str, Sequence[str | None]],
    documents: Sequence[tuple[str, str]] = (),
) -> None:
    """Write sources and translations; those of systems called ref, refA and so on are references as well."""
    write_documents(layout.documents, documents or [("all", "d")] * len(sources))
    write_text(layout.source(), sources)
    for system, texts in outputs.items():
        write_text(layout.output(system), texts)
        if system.startswith("ref"):
            write_text(layout.reference(system), texts)


def write_folder(data: Path, test_set: str = "made", lp: str = "en-de", gold: str = "mqm", seed: int = 0) -> Layout:
    """Write it.

    Metrics: "length-src" scores segments and systems, "noise-refA" segments, "spans-src" has error spans, "flat-src" is
    constant and marks nothing, "systems-refA" scores systems alone.
    """
    rng = random.Random(f"{lp}{seed}")
    layout = Layout(data, test_set, lp)
    texts = {s: [" ".join(rng.sample(WORDS, rng.randint(2, 12))) for _ in range(SEGMENTS)] for s in (*SYSTEMS, "refA")}
    rated = [rng.random() > 0.15 for _ in range(SEGMENTS)]
    human: dict[str, list[Annotation | None]] = {
        s: [spans(rng, t, 1 + i % 3) if r else None for t, r in zip(texts[s], rated, strict=True)]
        for i, s in enumerate(SYSTEMS)
    }
    scores = {s: [None if a is None else mqm_score(a) for a in row] for s, row in human.items()}
    sources = [" ".join(rng.sample(WORDS, rng.randint(2, 12))) for _ in range(SEGMENTS)]
    write_texts(layout, sources, texts, DOCUMENTS)
    write_scores(layout.human_file(gold, "seg.score"), scores)
    means = {s: [_mean([v for v in row if v is not None])] for s, row in scores.items()}
    write_scores(layout.human_file(gold, "sys.score"), means)
    write_ratings(layout.human_file(f"{gold}.merged", "seg.rating"), human)
    predicted = {s: [spans(rng, t, 2) for t in texts[s]] for s in SYSTEMS}
    write_scores(
        layout.metric_file("spans-src", "seg.score"), {s: list(map(mqm_score, row)) for s, row in predicted.items()}
    )
    write_ratings(layout.metric_file("spans-src", "seg.rating"), predicted)
    write_scores(layout.metric_file("flat-src", "seg.score"), {s: [0.0] * SEGMENTS for s in SYSTEMS})
    write_ratings(layout.metric_file("flat-src", "seg.rating"), {s: [Annotation()] * SEGMENTS for s in SYSTEMS})
    length = {s: [float(-len(t)) for t in texts[s]] for s in SYSTEMS}
    write_scores(layout.metric_file("length-src", "seg.score"), length)
    write_scores(layout.metric_file("length-src", "sys.score"), {s: [_mean(row) ** 3] for s, row in length.items()})
    noise = {s: [round((v or 0.0) + rng.gauss(0, 3)) for v in row] for s, row in scores.items()}
    write_scores(layout.metric_file("noise-refA", "seg.score"), noise)
    write_scores(layout.metric_file("systems-refA", "sys.score"), {s: [m[0] + 1.0] for s, m in means.items()})
    return layout


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def marked_words(text: str, number: int) -> Annotation:
    """Some words of segment `number`, without chance; in every fifth also an error without characters, sometimes at the
    end."""
    marked, at = [], 0
    for place, word in enumerate(text.split()):
        start = text.index(word, at)
        at = start + len(word)
        kind = (7 * number + 3 * place) % 11
        if kind in (0, 5):
            marked.append(ErrorSpan(start, at, "major" if kind else "minor"))
    points = [(len(text) if number % 2 else 3, "minor")] if number % 5 == 0 else []
    return Annotation(marked).with_points(points)


def repeated_spans(predictions: str) -> str:
    """A submission to WMT25's span task with every first span again, an empty one, and an error without a place."""
    rows = [line.split("\t") for line in predictions.splitlines()]
    for number, row in enumerate(rows[1:]):
        if row[-1] == "no-error":
            if number % 3 == 0:
                row[-3:] = "missing", "missing", "major"
            continue
        columns = zip(row[-3:], ("1", "1", "minor"), strict=True)
        row[-3:] = [f"{column} {column.split(' ')[0]} {empty}" for column, empty in columns]
    return "".join("\t".join(row) + "\n" for row in rows)
