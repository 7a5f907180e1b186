"""Grounded spans against free ones, on the same translations: what is located, what it costs, what is decided.

    python scripts/benchmarks/bench_grounded.py -s src.txt -t mt.txt --model 'mbr-esd-demo?n=32&lp=en-de'

Samples N candidates a translation with `grounded=true` and N with `grounded=false` (the store keeps them), and
prints for each how many were cut, how many error spans they name and how many of these are in the translation, and
their tokens. Decisions (MBR, the model's utility) are compared as means of SoftF1: between the two halves of one kind's
candidates, which says how much is chance, and between the first halves of the two kinds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from mbr_esd_metric import Annotation, Candidate, soft_f1
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.errors import NoValidCandidateError
from mbr_esd_metric.files.streams import read_segments
from mbr_esd_metric.metric.card import ModelCard, with_options
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import sample
from mbr_esd_metric.metric.plan import Segment
from mbr_esd_metric.prompting.parse import JsonParser, Parsed

Drawn = Sequence[tuple[Segment, Sequence[Candidate]]]


def row(name: str, drawn: Drawn, seconds: float) -> str:
    """One row of the table."""
    count = cut = silent = located = lost = tokens = 0
    for segment, samples in drawn:
        parser = JsonParser(segment.translation)
        for one in samples:
            count, tokens, cut = count + 1, tokens + one.tokens, cut + one.truncated
            read = None if one.truncated else parser.parse(one.text)
            if isinstance(read, Parsed):
                silent += not (len(read.annotation) or read.dropped or read.no_penalty)
                located, lost = located + len(read.annotation), lost + read.dropped
    return (
        f"| {name} | {count} | {cut / count:.1%} | {silent / count:.1%} | {located + lost} | "
        f"{located / max(1, located + lost):.1%} | {tokens / count:.1f} | {seconds:.0f} |"
    )


def decisions(card: ModelCard, drawn: Drawn, half: int) -> list[Annotation]:
    """MBR over the first or the second half of each list; the empty annotation where no candidate is valid."""
    chosen = []
    for segment, samples in drawn:
        n = len(samples) // 2
        candidates = [Candidate(s.text, None, s.logprob, s.truncated) for s in samples[half * n : (half + 1) * n]]
        try:
            chosen.append(decide_segment(candidates, segment.translation, card.decision).annotation)
        except NoValidCandidateError:
            chosen.append(Annotation())
    return chosen


def main() -> None:
    """Sample both kinds and print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-s", "--sources", type=Path, required=True)
    parser.add_argument("-t", "--translations", type=Path, required=True)
    parser.add_argument("--model", default="mbr-esd-demo", help="model name with options (default: %(default)s)")
    args = parser.parse_args()
    pairs = zip(read_segments(args.sources), read_segments(args.translations), strict=True)
    segments = [Segment(source, translation, f"segment {i}") for i, (source, translation) in enumerate(pairs, 1)]
    card = load_card(args.model)

    chosen: dict[str, list[Annotation]] = {}
    print("| spans | candidates | cut | no error | error spans | located | tokens a candidate | seconds |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name in ("free", "grounded"):
        began = time.monotonic()
        changed = with_options(card, {"grounded": name == "grounded"})
        drawn = [(segment, candidates) for segment, candidates in sample(changed, segments, progress=True)]
        print(row(name, drawn, time.monotonic() - began), flush=True)
        for half in (0, 1):
            chosen[f"{name} {half + 1}"] = decisions(card, drawn, half)
    print("\n| decisions over half of the candidates | equal | mean SoftF1 |\n|---|--:|--:|")
    for one, other in (("free 1", "free 2"), ("grounded 1", "grounded 2"), ("free 1", "grounded 1")):
        both = list(zip(chosen[one], chosen[other], segments, strict=True))
        equal = statistics.mean(a.key == b.key for a, b, _ in both)
        alike = statistics.mean(soft_f1(a, b, len(segment.translation)) for a, b, segment in both)
        print(f"| {one}, {other} | {equal:.1%} | {alike:.4f} |")


if __name__ == "__main__":
    main()
