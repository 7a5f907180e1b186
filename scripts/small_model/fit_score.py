"""Calibrates the score of the small model on human ratings, with the length of the source as a feature.

    python scripts/small_model/fit_score.py MODEL_FOLDER --rated 2020_en-de.tsv.gz 2022_en-ru_dev.tsv.gz

A sample of translations from each file is scored; for newstest2020, from the documents that are held out from training.
Let p be the penalty of the model in MQM points, without `points` and `points_by_length` of the ``score`` in its
``config.json``, and n the number of source tokens. The calibrated penalty is, before smoothing near 0,

    p + points + points_by_length log(1 + n)

`points_by_length` is the largest value of a grid whose Spearman correlation with human ratings, over all translations
of a file and averaged over the files, is at most .002 below the best. `points` makes the median error 0, so that the
mean absolute error is least. The ranking of the translations of one source does not change. The table has Spearman and
the mean absolute error in points of each file, before and after. The weights are printed in the format of
`encoder_folder.py pack`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from judge_table import print_table, read_rated

from mbr_esd_metric import load_metric
from mbr_esd_metric.generation.encoder import SECTION, Encoder, OnnxEncoder
from mbr_esd_metric.metaeval import correlation

#: For each translation: the model's penalty, log(1 + tokens of the source), and the human penalty.
Rows = npt.NDArray[np.float64]
#: Values of `points_by_length`, and how far below the best correlation the largest may be.
_GRID, _BELOW = np.arange(0, 3.01, 0.1), 0.002


def rows_of(model: str, path: str, encoder: Encoder, most: int, seed: int) -> Rows:
    """The features of one translation per source, shape (translations, 3)."""
    pairs: list[dict[str, str]] = []
    people: list[float] = []
    for source, rated in read_rated(path, most, seed):
        system = sorted(rated)[len(pairs) % len(rated)]
        translation, points = rated[system]
        pairs.append({"src": source, "mt": translation})
        people.append(-points)
    said = load_metric(model).predict(pairs, progress_bar=False).metadata.mqm
    lengths = [one.sides.count(1) for one in encoder.tokens([(pair["mt"], pair["src"]) for pair in pairs])]
    return np.column_stack([-np.array(said), np.log1p(lengths), people])


def fitted(files: Sequence[Rows]) -> tuple[float, float]:
    """`points_by_length` and `points`."""
    means = [np.mean([spearman(rows, slope) for rows in files]) for slope in _GRID]
    slope = float(_GRID[np.flatnonzero(means >= max(means) - _BELOW)[-1]])
    every = np.concatenate(list(files))
    return slope, float(np.median(every[:, 2] - every[:, 0] - slope * every[:, 1]))


def spearman(rows: Rows, slope: float) -> float:
    """The correlation of penalties with people's, with this weight of the length."""
    return correlation(rows[None, :, 2], (rows[:, 0] + slope * rows[:, 1])[None], "spearman")


def cells(rows: Rows, slope: float, points: float) -> list[str]:
    """Spearman's correlation, and the mean absolute error in points."""
    penalty = (rows[:, 0] + slope * rows[:, 1] + points).clip(0, 25)
    return [f"{spearman(rows, slope):.3f}", f"{np.abs(penalty - rows[:, 2]).mean():.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of the small model, whose score has no points yet")
    parser.add_argument("--rated", nargs="+", required=True, metavar="FILE", help="annotations of people")
    parser.add_argument("--held-out", nargs="+", default=[], metavar="FILE", help="that the fit does not see")
    parser.add_argument("--most", type=int, default=600, help="translations of each file (default: %(default)s)")
    args = parser.parse_args()
    encoder = OnnxEncoder(Path(args.model))
    weights = encoder.config[SECTION]["score"]
    if {"points", "points_by_length"} & set(weights):
        parser.error(f"the score of {args.model} has points already; pack the model without them")
    rows = {path: rows_of(args.model, path, encoder, args.most, 0) for path in [*args.rated, *args.held_out]}
    slope, points = fitted([rows[path] for path in args.rated])
    table = {Path(path).name: [*cells(of, 0.0, 0.0), *cells(of, slope, points)] for path, of in rows.items()}
    print_table("file", ["Spearman", "error", "fitted: Spearman", "error"], table)
    weights |= {"points": points, "points_by_length": slope}
    print("\n--score", *(f"{name}={value:.3f}" for name, value in weights.items()))


if __name__ == "__main__":
    main()
