"""Calibrates the score of the small model on human ratings, with the length of the source as a feature.

    python scripts/small_model/fit_score.py MODEL_FOLDER --rated 2020_en-de.tsv.gz 2022_en-ru_dev.tsv.gz --slope 1

A sample of translations from each file is scored; for newstest2020, from the documents that are held out from training.
Let p be the human MQM penalty, and z minus the logarithm of one plus the penalty of the model. Least squares give

    -log(1 + p) = a + b z + c log(1 + tokens of the source)

so the new weights of the score (`score` in the folder's ``config.json``) are a + b times the old intercept, b times the
old weights, and c for `length`. They are printed in the format of `encoder_folder.py pack`. `--slope` fixes b: with 1,
the ranking of the translations of a source does not change, except for scores clipped at 0. The table has Spearman's
correlation over all translations of each file and the mean absolute error in points, before and after, with the fit on
the other files.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from judge_table import print_table, read_rated

from mbr_esd_metric import load_metric
from mbr_esd_metric.generation.encoder import SECTION, Encoder, OnnxEncoder
from mbr_esd_metric.metaeval import correlation

#: For each translation: z, log(1 + tokens of the source), and -log(1 + human penalty).
Rows = npt.NDArray[np.float64]


def rows_of(model: str, path: str, encoder: Encoder, most: int, seed: int) -> Rows:
    """The features of one translation per source, shape (translations, 3)."""
    pairs: list[dict[str, str]] = []
    people: list[float] = []
    for source, rated in read_rated(path, most, seed):
        system = sorted(rated)[len(pairs) % len(rated)]
        translation, points = rated[system]
        pairs.append({"src": source, "mt": translation})
        people.append(-math.log1p(-points))
    said = load_metric(model).predict(pairs, progress_bar=False).metadata.mqm
    lengths = [one.sides.count(1) for one in encoder.tokens([(pair["mt"], pair["src"]) for pair in pairs])]
    return np.column_stack([-np.log1p(-np.array(said)), np.log1p(lengths), people])


def fitted(rows: Rows, slope: float | None = None) -> list[float]:
    """a, b and c; b is `slope` if specified."""
    z, length, people = rows.T
    ones = np.ones(len(rows))
    if slope is None:
        a, b, c = np.linalg.lstsq(np.column_stack([ones, z, length]), people, rcond=None)[0].tolist()
        return [a, b, c]
    a, c = np.linalg.lstsq(np.column_stack([ones, length]), people - slope * z, rcond=None)[0].tolist()
    return [a, slope, c]


def cells(rows: Rows, weights: Sequence[float]) -> list[str]:
    """Spearman's correlation, and the mean absolute error in points."""
    z = np.minimum(weights[0] + rows[:, :2] @ np.array(weights[1:]), 0.0)
    flat = correlation(rows[None, :, 2], z[None], "spearman")
    error = np.abs(np.expm1(-z).clip(max=25) - np.expm1(-rows[:, 2])).mean()
    return [f"{flat:.3f}", f"{error:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder of the small model")
    parser.add_argument("--rated", nargs="+", required=True, metavar="FILE", help="annotations of people")
    parser.add_argument("--held-out", nargs="+", default=[], metavar="FILE", help="that the fit does not see")
    parser.add_argument("--most", type=int, default=600, help="translations of each file (default: %(default)s)")
    parser.add_argument("--slope", type=float, metavar="B", help="b (default: fitted)")
    args = parser.parse_args()
    encoder = OnnxEncoder(Path(args.model))
    files = [*args.rated, *args.held_out]
    rows = {path: rows_of(args.model, path, encoder, args.most, 0) for path in files}
    table = {}
    for path in files:
        others = np.concatenate([rows[other] for other in args.rated if other != path])
        table[Path(path).name] = [*cells(rows[path], (0.0, 1.0, 0.0)), *cells(rows[path], fitted(others, args.slope))]
    print_table("file", ["Spearman", "error", "fitted: Spearman", "error"], table)
    a, b, c = fitted(np.concatenate([rows[path] for path in args.rated]), args.slope)
    old = encoder.config[SECTION]["score"]
    weights = {name: b * value for name, value in old.items() if name != "intercept"}
    weights = {"intercept": a + b * old.get("intercept", 0.0), **weights, "length": c}
    print("\n--score", *(f"{name}={value:.3f}" for name, value in weights.items()))


if __name__ == "__main__":
    main()
