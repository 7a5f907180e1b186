"""Does it pay to choose the segments that annotators rate? Real raters, and a budget of segments.

    python scripts/paper/what_to_annotate.py FOLDER              (the one with mqm/; default: MBR_ESD_DATA)
    python scripts/paper/what_to_annotate.py --esa CHECKOUT      (wmt-conference/wmt24-news-systems)

How near are the systems' scores from the budget to those from the whole set? Metrics are chrF and BLEU of
sacrebleu against the reference among the outputs, as good as a user has without a model. Where three people rated, the
first stands for a perfect metric, the first two for candidates, and the third is what is looked at. With --esa it is
the scores of WMT24's error span annotation in the campaign's last two waves, where every system has one for every
segment. Each of 100 draws
takes 70% of the segments; the chosen budget of them is compared with the mean of 20 random budgets. SPA is that of the
systems' scores from the budget against those from all segments of the draw.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import sacrebleu

from mbr_esd_metric.adapters.esa_files import RatedSegment, SegmentRating
from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.adapters.ratings import MqmRating
from mbr_esd_metric.files.tables import table_rows

Floats = npt.NDArray[np.float64]

DRAWS, RANDOM, PERMUTATIONS, SHARE = 100, 20, 200, 0.7


def p_values(scores: Floats, signs: Floats) -> Floats:
    """One-sided p-values of each pair of systems (paired permutation), from scores of (systems, segments)."""
    difference = scores[:, None, :] - scores[None, :, :]
    drawn = difference @ signs[:, : scores.shape[1]].T
    reached: Floats = (drawn >= difference.sum(axis=2)[:, :, None] - 1e-9).mean(axis=2)
    return reached


def agreement(whole: Floats, part: Floats, signs: Floats, known: Floats) -> tuple[float, float]:
    """SPA, and the share of pairs of systems in the same order."""
    upper = np.triu_indices(len(whole), 1)
    spa = 1 - np.abs(known[upper] - p_values(part, signs)[upper]).mean()
    order = np.sign(whole.mean(axis=1)[:, None] - whole.mean(axis=1))[upper]
    return float(spa), float((order == np.sign(part.mean(axis=1)[:, None] - part.mean(axis=1))[upper]).mean())


def study(name: str, gold: Floats, worth: dict[str, Floats], budgets: tuple[int, ...], seed: int = 0) -> None:
    """Print what each strategy adds to random, with the middle 95% of the draws."""
    rng = np.random.default_rng(seed)
    size = round(SHARE * gold.shape[1])
    signs = rng.choice([-1.0, 1.0], (PERMUTATIONS, size))
    for budget in budgets:
        results: dict[str, list[tuple[float, float]]] = {strategy: [] for strategy in worth}
        baseline = []
        for _ in range(DRAWS):
            pool = rng.choice(gold.shape[1], size, replace=False)
            whole = gold[:, pool]
            known = p_values(whole, signs)
            at_random = [
                agreement(whole, whole[:, rng.choice(size, budget, replace=False)], signs, known) for _ in range(RANDOM)
            ]
            base = np.mean(at_random, axis=0)
            baseline.append(base)
            for strategy, values in worth.items():
                best = np.argsort(-values[pool], kind="stable")[:budget]
                spa, order = agreement(whole, whole[:, best], signs, known)
                results[strategy].append((spa - base[0], order - base[1]))
        spa, order = np.mean(baseline, axis=0)
        print(f"{name}\tbudget {budget} of {size}\trandom\tSPA {spa:.3f}\torder {order:.3f}")
        for strategy, gains in results.items():
            mean = np.mean(gains, axis=0)
            (low, high), (least, most) = np.quantile(gains, [0.025, 0.975], axis=0).T
            print(
                f"{name}\tbudget {budget} of {size}\t{strategy}\tSPA {mean[0]:+.3f} ({low:+.3f} to {high:+.3f})"
                f"\torder {mean[1]:+.3f} ({least:+.3f} to {most:+.3f})",
                flush=True,
            )


def matrix(ratings: list[MqmRating], systems: list[str], segments: list[str]) -> Floats:
    """Scores of (systems, segments), NaN where there is no rating."""
    table = np.full((len(systems), len(segments)), np.nan)
    for one in ratings:
        table[systems.index(one.system), segments.index(one.segment)] = one.score()
    return table


def metric_scores(ratings: list[MqmRating], systems: list[str], segments: list[str], reference: str) -> list[Floats]:
    """chrF and BLEU, each of (systems, segments), with mean 0 and variance 1."""
    texts = {(one.system, one.segment): one.target for one in ratings}
    scores = []
    for score in (sacrebleu.sentence_chrf, sacrebleu.sentence_bleu):
        table = np.array(
            [[score(texts[system, s], [texts[reference, s]]).score for s in segments] for system in systems]
        )
        scores.append((table - table.mean()) / table.std())
    return scores


def strategies(metrics: list[Floats]) -> dict[str, Floats]:
    """Worth of each segment by chrF and BLEU, (systems, segments) each."""
    return {
        "errors (chrF)": -metrics[0].mean(axis=0),
        "metrics (chrF, BLEU)": np.var(metrics, axis=0).mean(axis=0),
        "variance over systems (chrF)": metrics[0].var(axis=0),
    }


def main() -> None:
    """Both sets, or WMT24's."""
    if sys.argv[1:2] == ["--esa"]:
        esa(Path(sys.argv[2]))
        return
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["MBR_ESD_DATA"]) / "mqm"
    for file, reference, budgets in (
        ("mqm_ted_ende.tsv", "ref", (20, 50, 100, 200)),
        ("sxs_mqm_generalMT2023_ende.3raters.tsv", "refA", (10, 20, 40)),
    ):
        ratings = list(read_mqm_tsv(folder / file))
        keys = sorted({(one.doc, one.segment) for one in ratings})
        ratings = [
            MqmRating(r.system, r.doc, r.doc_segment, f"{r.doc} {r.segment}", r.rater, r.source, r.target, r.errors)
            for r in ratings
        ]
        segments = [f"{doc} {segment}" for doc, segment in keys]
        systems = sorted({one.system for one in ratings} - {reference})
        complete = {(one.system, one.segment) for one in ratings}
        segments = [s for s in segments if all((system, s) in complete for system in [*systems, reference])]
        # A rater's name stands for a person within a document; the n-th rating of a translation is the n-th column.
        columns: list[list[MqmRating]] = []
        times: dict[tuple[str, str], int] = {}
        for one in ratings:
            at = times[one.system, one.segment] = times.get((one.system, one.segment), -1) + 1
            columns += [[] for _ in range(at + 1 - len(columns))]
            columns[at].append(one)
        usable = [[r for r in column if r.system in systems and r.segment in segments] for column in columns]
        tables = [matrix(column, systems, segments) for column in usable]
        metrics = metric_scores(columns[0], systems, segments, reference)
        worth = strategies(metrics)
        print(f"{file}: {len(systems)} systems, {len(segments)} segments, {len(tables)} ratings a translation")
        if len(tables) == 1:
            study(file[:12], tables[0], worth, budgets)
            continue
        rated = ~np.isnan(tables).any(axis=(0, 1))
        tables = [table[:, rated] for table in tables]
        worth = {name: values[rated] for name, values in worth.items()}
        worth["errors (another person)"] = -tables[0].mean(axis=0)
        worth["disagreement (two people)"] = np.abs(tables[0] - tables[1]).mean(axis=0)
        study(file[:12], tables[2], worth, budgets)


