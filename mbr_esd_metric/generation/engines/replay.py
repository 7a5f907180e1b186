"""`engine=replay`: candidates from a file (JSON lines, or the released code's `*.gen.json`) instead of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import EngineError, MissingCandidatesError
from mbr_esd_metric.files.join import Join, SegmentKey
from mbr_esd_metric.files.records import CandidateRecord, read_candidates
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Generated, Request, Sampling


class ReplayEngine(Engine):
    """Looks segments up by system, source and translation (`files.join` says how); `EngineOptions.model` is the file.

    The file is read twice, with one segment in memory at a time: first the records' places, then the candidates.
    """

    name: ClassVar[str] = "replay"
    description: ClassVar[str] = "candidates from a file"
    rank: ClassVar[int | None] = 0
    card_field: ClassVar[str] = "candidates"
    how_to_set_field: ClassVar[str] = (
        "engine=replay needs the file of candidates: add candidates=PATH to the model name"
    )
    loads_weights: ClassVar[bool] = False
    keeps_samples: ClassVar[bool] = False
    shares_equal_pairs: ClassVar[bool] = False

    def __init__(self, options: EngineOptions) -> None:
        if (problem := self.problem(options)) is not None:
            raise EngineError(problem)
        self._path = Path(options.model)
        self._systems: set[str] = set()

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        path = Path(options.model)
        return None if path.is_file() else f"there is no file of candidates {path}; give candidates=PATH"

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        """The engine and the file's path. The content does not count, because samples of this engine are not stored."""
        return {"engine": cls.name, "model": hashlib.sha256(str(Path(options.model)).encode()).hexdigest()}

    @classmethod
    def format(cls, options: EngineOptions) -> str | None:
        """The answer format that the file's first record says; None if it says none, or there is no file."""
        first = None if cls.problem(options) else next(read_candidates(Path(options.model)), None)
        return None if first is None else first.columns.format

    @cached_property
    def _records(self) -> list[tuple[SegmentKey, str | None]]:
        """The place and the format of each record."""
        return [(record.place, record.columns.format) for record in read_candidates(self._path)]

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        """The candidates of the file for each request; `sampling` was decided when the file was made.

        Raises:
            EngineError: the file has no candidates for a segment, or too few. Or the run decodes greedily and the file
                has several candidates, of which nothing says which is the greedy one. Or the candidates are
                not in the format of the file's first.
            InputError: the file is malformed.
        """
        requests = list(requests)
        if not requests:
            return
        # A later call may ask for a part only; which record belongs to a translation must not depend on that.
        self._systems |= {request.system for request in requests}
        join = Join(((place, number) for number, (place, _) in enumerate(self._records)), self._systems)
        by_record: dict[int, list[Request]] = {}
        missing: list[Request] = []
        for request in requests:
            key = SegmentKey(request.system, request.source, request.translation)
            number = join.find(key, request.occurrence)
            if number is None:
                missing.append(request)
            else:
                by_record.setdefault(number, []).append(request)
        for number, record in enumerate(read_candidates(self._path)):
            for request in by_record.pop(number, ()):
                yield Generated(request.key, request.first, self._samples(record, request, sampling))
            if not by_record:
                break
        if missing:
            more = f" (nor for {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise MissingCandidatesError(
                f"{self._path} has no candidates for {missing[0].label or 'a segment'}{more}; its source and "
                "translation must be in the file character for character, but for white space at the end",
                (request.system for request in missing),
            )

    def _samples(self, record: CandidateRecord, request: Request, sampling: Sampling) -> tuple[Candidate, ...]:
        columns, count = record.columns, len(record.columns)
        end, problem = request.first + request.n, ""
        of_segment = f"{count} candidates for {request.label or record.label}"
        if sampling.greedy and count > 1:
            problem = (
                f"{of_segment}, and greedy decoding has one; for the likeliest of several give rule=map, and no "
                "temperature=0"
            )
        elif columns.format != (first := self._records[0][1]):
            problem = (
                f"candidates in several formats ({record.label} is in {columns.format or 'none'}, the first in "
                f"{first or 'none'}), which one model cannot have; decide with: mbr-esd decide {self._path}, or "
                "give each format a file of its own"
            )
        elif end > count:
            problem = f"{of_segment}, and {end} are wanted; give n={count}"
        if problem:
            raise EngineError(f"{self._path} has {problem}")
        return tuple(replace(c, format=None) for c in record.candidates[request.first : end])
