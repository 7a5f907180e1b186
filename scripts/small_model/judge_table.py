"""Evaluates models on the ranking of translations of one source, and on the errors that they mark.

    python scripts/small_model/judge_table.py MODEL... --rated 2020_en-de.tsv.gz=Human-A.0 mqm_ted_zhen.tsv=ref \
        --pairs planted_train.jsonl.gz --good dev.jsonl
    python scripts/small_model/judge_table.py MODEL... --held-out sxs_mqm_generalMT2023_ende.3raters.tsv=refA
    python scripts/small_model/judge_table.py MODEL... --kinds docs/examples/everyday-errors.tsv

A model is a name or a folder. `--rated` are human MQM annotations; from newstest2020 and from the pairs, only the parts
that are held out from training are used. `--held-out` is the same for data that were not used for model selection. For
each file, on a sample of its sources, the table has the mean of Kendall's tau-b over the translations of one source,
the share of pairs of systems that are ranked correctly by their mean scores, and Spearman's correlation over all
translations. The system after = is the reference of BLEU and chrF, and not evaluated. For pairs: the share of good
translations with the higher score, of bad ones with a mark at the error, of marks in bad ones that are at the error,
and of good ones with a mark. `--good` are human-corrected translations (`clean_pairs.py`). `--kinds` has one row per
kind of error; for a kind without bad translations, the first share is that of good ones with a score below .8.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from clean_pairs import read_pairs
from training_rows import held_out

from mbr_esd_metric import load_metric
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.files.streams import read_segments
from mbr_esd_metric.metaeval import correlation, pairwise_accuracy, system_means

#: (source, translation) -> score and marks.
Judged = Mapping[tuple[str, str], tuple[float, Annotation]]
#: System -> translation and its mean rating, for one source.
Rated = dict[str, tuple[str, float]]


def read_rated(path: str, most: int, seed: int = 0) -> list[tuple[str, Rated]]:
    """At most `most` sources, in random order."""
    ratings: dict[tuple[str, str, str], dict[str, list[tuple[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for r in read_mqm(path):
        one = r.segment
        if one.translation and ("2020" not in Path(path).name or held_out(one.document, 8)):
            key = one.document, r.doc_segment or one.label, one.source
            ratings[key][one.system].append((one.translation, max(-25.0, r.mqm())))
    keys = sorted(ratings)
    random.Random(seed).shuffle(keys)
    return [
        (key[2], {name: (some[0][0], float(np.mean([s for _, s in some]))) for name, some in ratings[key].items()})
        for key in keys[:most]
    ]


def judged(model: str, texts: Sequence[tuple[str, str]]) -> Judged:
    """Scores and marks of both sides."""
    result = load_metric(model).predict([{"src": s, "mt": t} for s, t in texts], progress_bar=False)
    spans, omissions = result.metadata.error_spans, getattr(result.metadata, "omissions", [[]] * len(texts))
    return {
        text: (score, Annotation([*errors, *({**one, "side": "source"} for one in missing)]))
        for text, score, errors, missing in zip(texts, result.scores, spans, omissions, strict=True)
    }


def rated_cells(sources: Sequence[tuple[str, Rated]], scores: Sequence[Mapping[str, float]]) -> list[str]:
    """Agreement by item, by system and overall, of scores by source and system; for a single system, only overall."""
    systems = sorted({name for one in scores for name in one})
    gold: npt.NDArray[Any] = np.full((len(systems), len(sources)), np.nan)
    metric = gold.copy()
    for j, ((_, rated), of) in enumerate(zip(sources, scores, strict=True)):
        for name, score in of.items():
            gold[systems.index(name), j], metric[systems.index(name), j] = rated[name][1], score
    flat = correlation(gold, metric, "spearman")
    if len(systems) == 1:
        return ["-", "-", f"{flat:.3f}"]
    accuracy = pairwise_accuracy([(system_means(gold), system_means(metric))])
    return [f"{value:.3f}" for value in (correlation(gold, metric, "kendall", "item"), accuracy, flat)]


def with_reference(sources: Sequence[tuple[str, Rated]], reference: str) -> dict[str, list[dict[str, float]]]:
    """Sentence BLEU and chrF with this system as the reference, if it is available."""
    from sacrebleu.metrics import BLEU, CHRF

    return {
        name: [
            {system: metric.sentence_score(text, [rated[reference][0]]).score for system, (text, _) in rated.items()}
            if reference in rated
            else {}
            for _, rated in sources
        ]
        for name, metric in (("BLEU", BLEU(effective_order=True)), ("chrF", CHRF()))
    }


def place(good: str, bad: str) -> tuple[int, int]:
    """The characters of `bad` that differ from `good`; at an omission, one character on each side."""

    def common(one: str, other: str) -> int:
        return next(
            (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(map(len, (one, other)))
        )

    start = common(good, bad)
    end = len(bad) - common(good[start:][::-1], bad[start:][::-1])
    return (start, end) if end > start else (max(0, len(bad) - common(good[::-1], bad[::-1]) - 1), start + 1)


def pair_cells(pairs: Sequence[Mapping[str, str]], good: Sequence[tuple[str, str]], of: Judged) -> list[str]:
    """Shares: pairs in order, bad ones with a mark at the error, correct marks, good and corrected ones with a mark."""
    right = touched = marks = hits = 0
    for one in pairs:
        (better, _), (worse, spans) = of[one["src"], one["good"]], of[one["src"], one["bad"]]
        start, end = place(one["good"], one["bad"])
        found = [s.start < end and s.end > start for s in spans.on("translation")]
        right, touched = right + (better > worse), touched + any(found)
        marks, hits = marks + len(found), hits + sum(found)
    marked = [
        np.mean([bool(of[text][1]) for text in some]) if some else np.nan
        for some in ([(p["src"], p["good"]) for p in pairs], good)
    ]
    shares = (right / len(pairs), touched / len(pairs), hits / max(1, marks), *marked)
    return [f"{share:.3f}" for share in shares]


def read_kinds(path: str) -> dict[str, list[dict[str, str]]]:
    """Kind -> its pairs, with an empty `bad` if there is none."""
    header, *lines = (line.split("\t") for line in read_segments(path))
    kinds: dict[str, list[dict[str, str]]] = defaultdict(list)
    for line in lines:
        row = dict(zip_longest(header, line, fillvalue=""))
        kinds[row["kind"]].append({"src": row["source"], "good": row["good"], "bad": row["bad"]})
    return dict(kinds)


def kind_cells(pairs: Sequence[Mapping[str, str]], of: Judged) -> list[str]:
    """Shares: pairs in order, bad ones with a mark at the error, good ones with a mark; without bad ones, see above."""
    if all(one["bad"] for one in pairs):
        order, touched, _, marked, _ = pair_cells(pairs, [], of)
        return [order, touched, marked]
    good = [of[one["src"], one["good"]] for one in pairs]
    shares = (np.mean([score < 0.8 for score, _ in good]), np.mean([bool(spans) for _, spans in good]))
    return [f"below .8: {shares[0]:.3f}", "-", f"{shares[1]:.3f}"]


def rows(models: Sequence[str], texts: Sequence[tuple[str, str]]) -> dict[str, Judged]:
    """The predictions of each model, each text computed once."""
    return {
        Path(model).name if Path(model).is_dir() else model: judged(model, list(dict.fromkeys(texts)))
        for model in models
    }


def print_table(title: str, header: Sequence[str], table: Mapping[str, Sequence[str]]) -> None:
    print(f"\n| {' | '.join([title, *header])} |\n|---|{'--:|' * len(header)}")
    for name, cells in table.items():
        print(f"| {' | '.join([name, *cells])} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--rated", nargs="+", default=[], metavar="FILE[=REFERENCE]", help="annotations of people")
    parser.add_argument(
        "--held-out", nargs="+", default=[], metavar="FILE[=REFERENCE]", help="that nothing was chosen on"
    )
    parser.add_argument("--sources", type=int, default=100, help="of each file at most (default: %(default)s)")
    parser.add_argument("--pairs", help="good translations and the same with one error, JSON lines")
    parser.add_argument("--kinds", metavar="FILE.tsv", help="good translations and wrong ones, by kind of error")
    parser.add_argument("--good", help="clean pairs, JSON lines")
    parser.add_argument("--most", type=int, default=400, help="pairs, and clean ones, at most (default: %(default)s)")
    args = parser.parse_args()
    for named in [*args.rated, *args.held_out]:
        path, _, reference = named.partition("=")
        sources = read_rated(path, args.sources)
        baselines = with_reference(sources, reference) if reference else {}
        kept = [(source, {n: one for n, one in rated.items() if n != reference}) for source, rated in sources]
        said = rows(args.models, [(source, text) for source, rated in kept for text, _ in rated.values()])
        scores = {
            name: [{n: of[source, text][0] for n, (text, _) in rated.items()} for source, rated in kept]
            for name, of in said.items()
        } | {
            name: [{n: v for n, v in one.items() if n != reference} for one in some] for name, some in baselines.items()
        }
        title = f"{Path(path).name}, {len(sources)} sources{' (held out)' if named in args.held_out else ''}"
        print_table(
            title, ["by item", "systems", "all"], {name: rated_cells(kept, some) for name, some in scores.items()}
        )
    if args.kinds:
        kinds = read_kinds(args.kinds)
        texts = [(one["src"], one[side]) for some in kinds.values() for one in some for side in ("good", "bad")]
        for name, of in rows(args.models, [text for text in texts if text[1]]).items():
            table = {f"{kind} ({len(some)})": kind_cells(some, of) for kind, some in kinds.items()}
            print_table(name, ["in order", "touched", "good marked"], table)
    if args.pairs:
        pairs = [one for one in map(json.loads, read_segments(args.pairs)) if held_out(one["src"], 12)]
        random.Random(0).shuffle(pairs)
        good = [(p.source, p.translation) for p in read_pairs(args.good)] if args.good else []
        random.Random(0).shuffle(good)
        pairs, good = pairs[: args.most], good[: args.most]
        texts = [(one["src"], one[side]) for one in pairs for side in ("good", "bad")]
        header = ["in order", "touched", "right marks", "good marked", "corrected marked"]
        said = rows(args.models, [*texts, *good])
        print_table(f"{len(pairs)} pairs", header, {name: pair_cells(pairs, good, of) for name, of in said.items()})


if __name__ == "__main__":
    main()
