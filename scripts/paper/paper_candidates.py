"""The candidates behind the paper's tables: which files there are, what each row chooses, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from paper_figures import TABLES, RowSpec

from mbr_esd_metric.adapters.wmt import TestSet
from mbr_esd_metric.adapters.wmt.metric_files import joined_records
from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_segment, read_annotations
from mbr_esd_metric.errors import labelled
from mbr_esd_metric.files.records import read_candidates
from mbr_esd_metric.prompting.parse import Invalid

#: How the paper places spans.
_READING = DecisionOptions(location="first")
#: Endings of candidates files.
ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".gen.json")
#: Systems x segments; None if the translation is not rated.
Matrix = list[list[Annotation | None]]


class PaperCandidates:
    """A folder of candidates, and what the rows choose of them.

    Args:
        test_sets: one for each language pair.
        human: of each, the annotations of its raters.
        folder: with MODEL.LP.jsonl (or .jsonl.gz, .jsonl.zst, .gen.json), or None.
        invalid: as for `decide`.
    """

    def __init__(
        self, test_sets: Sequence[TestSet], human: Sequence[Sequence[Matrix]], folder: Path | None, invalid: str
    ) -> None:
        self._test_sets, self._human, self._folder, self._invalid = test_sets, human, folder, invalid
        self._chosen: dict[tuple[str, str], dict[RowSpec, Matrix]] = {}

    def predicted(self, spec: RowSpec, at: int) -> Matrix | str:
        """Annotations that a row chooses in a language pair, by its number; or what it lacks, in words."""
        test_set = self._test_sets[at]
        if spec.file is None:
            return [[EMPTY if rated else None for rated in row] for row in ~np.isnan(test_set.gold)]
        if spec.options.rule_instance.needs_references and not self._human[at]:
            return no_human(test_set.lp)
        key = (spec.file, test_set.lp)
        path = self._file(*key)
        if path is None:
            return self._absent(spec, at)
        if key not in self._chosen:
            specs = {row for rows in TABLES.values() for row in rows if row.file == spec.file}
            self._chosen[key] = self._choose(path, sorted(specs, key=str), at)
        chosen = self._chosen[key].get(spec)
        if chosen is None:
            return f"{path}: fewer candidates; needs {self._absent(spec, at)}"
        return chosen

    def _file(self, model: str, lp: str) -> Path | None:
        if self._folder is None:
            return None
        paths = (self._folder / f"{model}.{lp}{ending}" for ending in ENDINGS)
        return next((path for path in paths if path.is_file()), None)

    def _absent(self, spec: RowSpec, at: int) -> str:
        test_set = self._test_sets[at]
        rated = int((~np.isnan(test_set.gold)).sum())
        return f"{spec.file}.{test_set.lp}.jsonl: {spec.samples} x {rated:,} candidates"

    def _choose(self, path: Path, specs: Sequence[RowSpec], at: int) -> dict[RowSpec, Matrix]:
        """Read a candidates file once, and decide for every row that uses it."""
        test_set, humans = self._test_sets[at], self._human[at]
        numbers = joined_records(
            test_set, ((r.segment, number) for number, r in enumerate(read_candidates(path))), str(path)
        )
        cells: dict[int, list[tuple[int, int]]] = {}
        for system, segment in np.argwhere(~np.isnan(test_set.gold)).tolist():
            cells.setdefault(cast("int", numbers[system][segment]), []).append((system, segment))
        chosen: dict[RowSpec, Matrix] = {}
        fewest = max(spec.samples for spec in specs)
        for number, record in enumerate(read_candidates(path)):
            for system, segment in cells.pop(number, ()):
                fewest = min(fewest, len(record.texts))
                translation = test_set.outputs[test_set.systems[system]][segment] or ""
                source = record.segment.source if _READING.both_sides(record.columns.format) else None
                read = read_annotations(record.candidates, translation, _READING, source)
                # Each text is read once for all rows; what could not be read goes on as cut, and so invalid.
                candidates = [
                    Candidate(c.text, None, c.logprob, truncated=True)
                    if isinstance(annotation, Invalid)
                    else Candidate(c.text, annotation, c.logprob)
                    for c, annotation in zip(record.candidates, read, strict=True)
                ]
                raters = [a for human in humans if (a := human[system][segment]) is not None]
                for spec in specs:
                    needs_humans = spec.options.rule_instance.needs_references
                    if spec.samples > fewest or (needs_humans and not humans):
                        continue
                    matrix = chosen.setdefault(spec, [[None] * test_set.segments for _ in test_set.systems])
                    options = replace(spec.options, invalid=self._invalid)
                    references = raters if needs_humans and raters else None
                    few = candidates[: spec.samples]
                    with labelled(f"{path}, {record.label}, {spec.name}"):
                        decision = decide_segment(few, translation, options, source=source, references=references)
                    matrix[system][segment] = decision.annotation
        return {spec: matrix for spec, matrix in chosen.items() if spec.samples <= fewest}


def no_human(where: str) -> str:
    """The note of a row that lacks human error spans."""
    return f"human error spans of {where} (mbr-esd wmt import)"
