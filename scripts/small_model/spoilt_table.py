"""Evaluates the detection of gross errors: good translations are compared with artificially spoilt versions.

    python scripts/small_model/spoilt_table.py pairs.jsonl --lp en-de --most 60 [--model MODEL] [-o segments.jsonl]

The pairs are from `clean_pairs.py`, and must not be in the training data of the model. The kinds of errors are those of
`spoilt.py`. A row of the table has the AUC of the model's score between all good and all spoilt translations (ties
count half), the share of pairs whose good translation has the higher score, the share of spoilt translations with a
mark, and the share whose source spans overlap the omission. The last lines have the numbers of good translations with a
mark, and with a mark in the source. For two joined segments, the good translation is that of both.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clean_pairs import read_pairs
from spoilt import Pair, Spoiler

from mbr_esd_metric import load_metric
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.files.streams import write_whole

#: Row of the table -> kind of `spoilt.py`, except for the omitted second half.
ROWS = {
    "words shuffled": "shuffled",
    "another sentence's translation": "unrelated",
    "text in a third language": "language",
    "said twice": "twice",
    "the source copied": "copied",
    "second half left out": "half",
    "one of two sentences left out": "segment",
    "a clause left out": "clause",
}


@dataclass(frozen=True)
class Case:
    """A spoilt translation and the good one: source, good and spoilt text, and the omitted parts of the source."""

    row: str
    source: str
    good: str
    bad: str
    missing: tuple[tuple[int, int], ...]


def cases(pairs: Sequence[Pair], others: Sequence[Pair], seed: int = 0) -> list[Case]:
    """Each pair with each applicable kind of error."""
    spoiler, made = Spoiler(others), []
    for number, pair in enumerate(pairs):
        for row, kind in ROWS.items():
            if kind == "half":
                words = pair.translation.split() if " " in pair.translation else list(pair.translation)
                half = (" " if " " in pair.translation else "").join(words[: (len(words) + 1) // 2])
                made.append(
                    Case(row, pair.source, pair.translation, half, ((len(pair.source) // 2, len(pair.source)),))
                )
                continue
            spoilt = spoiler.spoil(pair, kind, random.Random(f"{seed}/{number}/{kind}"))
            if spoilt is not None:
                good = spoilt.good
                made.append(Case(row, good.source, good.translation, spoilt.translation, spoilt.missing))
    return made


def auc(good: Sequence[float], bad: Sequence[float]) -> float:
    """The AUC: the share of pairs in which a good translation scores higher than a spoilt one; ties count half."""
    return sum((a > b) + (a == b) / 2 for a in good for b in bad) / (len(good) * len(bad))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="clean pairs")
    parser.add_argument("--lp", nargs="+", required=True, help="language pairs; those of the file turned round as well")
    parser.add_argument("--most", type=int, default=60, help="pairs in all (default: 60)")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS), help="(default: all)")
    parser.add_argument("--model", default="mbr-esd-small?rule=greedy&n=1", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", help="JSON lines: every translation with its score and spans")
    args = parser.parse_args()
    every = [pair for one in read_pairs(args.pairs) for pair in (one, one.swapped())]
    chance = random.Random(args.seed)
    drawn: list[Pair] = []
    for number, lp in enumerate(args.lp):
        fitting = [
            p
            for p in every
            if p.lp == lp and (40 <= len(p.source) <= 160 or (lp[:2] in ("zh", "ja") and 15 <= len(p.source) <= 60))
        ]
        drawn += chance.sample(fitting, (args.most + number) // len(args.lp))
    table = [case for case in cases(drawn, every, args.seed) if case.row in args.rows]
    texts = list(dict.fromkeys((case.source, text) for case in table for text in (case.good, case.bad)))
    result = load_metric(args.model).predict(
        [{"src": source, "mt": text} for source, text in texts], progress_bar=False
    )
    spans = [
        Annotation([*errors, *({**one, "side": "source"} for one in missing)])
        for errors, missing in zip(
            result.metadata.error_spans, getattr(result.metadata, "omissions", [[]] * len(texts)), strict=True
        )
    ]
    of = {text: (score, annotation) for text, score, annotation in zip(texts, result.scores, spans, strict=True)}
    print(f"| {len(drawn)} pairs, {' '.join(args.lp)} | cases | AUC | right order | marked | omission found |")
    print("|---|--:|--:|--:|--:|--:|")
    for row in args.rows:
        some = [case for case in table if case.row == row]
        if not some:
            continue
        good = [of[case.source, case.good][0] for case in some]
        bad = [of[case.source, case.bad] for case in some]
        right = sum(g > b for g, (b, _) in zip(good, bad, strict=True)) / len(some)
        marked = sum(bool(a) for _, a in bad) / len(some)
        hits = [
            any(span.start < end and span.end > start for span in a.on("source") for start, end in case.missing)
            for case, (_, a) in zip(some, bad, strict=True)
            if case.missing
        ]
        share = f"{sum(hits) / len(hits):.2f}" if hits else "-"
        print(f"| {row} | {len(some)} | {auc(good, [b for b, _ in bad]):.2f} | {right:.2f} | {marked:.2f} | {share} |")
    goods = list(dict.fromkeys((case.source, case.good) for case in table))
    marked = sum(bool(of[text][1]) for text in goods)
    sided = sum(of[text][1].sided for text in goods)
    print(f"\ngood translations: {len(goods)}, {marked} of them with a mark, {sided} with one on the source's side")
    if args.output:
        lines = ({"src": s, "mt": t, "score": of[s, t][0], "spans": repr(of[s, t][1])} for s, t in texts)
        write_whole(Path(args.output), "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


if __name__ == "__main__":
    main()
