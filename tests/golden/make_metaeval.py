"""Write metaeval.json, metaeval_real.json and correlations.json: google-research/mt-metrics-eval on the cases of
tests/helpers/metaeval_cases.py, drawn and real.

Needs the toolkit, from its GitHub repository (the package of that name on the index is another one), with its
dependencies, and the folder of the human annotations:

    PYTHONPATH=MT_METRICS_EVAL_CHECKOUT:. python tests/golden/make_metaeval.py COMMIT_OF_THE_CHECKOUT MQM_FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mt_metrics_eval import data, stats, tasks

from tests.helpers.metaeval_cases import Case, Matrix, cases, pair, real_cases

K = 1000


def statistics(some: list[Case]) -> dict[str, Any]:
    values = {}
    for case in some:
        gold, metric = case.lists()
        systems = len(case.gold)
        accuracy, epsilon, _ = stats.KendallWithTiesOpt(gold, metric, "acc23", systems, "item", 1.0)
        spa = stats.PairwiseConfidenceError(gold, metric, systems, filter_nones=True)[0]
        values[case.name] = {"spa": float(spa), "accuracy": float(accuracy), "epsilon": float(epsilon)}
    return values


def correlations(case: Case) -> dict[str, float]:
    one = stats.Correlation(len(case.gold), *case.lists())
    coefficients = {"pearson": one.Pearson, "spearman": one.Spearman, "kendall": one.Kendall}
    groupings = {"none": "none", "item": "item", "system": "sys"}
    return {
        f"{name} {by}": float(value(theirs)[0])
        for by, theirs in groupings.items()
        for name, value in coefficients.items()
    }


def agreement(case: Case) -> list[int]:
    """Pairwise agreement of system means, and pairs."""
    means = []
    for matrix in (case.gold, np.where(np.isnan(case.gold), np.nan, case.metric)):
        means.append([float(np.nanmean(row)) if not np.isnan(row).all() else None for row in matrix])
    return [int(number) for number in stats.Agreement(*means)]


def p_values(triples: list[tuple[Matrix, Matrix, Matrix]]) -> list[dict[str, Any]]:
    np.random.seed(0)
    tests = []
    for gold, a, b in triples:
        corr_a, corr_b = (stats.Correlation(len(gold), *Case("", gold, metric).lists()) for metric in (a, b))

        def pce(gold_scores: Any, scores: Any, systems: int = len(gold)) -> Any:
            return stats.PairwiseConfidenceError(gold_scores, scores, systems, filter_nones=True)

        p_spa, delta_spa, _, _ = stats.PermutationSigDiff(corr_a, corr_b, pce, k=K)
        p_acc, delta_acc, _, _ = stats.PairwisePermutationSigDiff(corr_a, corr_b, average_by="item", k=K)
        outcomes = {"spa": (p_spa, delta_spa), "acc_eq": (p_acc, delta_acc)}
        tests.append({name: {"p_value": float(p), "delta": float(delta)} for name, (p, delta) in outcomes.items()})
    return tests


def clusters() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rankings = []
    for size in (1, 2, 3, 5, 8, 13):
        for _ in range(4):
            matrix = np.triu(np.round(rng.random((size, size)) ** 3, 3), 1)
            rankings.append({"p_values": matrix.tolist(), "ranks": data.AssignRanks(matrix, 0.05)})
    return rankings


def average() -> dict[str, Any]:
    """Two tasks with drawn differences, of different lengths, and their average."""
    rng = np.random.default_rng(1)
    drawn_tasks, results = [], []
    for task, draws in ((0, 300), (1, 100)):
        names = [f"m{i}" for i in range(5)]
        values = np.sort(0.5 + 0.4 * rng.random(5))[::-1]
        order = rng.permutation(5).tolist()
        result = tasks.TaskResults()
        result.name = f"corr_fcn=pce task={task}"
        result.corr_ranks = {names[m]: (float(v), 0) for m, v in zip(order, values, strict=True)}
        index, drawn = np.zeros((5, 5), dtype=np.int32), []
        pairs = {}
        for i in range(5):
            for j in range(i + 1, 5):
                first = np.round(0.5 + 0.1 * rng.standard_normal((draws, 2)), 4)
                index[i, j], index[j, i] = len(drawn), len(drawn) + draws
                drawn.extend(first.tolist())
                pairs[f"{names[order[i]]} {names[order[j]]}"] = np.round(first[:, 0] - first[:, 1], 4).tolist()
        result.draws_index, result.draws_list = index, np.array(drawn)
        results.append(result)
        drawn_tasks.append({"values": {m: v for m, (v, _) in result.corr_ranks.items()}, "draws": pairs})
    ranks, matrix = tasks.TaskSetResults(results).AverageCorrMatrix()
    return {
        "tasks": drawn_tasks,
        "values": {name: float(value) for name, (value, _) in ranks.items()},
        "ranks": [rank for _, rank in ranks.values()],
        "p_values": matrix.tolist(),
    }


def main(commit: str, folder: str) -> None:
    provenance = {
        "made by": "tests/golden/make_metaeval.py",
        "toolkit": f"https://github.com/google-research/mt-metrics-eval at {commit}",
    }

    def write(name: str, **content: Any) -> None:
        text = json.dumps({"provenance": provenance, **content}, indent=1)
        Path(__file__).with_name(name).write_text(text + "\n", encoding="utf-8")

    drawn = {"k": K, "pairs": p_values([pair(number) for number in range(24)])}
    write("metaeval.json", statistics=statistics(cases()), p_values=drawn, clusters=clusters(), average=average())
    real = real_cases(Path(folder))
    # Is one rater better than another, by what the third says?
    raters, triples = {case.name: case for case in real}, ((1, 2, 3), (1, 3, 2), (2, 3, 1))
    trials = [(raters[f"rater {a} against {c}"], raters[f"rater {b} against {c}"]) for a, b, c in triples]
    tests = {"k": K, "pairs": p_values([(a.gold, a.metric, b.metric) for a, b in trials])}
    write("metaeval_real.json", statistics=statistics(real), p_values=tests)
    every = [*cases(), *real]
    write(
        "correlations.json",
        correlations={case.name: correlations(case) for case in every},
        agreement={case.name: agreement(case) for case in every},
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
