"""The human annotations of the miniature, split by source: what is learnt from, paired and tested on; and the sizes
of a run, with their settings of TRL and of the model."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import Rating
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.distill.training_rows import AnnotatedSegment, Examples, select
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metric.card import ModelCard

LP = "en-de"
WMT, TED, BIO = "sxs_mqm_generalMT2023_ende.3raters.tsv", "mqm_ted_ende.tsv", "bio_mqm_en-de_de-en.jsonl.gz"
#: The TED talk that is tested on and never trained on.
TED_TEST = "talk.3"
#: Span measures of the tables.
COLUMNS = ("softf1", "f1", "softdice", "mpp-corpus", "softdice-corpus")
#: Test sources held back from training, whatever the size: so many of the short ones, in the order of their hashes.
HELD_BACK = 22


@dataclass(frozen=True)
class Size:
    """Numbers and settings of one size.

    Attributes:
        annotations: to learn from, of WMT23, TED and bio; `lengths` are the longest translation of each, in characters.
        characters: longest translation that is tested on or paired.
        sources, systems: of the WMT23 test; the rest of the short sources is trained on. `ted_` ones likewise.
        pair_segments: translations that preference pairs are made of; `pair_n` are the candidates of each.
        n, ted_n: sizes of the candidate lists that rules are compared at.
        max_tokens: longest answer.
        sft, dpo: settings of TRL that differ from those of its configuration file.
    """

    annotations: tuple[int, int, int]
    lengths: tuple[int, int, int]
    characters: int
    sources: int
    systems: int
    ted_sources: int
    ted_systems: int
    pair_segments: int
    n: tuple[int, ...]
    ted_n: int
    pair_n: int
    max_tokens: int
    sft: Mapping[str, object]
    dpo: Mapping[str, object]


def _trl(rate: float, batch: int, epochs: int, every: float | None = None, **more: object) -> dict[str, object]:
    """Settings of TRL; it evaluates and saves after each such share of the updates."""
    steps = {} if every is None else {"eval_steps": every, "save_steps": every}
    fixed = {"learning_rate": rate, "per_device_train_batch_size": batch, "num_train_epochs": epochs}
    return {**fixed, **steps, **more}


SIZES = {
    "ci": Size(
        annotations=(8, 16, 8), lengths=(120, 80, 80), characters=80, sources=2, systems=3, ted_sources=1,
        ted_systems=2, pair_segments=7, n=(4, 8), ted_n=4, pair_n=8, max_tokens=64,
        sft=_trl(2e-3, 4, 1, 0.5, warmup_steps=2), dpo=_trl(5e-4, 2, 3, 0.5, warmup_steps=1),
    ),
    "full": Size(
        annotations=(400, 880, 500), lengths=(350, 170, 150), characters=350, sources=20, systems=10, ted_sources=6,
        ted_systems=8, pair_segments=120, n=(16, 64), ted_n=16, pair_n=16, max_tokens=128, sft=_trl(1e-3, 8, 1),
        dpo=_trl(2e-5, 4, 3, 0.33, warmup_steps=4, weight_decay=0, gradient_accumulation_steps=4),
    ),
}  # fmt: skip
#: What all sizes say to TRL on a processor.
TRAINED: Mapping[str, object] = {
    "use_cpu": "true",
    "optim": "adamw_torch",
    "lora_r": 8,
    "lora_alpha": 16,
    "load_in_4bit": "false",
    "gradient_checkpointing": "false",
    "gradient_accumulation_steps": 1,
    "disable_tqdm": "true",
    "logging_steps": 1,
}
#: Informative candidates: at temperature 2.0 this model seldom copies a span without a mistake, and a span that is not
#: in the translation is not a span.
CARD: Mapping[str, Any] = {"n": 16, "temperature": 1.0, "grounded": True, "max_tokens": 192}


@dataclass(frozen=True)
class TestSet:
    """Translations as systems x segments, with what the raters say."""

    name: str
    systems: tuple[str, ...]
    segments: tuple[tuple[Segment, ...], ...]
    raters: tuple[tuple[tuple[Annotation | None, ...], ...], ...]
    gold: tuple[tuple[float, ...], ...]

    @property
    def flat(self) -> list[Segment]:
        """All translations, system by system."""
        return [segment for row in self.segments for segment in row]

    def matrix(self, flat: Sequence[Any]) -> list[list[Any]]:
        """One value a translation, as systems x segments."""
        width = len(self.segments[0])
        return [list(flat[i * width : (i + 1) * width]) for i in range(len(self.systems))]


@dataclass(frozen=True)
class Corpus:
    """The annotations to learn from, the translations to pair, and the test sets."""

    examples: tuple[Examples, ...]
    paired: tuple[Segment, ...]
    tests: tuple[TestSet, ...]


def load_corpus(folder: Path, size: Size, card: ModelCard) -> Corpus:
    """Split by source: no source that is tested on is learnt from or paired; the examples are those of the card.

    Raises:
        InputError: the annotations are not in the folder.
    """
    missing = [name for name in (WMT, TED, BIO) if not (folder / name).is_file()]
    if missing:
        raise InputError(
            f"{folder} lacks {', '.join(missing)}; docs/evidence/miniature.md says where they are published"
        )
    wmt, ted, bio = (tuple(read_mqm(folder / name)) for name in (WMT, TED, BIO))
    longest: dict[str, int] = defaultdict(int)
    for one in (rating.segment for rating in wmt):
        longest[one.source] = max(longest[one.source], len(one.translation))
    short = sorted((s for s in longest if longest[s] <= 350), key=_order)
    tested = set(short[:HELD_BACK]) | {r.segment.source for r in ted if r.segment.document == TED_TEST}
    sources = [s for s in short[:HELD_BACK] if longest[s] <= size.characters][: size.sources]
    of_talk = [r for r in ted if r.segment.document == TED_TEST]
    talk = [r for r in of_talk if len(r.segment.translation) <= size.characters]
    learnt = (
        [r for r in wmt if r.segment.source not in tested],
        [r for r in ted if r.segment.source not in tested],
        [r for r in bio if r.lp == LP and r.segment.source not in tested],
    )
    parts = []
    for ratings, count, characters in zip(learnt, size.annotations, size.lengths, strict=True):
        annotations = (AnnotatedSegment(r.segment, r.annotation, LP) for r in ratings)
        parts.append(select(annotations, card, count, max_characters=characters))
    pool = {
        (r.segment.source, r.segment.translation)
        for r in (*learnt[0], *learnt[1])
        if 30 <= len(r.segment.translation) <= min(120, size.characters) and len(r.annotation)
    }
    chosen = sorted(pool, key=lambda pair: _order("\0".join(pair)))[: size.pair_segments]
    paired = tuple(Segment(s, t, f"paired segment {i}") for i, (s, t) in enumerate(chosen))
    tests = (
        _test_set("wmt23", wmt, sources, size.systems),
        _test_set(
            "ted", talk, sorted({r.segment.source for r in talk}, key=_order), size.ted_systems, size.ted_sources
        ),
    )
    return Corpus(tuple(parts), paired, tests)


def _test_set(
    name: str, ratings: Iterable[Rating], sources: Sequence[str], count: int, most: int | None = None
) -> TestSet:
    """The first `count` systems, and the first `most` of the sources for which all of them are rated."""
    cells: dict[tuple[str, str], dict[str, Rating]] = defaultdict(dict)
    for rating in ratings:
        cells[rating.segment.system, rating.segment.source][rating.rater] = rating
    systems = sorted({system for system, _ in cells} - {"ref"})[:count]
    complete = [s for s in sources if all((system, s) in cells for system in systems)][:most]
    raters = max(len(cells[system, s]) for system in systems for s in complete)
    rows = [[sorted(cells[system, s].values(), key=lambda r: r.rater) for s in complete] for system in systems]
    return TestSet(
        name,
        tuple(systems),
        tuple(
            tuple(
                Segment(one.source, one.translation, f"{name} {systems[i]} {j}")
                for j, one in enumerate(c[0].segment for c in row)
            )
            for i, row in enumerate(rows)
        ),
        tuple(
            tuple(tuple(c[k].annotation if k < len(c) else None for c in row) for row in rows) for k in range(raters)
        ),
        tuple(tuple(sum(r.mqm() for r in c) / len(c) for c in row) for row in rows),
    )


def _order(text: str) -> str:
    """A fixed random order."""
    return hashlib.sha256(text.encode()).hexdigest()
