"""The tables of docs/evidence/human-ceiling.md: agreement of several raters with another rater on the same
translations.

    git clone https://github.com/wmt-conference/ErrorSpanAnnotation
    python scripts/paper/human_ceiling.py ErrorSpanAnnotation/data

Campaigns on WMT23 English-German: ESA twice, MQM, the MQM of WMT, and ESA with pre-annotation by GEMBA twice. Each of
the first four is held out in turn. Columns: corpus softdice, rho, tau by item, SoftF1, and the difference from the
SoftF1 of an empty annotation. Intervals are 95% bootstrap intervals over sources.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from panel_tables import Judged, Row

from mbr_esd_metric import Annotation, Candidate, decide_many, mqm_score
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.metaeval.matrices import percentile_interval
from mbr_esd_metric.metaeval.spans import span_measure

CAMPAIGNS = {"ESA 1": "240315rc5ESA", "ESA 2": "240520rc6ESA", "MQM": "240315rc5MQM"}
ASSISTED = {"ESA with GEMBA 1": "240315rc5GEMBA", "ESA with GEMBA 2": "240520rc6GEMBA"}
#: A second annotation by the same annotators, of a third of the translations.
AGAIN = {"ESA 1 again": "240521rc6ESA", "MQM again": "240521rc6MQM"}
WMT = "MQM of WMT"
PEOPLE = (*CAMPAIGNS, WMT)
#: A document that is divided among two accounts with the same item numbers.
SPLIT = "elitr_minuting-19#GPT4-5shot"
SOFTF1 = span_measure("softf1")

Translation = tuple[str, int]
Annotated = Mapping[Translation, Mapping[str, Annotation]]


def read(folder: Path) -> tuple[dict[Translation, str], Annotated]:
    """The text of each translation (system, number of the source), and its annotation in each campaign."""
    batches = json.loads((folder / "campaign-ruction-rc5/data/batches_wmt23_en-de_esa.json").read_text("utf-8"))
    items = {(str(one["itemID"]), one["documentID"]): one for batch in batches for one in batch["items"]}
    texts: dict[Translation, str] = {}
    found: dict[Translation, dict[str, Annotation]] = defaultdict(dict)
    for name, file in {**CAMPAIGNS, **ASSISTED, **AGAIN}.items():
        path = folder / f"campaign-ruction-rc5/{file}.scores.csv"
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = [row for row in csv.reader(lines) if len(row) > 11 and row[3] == "TGT"]
        for row in sorted(rows, key=lambda row: float(row[11])):  # the last one is used
            if "#dup" in row[7] or "tutorial" in row[7] or row[7] == SPLIT:
                continue
            item = items[row[2], row[7]]
            system, number, _ = item["_item"].split(" | ")
            texts[system, int(number)] = text = item["targetText"]
            found[system, int(number)][name] = annotation(text, json.loads(row[9] or "[]"), 1)
    ratings: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "mt-metrics-eval-v2/wmt23/human-scores/en-de.mqm.merged.seg.rating").open(encoding="utf-8"):
        system, _, rating = line.rstrip("\n").partition("\t")
        ratings[system].append(rating)
    for (system, line_number), text in texts.items():
        if (rating := ratings[system][line_number]) != "None":
            spans = [one for one in json.loads(rating)["errors"] if not one["is_source_error"]]
            spans = [{"start_i": one["start"], "end_i": one["end"], "severity": one["severity"]} for one in spans]
            found[system, line_number][WMT] = annotation(text, spans, 0)
    return texts, found


def annotation(text: str, spans: Sequence[Mapping[str, Any]], last: int) -> Annotation:
    """The spans in the text, without surrounding whitespace; `last` is 1 if ends are inclusive. Omissions have no
    location, and undecided errors are minor."""
    located = []
    for one in spans:
        if one["start_i"] == "missing":
            continue
        start, end = one["start_i"], min(one["end_i"] + last, len(text))
        words = text[start:end]
        start, end = start + len(words) - len(words.lstrip()), end - len(words) + len(words.rstrip())
        if start < end:
            severity = "minor" if one["severity"] in ("minor", "undecided") else "major"
            located.append({"start": start, "end": end, "severity": severity})
    return Annotation(located)


class Table:
    """Computes the rows of a table: means over held-out campaigns and candidate sets, with a bootstrap over sources."""

    def __init__(self, texts: Mapping[Translation, str], found: Annotated, names: Sequence[str]) -> None:
        self.keys = sorted(key for key, campaigns in found.items() if {*names} <= {*campaigns})
        self.texts, self.found = texts, found
        self.by_gold = {name: Judged([self._row(key, name) for key in self.keys]) for name in names}

    def _row(self, key: Translation, gold: str) -> Row:
        return Row(str(key[1]), self.texts[key], [self.found[key][gold]], {})

    def column(self, name: str) -> list[Annotation]:
        return [self.found[key][name] if name != "empty" else Annotation() for key in self.keys]

    def decided(self, names: Sequence[str], rule: str, utility: str, weights: str) -> tuple[list[Annotation], Floats]:
        """Selected annotations, and expected penalties."""
        columns = [self.column(name) for name in names]
        segments = [
            ([Candidate(None, one, annotator=name) for name, one in zip(names, each, strict=True)], self.texts[key])
            for key, each in zip(self.keys, zip(*columns, strict=True), strict=True)
        ]
        decisions = decide_many(segments, rule=rule, utility=utility, weights=weights, score="expected")
        return [one.annotation for one in decisions], np.array([-one.mqm for one in decisions])

    def measured(self, gold: str, annotations: Sequence[Annotation], points: Floats) -> tuple[Floats, Floats]:
        """Softdice, rho, tau, SoftF1 and its difference from that of the empty annotation, shape (5,), and for
        resamples of the sources, shape (5, resamples)."""
        judged = self.by_gold[gold]
        measured = judged.measure(annotations, points)
        values = np.array(
            [
                [
                    SOFTF1.statistics(one, self.found[key][gold], len(self.texts[key]))[0]
                    for one in (chosen, Annotation())
                ]
                for chosen, key in zip(annotations, self.keys, strict=True)
            ]
        )
        values[:, 1] = values[:, 0] - values[:, 1]
        counts = judged.draws @ judged.by_item(np.ones(len(values)))
        resampled = [judged.draws @ judged.by_item(one) / counts for one in values.T]
        return (
            np.array([*measured.values(), *values.mean(0)]),
            np.vstack([measured.values(judged.draws), *resampled]),
        )

    def print(self, name: str, cases: Sequence[tuple[str, Sequence[str]]], rule: str = "", weights: str = "") -> None:
        """A row: the mean over cases, each with a held-out campaign and its candidates."""
        results = []
        for gold, names in cases:
            if len(names) == 1:
                annotations = self.column(names[0])
                chosen = annotations, np.array([-mqm_score(one) for one in annotations])
            else:
                rule_name, _, utility = rule.partition(" ")
                chosen = self.decided(names, rule_name, utility or "softdice", weights)
            results.append(self.measured(gold, *chosen))
        values, draws = (np.mean(one, axis=0) for one in zip(*results, strict=True))
        cells = [
            "{:.3f} ({:.3f}, {:.3f})".format(a, *percentile_interval(b)) for a, b in zip(values, draws, strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    texts, found = read(Path(sys.argv[1]))
    table = Table(texts, found, (*PEOPLE, *ASSISTED))
    print(f"{len(table.keys)} translations of {len({key[1] for key in table.keys})} sources")
    for name in (*PEOPLE, *ASSISTED):
        marked = [len(one) for one in table.column(name)]
        print(f"{name}: {sum(marked)} spans, {np.mean(np.array(marked) > 0):.0%} of the translations marked")
    for gold in PEOPLE:
        for other in (*PEOPLE, *ASSISTED):
            if other != gold:
                table.print(f"{other} against {gold}", [(gold, [other])])
    for gold in PEOPLE:
        table.print(f"nothing marked against {gold}", [(gold, ["empty"])])
    table.print("nothing marked", [(gold, ["empty"]) for gold in PEOPLE])
    others = {gold: [name for name in PEOPLE if name != gold] for gold in PEOPLE}
    table.print("one", [(gold, [name]) for gold in PEOPLE for name in others[gold]])
    table.print("one with GEMBA", [(gold, [name]) for gold in PEOPLE for name in ASSISTED])
    for rule in ("mbr softdice", "mbr softf1", "consensus-corpus"):
        two = [(gold, pair) for gold in PEOPLE for pair in combinations(others[gold], 2)]
        table.print(f"two, {rule}", two, rule, "uniform")
        for gold in PEOPLE:
            table.print(f"three against {gold}, {rule}", [(gold, others[gold])], rule, "uniform")
        for weights in ("uniform", "agreement"):
            table.print(f"three, {rule}, {weights}", [(gold, others[gold]) for gold in PEOPLE], rule, weights)
            more = [(gold, [*others[gold], one]) for gold in PEOPLE for one in ASSISTED]
            table.print(f"four, one with GEMBA, {rule}, {weights}", more, rule, weights)
    for first in ("ESA 1", "MQM"):
        second = Table(texts, found, (*PEOPLE, f"{first} again"))
        print(f"{len(second.keys)} translations")
        second.print(f"{first} again against {first}", [(first, [f"{first} again"])])
        for name in PEOPLE:
            if name != first:
                second.print(f"{name} against {first}", [(first, [name])])
        second.print(f"nothing marked against {first}", [(first, ["empty"])])


if __name__ == "__main__":
    main()
