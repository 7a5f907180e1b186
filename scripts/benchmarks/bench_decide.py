"""Times decoding: from annotations, from raw texts, and (`--stream`) from a file of many segments.

    python scripts/benchmarks/bench_decide.py                         every utility, N and L, against a plain reference
    python scripts/benchmarks/bench_decide.py --stream 36000          `mbr-esd decide` end to end, with its memory

Candidates are simulated like those of a model at a high temperature: a pool of probable errors per translation, each of
which is in a candidate or not, with variable boundaries and severities. With N = 256, about 100 of them are distinct.
The plain reference is the scalar definition for each distinct candidate and all N, as in the authors' released code
(for softf1 character by character in Python); it is timed on a sample of pairs and extrapolated. Times are the best of
several runs on one core.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before numpy is imported

from mbr_esd_metric import Annotation, Candidate, decide
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.decision_problem import DecisionProblem, Hypotheses, decided
from mbr_esd_metric.core.rules import Mbr
from mbr_esd_metric.core.similarities import SIMILARITIES, Similarity, get_similarity
from mbr_esd_metric.prompting.formats.json import render_answer
from mbr_esd_metric.prompting.parse import JsonParser, Parsed

CATEGORIES = (("accuracy", "mistranslation"), ("fluency", "grammar"), ("style", "awkward"))


def chosen(
    annotations: Sequence[Annotation], logprobs: Sequence[float | None], length: int, similarity: Similarity
) -> Decision:
    """The MBR decision on parsed annotations."""
    problem = DecisionProblem(Hypotheses(annotations, logprobs), length, similarity)
    return decided(problem, Mbr().choose(problem), problem.expected)


def draw_translation(length: int, rng: random.Random) -> str:
    """A text of words with `length` characters."""
    letters = "enirsatdhulcgmobwfkzvp"
    text = ""
    while len(text) < length:
        text += "".join(rng.choices(letters, k=rng.randint(2, 10))) + " "
    return text[: length - 1] + "."


def draw_texts(translation: str, n: int, rng: random.Random) -> list[str]:
    """n simulated answers of a model for one translation."""
    starts = [0] + [i + 1 for i, character in enumerate(translation) if character == " "]
    ends = [start - 1 for start in starts[1:]] + [len(translation)]
    pool = []
    for _ in range(max(2, min(5, len(starts) // 4))):
        first = rng.randrange(len(starts))
        pool.append((first, min(first + rng.randint(0, 3), len(starts) - 1), rng.uniform(0.1, 0.7), rng.random()))
    texts = []
    for _ in range(n):
        errors = []
        for first, last, likely, major in pool:
            if rng.random() < likely:
                first = max(0, first - (rng.random() < 0.08))
                last = min(len(starts) - 1, last + (rng.random() < 0.08))
                category, sub_category = rng.choices(CATEGORIES, (8, 1, 1))[0]
                errors.append(
                    {
                        "error_span": translation[starts[first] : ends[last]],
                        "category": category,
                        "sub_category": sub_category,
                        "severity": "major" if rng.random() < 0.15 + 0.7 * (major > 0.5) else "minor",
                    }
                )
        texts.append(render_answer(errors))
    return texts


def best(function: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the fastest run."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def plain_vector(annotation: Annotation, length: int) -> list[float]:
    vector = [0.0] * length
    for severity, value in (("major", 1.0), ("minor", 0.5)):
        for i in range(length):
            vector[i] += value * any(s.severity == severity and s.start <= i < s.end for s in annotation)
    return vector


def plain_soft_f1(c: list[float], s: list[float], length: int) -> float:
    distance = sum(abs(x - y) for x, y in zip(c, s, strict=True))
    precision = max(0.0, 1 - distance / (length + sum(c) + 1))
    recall = max(0.0, 1 - distance / (length + sum(s) + 1))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def plain_seconds(name: str, annotations: Sequence[Annotation], distinct: int, length: int) -> float:
    """Seconds of a plain loop over pairs, extrapolated from some of them."""
    pairs = [(a, b) for a in annotations[:6] for b in annotations[-6:]]
    if name == "softf1":
        vectors = {id(a): plain_vector(a, length) for pair in pairs for a in pair}

        def one(a: Annotation, b: Annotation) -> float:
            return plain_soft_f1(vectors[id(a)], vectors[id(b)], length)

    else:
        similarity = get_similarity(name)

        def one(a: Annotation, b: Annotation) -> float:
            return similarity.scalar(a, b, length)

    seconds = best(lambda: [one(a, b) for a, b in pairs], 5)
    return seconds / len(pairs) * distinct * len(annotations)


def grid(sizes: Sequence[int], lengths: Sequence[int], utilities: Sequence[str]) -> None:
    """The table of all utilities."""
    print("| utility | N | L | distinct | decide ms | from raw text ms | plain s | ratio | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for length in lengths:
        for n in sizes:
            rng = random.Random(1)
            translation = draw_translation(length, rng)
            texts = draw_texts(translation, n, rng)
            candidates = [Candidate(text, logprob=-rng.random() * 40) for text in texts]
            annotations: list[Annotation] = []
            for text in texts:
                parsed = JsonParser(translation).parse(text)
                assert isinstance(parsed, Parsed)
                annotations.append(parsed.annotation)
            logprobs = [candidate.logprob for candidate in candidates]
            for name in utilities:
                from_annotations = partial(chosen, annotations, logprobs, length, get_similarity(name))
                from_text = partial(decide, candidates, translation, utility=name)
                repeats = (60 if n <= 256 else 15) if name != "mpp" else 3
                distinct = from_annotations().distinct
                fast, raw = best(from_annotations, repeats), best(from_text, repeats)
                plain = plain_seconds(name, annotations, distinct, length)
                tracemalloc.start()
                from_text()
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
                print(
                    f"| {name} | {n} | {length} | {distinct} | {1e3 * fast:.2f} | {1e3 * raw:.2f} | {plain:.3g} "
                    f"| {plain / fast:,.0f} | {peak / 1e6:.1f} |",
                    flush=True,
                )


def draw_lines(segments: int, n: int, length: int) -> list[str]:
    """Lines of a candidates file, without their prefix ``{"id": "...", ``."""
    rng = random.Random(1)
    lines = []
    for _ in range(segments):
        translation = draw_translation(length, rng)
        texts = draw_texts(translation, n, rng)
        candidates = [{"text": text, "logprob": -rng.random() * 40} for text in texts]
        lines.append(json.dumps({"src": "source", "mt": translation, "candidates": candidates})[1:])
    return lines


def stream(segments: int, n: int, length: int) -> None:
    """`mbr-esd decide` on a file of distinct segments, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "candidates.jsonl")
        with path.open("w", encoding="utf-8") as file:
            # A few hundred distinct segments, repeated under other ids; decisions are recomputed for each.
            lines = draw_lines(min(segments, 300), n, length)
            for number in range(segments):
                file.write(f'{{"id": "{number}", {lines[number % len(lines)]}\n')
        size = path.stat().st_size
        start = time.perf_counter()
        command = [sys.executable, "-m", "mbr_esd_metric", "decide", str(path), "-o", str(path) + ".out"]
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        peak, cpu = used.ru_maxrss / 1e3, used.ru_utime + used.ru_stime
        print(
            f"{segments} segments x {n} candidates ({size / 1e9:.2f} GB): {seconds:.1f} s, "
            f"{cpu:.1f} s of processor time; largest process {peak:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64, 256, 1024], metavar="N")
    parser.add_argument("--lengths", type=int, nargs="+", default=[60, 180, 600, 2000], metavar="L")
    parser.add_argument("--utilities", nargs="+", default=SIMILARITIES.names(), metavar="NAME")
    parser.add_argument("--stream", type=int, metavar="SEGMENTS", help="instead, time a file with this many segments")
    args = parser.parse_args()
    if args.stream:
        stream(args.stream, 256, 180)
    else:
        grid(args.sizes, args.lengths, args.utilities)


if __name__ == "__main__":
    main()
