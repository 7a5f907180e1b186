"""The choice of the weights of docs/evidence/panels.md, by the rule that is written there.

    python scripts/paper/panel_variants.py judges_wmt24.jsonl.gz

Each line is a variant: its figure for spans, the difference from the best and the standard error of that, and the same
for scores; `*` marks what is within one standard error of the best.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from panel_tables import Judged, Measured, read

from mbr_esd_metric import mqm_score
from mbr_esd_metric.core.kernels import Floats, severity_vector
from mbr_esd_metric.core.panel import correlations, loadings

Weigh: TypeAlias = "Callable[[Floats], Floats]"


def mean(table: Floats) -> Floats:
    return np.asarray(np.maximum((table.sum(1) - 1) / (len(table) - 1), 0))


def eigenvector(table: Floats) -> Floats:
    first = np.linalg.eigh(table)[1][:, -1]
    return np.asarray(np.maximum(first * np.sign(first.sum()), 0))


def better_half(reliability: Floats) -> Floats:
    best = np.argsort(-reliability, kind="stable")[: (len(reliability) + 1) // 2]
    return np.isin(np.arange(len(reliability)), best).astype(float)


RELIABILITIES: dict[str, Weigh] = {"mean": mean, "eigenvector": eigenvector, "factor": loadings}
WEIGHTS: dict[str, Weigh] = {
    "l": lambda one: one,
    "l^2": lambda one: one**2,
    "l^4": lambda one: one**4,
    "l/(1-l^2)": lambda one: one / (1 - one**2),
    "better half": better_half,
}


class Overlaps:
    """What all panels of the same judges are made of."""

    def __init__(self, judged: Judged) -> None:
        self.judged, self.names, rows = judged, [*judged.rows[0].judges], judged.rows
        n, k = len(rows), len(self.names)
        shared, self.sizes, self.credit, self.people = (
            np.zeros((n, k, k)),
            np.zeros((n, k)),
            np.zeros((n, k)),
            np.zeros(n),
        )
        dots = np.zeros((k, k))
        for at, row in enumerate(rows):
            table = np.array([severity_vector(one, len(row.text)) for one in row.judges.values()])
            gold = np.array([severity_vector(one, len(row.text)) for one in row.gold])
            shared[at], self.sizes[at] = np.minimum(table[:, None], table).sum(2), table.sum(1)
            self.credit[at] = np.minimum(table[:, None], gold).sum(2).mean(1)
            self.people[at] = gold.sum(1).mean()
            dots += table @ table.T
        self.utility = (2 * shared + 1) / (self.sizes[:, :, None] + self.sizes[:, None] + 1)
        self.points = np.array([[-mqm_score(one) for one in row.judges.values()] for row in rows])
        total = self.sizes.sum(0)
        covariance = dots - np.outer(total, total) / sum(len(row.text) for row in rows)
        deviations = np.sqrt(np.diag(covariance))
        self.agreements = {
            "scores": correlations(self.points),
            "softdice": 2 * shared.sum(0) / (total[:, None] + total),
            "characters": covariance / np.outer(deviations, deviations),
        }

    def choose(self, members: Sequence[int], weights: Floats) -> Floats:
        """The numerators and denominators of the softdice of `mbr`."""
        chosen = np.array(members)[np.argmax(self.utility[:, members][:, :, members] @ weights, 1)]
        at = np.arange(len(chosen))
        return self.judged.overlap(self.credit[at, chosen], self.sizes[at, chosen] + self.people)


def variants() -> Iterator[tuple[str, str, str, float]]:
    for agreement, reliability, weights, shrinkage in product(
        ("scores", "softdice", "characters"), RELIABILITIES, WEIGHTS, (0.0, 0.5)
    ):
        if weights != "l/(1-l^2)" or reliability == "factor":
            yield agreement, reliability, weights, shrinkage
    yield "none", "mean", "equal", 0.0


def learnt(data: Overlaps, variant: tuple[str, str, str, float], members: Sequence[int]) -> Floats:
    agreement, reliability, weights, shrinkage = variant
    equal = np.full(len(members), 1 / len(members))
    if weights == "equal":
        return equal
    value = WEIGHTS[weights](RELIABILITIES[reliability](data.agreements[agreement][np.ix_(members, members)]))
    return np.asarray((1 - shrinkage) * value / value.sum() + shrinkage * equal)


def main() -> None:
    judged = Judged(read(sys.argv[1]))
    data = Overlaps(judged)
    k = len(data.names)
    singles = [judged.judge(name) for name in data.names]
    values, draws = np.array([one.values() for one in singles]), np.array([one.values(judged.draws) for one in singles])
    panels = [list(one) for size in range(3, k + 1) for one in combinations(range(k), size)]
    figures: dict[str, dict[tuple[object, ...], tuple[float, Floats]]] = {"spans": {}, "scores": {}}
    for variant in variants():
        gained, resampled = np.zeros((2, 3)), np.zeros((2, 3, len(judged.draws)))
        for members in panels:
            weights = learnt(data, variant, members)
            best = np.array(members)[values[members].argmax(0)]
            for scaled in (0, 1):
                points = data.points[:, members]
                points = points / points.std(0) if scaled else points
                measured = Measured(data.choose(members, weights), *judged.order(points @ weights))
                gained[scaled] += (measured.values() - values[best, range(3)]) / len(panels)
                resampled[scaled] += (measured.values(judged.draws) - draws[best, range(3)]) / len(panels)
        figures["spans"][variant] = gained[0, 0], resampled[0, 0]
        for scaled in (0, 1):
            named = (*variant, "scaled" if scaled else "as they are")
            figures["scores"][named] = gained[scaled, 1:].mean(), resampled[scaled, 1:].mean(0)
    for kind, found in figures.items():
        top, top_draws = max(found.values(), key=lambda one: one[0])
        for name, (value, of_draws) in sorted(found.items(), key=lambda one: -one[1][0]):
            error = (top_draws - of_draws).std()
            print(kind, *name, f"{value:+.4f} {top - value:.4f} {error:.4f}", "*" if top - value <= error else "")


if __name__ == "__main__":
    main()
