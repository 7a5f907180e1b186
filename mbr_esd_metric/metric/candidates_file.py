"""Candidates from a file in place of a model (`candidates=FILE`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import EngineError, MissingCandidatesError
from mbr_esd_metric.files.join import Join, SegmentKey, occurrences
from mbr_esd_metric.files.records import CandidateRecord, read_candidates
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.requests import Pair, Segment, pair_of
from mbr_esd_metric.prompting.text import is_blank


class FromFile:
    """Candidates of a file: JSON lines, or the released code's `*.gen.json`.

    Segments are looked up by system, source and translation (`files.join` says how). The file is read twice, with one
    segment in memory at a time: first the records' places, then the candidates.
    """

    engine = None

    def __init__(self, card: ModelCard) -> None:
        self._path = Path(card.candidates or "").expanduser()
        if not self._path.is_file():
            raise EngineError(f"there is no file of candidates {self._path}; give candidates=PATH")
        first = next(read_candidates(self._path), None)
        self._format = None if first is None else first.columns.format
        decision = replace(card.decision, format=self._format or card.decision.format)
        self.card = replace(card, decision=decision)

    def collect(self, segments: Sequence[Segment], progress: bool) -> Iterator[tuple[list[int], list[Candidate]]]:
        """Raises:
        EngineError: the file has no candidates for a segment, or too few. Or the run decodes greedily and the file
            has several candidates, of which nothing says which is the greedy one. Or the candidates are not in the
            format of the file's first.
        InputError: the file is malformed.
        """
        places = [SegmentKey(one.system, one.source, one.translation) for one in segments]
        records = ((record.place, number) for number, record in enumerate(read_candidates(self._path)))
        join = Join(records, {one.system for one in segments})
        numbers: dict[int | None, dict[Pair, list[int]]] = {}
        for number, (segment, occurrence) in enumerate(zip(segments, occurrences(places), strict=True)):
            if not is_blank(segment.translation):
                at = join.find(places[number], occurrence)
                numbers.setdefault(at, {}).setdefault(pair_of(segment), []).append(number)
        if missing := sorted(number for one in numbers.pop(None, {}).values() for number in one):
            more = f" (nor for {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise MissingCandidatesError(
                f"{self._path} has no candidates for {segments[missing[0]].label or 'a segment'}{more}; its source and "
                "translation must be in the file character for character, but for white space at the end",
                (segments[number].system for number in missing),
            )
        for at, record in enumerate(read_candidates(self._path) if numbers else ()):
            for shared in numbers.pop(at, {}).values():
                yield shared, self._candidates(record, segments[shared[0]])
            if not numbers:
                break

    def _candidates(self, record: CandidateRecord, segment: Segment) -> list[Candidate]:
        columns, problem = record.columns, ""
        candidates = [replace(one, format=None) for one in record.candidates]
        n = self._count(segment, candidates)
        of_segment = f"{len(columns)} candidates for {segment.label or record.label}"
        if self.card.sampling.greedy and len(columns) > 1:
            problem = (
                f"{of_segment}, and greedy decoding has one; for the likeliest of several give rule=map, and no "
                "temperature=0"
            )
        elif columns.format != self._format:
            problem = (
                f"candidates in several formats ({record.label} is in {columns.format or 'none'}, the first in "
                f"{self._format or 'none'}), which one model cannot have; decide with: mbr-esd decide {self._path}, or "
                "give each format a file of its own"
            )
        elif n > len(columns):
            problem = f"{of_segment}, and {n} are wanted; give n={len(columns)}"
        if problem:
            raise EngineError(f"{self._path} has {problem}")
        return candidates[:n]

    def _count(self, segment: Segment, candidates: Sequence[Candidate]) -> int:
        """The number of candidates that count, or are wanted."""
        if not self.card.adaptive:
            return self.card.samples
        from mbr_esd_metric.metric.adaptive import rounds, settled

        decision, source = self.card.decision, self.card.decision.source_of(segment.source)
        for n in rounds(self.card.samples):
            if n > len(candidates) or settled(candidates[:n], segment.translation, decision, source=source):
                break
        return n