def appraise(checkout: Path, wave: int) -> list[RatedSegment]:
    """The segments of a wave of WMT24, as Appraise exports it, with the last score of each person."""
    codes = {"ces": "cs", "deu": "de", "eng": "en", "hin": "hi", "isl": "is", "jpn": "ja", "rus": "ru", "spa": "es"}
    codes |= {"plk": "pl", "hrv": "hr", "ukr": "uk", "zho": "zh"}
    segments: dict[tuple[str, int], RatedSegment] = {}
    last: dict[tuple[str, int, str, str], tuple[float, float]] = {}
    for _, row in table_rows(checkout / f"humeval/esa_generalMT2024_wave{wave}.csv", ","):
        person, system, number, kind, source, target, score, document, *_, ended = row
        if kind == "BAD" or "-tutorial" in document or document.endswith(("#bad", "#dup", "#incomplete")):
            continue
        key = (f"{codes.get(source, source)}-{codes.get(target, target)}", int(number), system, person)
        last[key] = max(last.get(key, (0.0, 0.0)), (float(ended), float(score)))
    for lp in {key[0] for key in last}:
        texts = {path.stem: path for path in (checkout / "txt/system-outputs" / lp).glob("*.txt")}
        texts |= {path.stem.removeprefix(f"{lp}."): path for path in (checkout / "txt/references").glob(f"{lp}.*.txt")}
        lines = {name: path.read_text(encoding="utf-8").split("\n") for name, path in texts.items()}
        sources = (checkout / "txt/sources" / f"{lp}.txt").read_text(encoding="utf-8").split("\n")
        for line in {key[1] for key in last if key[0] == lp}:
            outputs = {name: of[line] for name, of in lines.items()}
            segments[lp, line] = RatedSegment(lp, "all", "all", str(line), sources[line], outputs)
    for (lp, line, system, person), (_, value) in last.items():
        segments[lp, line].ratings.setdefault(system, []).append(SegmentRating((), value, person))
    return list(segments.values())


def esa(checkout: Path) -> None:
    """The language pairs of WMT24 whose segments in these waves are rated for every system."""
    every = [one for number in (2, 3) for one in appraise(checkout, number)]
    for pair in sorted({one.lp for one in every if one.ratings}):
        segments = [one for one in every if one.lp == pair and "refA" in one.outputs]
        systems = sorted({system for one in segments for system in one.ratings} - {"refA"})
        segments = [one for one in segments if all(system in one.ratings for system in systems)]
        gold = np.array([[one.ratings[system][-1].score for one in segments] for system in systems], dtype=np.float64)
        tokenize = {"en-zh": "zh", "en-ja": "char"}.get(pair, "13a")
        metrics = []
        for score in (sacrebleu.sentence_chrf, lambda *text: sacrebleu.sentence_bleu(*text, tokenize=tokenize)):  # noqa: B023
            table = np.array(
                [[score(one.outputs[s], [one.outputs["refA"]]).score for one in segments] for s in systems]
            )
            metrics.append((table - table.mean()) / table.std())
        print(f"WMT24 {pair}: {len(systems)} systems, {len(segments)} segments")
        study(f"WMT24 {pair}", gold, strategies(metrics), (20, 50, 100))


main()
