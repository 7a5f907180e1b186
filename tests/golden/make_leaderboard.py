"""What mt-metrics-eval says of a data folder, as JSON; run with that toolkit, which needs no package of ours.

    python tests/golden/make_leaderboard.py DATA TEST_SET LP

It reads the folder with its own ``EvalSet``, metrics by ``AddMetricsFromDir``, and takes systems sorted by name, as the
order decides the last digits of SPA.
"""

from __future__ import annotations

import json
import sys


def main(data: str, test_set: str, lp: str) -> None:
    """Print metric -> SPA, acc_eq* and its threshold."""
    from mt_metrics_eval import stats
    from mt_metrics_eval.data import EvalSet

    evs = EvalSet(test_set, lp, path=data, read_stored_ratings=True, strict=True)
    evs.AddMetricsFromDir(f"{data}/{test_set}/metric-scores/{lp}")
    gold = {s: v for s, v in evs.Scores("seg", "mqm").items() if s != evs.std_ref}
    names = sorted(gold)
    results = {}
    for metric in sorted(evs.metric_names):
        scores = evs.Scores("seg", metric)
        flat = [[score for name in names for score in table[name]] for table in (gold, scores)]
        accuracy, epsilon, _ = stats.KendallWithTiesOpt(*flat, "acc23", len(names), "item", 1.0)
        spa = stats.PairwiseConfidenceError(*flat, len(names))[0]
        results[metric] = {"spa": float(spa), "acc_eq": float(accuracy), "epsilon": float(epsilon)}
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
