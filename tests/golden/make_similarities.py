"""Write similarities.json: what other people's code says about pairs of annotations and about decisions.

    python tests/golden/make_similarities.py MQM_TSV MBR_ESD SPAN_MT_METRICS_EVAL WMT23_SCRIPT WMT25_SCRIPT

MQM_TSV is Google's `sxs_mqm_generalMT2023_ende.3raters.tsv`; the others are checkouts of the released code of
arXiv 2512.07540 and of span-mt-metrics-eval (its `src`), and the files `wmt23/task2_evaluate.py` of
WMT-QE-Task/qe-eval-scripts and `scripts/scoring/task2/scoring_esa.py` of wmt-conference/wmt25-mteval, in checkouts too.
All pairs of raters are compared, and 3,000 drawn decisions: by our expected utility of the candidate that theirs takes.
The numbers of cases and the largest differences are printed, and written beside the commits and some of the cases.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

from mbr_esd_metric import Annotation, Candidate, decide, f1, soft_f1
from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.core.similarities.f1 import wmt23_counts, wmt25_counts
from mbr_esd_metric.core.similarities.mpp import Mpp
from tests.helpers.annotations import drawn
from tests.helpers.candidates import answer

PAIRS, DECISIONS = 150, 60
MPP_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"severity_penalty": 0.5},
    {"severity_penalty": 1.0},
    {"severity_weights": {"major": 1.0, "minor": 0.2}},
)
#: Name of a decision in the released code -> rule and utility.
METHODS = {
    "map": ("map", "softf1"),
    "mbr_softf1": ("mbr", "softf1"),
    "mbr_f1": ("mbr", "f1"),
    "mbr_scoresim": ("mbr", "scoresim-mean"),
}
WORDS = ("die", "der", "das", "Katze", "saß", "Mond", ".", "Haus", "und", "nie", "ja")
PEERS = (
    "vlaks425/MBR-ESD",
    "sted19/span-mt-metrics-eval",
    "WMT-QE-Task/qe-eval-scripts",
    "wmt-conference/wmt25-mteval",
)
Pair = tuple[Annotation, Annotation, int]


def commit(path: str) -> str:
    folder = path if Path(path).is_dir() else Path(path).parent
    return subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


def rater_pairs(path: str) -> list[Pair]:
    by_text = defaultdict(list)
    for rating in read_mqm_tsv(path):
        by_text[rating.system, rating.segment, rating.target].append(rating)
    pairs = []
    for (_, _, target), ratings in by_text.items():
        pairs += [(a.annotation, b.annotation, len(target)) for a, b in combinations(ratings, 2)]
    return pairs


def drawn_pairs(n: int) -> list[Pair]:
    """Annotations denser than people's: nested, overlapping in position and severity, at both ends."""
    rng = random.Random(7)
    lengths = [rng.choice([1, 2, 9, 30, 80]) for _ in range(n)]
    return [(drawn(rng, length, 6), drawn(rng, length, 6), length) for length in lengths]


def dicts(annotation: Annotation) -> list[dict[str, Any]]:
    return [{"start": s.start, "end": s.end, "severity": s.severity, "side": "target"} for s in annotation]


def wmt23_fields(annotation: Annotation, length: int) -> dict[str, list[int]]:
    marks = {"major": [0] * (length + 1), "minor": [0] * (length + 1)}
    for span in annotation:
        for i in range(span.start, span.end):
            marks[span.severity][i] += 1
    return marks


def draw_candidates(rng: random.Random) -> tuple[str, list[Candidate]]:
    """Answers, some of which cannot be read; errors never overlap, where the released code neither clips nor merges."""
    words = rng.sample(WORDS, rng.randint(3, len(WORDS)))
    candidates = []
    for _ in range(rng.choice([1, 2, 3, 4, 8, 16])):
        wrong = rng.sample([*words, "nirgends"], rng.choice([0, 0, 1, 1, 2, 3]))
        read = answer(*((word, rng.choice(["major", "minor", "Critical", "neutral"])) for word in wrong))
        text = rng.choice([read] * 9 + ["no JSON", '{"errors": [{"severity": "major"}]}'])
        candidates.append(Candidate(text, logprob=-float(rng.randint(1, 9))))
    return " ".join(words), candidates


def corpus_f1(counts: list[tuple[float, float, float]]) -> float:
    """F1 of the credit and the sizes of each segment."""
    credit, size_c, size_s = map(sum, zip(*counts, strict=True))
    return float(2 * credit / (size_c + size_s))


def micro(mpp: Mpp, pairs: list[Pair]) -> float:
    """F1 of the sums of credits and masses."""
    counts = [mpp.counts(a, b) for a, b, _ in pairs]
    precision = sum(c.precision_credit for c in counts) / sum(c.candidate_mass for c in counts)
    recall = sum(c.recall_credit for c in counts) / sum(c.support_mass for c in counts)
    return 2 * precision * recall / (precision + recall)


