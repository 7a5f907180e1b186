"""Writes the tokenized training data of the small model to one file, for `train_encoder.py`.

    python scripts/small_model/training_set.py BASE --mqm 2021_en-de.tsv.gz=3 2021_zh-en.tsv.gz=3 --mlqe MLQE-PE \
        --lp en-de et-en --teacher teacher_wmt22.tsv.gz=1 --minimal planted_train.jsonl.gz -o training_set.npz

BASE contains the tokenizer; kinds without files are omitted. The number after = is the sampling weight of a file within
its kind. A group is sampled together: the translations of one source; a good translation and a version with an error
(`planted.py`, `spoilt.py`); a translation with a teacher's score and one of another source; or a single row.

The file has arrays of texts (`tokens`, `blank`: whether a token has no character, `text_ends`), of rows (`translation`
and `source`: numbers of texts; `member`: which translation of the group, several rows of which are several raters';
`order`, `quality`, `rating`, NaN if unknown; `sides`, the weights of the tags; `edited`, whether a post-edit is known),
of spans in tokens (`spans`: row, side, start, end, label; the third side is what a post-edit changes), and of groups
(`kind`, an index of `kinds`; `weight`, and `group_ends` among the rows).
"""

from __future__ import annotations

import argparse
import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from clean_pairs import pairs as clean_pairs
from planted import Planter
from spoilt import KINDS, Pair, Spoiler
from training_rows import Row, Source, contrast_weights, joined, read_minimal, read_mlqe, read_mqm_rows, read_teacher

KINDS_OF_GROUPS = ("mqm", "joined", "teacher", "other", "minimal", "contrast", "rated", "spoilt", "planted")
KIND_WEIGHTS = {
    "segment": 3.0, "clause": 3.5, "cut": 3.5, "words": 1.5, "copied": 1.2, "half_copied": 1.0, "unrelated": 1.0,
    "half_unrelated": 1.0, "language": 0.8, "twice": 1.2, "half_twice": 1.0, "shuffled": 0.8,
}  # fmt: skip
#: Quality and rating of translations that are completely wrong.
_WHOLE, _LOWEST = ("copied", "unrelated", "language", "shuffled"), (-3.2, -2.0)
#: The label of tokens without a loss, and the maximum number of tokens per pair.
IGNORED, _MOST = -100, 250  # -100: as in torch

#: The sampling weight of a group within its kind, and for each of its translations the rows of its raters.
Group = tuple[float, list[list[Row]]]


