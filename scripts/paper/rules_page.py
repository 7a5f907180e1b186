"""Is MBR better than MAP? Every decision rule on stored candidates against human annotations, as a page in Markdown.

    python rules_page.py --set three-raters candidates.jsonl ratings.tsv -o page.md
    python rules_page.py --set A a.jsonl a.tsv --single A greedy greedy.jsonl --scores A "log p" lp.jsonl \
        --set B b.jsonl b.tsv --format compact --tokenizer mbr-esd-llama -o page.md

A set is a name, a file of candidates and a file of human annotations (published MQM, or the WMT QE task's TSV), joined
by source and translation; several raters of a translation count their mean. `--single` adds rows for a file with one
answer a translation, such as those decoded at temperature 0 (label greedy) or those of a distilled model; `--scores` a
row of other scores: JSON lines with src, mt and score, higher is better. Where every translation has several raters, a
row says how well one rater does against the others. `--pairs` adds a set of pairs: a good translation, and the same one
with an error planted (TSV with kind, lp, source, good and bad, as `docs/examples/planted-errors.tsv`). `--part`
names sets whose translations are part of another set, such as those that were decoded greedily as well: what the page
concludes counts them against greedy alone.

Each rule is set against MAP and against greedy in pairs, by a bootstrap over sources, and consensus-corpus against
mbr-corpus. `--against` names a row of scores, `length` or one of `--scores`: in every set that has it, the
correlations of all rows are set against its own. What the page concludes is written from these intervals and from
nothing else.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before numpy is imported

import numpy as np
from planted_pairs import pairs_section
from rules_answers import (
    RULES,
    SINGLE,
    Answers,
    Floats,
    Item,
    Reader,
    markdown_table,
    of_set,
    possible,
    without_candidates,
)

from mbr_esd_metric.adapters.ratings import MqmRating
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import number_of
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.metaeval.correlation import COEFFICIENTS, coefficient_of
from mbr_esd_metric.metaeval.span_measures import DEFAULT_MEASURES, span_measure
from mbr_esd_metric.prompting.formats import FORMATS

#: Measures of spans, then correlations of the score with the human MQM score over translations.
MEASURES = (*DEFAULT_MEASURES, *COEFFICIENTS)


class Evaluation:
    """Every measure of answers, on all translations and on resamples of the sources."""

    def __init__(self, items: Sequence[Item], resamples: int) -> None:
        self.items = items
        self.gold = np.array([np.mean([rating.score("google") for rating in item.ratings]) for item in items])
        sources = {source: at for at, source in enumerate(dict.fromkeys(item.source for item in items))}
        self.cluster = np.array([sources[item.source] for item in items])
        self.sources = len(sources)
        rng = np.random.default_rng(0)
        self._weights = rng.multinomial(self.sources, np.full(self.sources, 1 / self.sources), size=resamples)
        self._drawn = [np.repeat(np.arange(len(items)), row[self.cluster]) for row in self._weights]
        self._measures = [span_measure(name) for name in DEFAULT_MEASURES]
        self._known: dict[tuple[int, object], Floats] = {}

    def measured(self, answers: Answers) -> dict[str, Floats]:
        """Measure -> its value on all translations, then on each resample; NaN where there is none."""
        values = {name: np.full(1 + len(self._drawn), np.nan) for name in DEFAULT_MEASURES}
        if answers.annotations is not None:
            values = self._spans(np.array([self._statistics(at, one) for at, one in enumerate(answers.annotations)]))
        return values | self._correlations(self.gold, answers.scores)

    def leave_one_out(self) -> dict[str, Floats] | None:
        """Each rater against the others of the same translation, on average; None where one has a single rating.

        Raters differ from one translation to the next, so that the correlations are those of the first rating of each
        translation with the mean of the others, then of the second, and so on, on average over as many as all have.
        """
        most = min(len(item.ratings) for item in self.items)
        if most < 2:
            return None
        rows, golds = [], []
        for at in range(most):
            others = [[*item.ratings[:at], *item.ratings[at + 1 :]] for item in self.items]
            golds.append(np.array([np.mean([rating.score("google") for rating in some]) for some in others]))
            rows.append(
                [
                    self._against(at_item, item.ratings[at].annotation, some)
                    for at_item, (item, some) in enumerate(zip(self.items, others, strict=True))
                ]
            )
        values = self._spans(np.mean(rows, axis=0))
        scores = [np.array([item.ratings[at].score("google") for item in self.items]) for at in range(most)]
        each = [self._correlations(gold, score) for gold, score in zip(golds, scores, strict=True)]
        return values | {name: np.mean([one[name] for one in each], axis=0) for name in COEFFICIENTS}

    def _spans(self, rows: Floats) -> dict[str, Floats]:
        """Span measures of the statistics of all translations."""
        sums = np.zeros((self.sources, rows.shape[1]))
        np.add.at(sums, self.cluster, rows)
        resampled = np.concatenate([sums.sum(0, keepdims=True), self._weights @ sums])
        values: dict[str, Floats] = {}
        first = 0
        for measure in self._measures:
            values[measure.name] = np.asarray(measure.value(resampled[:, first : first + measure.width]))
            first += measure.width
        return values

    def _correlations(self, gold: Floats, scores: Floats) -> dict[str, Floats]:
        values: dict[str, Floats] = {name: np.full(1 + len(self._drawn), np.nan) for name in COEFFICIENTS}
        for at, drawn in enumerate([np.arange(len(self.items)), *self._drawn]):
            for name in COEFFICIENTS:
                value = coefficient_of(gold[drawn], scores[drawn], name)
                values[name][at] = np.nan if value is None else value
        return values

    def _statistics(self, at: int, annotation: Annotation) -> Floats:
        """Statistics of one translation for all span measures, means over the raters."""
        key = (at, annotation.key)
        if key not in self._known:
            self._known[key] = self._against(at, annotation, self.items[at].ratings)
        return self._known[key]

    def _against(self, at: int, annotation: Annotation, ratings: Sequence[MqmRating]) -> Floats:
        length = len(self.items[at].translation)
        rows = [
            [x for m in self._measures for x in m.statistics(annotation, rating.annotation, length)]
            for rating in ratings
        ]
        return np.asarray(np.mean(rows, axis=0))


VERDICTS = ("better", "worse", "nothing significant")


@dataclass(frozen=True)
class Difference:
    """Difference of a rule to the base, with its 95% interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Better, worse or neither, by the interval."""
        better, worse, neither = VERDICTS
        return better if self.low > 0 else worse if self.high < 0 else neither

    def __str__(self) -> str:
        text = f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"
        return text if self.verdict == VERDICTS[2] else f"**{text}**"


def difference(one: Floats, other: Floats) -> Difference | None:
    """Difference of two measured rows; None where one of them has no value."""
    deltas = (one - other)[1:]
    deltas = deltas[~np.isnan(deltas)]
    if np.isnan(one[0] - other[0]) or not len(deltas):
        return None
    low, high = np.percentile(deltas, [2.5, 97.5])
    return Difference(float(one[0] - other[0]), float(low), float(high))


def _everything_minor(items: Sequence[Item]) -> Answers:
    """One minor error over each whole translation."""
    spans = [Annotation([ErrorSpan(0, len(item.translation), "minor")]) for item in items]
    return Answers(np.full(len(items), -1.0), spans, 0.0)


SAME = "MBR of the same utility"
#: What rules are compared with -> rule -> the row that it is compared with, where that is not the base itself.
BASES: dict[str, dict[str, str]] = {
    "MAP": {},
    "greedy": {},
    SAME: {"consensus corpus": "MBR corpus", "expected score (MBR softf1)": "MBR softf1"},
}
#: Base -> measure -> rule -> set -> difference.
Differences = dict[str, dict[str, dict[str, dict[str, Difference]]]]


def section(
    name: str, candidates: str, human: str, args: argparse.Namespace, reader: Reader, differences: Differences
) -> str:
    """The tables of one set; its differences go into `differences`."""
    every = reader.items(candidates, human)
    items, silent = reader.without_answer(every)
    evaluation = Evaluation(items, args.resamples)
    cost = reader.cost(every)
    answers: dict[str, Answers] = {}
    for row, options in possible(RULES, items).items():
        answers[row] = Answers.of(reader.decided(items, options), 0.0 if row == "no error" else cost)
    for label, file in of_set(name, args.single):
        decoded = reader.single(every, file)
        spent = reader.cost(decoded)
        readable, _ = reader.without_answer(decoded)
        for row, options in possible(SINGLE, readable).items():
            answers[row.format(label)] = Answers.of(reader.decided(readable, options), spent)
        # Where the answer has no error, which is mostly so, this is the probability that there is none.
        sure = np.array([one.candidates.logprobs[0] for one in decoded], dtype=float)
        answers[f"{label}, its log-probability"] = Answers(sure, None, spent)
    answers["everything minor"] = _everything_minor(items)
    answers |= without_candidates(name, items, args)
    measured = {row: evaluation.measured(one) for row, one in answers.items()}
    people = evaluation.leave_one_out()
    n = sum(len(item.candidates) for item in every) / len(every)
    ratings = sum(len(item.ratings) for item in items)
    clean = sum(not rating.annotation for item in items for rating in item.ratings) / ratings
    lines = [
        f"## {name}",
        "",
        f"{len(items)} translations of {evaluation.sources} sources; {ratings} ratings, {clean:.0%} without an error; "
        f"{n:.0f} candidates a translation"
        + (f", none of which can be read for {silent} (taken as no error)" if silent else "")
        + ".",
        "",
    ]
    rows = {}
    for row, one in answers.items():
        rows[row] = [_number(measured[row][measure][0]) for measure in MEASURES]
        if one.annotations is None:
            rows[row] += ["-", "-", "-"]
        else:
            rows[row].append(f"{sum(map(len, one.annotations)) / len(items):.2f}")
            rows[row].append(f"{sum(not a for a in one.annotations) / len(items):.0%}")
            rows[row].append(f"{one.cost:.0f}")
    if people is not None:
        rows["one rater against the others"] = [*(_number(people[measure][0]) for measure in MEASURES), "-", "-", "-"]
    lines += markdown_table("rule", [*MEASURES, "spans", "empty", reader.unit], rows)
    against: dict[str, dict[str, str]] = {row: {} for row in args.against}
    for base, pairs in (BASES | against).items():
        if not pairs and base not in answers:
            continue
        measures = COEFFICIENTS if base in args.against else MEASURES  # scores have no spans
        rows = {}
        for row, other in (pairs or dict.fromkeys(answers, base)).items():
            if row == other or row not in measured:
                continue
            rows[row] = []
            for measure in measures:
                one_to_other = difference(measured[row][measure], measured[other][measure])
                rows[row].append("-" if one_to_other is None else str(one_to_other))
                if one_to_other is not None and (base == "greedy" or name not in args.part):
                    differences[base][measure][row][name] = one_to_other
        lines += ["", f"Difference to {base}, with its 95% interval; in bold where 0 is outside:", ""]
        lines += markdown_table("rule", measures, rows)
    return "\n".join([*lines, ""])


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def conclusions(differences: Differences, sets: int) -> list[str]:
    """The intervals in words, and nothing else: on how many sets each rule is significantly better or worse."""
    lines: list[str] = []
    for base, by_measure in differences.items():
        rows = list(dict.fromkeys(row for rules in by_measure.values() for row in rules))
        if base == "MAP":
            mbr = [one for rules in by_measure.values() for row, one in _each(rules) if row.startswith("MBR")]
            lines += [f"**Is MBR better than MAP?** {_answer(mbr)} It depends on the measure:", ""]
            lines += markdown_table("measure", ["better", "worse", "nothing significant"], _by_measure(by_measure))
            lines += [
                "",
                "Rule by rule, the number of sets on which it is significantly better (+) or worse (-) than the base; "
                f"`.` is none of {number_of(sets, 'set')}.",
                "",
            ]
        cells = {row: [_signs(by_measure[measure].get(row, {})) for measure in by_measure] for row in rows}
        lines += [f"Against {base}:", "", *markdown_table("rule", list(by_measure), cells), ""]
    tests = sum(len(by_set) for rules in differences.values() for rows in rules.values() for by_set in rows.values())
    lines += [
        f"Of these {tests} intervals about {round(0.05 * tests)} would leave 0 out by chance alone if no rule differed "
        "from another; a rule that is better on one measure of one set only has not been shown to be better.",
        "",
    ]
    return lines


def _by_measure(differences: Mapping[str, Mapping[str, Mapping[str, Difference]]]) -> dict[str, list[str]]:
    """Measure -> comparisons of MBR rules (rules x sets) that are better, worse and neither."""
    counted = {}
    for measure, rules in differences.items():
        verdicts = [one.verdict for row, one in _each(rules) if row.startswith("MBR")]
        counted[measure] = [str(verdicts.count(verdict)) for verdict in VERDICTS]
    return counted


def _each(rows: Mapping[str, Mapping[str, Difference]]) -> Iterable[tuple[str, Difference]]:
    return ((row, one) for row, by_set in rows.items() for one in by_set.values())


def _answer(differences: Sequence[Difference]) -> str:
    """In words, over all utilities, measures and sets."""
    better, worse, neither = ([one.verdict for one in differences].count(verdict) for verdict in VERDICTS)
    if not better and not worse:
        return f"Nothing significant in {len(differences)} comparisons (rules x measures x sets)."
    return (
        f"Significantly better in {better} of {len(differences)} comparisons (rules x measures x sets), "
        f"significantly worse in {worse}, nothing significant in {neither}."
    )


def _signs(by_set: Mapping[str, Difference]) -> str:
    """On how many sets a rule is significantly better and worse, such as ``+3 -1``."""
    verdicts = [one.verdict for one in by_set.values()]
    signs = [f"{sign}{n}" for sign, verdict in zip("+-", VERDICTS, strict=False) if (n := verdicts.count(verdict))]
    return " ".join(signs) or "."


def page(args: argparse.Namespace) -> str:
    """The whole page."""
    differences: Differences = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    reader = Reader(args)
    sections = [section(name, candidates, human, args, reader, differences) for name, candidates, human in args.set]
    lines = [
        "# Is MBR better than MAP?",
        "",
        *([args.note, ""] if args.note else []),
        "Made by `scripts/paper/rules_page.py`. Each row is a decision rule on the same stored candidates. Spans are "
        f"measured by {', '.join(DEFAULT_MEASURES)} ([similarities](../similarities.md)), scores by their correlation "
        f"({', '.join(COEFFICIENTS)}) with the human MQM score over all translations. Intervals are of a paired "
        f"bootstrap over sources, {args.resamples} resamples. `{reader.unit}` are those of all answers that the rule "
        "needs for a translation; the prompt comes on top.",
        "",
        "Measures that are averaged over translations (softf1, f1, softdice) give an answer without an error full "
        "marks wherever people marked none: the row `no error` shows how much that is. Corpus measures do not.",
        "",
        "## What follows",
        "",
        *conclusions(differences, len(args.set) - len(args.part)),
        *sections,
        *(pairs_section(name, candidates, table, args, reader) for name, candidates, table in args.pairs),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs=3, action="append", required=True, metavar=("NAME", "CANDIDATES", "HUMAN"))
    parser.add_argument("--pairs", nargs=3, action="append", default=[], metavar=("NAME", "CANDIDATES", "TSV"))
    parser.add_argument("--part", nargs="+", default=[], metavar="NAME", help="sets that are part of another one")
    parser.add_argument("--single", nargs=3, action="append", default=[], metavar=("NAME", "LABEL", "CANDIDATES"))
    parser.add_argument("--scores", nargs=3, action="append", default=[], metavar=("NAME", "LABEL", "FILE"))
    parser.add_argument(
        "--against", action="append", default=[], metavar="LABEL", help="set every row against this one"
    )
    parser.add_argument(
        "--format", default="json", choices=FORMATS.names(), help="where a file does not say it (%(default)s)"
    )
    parser.add_argument("--tokenizer", metavar="MODEL", help="count tokens of answers, not characters")
    parser.add_argument("--n", type=int, help="candidates of each translation; all by default")
    parser.add_argument("--most", type=int, help="read so many records of each file; all by default")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--note", default="", help="where the candidates come from")
    parser.add_argument("-o", "--output", required=True)
    args = parser.parse_args()
    names = {name for name, _, _ in (*args.set, *args.pairs)}
    for name in [*(one[0] for one in (*args.single, *args.scores)), *args.part]:
        if name not in names:
            parser.error(f"{name!r} is not the name of a --set or of --pairs; those are {', '.join(sorted(names))}")
    rows = ["length", *dict.fromkeys(label for name, label, _ in args.scores if name in {one[0] for one in args.set})]
    for row in args.against:
        if row not in rows:
            parser.error(f"--against {row!r} is no row of scores of a --set; those are {', '.join(rows)}")
    check_output(args.output)
    Path(args.output).write_text(page(args), encoding="utf-8")


if __name__ == "__main__":
    main()
