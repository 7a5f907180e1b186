"""The human ceiling: what a professional rater reaches, taken as a metric against another professional.

    python scripts/paper/human_ceiling.py TSV [--leave-out refA] [--table markdown]

TSV is Google's MQM with the same number of raters, two or more, for every translation, such as the three-rater set of
WMT23 en-de. Several people share the segments out; here a segment's raters are numbered in the order of their names,
and "rater 1" is whoever is the first on each segment. As a metric a rater gives Score(E) of the error spans, as our
metrics do; as gold the MQM score of all errors with Google's weights, as WMT does.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import MqmRating
from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.metaeval.evaluation import Evaluation, Evaluator
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES
from mbr_esd_metric.metaeval.spans import Raters
from mbr_esd_metric.report.leaderboard_table import MEASURE_TITLES
from mbr_esd_metric.report.tables import TABLE_FORMATS, Cell, Column, Table, render_table

Matrix = list[list[Annotation | None]]


class Panel:
    """Every translation rated by the same number of raters.

    Attributes:
        spans: per rater, systems x segments.
        gold: (raters, systems, segments) MQM scores, 0 best and negative worse.
        lengths: (systems, segments) characters.
    """

    def __init__(self, ratings: Sequence[MqmRating], left_out: Sequence[str]) -> None:
        by_cell: dict[tuple[str, str], list[MqmRating]] = defaultdict(list)
        for rating in ratings:
            if rating.system not in left_out:
                by_cell[rating.system, rating.segment].append(rating)
        systems = sorted({system for system, _ in by_cell})
        segments = sorted({segment for _, segment in by_cell}, key=lambda name: (len(name), name))
        count = len(next(iter(by_cell.values())))
        for system in systems:
            for segment in segments:
                if len(by_cell[system, segment]) != count or count < 2:
                    raise InputError(
                        f"segment {segment} of system {system} has {len(by_cell[system, segment])} raters; the ceiling "
                        "needs the same number, two or more, everywhere"
                    )
        cells = [[sorted(by_cell[s, n], key=lambda rating: rating.rater) for n in segments] for s in systems]
        self.spans: list[Matrix] = [[[cell[r].annotation for cell in row] for row in cells] for r in range(count)]
        self.gold = np.array([[[cell[r].score("google") for cell in row] for row in cells] for r in range(count)])
        self.lengths = np.array([[len(cell[0].target) for cell in row] for row in cells])

    def against(self, predicted: Matrix, raters: Sequence[int], several: Raters = "mean") -> Evaluation:
        """A prediction against some of the raters; gold is the mean of their scores."""
        gold: npt.NDArray[np.float64] = self.gold[list(raters)].mean(axis=0)
        return Evaluator(gold, [self.spans[r] for r in raters], self.lengths, raters=several).evaluate(predicted)

    def merged(self, raters: Sequence[int]) -> Matrix:
        """All spans that any of these raters marked."""
        matrices = [self.spans[r] for r in raters]
        return [
            [Annotation(span for matrix in matrices for span in matrix[i][j] or ()) for j in range(len(row))]
            for i, row in enumerate(self.spans[0])
        ]


def ceiling(panel: Panel) -> list[tuple[str, list[Evaluation]]]:
    """Name of each row and its evaluations, of which the table shows the mean."""
    everybody = range(len(panel.spans))
    nothing: Matrix = [[EMPTY] * panel.lengths.shape[1] for _ in range(panel.lengths.shape[0])]
    others = {r: [o for o in everybody if o != r] for r in everybody}
    rows = [
        ("one rater, against another", [panel.against(panel.spans[a], [b]) for a, b in permutations(everybody, 2)]),
        ("no error, against one rater", [panel.against(nothing, [b]) for b in everybody]),
    ]
    if len(panel.spans) > 2:
        rows += [
            ("one rater, against the others' mean", [panel.against(panel.spans[r], o) for r, o in others.items()]),
            ("no error, against their mean", [panel.against(nothing, o) for o in others.values()]),
            (
                "one rater, against the nearest other",
                [panel.against(panel.spans[r], o, "best") for r, o in others.items()],
            ),
            ("no error, against the nearest", [panel.against(nothing, o, "best") for o in others.values()]),
            (
                "two raters' spans merged, against a third",
                [
                    panel.against(panel.merged(pair), [b])
                    for pair in combinations(everybody, 2)
                    for b in everybody
                    if b not in pair
                ],
            ),
        ]
    return rows


def table(panel: Panel, title: str) -> Table:
    """One row a comparison: means over its evaluations."""
    measures = ("spa", "acc_eq", *DEFAULT_MEASURES)
    columns = [Column("comparison", "comparison"), Column("count", "evaluations")]
    columns += [Column(name, MEASURE_TITLES.get(name, name)) for name in measures]
    rows = []
    for name, evaluations in ceiling(panel):
        values = [[e.spa for e in evaluations], [e.acc_eq for e in evaluations]]
        values += [[e.spans.values[measure] for e in evaluations if e.spans] for measure in DEFAULT_MEASURES]
        rows.append((Cell(name), Cell(len(evaluations)), *(Cell(statistics.fmean(v)) for v in values)))
    systems, segments = panel.lengths.shape
    note = f"{systems} systems x {segments} segments, {len(panel.spans)} raters a translation"
    return Table(title, tuple(columns), tuple(rows), (note,))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The human ceiling, from MQM with several raters a translation.")
    parser.add_argument("tsv", metavar="TSV")
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="SYSTEM", help="such as the standard reference")
    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text")
    args = parser.parse_args()
    ratings = read_mqm(args.tsv).ratings
    try:
        panel = Panel(ratings, args.leave_out)
    except InputError as error:
        raise InputError(f"{args.tsv}: {error}") from None
    print(render_table(table(panel, "human ceiling"), args.table), end="")


if __name__ == "__main__":
    main()