class Groups:
    """The groups of all kinds; generated ones are deterministic."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.chance = args, random.Random(0)
        self.mqm, self.clean = [], []
        for named in args.mqm:
            path, _, weight = named.rpartition("=")
            mqm, fine = read_mqm_rows(path, float(weight))
            self.mqm.append(mqm)
            self.clean += fine
        teachers = [named.rpartition("=") for named in args.teacher]
        self.teachers = [(float(weight), read_teacher(Path(path))) for path, _, weight in teachers]
        self.rated = {lp: read_mlqe(args.mlqe, lp, "train") for lp in args.lp}
        self.pairs: dict[str, list[Pair]] = defaultdict(list)
        for lp in args.lp:
            for one in clean_pairs(args.mlqe, lp, "train"):
                for pair in (one, one.swapped()):
                    self.pairs[pair.lp].append(pair)
        self.spoiler = Spoiler([pair for some in self.pairs.values() for pair in some])
        for some in self.pairs.values():
            self.clean += some
        self.clean = [one for one in self.clean if one.lp[-2:] in ("de", "en", "ru")]
        self.planter = Planter(self.clean)

    def of(self, kind: str) -> Iterator[Group]:
        """The groups of a kind."""
        if kind == "mqm":
            for mqm in self.mqm:
                yield from ((mqm.weight / len(mqm.sources), translations) for translations in mqm.sources)
        elif kind == "teacher":
            for weight, sources in self.teachers:
                yield from ((weight / len(sources), translations) for translations in sources)
        elif kind == "other":
            for _, sources in self.teachers:
                yield from self._others(sources)
        elif kind == "minimal":
            kinds = read_minimal(self.args.minimal) if self.args.minimal else {}
            for some in kinds.values():
                yield from ((1 / len(some) ** 0.5, [[row] for row in pair]) for pair in some)
        elif kind == "contrast":
            for named in self.args.contrast:
                path, _, weight = named.rpartition("=")
                pairs = [
                    (len(some) ** -0.5, pair) for some in read_minimal(Path(path), by="lp").values() for pair in some
                ]
                factors = contrast_weights([(good.translation, bad.translation) for _, (good, bad) in pairs])
                weights = [one * factor for (one, _), factor in zip(pairs, factors, strict=True)]
                scale = float(weight) / sum(weights)
                yield from (
                    (scale * one, [[row] for row in pair]) for one, (_, pair) in zip(weights, pairs, strict=True)
                )
        elif kind == "rated":
            yield from ((1.0, [[row]]) for rows in self.rated.values() for row in rows)
        elif self.mqm and self.pairs:
            make = {"joined": self._joined, "spoilt": self._spoilt, "planted": self._planted}[kind]
            for _ in range(self.args.made):
                if rows := make():
                    yield 1.0, [[row] for row in rows]

    def _others(self, sources: Sequence[Source]) -> Iterator[Group]:
        """A translation of each source and one of a nearby source in the file, mostly with the same languages."""
        for at, translations in enumerate(sources):
            far = self.chance.choice((self.chance.randrange(1, 4), self.chance.randrange(4, 200)))
            good, other = (self.chance.choice(some)[0] for some in (translations, sources[(at - far) % len(sources)]))
            if good.source != other.source:
                errors, missing = ((0, len(other.translation), 2),), ((0, len(good.source)),)
                bad = Row(good.source, other.translation, errors, missing, (), (1.0, 1.0), *_LOWEST, None, -5.0)
                yield 1.0, [[replace(good, order=0.0)], [bad]]

    def _joined(self) -> list[Row]:
        mqm = self.chance.choices(self.mqm, [one.weight * bool(one.documents) for one in self.mqm])[0]
        rows = self.chance.choice(mqm.documents)
        at = self.chance.randrange(len(rows) - 1)
        row = rows[at]
        for other in rows[at + 1 : at + self.chance.choice((2, 2, 3))]:
            row = joined(row, other)
        return [row]

    def _planted(self) -> list[Row]:
        pair = self.chance.choice(self.clean)
        bad = self.planter.plant(pair, self.chance)
        if bad is None or bad.kind == "omission":
            return []
        errors = ((bad.start, bad.end, 1 if bad.severity == "minor" else 2),)
        good = Row(pair.source, pair.translation, sides=(4.0, 1.0), order=0.0)
        return [good, replace(good, translation=bad.text, errors=errors, order=-3.0)]

    def _spoilt(self) -> list[Row]:
        chance = self.chance
        how = chance.choices(list(KINDS), [KIND_WEIGHTS.get(kind, 1.0) for kind in KINDS])[0]
        pair = chance.choice(self.pairs[chance.choice(list(self.pairs))])
        if chance.random() < 0.15:
            pair = pair.joined(self.spoiler.another(pair, chance))
        spoilt = self.spoiler.spoil(pair, how, chance)
        if spoilt is None:
            return []
        good, (quality, rating) = spoilt.good, _LOWEST if how in _WHOLE else (None, None)
        errors = tuple((*place, 2) for place in spoilt.wrong)
        places = errors, spoilt.missing, spoilt.unsure
        bad = Row(good.source, spoilt.translation, *places, (1.0, 1.0), quality, rating, None, -5.0)
        return [Row(good.source, good.translation, order=0.0), bad]


class Texts:
    """The tokens of each distinct text."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.numbers = tokenizer, dict[str, int]()
        self.ids: list[list[int]] = []
        #: For each token, the span of its characters, without leading whitespace.
        self.places: list[tuple[list[int], list[int]]] = []

    def add(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self.numbers]
        for text, encoding in zip(new, self.tokenizer.encode_batch(new, add_special_tokens=False), strict=True):
            self.numbers[text] = len(self.ids)
            self.ids.append(encoding.ids)
            starts = [a + len(text[a:b]) - len(text[a:b].lstrip()) for a, b in encoding.offsets]
            self.places.append((starts, [b for _, b in encoding.offsets]))

    def tokens(self, text: str, start: int, end: int) -> tuple[int, int] | None:
        """The half-open range of tokens that overlap these characters."""
        starts, ends = self.places[self.numbers[text]]
        inside = [i for i, (a, b) in enumerate(zip(starts, ends, strict=True)) if a < end and b > start and a < b]
        return (inside[0], inside[-1] + 1) if inside else None


