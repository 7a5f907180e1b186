"""Why the corpus rules lose on a panel: the table of docs/evidence/panels.md on thresholds and recalibration.

    python scripts/paper/panel_corpus.py judges_wmt24.jsonl.gz

`recalibrated` replaces the share of the votes for a level of severity by how often one judge gives it where the others
have that share (isotonic regression, each judge in turn, by its weight), which needs no label.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from panel_tables import Judged, read
from panel_variants import Overlaps, learnt
from scipy.optimize import isotonic_regression

from mbr_esd_metric.core.kernels import Floats, severity_vector

#: The levels of a severity vector; the steps between them all have the same height.
LEVELS, STEP = (0.5, 1.0, 1.5), 0.5
FACTOR, EQUAL = ("scores", "factor", "l/(1-l^2)", 0.0), ("none", "mean", "equal", 0.0)


class Characters:
    """The characters of all translations; those of one translation with the same marks are one row, with a number."""

    def __init__(self, judged: Judged) -> None:
        rows = []
        for at, row in enumerate(judged.rows):
            table = [severity_vector(one, len(row.text)) for one in (*row.judges.values(), row.gold[0], row.gold[-1])]
            values, counts = np.unique(np.array(table), axis=1, return_counts=True)
            rows.append(np.column_stack([np.full(len(counts), at), counts, values.T]))
        of_all = np.concatenate(rows)
        self.judged, self.row, self.count = judged, of_all[:, 0].astype(int), of_all[:, 1]
        self.marked = [of_all[:, 2:-2] >= level for level in LEVELS]
        self.gold = [(of_all[:, -2:] >= level).mean(1) for level in LEVELS]

    def sums(self, values: Sequence[npt.NDArray[Any]]) -> Floats:
        """The sums over the characters of each translation, of values at each level."""
        weighted = STEP * sum(values) * self.count
        return np.bincount(self.row, weighted, len(self.judged.rows)).astype(float)

    def consensus(self, shares: Sequence[Floats], threshold: float | None = None) -> tuple[float, Floats]:
        """The expected ratio F, and numerators and denominators of the softdice, of the annotation that takes a level
        where its share is above F / 2, or above a threshold."""
        ratio, before = 0.3, 0.0
        while abs(ratio - before) > 1e-9:
            taken = [one > (ratio / 2 + 1e-9 if threshold is None else threshold) for one in shares]
            overlap = self.sums([a * b for a, b in zip(taken, shares, strict=True)]).sum()
            size = self.sums([a + b for a, b in zip(taken, shares, strict=True)]).sum()
            before, ratio = ratio, 2 * overlap / size
        credit = self.sums([a * b for a, b in zip(taken, self.gold, strict=True)])
        return ratio, self.judged.overlap(credit, self.sums(taken) + self.sums(self.gold))

    def candidates(self, shares: Sequence[Floats], members: Sequence[int]) -> tuple[float, Floats]:
        """The same of `mbr-corpus`, which chooses among the candidates."""
        marks = [[level[:, member] for level in self.marked] for member in members]
        sizes = np.stack([self.sums(one) for one in marks], 1)
        overlap = np.stack([2 * self.sums([a * b for a, b in zip(one, shares, strict=True)]) for one in marks], 1)
        total = sizes + self.sums(shares)[:, None]
        at, ratio, before = np.arange(len(sizes)), 0.3, 0.0
        while abs(ratio - before) > 1e-9:
            chosen = np.argmax(overlap - ratio * total, 1)
            before, ratio = ratio, overlap[at, chosen].sum() / total[at, chosen].sum()
        credit = np.stack([self.sums([a * b for a, b in zip(one, self.gold, strict=True)]) for one in marks], 1)
        return ratio, self.judged.overlap(credit[at, chosen], sizes[at, chosen] + self.sums(self.gold))

    def shares(self, members: Sequence[int], weights: Floats) -> list[Floats]:
        return [level[:, members] @ weights for level in self.marked]

    def recalibrated(self, members: Sequence[int], weights: Floats) -> list[Floats]:
        found: list[Floats] = []
        for level, share in zip(self.marked, self.shares(members, weights), strict=True):
            others, marks, counts = [], [], []
            for at, member in enumerate(members):
                left = np.delete(np.array(members), at), np.delete(weights, at)
                others.append(np.round(level[:, left[0]] @ left[1] / left[1].sum(), 9))
                marks.append(level[:, member])
                counts.append(self.count * weights[at])
            x, number = np.unique(np.concatenate(others), return_inverse=True)
            mass = np.bincount(number, np.concatenate(counts))
            rates = np.bincount(number, np.concatenate(counts) * np.concatenate(marks)) / mass
            value = np.interp(share, x, isotonic_regression(rates, weights=mass).x)
            found.append(np.minimum(value, found[-1]) if found else value)
        return found

    def dawid_skene(self, members: Sequence[int]) -> list[Floats]:
        """The posterior of each level under a model in which judges err independently (Dawid and Skene 1979), by EM."""
        found: list[Floats] = []
        for level in self.marked[:2]:
            marks = level[:, members].astype(float)
            truth = marks.mean(1)
            for _ in range(100):
                rates = []
                for mass in (truth * self.count, (1 - truth) * self.count):
                    rate = np.clip(mass @ marks / mass.sum(), 1e-6, 1 - 1e-6)
                    rates.append(np.log(mass.sum()) + marks @ np.log(rate) + (1 - marks) @ np.log(1 - rate))
                truth = 1 / (1 + np.exp(rates[1] - rates[0]))
            found.append(np.minimum(truth, found[-1]) if found else truth)
        return [*found, np.zeros(len(self.row))]


def main() -> None:
    judged = Judged(read(sys.argv[1]))
    data, characters = Overlaps(judged), Characters(judged)
    everyone = [*range(len(data.names))]
    panels = [list(one) for size in range(3, len(everyone) + 1) for one in combinations(everyone, size)]
    singles = [judged.judge(name).values()[0] for name in data.names]
    for name, variant in (("equal", EQUAL), ("learnt", FACTOR)):
        weights = learnt(data, variant, everyone)
        shares = characters.shares(everyone, weights)
        recalibrated = characters.recalibrated(everyone, weights)
        print(
            f"{name}: F {characters.consensus(shares)[0]:.3f}, recalibrated {characters.consensus(recalibrated)[0]:.3f}"
        )
        for step in range(2, 17):
            sums = characters.consensus(shares, step / 20)[1].sum(1)
            print(f"  share above {step / 20:.2f}: {sums[0] / sums[1]:.4f}")
        for low in np.arange(0, 1, 0.1):
            at = (shares[0] > low + 1e-9) & (shares[0] <= low + 0.1 + 1e-9)
            levels = (shares[0], recalibrated[0], characters.gold[0])
            if at.any():
                means = [np.average(one[at], weights=characters.count[at]) for one in levels]
                print("  share {:.2f}: another judge {:.3f}, people {:.3f}".format(*means))
        sums = characters.consensus(characters.dawid_skene(everyone), 0.5)[1].sum(1)
        print(f"Dawid-Skene {sums[0] / sums[1]:.3f}")
        results: dict[str, list[tuple[float, Floats]]] = {}
        for members in panels:
            weights, best = learnt(data, variant, members), max(singles[member] for member in members)
            votes = {
                "": characters.shares(members, weights),
                ", recalibrated": characters.recalibrated(members, weights),
            }
            found = {"mbr": data.choose(members, weights)}
            for how, values in votes.items():
                found[f"consensus-corpus{how}"] = characters.consensus(values)[1]
                found[f"mbr-corpus{how}"] = characters.candidates(values, members)[1]
            for rule, sums in found.items():
                drawn = judged.draws @ sums.T
                value = sums[0].sum() / sums[1].sum()
                results.setdefault(rule, []).append((value - best, drawn[:, 0] / drawn[:, 1]))
        for rule, of_panels in results.items():
            gained = np.mean([one[0] for one in of_panels])
            difference = np.mean([a[1] - b[1] for a, b in zip(of_panels, results["mbr"], strict=True)], axis=0)
            everyones = of_panels[-1][0] + max(singles)
            against = f"{difference.mean():+.4f} ± {difference.std():.4f}"
            print(f"| {name} | {rule} | {everyones:.3f} | {gained:+.4f} | {against} |")


if __name__ == "__main__":
    main()
