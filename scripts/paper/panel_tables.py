"""The tables of docs/evidence/panels.md: several large models judge translations of WMT24, and people are the gold.

    python scripts/paper/panel_tables.py judges_wmt24.jsonl.gz {panel,subsets,useless}
    python scripts/paper/panel_tables.py judges_wmt24.jsonl.gz tokens --tokenizer tokenizer.json

A line of the file is a translation: `item` (its source), `src`, `mt`, `people` (one or two annotations) and `judges`
(name -> annotation), from llm-span-annotators/span-annotation. Corpus softdice is the mean over the people of a
translation; rho is Spearman's, and tau is Kendall's tau-b by item, both of MQM scores against people's mean. Intervals
are 95% bootstrap intervals over sources.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.stats import rankdata

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, decide_many, mqm_score
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.panel import Panel
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.metaeval.matrices import percentile_interval
from mbr_esd_metric.metaeval.spans import span_measure
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.json import render_answer

SOFTDICE = span_measure("softdice-corpus")


@dataclass(frozen=True)
class Row:
    """A translation, the gold annotations of it, those of each judge, and the prompt that a judge would get."""

    item: str
    text: str
    gold: Sequence[Annotation]
    judges: Mapping[str, Annotation]
    prompt: str = ""


def read(path: str) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        values = [json.loads(line) for line in file]
    prompt = get_format("json").prompt("v1")
    return [
        Row(
            one["item"],
            one["mt"],
            [*map(Annotation, one["people"])],
            {name: Annotation(spans) for name, spans in sorted(one["judges"].items())},
            prompt.render(one["src"], one["mt"], one["lp"]),
        )
        for one in values
    ]


@dataclass(frozen=True)
class Measured:
    """Per source what the three statistics are sums of, and their values over all sources, or resamples of them."""

    overlap: Floats
    moments: Floats
    taus: Floats

    def values(self, draws: Floats | None = None) -> Floats:
        """Softdice, rho and tau, shape (3,), or (3, resamples) with `draws` of sources, shape (resamples, sources)."""
        draws = np.ones((1, len(self.taus))) if draws is None else draws
        shared, size = (draws @ self.overlap.T).T
        n, x, y, xx, yy, xy = (draws @ self.moments.T).T
        rho = (xy / n - x * y / n**2) / np.sqrt((xx / n - (x / n) ** 2) * (yy / n - (y / n) ** 2))
        known = ~np.isnan(self.taus)
        tau = draws[:, known] @ self.taus[known] / draws[:, known].sum(1)
        return np.asarray(np.squeeze(np.stack([shared / size, rho, tau])))


class Judged:
    """Translations with gold, against which choices are measured."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        items = {one: number for number, one in enumerate(dict.fromkeys(row.item for row in rows))}
        self.item = np.array([items[row.item] for row in rows])
        self.sources = len(items)
        self.points = np.array([np.mean([-mqm_score(one) for one in row.gold]) for row in rows])
        chances = np.full(self.sources, 1 / self.sources)
        self.draws: Floats = np.random.default_rng(0).multinomial(self.sources, chances, 1000).astype(float)

    def by_item(self, values: Floats) -> Floats:
        return np.bincount(self.item, values, self.sources).astype(float)

    def measure(self, annotations: Sequence[Annotation], points: Sequence[float] | Floats) -> Measured:
        """Chosen annotations and predicted penalties, one for each translation."""
        of_people = [
            np.mean([SOFTDICE.statistics(one, gold, len(row.text)) for gold in row.gold], axis=0)
            for one, row in zip(annotations, self.rows, strict=True)
        ]
        credit, chosen, _, gold = np.array(of_people).T
        return Measured(self.overlap(credit, chosen + gold), *self.order(points))

    def overlap(self, credit: Floats, size: Floats) -> Floats:
        """Per source, numerator and denominator of the corpus softdice, shape (2, sources)."""
        return np.stack([self.by_item(2 * credit), self.by_item(size)])

    def order(self, points: Sequence[float] | Floats) -> tuple[Floats, Floats]:
        """Per source, the moments of the ranks of predicted and given penalties, shape (6, sources), and tau-b: NaN
        where people see no difference, 0 where only the prediction sees none."""
        x, y = rankdata(np.round(points, 9)), rankdata(self.points)
        moments = np.stack([self.by_item(one) for one in (np.ones(len(x)), x, y, x * x, y * y, x * y)])
        taus = np.full(self.sources, np.nan)
        for item in range(self.sources):
            at = self.item == item
            a, b = np.sign(x[at, None] - x[at]), np.sign(y[at, None] - y[at])
            if b.any():
                taus[item] = (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()) if a.any() else 0.0
        return moments, taus

    def judge(self, name: str) -> Measured:
        annotations = [row.judges[name] for row in self.rows]
        return self.measure(annotations, [-mqm_score(one) for one in annotations])

    def decide(self, names: Sequence[str], options: DecisionOptions) -> Measured:
        """A panel's decisions; the scores are those of `score=expected`."""
        segments = [
            ([Candidate(None, row.judges[name], annotator=name) for name in names], row.text) for row in self.rows
        ]
        decisions = decide_many(segments, replace(options, score="expected"))
        return self.measure([one.annotation for one in decisions], [-one.mqm for one in decisions])

    def panel(self, names: Sequence[str]) -> Panel:
        return Panel.learnt([{name: mqm_score(row.judges[name]) for name in names} for row in self.rows])


