"""What `merge=nested` changes: agreement of a rater with the others, with every span counted and with nested ones once.

    python research/merge_nested.py sxs_mqm_generalMT2023_ende.3raters.tsv

The file is Google's MQM of WMT23 English-German in which three raters annotated each translation. Each rater is a
metric in turn; the gold score of a translation is the mean of the other two under Google's weights.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.core.mqm import WEIGHTS, mqm_score
from mbr_esd_metric.metaeval import acc_eq, spa


def main() -> None:
    """Print a line for each rater, and the mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("annotations", help="Google's MQM TSV with several raters for each translation")
    args = parser.parse_args()
    cells: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    nested_spans = spans = 0
    paper = WEIGHTS["paper"]
    nested = replace(paper, nested=True)
    for rating in read_mqm_tsv(args.annotations):
        annotation = rating.annotation
        scores = mqm_score(annotation, paper), mqm_score(annotation, nested)
        spans += len(annotation)
        nested_spans += scores[0] != scores[1]
        cells.setdefault((rating.system, rating.segment), []).append((rating.score(), *scores))
    raters = min(map(len, cells.values()))
    systems, segments = sorted({s for s, _ in cells}), sorted({n for _, n in cells})
    print(f"{spans} spans; the score of {nested_spans} of {sum(map(len, cells.values()))} ratings changes")
    print("rater\tacc_eq* every\tacc_eq* nested\tSPA every\tSPA nested")
    rows = []
    for rater in range(raters):
        gold, every, once = (np.full((len(systems), len(segments)), np.nan) for _ in range(3))
        for (system, segment), found in cells.items():
            at = systems.index(system), segments.index(segment)
            gold[at] = np.mean([score for i, (score, _, _) in enumerate(found) if i != rater])
            every[at], once[at] = found[rater][1:]
        rows.append([acc_eq(gold, every).accuracy, acc_eq(gold, once).accuracy, spa(gold, every), spa(gold, once)])
        print(rater + 1, *(f"{value:.4f}" for value in rows[-1]), sep="\t")
    print("mean", *(f"{value:.4f}" for value in np.mean(rows, axis=0)), sep="\t")


if __name__ == "__main__":
    main()
