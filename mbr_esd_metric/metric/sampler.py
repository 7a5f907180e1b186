"""Draws the candidates that the store lacks: loads the engine when it is needed, stores each part, shows progress.
Processes on one store share the work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.files.progress import progress_bar
from mbr_esd_metric.generation.claims import Claims
from mbr_esd_metric.generation.engine import Engine, Generated, Request
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.languages import language_note
from mbr_esd_metric.metric.plan import Plan
from mbr_esd_metric.metric.waiting import Watch

if TYPE_CHECKING:
    from tqdm import tqdm

#: Seconds between two looks at what other processes have stored.
STORE_PAUSE = 0.2


def missing(request: Request, have: Sequence[Candidate | None]) -> Iterator[Request]:
    """The parts of a request that the store does not hold, as requests for runs of consecutive samples."""
    start: int | None = None
    for index in range(request.n + 1):
        absent = index < request.n and (index >= len(have) or have[index] is None)
        if absent and start is None:
            start = index
        elif not absent and start is not None:
            yield replace(request, n=index - start, first=start)
            start = None


class Sampler:
    """The engine, loaded when the first candidate is missing, and the progress bar.

    The bar counts segments that have all the candidates of the last round.
    """

    def __init__(self, plan: Plan, store: CandidateStore, *, progress: bool = False) -> None:
        """Nothing is loaded yet."""
        self._plan, self._store, self._progress = plan, store, progress
        self._engine: Engine | None = None
        self._done, self._wanted, self._stored, self._started = 0, 0, 0, time.monotonic()

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        if self._engine is not None:
            self._engine.close()

    def draw(self, requests: Sequence[Request]) -> None:
        """Put every missing sample of these requests into the store; what another process is about to put there is
        waited for."""
        self._wanted = sum(request.n for request in requests)
        lacking = self._lacking(requests)
        if not lacking:
            return
        if self._progress and self._engine is None and self._plan.engine_class.stored:
            _advise_languages(self._plan, requests)
        with (
            Watch(f"{self._name} is being loaded", quiet=not self._progress) as watch,
            Claims(self._store.path) as claims,
        ):
            turn = _Turn(self._store, claims)
            if self._engine is None:
                self._engine = self._plan.engine_class(self._plan.options)
            with progress_bar(
                "sampling",
                "segment",
                total=len(requests),
                done=len(requests) - len(lacking),
                shown=self._progress,
                smoothing=0.1,
            ) as bar:
                watch.moved(self._next_step(len(lacking)))
                while lacking:
                    if (parts := turn.take(lacking)) is not None:
                        self._ask(parts, turn, len(lacking), bar, watch)
                    began = time.monotonic()
                    left = self._lacking([one for one in lacking if one.key not in turn.asked])
                    if len(left) < len(lacking):
                        bar.update(len(requests) - len(left) - bar.n)
                        watch.moved(f"another process samples for {self._store.path} what {len(left)} segments lack")
                    elif parts is None:
                        # Looking takes a small part of the time, however many there are.
                        time.sleep(max(STORE_PAUSE, 10 * (time.monotonic() - began)))
                    lacking = left

    def _lacking(self, requests: Sequence[Request]) -> list[Request]:
        """Those that the store does not hold whole, in the order in which they are asked. Those with the same source
        stand together, so that the prompts' cache of an engine or server helps."""
        found, self._stored = [], self._wanted
        for request in requests:  # one at a time: the samples of all may not fit into memory
            if absent := self._store.get(request.key, request.n).count(None):
                self._stored -= absent
                found.append(request)
        return sorted(found, key=lambda request: (request.turns, request.prompt))

    def _ask(self, parts: Iterator[Request], turn: _Turn, segments: int, bar: tqdm[Any], watch: Watch) -> None:
        """Sample these parts, and store each piece as it comes."""
        assert self._engine is not None
        for generated in self._engine.generate(parts, self._plan.sampling):
            self._store.put(generated.key, generated.first, generated.samples)
            self._done += len(generated.samples)
            self._stored += len(generated.samples)
            if turn.came(generated):
                segments -= 1
                bar.update()
            rate = self._done / max(time.monotonic() - self._started, 1e-9)
            bar.set_postfix_str(f"{rate:.1f} candidates/s", refresh=False)
            watch.moved(self._next_step(segments))

    @property
    def _name(self) -> str:
        return f"{self._plan.card.model} (engine={self._plan.engine})"

    def _next_step(self, segments: int) -> str:
        n = self._plan.card.samples
        fewer = f"Fewer candidates (?n={n // 4}) take less time. " if n >= 8 else ""
        return (
            f"{self._name} is sampling; {self._stored} candidates are stored, and {segments} of "
            f"{len(self._plan.requests)} different segments lack some. {fewer}An interrupted run "
            "goes on where it stopped"
        )


class _Turn:
    """What this process asks for, of what the store lacks: the requests that no other process has claimed.

    Attributes:
        asked: the keys of the requests that it has claimed.
    """

    def __init__(self, store: CandidateStore, claims: Claims) -> None:
        self._store, self._claims = store, claims
        self._open: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self.asked: set[str] = set()

    def take(self, requests: Sequence[Request]) -> Iterator[Request] | None:
        """The parts that are missing, each claimed when it is taken; None if all are claimed by others."""
        if not self._numbers:
            self._numbers = self._store.numbers(request.key for request in requests)
        parts = self._parts(requests)
        first = next(parts, None)
        return None if first is None else chain([first], parts)

    def _parts(self, requests: Sequence[Request]) -> Iterator[Request]:
        path = self._store.path
        if path is None:
            yield from [part for request in requests for part in self._claimed(request, self._store)]
            return
        # An engine may take them in a thread of its own, beside the one that stores.
        with CandidateStore(path) as store:
            for request in requests:
                yield from self._claimed(request, store)

    def _claimed(self, request: Request, store: CandidateStore) -> Iterator[Request]:
        """The missing parts of a request, if it can be claimed."""
        number = self._numbers[request.key]
        if not self._claims.take(number):
            return
        # What another process had claimed may be there by now.
        parts = list(missing(request, store.get(request.key, request.n)))
        if not parts:
            self._claims.release(number)
            return
        self.asked.add(request.key)
        self._open[request.key] = sum(part.n for part in parts)
        yield from parts

    def came(self, generated: Generated) -> bool:
        """Note samples that are stored; whether they were the last of their request, which is then given up."""
        self._open[generated.key] -= len(generated.samples)
        if self._open[generated.key]:
            return False
        self._claims.release(self._numbers[generated.key])
        return True


def _advise_languages(plan: Plan, requests: Sequence[Request]) -> None:
    """Say once for each run that samples what the prompt leaves open without a language pair."""
    if plan.card.lp is None and plan.prompt.names_languages:
        texts = [request.source for request in requests], [request.translation for request in requests]
        print(language_note(plan.card.name, *texts), file=sys.stderr)
