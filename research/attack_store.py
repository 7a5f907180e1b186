"""Flips bits of a candidate store, one at a time, and counts what becomes of it.

    python research/attack_store.py [--flips 1000] [--seed 0]

The store holds plain samples, and single answers with their tokens' log-probabilities. After each flip it is read
whole. A flip is *noticed* (an error that names the store), *harmless* (everything reads as it was stored), *lost* (a
sample is gone, and would be sampled again), or *silent*: something else reads than was stored. The exit status is 1 if
one is silent, or if anything but a `StoreError` is raised. The tests do the same with fewer flips.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from mbr_esd_metric.core.candidate import Candidate, TokenLogprobs
from mbr_esd_metric.errors import StoreError
from mbr_esd_metric.generation.store import CandidateStore


def stored() -> dict[str, list[Candidate]]:
    """The store's content: 40 requests of 8 samples, and 40 of a single answer with its tokens."""
    chance = random.Random(7)
    samples: dict[str, list[Candidate]] = {}
    for number in range(40):
        samples[f"several {number}"] = [
            Candidate(
                f"text {number} {i} ü😀",
                logprob=-chance.random() * 9,
                tokens=i + 1,
            )
            for i in range(8)
        ]
        tokens = TokenLogprobs((4, 1, 0), (-0.5, -0.25, -chance.randrange(8) / 8))
        samples[f"single {number}"] = [
            Candidate(f"abc{number % 10}.", logprob=sum(tokens.logprobs), tokens=3, token_logprobs=tokens)
        ]
    return samples


def outcome(path: Path, expected: dict[str, list[Candidate]]) -> str:
    """Result of reading a store with one bit flipped."""
    lost = False
    try:
        with CandidateStore(path) as store:
            for key, samples in expected.items():
                for read, put in zip(store.get(key, len(samples)), samples, strict=True):
                    if read is None:
                        lost = True
                    elif read != put:
                        return "silent"
    except StoreError as error:
        return "noticed" if str(path) in str(error) else "silent"
    return "lost" if lost else "harmless"


def main() -> int:
    """Flip, read, count."""
    parser = argparse.ArgumentParser(description="Flips bits of a candidate store, and counts what becomes of it.")
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    expected, outcomes, chance = stored(), Counter[str](), random.Random(args.seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        with CandidateStore(path) as store:
            for key, samples in expected.items():
                store.put(key, 0, samples)
        content = path.read_bytes()
        for _ in range(args.flips):
            changed = bytearray(content)
            changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            for beside in Path(folder).glob("store.sqlite-*"):
                beside.unlink()
            path.write_bytes(changed)
            outcomes[outcome(path, expected)] += 1
    counts = ", ".join(f"{name} {outcomes[name]:,}" for name in ("noticed", "harmless", "lost", "silent"))
    print(f"{args.flips:,} flips in {len(content):,} bytes: {counts} ({time.monotonic() - began:.0f} s)")
    return int(outcomes["silent"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
