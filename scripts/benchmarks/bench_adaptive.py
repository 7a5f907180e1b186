"""Number of candidates that `n=auto` spends, and the cost of fewer: replays stored candidates.

    python scripts/benchmarks/bench_adaptive.py candidates.jsonl [--n 256] [--tolerance 0.001 ...]
    python scripts/benchmarks/bench_adaptive.py --raters TSV_OF_THREE_RATERS [--skip 300 --segments 1000]

The first form replays what a model wrote (a file as `mbr-esd decide` takes it). The second makes candidates from
what human raters marked, for want of a large model: a rater at random, each span kept with probability 0.6, its ends
moved by up to two words, its severity flipped with probability 0.25, and with probability 0.35 a span of one to three
words added. Either way the decision over the first n candidates is held against the decision over all N: the share of
equal decisions, and the expected utility (over all N) that was lost. Segments with fewer than N candidates, or with no
valid one, are left out and counted.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import Rating
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity, fold_severity
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decision_problem
from mbr_esd_metric.errors import InputError, NoValidCandidateError
from mbr_esd_metric.files.records import read_candidates
from mbr_esd_metric.metric.adaptive import cost_of_stopping, rounds

Segment = tuple[str, list[Candidate]]


def stored(path: str, n: int) -> Iterator[Segment]:
    """The translations of a candidates file, each with its first n candidates."""
    for record in read_candidates(path):
        yield record.mt, list(record.candidates[:n])


def from_raters(path: str, n: int, skip: int, limit: int) -> Iterator[Segment]:
    """Candidates made from the raters' annotations of an MQM file: of `limit` segments at most, after `skip` others.

    A translation of one word, in which no span can be moved, gets none.
    """
    rows: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    for rating in read_mqm(path).ratings:
        rows[rating.system, rating.segment].append(rating)
    segments = sorted(rows)
    random.Random(0).shuffle(segments)
    for number, segment in enumerate(segments[skip : skip + limit], skip):
        rng = random.Random(number)
        translation = rows[segment][0].target
        marked = [
            [
                (error.start, error.end, severity)
                for error in rating.errors
                if error.side == "target" and error.end > error.start and (severity := fold_severity(error.severity))
            ]
            for rating in rows[segment]
            if rating.target == translation
        ]
        words = [i for i, c in enumerate(translation) if i == 0 or translation[i - 1] == " "] + [len(translation)]
        yield translation, [_made(rng, marked, words) for _ in range(n if len(words) > 2 else 0)]


def _made(rng: random.Random, marked: list[list[tuple[int, int, Severity]]], words: list[int]) -> Candidate:
    spans: list[tuple[int, int, Severity]] = []
    for start, end, severity in rng.choice(marked):
        if rng.random() < 0.6:
            first, last = (int(np.abs(np.array(words) - at).argmin()) for at in (start, end))
            start = words[max(0, first + rng.choice((-2, -1, 0, 0, 0, 1)))] if first < len(words) - 1 else start
            end = words[min(len(words) - 1, last + rng.choice((-1, 0, 0, 0, 1, 2)))]
            if rng.random() < 0.25:
                severity = "minor" if severity == "major" else "major"
            spans.append((start, end, severity))
    if rng.random() < 0.35:
        first = rng.randrange(len(words) - 1)
        last = min(len(words) - 1, first + rng.randint(1, 3))
        spans.append((words[first], words[last], rng.choice(("major", "minor"))))
    return Candidate(annotation=Annotation([ErrorSpan(s, e, k) for s, e, k in spans if s < e]))


def main() -> None:
    """Decide over each prefix of every segment's candidates; print a row a policy: samples, equal decisions, loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="?", help="candidate file, JSON lines")
    parser.add_argument("--raters", help="MQM file with several raters, to make candidates from")
    parser.add_argument("--n", type=int, default=256)
    parser.add_argument("--segments", type=int, default=300, help="at most, with --raters")
    parser.add_argument("--skip", type=int, default=0, help="segments that are passed over first, with --raters")
    parser.add_argument("--utility", default="softf1")
    parser.add_argument("--tolerance", type=float, nargs="+", default=[0.001, 0.0005, 0.0001])
    args = parser.parse_args()
    if bool(args.candidates) == bool(args.raters):
        parser.error("give a candidate file, or --raters FILE")
    options = DecisionOptions(utility=args.utility)
    similarity = get_similarity(options.utility)
    sizes = list(rounds(args.n))
    made = from_raters(args.raters, args.n, args.skip, args.segments) if args.raters else None
    costs, lost, equal = [], [], []
    spent_time, left_out = 0.0, 0
    for translation, candidates in made or stored(args.candidates, args.n):
        try:
            whole, _ = decision_problem(candidates, translation, options)
        except NoValidCandidateError:
            whole = None
        if whole is None or len(candidates) < args.n:
            left_out += 1
            continue
        everything = slice(0, len(whole.hypotheses))
        expected = similarity.matrix(whole.table, everything, everything) @ whole.weights
        best = whole.hypotheses.best(expected)
        row = []
        for n in sizes:
            try:
                part, _ = decision_problem(candidates[:n], translation, options)
            except NoValidCandidateError:
                row.append((float("inf"), expected[best] - expected.min(), False))
                continue
            begun = time.perf_counter()
            inside = slice(0, len(part.hypotheses))
            matrix = similarity.matrix(part.table, inside, inside)
            one = cost_of_stopping(part.hypotheses, matrix)
            spent_time += time.perf_counter() - begun
            index = part.hypotheses.index[part.hypotheses.best(matrix @ part.weights)]
            chosen = whole.hypotheses.hypothesis_of_candidate[index]
            row.append((one, expected[best] - expected[chosen], chosen == best))
        costs.append([one for one, _, _ in row])
        lost.append([loss for _, loss, _ in row])
        equal.append([same for _, _, same in row])
    count = len(costs)
    if not count:
        raise InputError(
            f"none of the {left_out} segments has {args.n} candidates and a valid one among them; give a smaller "
            f"--n, or sample more (mbr-esd sample --model 'NAME?n={args.n}')"
        )
    cost, loss, same = np.array(costs), np.array(lost), np.array(equal)
    print(
        f"{count} segments ({left_out} left out: fewer than N candidates, or none valid), N = {args.n}, utility "
        f"{args.utility}; {1e3 * spent_time / cost.size:.2f} ms a look"
    )
    print(f"{'policy':<22}{'samples':>9}{'share':>8}{'equal':>8}{'mean lost':>11}{'p99 lost':>10}{'most lost':>11}")

    def line(name: str, stop: npt.NDArray[np.intp]) -> None:
        rows = np.arange(count)
        n, lost = np.array(sizes)[stop], loss[rows, stop]
        print(
            f"{name:<22}{n.mean():>9.1f}{n.mean() / args.n:>8.1%}{same[rows, stop].mean():>8.1%}{lost.mean():>11.5f}"
            f"{np.quantile(lost, 0.99):>10.5f}{lost.max():>11.5f}"
        )

    for tolerance in args.tolerance:
        stops = cost <= tolerance
        stops[:, -1] = True
        line(f"auto, tolerance {tolerance:g}", stops.argmax(axis=1))
    for index, n in enumerate(sizes):
        line(f"n={n}", np.full(count, index))


if __name__ == "__main__":
    main()
