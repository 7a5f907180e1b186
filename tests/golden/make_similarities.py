"""Write similarities.json: what other people's code says about pairs of annotations and about decisions.

    python tests/golden/make_similarities.py MQM_TSV MBR_ESD SPAN_MT_METRICS_EVAL WMT23_SCRIPT WMT25_SCRIPT

MQM_TSV is Google's `sxs_mqm_generalMT2023_ende.3raters.tsv`; the others stand in checkouts of `PEERS`: the first one's
folder, `src` of the second, `wmt23/task2_evaluate.py` and `scripts/scoring/task2/scoring_esa.py`. All pairs of raters
are compared, and 3,000 drawn decisions: by our expected utility of the candidate that theirs takes. The numbers of
cases and the largest differences are written beside the commits and some of the cases.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

from mbr_esd_metric import Annotation, Candidate, decide, f1, soft_f1
from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.core.kernels import span_counts
from mbr_esd_metric.core.similarities.f1 import wmt23_counts, wmt25_counts
from mbr_esd_metric.core.similarities.mpp import Mpp
from tests.helpers.annotations import drawn
from tests.helpers.candidates import answer

PAIRS, DECISIONS = 150, 60
PENALTIES: tuple[dict[str, Any], ...] = ({}, {"severity_penalty": 0.5}, {"severity_penalty": 1.0})
MPP_OPTIONS = (*PENALTIES, {"severity_weights": {"major": 1.0, "minor": 0.2}})
#: Name of a decision in the released code -> rule and utility.
METHODS = {"map": ("map", "softf1"), "mbr_softf1": ("mbr", "softf1"), "mbr_f1": ("mbr", "f1")}
METHODS |= {"mbr_scoresim": ("mbr", "scoresim-mean")}
WORDS = ("die", "der", "das", "Katze", "saß", "Mond", ".", "Haus", "und", "nie", "ja")
PEERS = [
    "vlaks425/MBR-ESD",
    "sted19/span-mt-metrics-eval",
    "WMT-QE-Task/qe-eval-scripts",
    "wmt-conference/wmt25-mteval",
]
Pair = tuple[Annotation, Annotation, int]


def commit(path: str) -> str:
    folder = path if Path(path).is_dir() else Path(path).parent
    return subprocess.run(["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


def rater_pairs(path: str) -> list[Pair]:
    by_text = defaultdict(list)
    for rating in read_mqm_tsv(path):
        one = rating.segment
        by_text[one.system, one.label, one.translation].append(rating.annotation)
    return [(*pair, len(target)) for (*_, target), some in by_text.items() for pair in combinations(some, 2)]


def drawn_pairs() -> list[Pair]:
    """Annotations denser than people's: nested, overlapping in position and severity, at both ends."""
    rng = random.Random(7)
    lengths = [rng.choice([1, 2, 9, 30, 80]) for _ in range(2000)]
    return [(drawn(rng, length, 6), drawn(rng, length, 6), length) for length in lengths]


def dicts(annotation: Annotation, prefix: str = "") -> list[dict[str, Any]]:
    names = f"{prefix}start", f"{prefix}end", "severity", "side"
    return [dict(zip(names, (*span.key, "target"), strict=True)) for span in annotation]


def wmt23_fields(annotation: Annotation, length: int) -> dict[str, list[int]]:
    return {severity: [*span_counts(annotation, length, severity).tolist(), 0] for severity in ("major", "minor")}


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


def corpus_f1(counts: Iterable[tuple[float, ...]]) -> float:
    """F1 of credit and masses of each segment, or of the credit and mass of each side."""
    credit, mass, *others = map(sum, zip(*counts, strict=True))
    if len(others) == 1:
        return 2 * credit / (mass + others[0])
    precision, recall = credit / mass, others[0] / others[1]
    return 2 * precision * recall / (precision + recall)