def line(name: str, judged: Judged, measured: Measured, than: Sequence[Measured] = ()) -> str:
    """A row of a table: each statistic, its interval, and its difference from that of another, with its interval."""
    cells = []
    for at, value in enumerate(measured.values()):
        draws = measured.values(judged.draws)[at]
        cells.append("{:.3f} ({:.3f}, {:.3f})".format(value, *percentile_interval(draws)))
        if than:
            other, others = than[at].values()[at], than[at].values(judged.draws)[at]
            cells[-1] += " {:+.3f} ({:+.3f}, {:+.3f})".format(value - other, *percentile_interval(draws - others))
    return f"| {name} | " + " | ".join(cells) + " |"


def panel(judged: Judged) -> None:
    """What ships, beside each judge and equal weights."""
    names = [*judged.rows[0].judges]
    singles = {name: judged.judge(name) for name in names}
    best = [max(singles.values(), key=lambda one, at=at: one.values()[at]) for at in range(3)]  # type: ignore[misc]
    print(judged.panel(names).line)
    for name, one in singles.items():
        print(line(name, judged, one))
    for rule in ("mbr", "mbr-corpus", "consensus-corpus"):
        for weights in ("uniform", "agreement"):
            measured = judged.decide(names, DecisionOptions(rule, "softdice", weights=weights))
            print(line(f"{rule}, {weights}", judged, measured, best))
    first = max(names, key=lambda name: singles[name].values()[0])
    rest = [name for name in names if name != first]
    best = [max((singles[name] for name in rest), key=lambda one, at=at: one.values()[at]) for at in range(3)]  # type: ignore[misc]
    measured = judged.decide(rest, DecisionOptions(utility="softdice", weights="agreement"))
    print(line(f"agreement, without {first}", judged, measured, best))


def subsets(judged: Judged) -> None:
    """All panels of one to seven: the statistics, and the marked spans, which a price is made of."""
    names = [*judged.rows[0].judges]
    singles = {name: judged.judge(name).values() for name in names}
    for size in range(1, len(names) + 1):
        for members in combinations(names, size):
            weights = "agreement" if size > 2 else "uniform"
            values = judged.decide(members, DecisionOptions(utility="softdice", weights=weights)).values()
            best = np.max([singles[name] for name in members], axis=0)
            numbers = " | ".join(f"{a:.3f} | {a - b:+.3f}" for a, b in zip(values, best, strict=True))
            print(f"| {size} | {', '.join(members)} | {numbers} |", flush=True)


def useless(judged: Judged) -> None:
    """The panel with one more author: what changes."""
    names = [*judged.rows[0].judges]
    options = DecisionOptions(utility="softdice", weights="agreement")
    before = judged.decide(names, options).values()
    rng = random.Random(0)

    def with_author(make: Callable[[Row], Annotation]) -> Judged:
        return Judged([replace(row, judges={**row.judges, "added": make(row)}) for row in judged.rows])

    def spans(row: Row) -> Annotation:
        starts = [rng.randrange(len(row.text)) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
        length = len(row.text)
        return Annotation(
            [ErrorSpan(at, min(length, at + rng.randint(3, 15)), rng.choice(["major", "minor"])) for at in starts]
        )

    def kept(row: Row, name: str, share: float) -> Annotation:
        return Annotation([one for one in row.judges[name] if rng.random() < share])

    added: dict[str, Callable[[Row], Annotation]] = {"nothing marked": lambda row: Annotation()}
    added |= {f"random spans {number}": spans for number in range(3)}
    for share in (1.0, 0.9, 0.8, 0.7, 0.5):
        for name in names:
            added[f"{share:.0%} of the spans of {name}"] = lambda row, name=name, share=share: kept(row, name, share)  # type: ignore[misc]
    for name, make in added.items():
        changes = with_author(make).decide([*names, "added"], options).values() - before
        print(f"| {name} | " + " | ".join(f"{one:+.4f}" for one in changes) + " |", flush=True)


def tokens(judged: Judged, tokenizer: str) -> None:
    """The tokens of a prompt, and of each judge's answer in our JSON; what a model thinks before is unknown."""
    from tokenizers import Tokenizer

    encoder = Tokenizer.from_file(tokenizer)
    encoder.no_truncation()

    def mean(texts: Iterable[str]) -> float:
        return float(np.mean([len(encoder.encode(one, add_special_tokens=False).ids) for one in texts]))

    kind = {"category": "accuracy", "sub_category": "mistranslation"}
    print("prompt", mean(row.prompt for row in judged.rows))
    for name in judged.rows[0].judges:
        answers = [
            [
                {"error_span": row.text[one.start : one.end], **kind, "severity": one.severity}
                for one in row.judges[name]
            ]
            for row in judged.rows
        ]
        print(name, mean(map(render_answer, answers)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parts = {"panel": panel, "subsets": subsets, "useless": useless}
    parser.add_argument("part", choices=[*parts, "tokens"])
    parser.add_argument("--tokenizer", help="tokenizer.json of a model")
    args = parser.parse_args()
    judged = Judged(read(args.file))
    tokens(judged, args.tokenizer) if args.part == "tokens" else parts[args.part](judged)


if __name__ == "__main__":
    main()