def spans_of(row: Row, texts: Texts) -> Iterator[tuple[int, int, int, int]]:
    """Side, start, end and label of the spans; later spans override earlier ones."""
    labelled = sorted(row.errors, key=lambda one: one[2])
    sides = [(0, row.translation, one) for one in labelled]
    sides += [(1, row.source, (a, b, 2)) for a, b in row.missing] + [
        (1, row.source, (*at, IGNORED)) for at in row.unsure
    ]
    sides += [(2, row.translation, (a, b, 1)) for a, b in row.edited or ()]
    for side, text, (start, end, label) in sides:
        if (at := texts.tokens(text, start, end)) is not None:
            yield side, *at, label


def arrays(groups: Groups, tokenizer: Any) -> dict[str, Any]:
    """The arrays to write."""
    texts, columns, spans = Texts(tokenizer), defaultdict[str, list[Any]](list), []
    for number, kind in enumerate(KINDS_OF_GROUPS):
        every = list(groups.of(kind))
        texts.add([text for _, some in every for rows in some for r in rows for text in (r.source, r.translation)])
        for weight, translations in every:
            before = len(columns["order"])
            for member, rows in enumerate(translations):
                for row in rows:
                    pair = texts.numbers[row.translation], texts.numbers[row.source]
                    if sum(len(texts.ids[text]) for text in pair) > _MOST:
                        continue
                    spans += [(len(columns["order"]), *span) for span in spans_of(row, texts)]
                    numbers = [math.nan if v is None else v for v in (row.order, row.quality, row.rating)]
                    values = (*pair, member, *numbers, row.sides, row.edited is not None)
                    names = ("translation", "source", "member", "order", "quality", "rating", "sides", "edited")
                    for name, value in zip(names, values, strict=True):
                        columns[name].append(value)
            if len(columns["order"]) > before:
                columns["kind"].append(number)
                columns["weight"].append(weight)
                columns["group_ends"].append(len(columns["order"]))
        print(f"{kind}: {len(every)} groups; {len(columns['order'])} rows so far", flush=True)
    types = {"member": "u2", "kind": "u1"} | dict.fromkeys(("order", "quality", "rating", "sides", "weight"), "f4")
    made = {name: np.array(values, types.get(name)) for name, values in columns.items()}
    blank = [a >= b for starts, ends in texts.places for a, b in zip(starts, ends, strict=True)]
    return made | {
        "tokens": np.array([one for some in texts.ids for one in some], "i4"),
        "blank": np.array(blank),
        "text_ends": np.cumsum([len(some) for some in texts.ids]),
        "spans": np.array(spans, "i4"),
        "kinds": np.array(KINDS_OF_GROUPS),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("--mqm", nargs="+", default=[], metavar="FILE=WEIGHT", help="annotations of people")
    parser.add_argument("--mlqe", type=Path, help="folder of the unpacked archives of MLQE-PE")
    parser.add_argument("--lp", nargs="+", default=[], help="language pairs of MLQE-PE")
    parser.add_argument(
        "--teacher", nargs="+", default=[], metavar="FILE=WEIGHT", help="translations with scores of a model"
    )
    parser.add_argument("--minimal", type=Path, help="good translations, and the same with one error")
    parser.add_argument(
        "--contrast",
        nargs="+",
        default=[],
        metavar="FILE=WEIGHT",
        help="short translations, and translations of nearby sources",
    )
    parser.add_argument(
        "--made", type=int, default=40_000, help="number of groups of each generated kind (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", required=True, type=Path)
    args = parser.parse_args()
    from tokenizers import Tokenizer

    np.savez(args.output, **arrays(Groups(args), Tokenizer.from_file(str(args.base / "tokenizer.json"))))


if __name__ == "__main__":
    main()
