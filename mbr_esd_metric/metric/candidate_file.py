"""Candidates from a file instead of a model: `candidates=FILE`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.files.records import CandidateRecord, Join, read_candidates
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.sources import Collected, Pair, pair_of
from mbr_esd_metric.prompting.text import is_blank


class MissingCandidatesError(EngineError):
    """A candidates file lacks segments.

    Attributes:
        systems: the systems with missing segments, in order; "" if the file has no system names.
    """

    def __init__(self, message: str, systems: Iterable[str]) -> None:
        super().__init__(message)
        self.systems = tuple(dict.fromkeys(systems))


class FromFile:
    """Candidates from a file: JSON lines, or the released code's `*.gen.json`.

    Segments are looked up by system, source and translation (see `files.records.Join`). The file is read twice, one
    segment at a time: first the positions of the records, then the candidates.
    """

    engine = None

    def __init__(self, card: ModelCard) -> None:
        self._path = Path(card.candidates or "").expanduser()
        if not self._path.is_file():
            raise EngineError(f"candidates file {self._path} does not exist; set candidates=PATH")
        first = next(read_candidates(self._path), None)
        self._format = None if first is None else first.columns.format
        decision = replace(card.decision, format=self._format or card.decision.format)
        if card.decision.weights == "agreement" and first is not None:
            from mbr_esd_metric.decoding.file import file_panel

            # Learnt from the whole file, so that scores do not depend on which of its segments a run contains.
            decision = replace(card.decision, weights=file_panel(self._path, card.decision))
            card = replace(card, n=len(first.columns))
        self.card = replace(card, decision=decision)

    def collect(self, segments: Sequence[Segment], progress: bool) -> Collected:
        """See `Sampled.collect`. Raises `EngineError` if the file has too few candidates for a segment, several for a
        run with greedy decoding, or candidates in another format than its first; and `InputError` for a malformed
        file."""
        records = ((record.segment, number) for number, record in enumerate(read_candidates(self._path)))
        found = Join(records, {one.system for one in segments}).find(segments)
        numbers: dict[int | None, dict[Pair, list[int]]] = {}
        for number, (segment, at) in enumerate(zip(segments, found, strict=True)):
            if not is_blank(segment.translation):
                numbers.setdefault(at, {}).setdefault(pair_of(segment), []).append(number)
        if missing := sorted(number for one in numbers.pop(None, {}).values() for number in one):
            more = f" (nor for {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise MissingCandidatesError(
                f"{self._path} has no candidates for {segments[missing[0]].label or 'a segment'}{more}; source and "
                "translation must match the file exactly, except for trailing white space",
                (segments[number].system for number in missing),
            )
        for at, record in enumerate(read_candidates(self._path) if numbers else ()):
            for shared in numbers.pop(at, {}).values():
                yield shared, self._candidates(record, segments[shared[0]])
            if not numbers:
                break

    def _candidates(self, record: CandidateRecord, segment: Segment) -> CandidateColumns:
        columns, form, card = record.columns, self._format, self.card
        if not isinstance(card.decision.weights, str):
            return columns  # a panel: annotators may lack some segments
        n, count = card.samples, len(columns)
        problem, of_segment = "", f"{count} candidates for {segment.label or record.label}"
        if card.sampling.greedy and count > 1:
            problem = (
                f"{of_segment}, but greedy decoding needs exactly one; to use the most likely one, set rule=map and "
                "remove temperature=0"
            )
        elif columns.format != form:
            problem = (
                f"candidates in several formats ({record.label} is in {columns.format or 'none'}, the first in "
                f"{form or 'none'}), but one model has one format; use mbr-esd decide {self._path}, or split the file "
                "by format"
            )
        elif n > count:
            problem = f"{of_segment}, but n={n}; set n={count}"
        if problem:
            raise EngineError(f"{self._path} has {problem}")
        return columns.first(n)