def main() -> None:
    tsv, released, mtme, wmt23_path, wmt25_path = sys.argv[1:]
    logging.disable(logging.WARNING)
    sys.path[:0] = [released, mtme, *(str(Path(path).parent) for path in (wmt23_path, wmt25_path))]
    softf1, rerank, wmt23, wmt25 = map(
        import_module, ("softf1", "rerank", Path(wmt23_path).stem, Path(wmt25_path).stem)
    )
    compute = import_module("span_mt_metrics_eval").compute
    real, dense = rater_pairs(tsv), drawn_pairs(2000)
    largest: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    stored: list[dict[str, Any]] = []
    few: list[Pair] = []

    def compare(name: str, ours: float, theirs: float) -> float:
        largest[name] = max(largest[name], abs(ours - theirs))
        counts[name] += 1
        return theirs

    for number, (a, b, length) in enumerate([*real, *dense]):
        masks = [
            softf1.build_masks(
                [{"error_span_start": s.start, "error_span_end": s.end, "severity": s.severity} for s in annotation],
                length,
            )
            for annotation in (a, b)
        ]
        case = {
            "length": length,
            "candidate": [s.key for s in a],
            "support": [s.key for s in b],
            "soft_f1": compare("softf1", soft_f1(a, b, length, clip=False), softf1.soft_f1(*masks)["f1"]),
            "f1": compare("f1", f1(a, b, length), softf1.span_f1(*masks)["f1"]),
            "mpp": [
                compare("mpp", Mpp(**options).scalar(a, b, length), compute(dicts(a), dicts(b), **options).f_score)
                for options in MPP_OPTIONS
            ],
        }
        if number % (len(real) // 100) == 0 if number < len(real) else len(stored) < PAIRS:
            stored.append(case)
            few.append((a, b, length))

    def theirs(pairs: list[Pair]) -> dict[str, list[float]]:
        gold, system = ({"x": {str(i): wmt23_fields(p[side], p[2]) for i, p in enumerate(pairs)}} for side in (1, 0))
        golds, systems = ([dicts(pair[side]) for pair in pairs] for side in (1, 0))
        return {
            "wmt23": [wmt23.score_new(system, gold)["x"][2]],
            "wmt25": [wmt25.get_char_f1([length for *_, length in pairs], golds, systems)[2]],
            "mpp": [compute(systems, golds, **options).f_score for options in MPP_OPTIONS],
        }

    for pairs in (real, dense):
        ours = {
            "wmt23": [corpus_f1([wmt23_counts(*pair) for pair in pairs])],
            "wmt25": [corpus_f1([wmt25_counts(*pair) for pair in pairs])],
            "mpp": [micro(Mpp(**options), pairs) for options in MPP_OPTIONS],
        }
        for measure, values in theirs(pairs).items():
            for our, their in zip(ours[measure], values, strict=True):
                compare(f"{measure} of a corpus", our, their)

    rng = random.Random(11)
    decisions = []
    for number in range(3000):
        text, candidates = draw_candidates(rng)
        scores, spans = zip(*(rerank.error_spans_to_score(c.text, text) for c in candidates), strict=True)
        indices = {}
        for method, (rule, utility) in METHODS.items():
            _, chosen = rerank.select(method, [c.logprob for c in candidates], list(scores), list(spans), len(text))
            indices[method] = next(i for i, each in enumerate(spans) if each is chosen)
            decision = decide(candidates, text, rule=rule, utility=utility, invalid="empty")
            utilities = decision.expected_utilities
            compare(method, utilities[decision.index], utilities[indices[method]])
        if number < DECISIONS:
            texts = [[c.text, c.logprob] for c in candidates]
            decisions.append({"translation": text, "candidates": texts, "chosen": indices})

    compared = {name: f"{counts[name]} cases, largest difference {largest[name]:.2g}" for name in counts}
    print(*(f"{name}: {result}" for name, result in compared.items()), sep="\n")
    paths = (released, mtme, wmt23_path, wmt25_path)
    digest = hashlib.sha256(Path(tsv).read_bytes()).hexdigest()
    value = {
        "provenance": {
            "made by": "tests/golden/make_similarities.py",
            "peers": {f"https://github.com/{peer}": commit(path) for peer, path in zip(PEERS, paths, strict=True)},
            "annotations": f"google/wmt-mqm-human-evaluation, {Path(tsv).name}, SHA-256 {digest}",
            "compared": compared,
        },
        "methods": METHODS,
        "mpp_options": MPP_OPTIONS,
        "pairs": stored,
        "corpora": {measure: values[0] for measure, values in theirs(few).items()},
        "decisions": decisions,
    }
    target = Path(__file__).with_name("similarities.json")
    target.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
