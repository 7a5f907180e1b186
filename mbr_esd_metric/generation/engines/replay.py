"""`engine=replay`: candidates from a file (JSON lines, or the released code's `*.gen.json`) instead of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
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
    place: ClassVar[str] = "candidates"
    how_to_place: ClassVar[str] = "engine=replay needs the file of candidates: add candidates=PATH to the model name"
    loads_weights: ClassVar[bool] = False
    stored: ClassVar[bool] = False
    shared: ClassVar[bool] = False

    def __init__(self, options: EngineOptions) -> None:
        """Remember the file; raises `EngineError` if it does not exist."""
        problem = self.problem(options)
        if problem is not None:
            raise EngineError(problem)
        self._path = _path(options)
        self._places: list[SegmentKey] | None = None
        self._systems: set[str] = set()
        self._format: str | None = None

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        path = _path(options)
        return None if path.is_file() else f"there is no file of candidates {path}; give candidates=PATH"

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        """The engine and the file's path. The content does not count, because samples of this engine are not stored."""
        return {"engine": cls.name, "model": hashlib.sha256(str(_path(options)).encode()).hexdigest()}

    @classmethod
    def format(cls, options: EngineOptions) -> str | None:
        """The answer format that the file's first record says; None if it says none, or there is no file.

        Raises:
            InputError: that record is malformed.
        """
        first = None if cls.problem(options) else next(read_candidates(_path(options)), None)
        return None if first is None else first.columns.format

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        """What the file holds for each request; `sampling` was decided when the file was made.

        Raises:
            EngineError: the file has no candidates for a segment, or fewer than are wanted. Or the run wants the greedy
                candidate and the file has several, of which nothing says which is the greedy one. Or the candidates
                are of several models, or not in the format of the file's first.
            InputError: the file is malformed.
        """
        asked = list(requests)
        if not asked:
            return
        if self._places is None:
            self._places = []
            for record in read_candidates(self._path):
                if not self._places:
                    self._format = record.columns.format
                self._places.append(record.place)
        # A later call may ask for a part only; which record belongs to a translation must not depend on that.
        self._systems |= {request.system for request in asked}
        join = Join(((place, number) for number, place in enumerate(self._places)), self._systems)
        wanted: dict[int, list[Request]] = {}
        missing: list[Request] = []
        for request in asked:
            found = join.find(SegmentKey(request.system, request.source, request.translation), request.occurrence)
            if found is None:
                missing.append(request)
            else:
                wanted.setdefault(found, []).append(request)
        for number, record in enumerate(read_candidates(self._path)):
            for request in wanted.pop(number, ()):
                yield Generated(request.key, request.first, self._samples(record, request, sampling))
            if not wanted:
                break
        if missing:
            more = f" (nor for {len(missing) - 1} more)" if len(missing) > 1 else ""
            raise MissingCandidatesError(
                f"{self._path} has no candidates for {missing[0].label or 'a segment'}{more}; its source and "
                "translation must be in the file character for character, but for white space at the end",
                (request.system for request in missing),
            )

    def _samples(self, record: CandidateRecord, request: Request, sampling: Sampling) -> tuple[Candidate, ...]:
        columns, there = record.columns, len(record.columns)
        if sampling.greedy and there > 1:
            raise EngineError(
                f"{self._path} has {there} candidates for {request.label or record.label}, and greedy "
                "decoding has one; for the likeliest of several give rule=map, and no temperature=0"
            )
        if len(set(columns.models or ())) > 1:
            raise EngineError(
                f"{self._path} has candidates of several models, whose weights a replay would lose; decide with: "
                f"mbr-esd decide {self._path}, or sample each model by itself"
            )
        if columns.format != self._format:
            raise EngineError(
                f"{self._path} has candidates in several formats ({record.label} is in {columns.format or 'none'}, the "
                f"first in {self._format or 'none'}), which one model cannot have; decide with: mbr-esd decide "
                f"{self._path}, or give each format a file of its own"
            )
        end = request.first + request.n
        if end > there:
            raise EngineError(
                f"{self._path} has {there} candidates for {request.label or record.label}, and {end} are wanted; give "
                f"n={there}"
            )
        expected = columns.expected or (None,) * there
        return tuple(
            Candidate(
                record.texts[i],
                logprob=columns.logprobs[i],
                tokens=0,
                truncated=columns.truncated[i],
                token_logprobs=columns.token_logprobs,
                expected=expected[i],
            )
            for i in range(request.first, end)
        )


def _path(options: EngineOptions) -> Path:
    return Path(options.model)