def main() -> None:
    tsv, *paths = sys.argv[1:]
    logging.disable(logging.WARNING)
    sys.path[:0] = [path if Path(path).is_dir() else str(Path(path).parent) for path in paths]
    names = ("softf1", "rerank", Path(paths[2]).stem, Path(paths[3]).stem, "span_mt_metrics_eval")
    softf1, rerank, wmt23, wmt25, mtme = map(import_module, names)
    differences: dict[str, list[float]] = defaultdict(list)

    def compared(name: str, ours: float, theirs: float) -> float:
        differences[name].append(abs(ours - theirs))
        return theirs

    def pair_case(a: Annotation, b: Annotation, length: int) -> dict[str, Any]:
        masks = [softf1.build_masks(dicts(one, "error_span_"), length) for one in (a, b)]
        mpps = ((Mpp(**o).scalar(a, b, length), mtme.compute(dicts(a), dicts(b), **o).f_score) for o in MPP_OPTIONS)
        return {
            **{"length": length, "candidate": a.key, "support": b.key},
            "soft_f1": compared("softf1", soft_f1(a, b, length, clip=False), softf1.soft_f1(*masks)["f1"]),
            "f1": compared("f1", f1(a, b, length), softf1.span_f1(*masks)["f1"]),
            "mpp": [compared("mpp", *values) for values in mpps],
        }

    def corpora(pairs: list[Pair]) -> dict[str, float]:
        """Their measures of a corpus, compared with ours; of MPP without options."""
        gold, system = ({"x": {str(i): wmt23_fields(p[side], p[2]) for i, p in enumerate(pairs)}} for side in (1, 0))
        golds, systems = ([dicts(pair[side]) for pair in pairs] for side in (1, 0))
        theirs = {
            "wmt23": wmt23.score_new(system, gold)["x"][2],
            "wmt25": wmt25.get_char_f1([length for *_, length in pairs], golds, systems)[2],
        }
        for task, counts in (("wmt23", wmt23_counts), ("wmt25", wmt25_counts)):
            compared(f"{task} of a corpus", corpus_f1(counts(*pair) for pair in pairs), theirs[task])
        mpps = []
        for one in MPP_OPTIONS:
            mpps.append(mtme.compute(systems, golds, **one).f_score)
            compared("mpp of a corpus", corpus_f1(Mpp(**one).counts(a, b) for a, b, _ in pairs), mpps[-1])
        return {**theirs, "mpp": mpps[0]}

    def decision_case(text: str, candidates: list[Candidate]) -> dict[str, Any]:
        scores, spans = zip(*(rerank.error_spans_to_score(one.text, text) for one in candidates), strict=True)
        indices = {}
        for method, (rule, utility) in METHODS.items():
            _, chosen = rerank.select(method, [c.logprob for c in candidates], list(scores), list(spans), len(text))
            indices[method] = next(i for i, each in enumerate(spans) if each is chosen)
            decision = decide(candidates, text, rule=rule, utility=utility, invalid="empty")
            compared(method, decision.expected_utility, decision.expected_utilities[indices[method]])
        return {"translation": text, "candidates": [[c.text, c.logprob] for c in candidates], "chosen": indices}

    real, dense, rng = rater_pairs(tsv), drawn_pairs(), random.Random(11)
    cases = [pair_case(*pair) for pair in [*real, *dense]]
    some = [number for number in range(len(real)) if number % (len(real) // 100) == 0]
    some += range(len(real), len(real) + PAIRS - len(some))
    corpora(real), corpora(dense)
    decisions = [decision_case(*draw_candidates(rng)) for _ in range(3000)]
    results = {name: f"{len(of)} cases, largest difference {max(of):.2g}" for name, of in differences.items()}
    digest = hashlib.sha256(Path(tsv).read_bytes()).hexdigest()
    value = {
        "provenance": {
            "made by": "tests/golden/make_similarities.py",
            "peers": {f"https://github.com/{peer}": commit(path) for peer, path in zip(PEERS, paths, strict=True)},
            "annotations": f"google/wmt-mqm-human-evaluation, {Path(tsv).name}, SHA-256 {digest}",
            "compared": results,
        },
        "methods": METHODS,
        "mpp_options": MPP_OPTIONS,
        "pairs": [cases[number] for number in some],
        "corpora": corpora([[*real, *dense][number] for number in some]),
        "decisions": decisions[:DECISIONS],
    }
    target = Path(__file__).with_name("similarities.json")
    target.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
