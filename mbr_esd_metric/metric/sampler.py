"""Samples what the store lacks: loads the engine when it is needed, stores each part as it comes, shows progress.

One process at a time samples a model into a store. The next waits, and finds the candidates of the first there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import EngineError, first_of, say
from mbr_esd_metric.files.streams import progress_bar
from mbr_esd_metric.generation.engine import Engine, Refused, Request
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.plan import Plan
from mbr_esd_metric.prompting.languages import language_note

if TYPE_CHECKING:
    from tqdm import tqdm

#: Seconds after which a bar is drawn again where nothing moves, so that the time goes on.
REFRESH = 30.0


def missing(request: Request, stored: Collection[int]) -> Iterator[Request]:
    """The parts of a request that are not stored, as requests for runs of consecutive samples."""
    absent = [index for index in range(request.n) if index not in stored]
    for _, run in groupby(enumerate(absent), lambda pair: pair[1] - pair[0]):
        indices = [index for _, index in run]
        yield replace(request, n=len(indices), first=indices[0])


class Sampler(AbstractContextManager["Sampler"]):
    """The engine of a plan, loaded when the first candidate is missing; a context manager, which closes it. Candidates
    go to the store; `progress` shows a bar on standard error."""

    def __init__(self, plan: Plan, store: CandidateStore, *, progress: bool = False) -> None:
        self._plan, self._store, self._progress = plan, store, progress
        self._engine: Engine | None = None
        self._held = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def sample(self, requests: Sequence[Request]) -> None:
        """Put every missing candidate of these requests into the store; if an error ends it, those before it are
        there."""
        parts = self._missing(requests)
        if parts and self._engine is None and self._wait_for_others():
            parts = self._missing(requests)
        if not parts:
            return
        card, prompt, stored = self._plan.card, self._plan.prompt, self._plan.engine_class.keeps_samples
        if self._engine is None and self._progress and stored and prompt.names_languages and card.lp is None:
            texts = [one.source for one in requests], [one.translation for one in requests]
            print(language_note(card.name, *texts), file=sys.stderr)
        left: dict[str, int] = {}
        for part in parts:
            left[part.key] = left.get(part.key, 0) + part.n
        done = len(requests) - len(left)
        with (
            progress_bar("sampling", "segment", total=len(requests), done=done, shown=self._progress) as bar,
            _redrawn(bar),
        ):
            self._generate(parts, left, bar)

    def _generate(self, parts: Sequence[Request], left: dict[str, int], bar: tqdm[Any]) -> None:
        if self._engine is None:
            bar.set_description(f"loading {self._plan.card.model or self._plan.engine}", refresh=sys.stderr.isatty())
            self._engine = self._plan.engine_class(self._plan.options)
            self._held.callback(self._engine.close)
            bar.set_description("sampling", refresh=False)
        candidates, tokens, total = 0, 0, sum(left.values())
        began = time.monotonic()
        refused = dict[str, str]()
        for generated in self._engine.generate(parts, self._plan.card.sampling):
            if isinstance(generated, Refused):
                refused[generated.key] = generated.reason
                continue
            self._store.put(generated.key, generated.first, generated.samples)
            left[generated.key] -= len(generated.samples)
            bar.update(not left[generated.key])
            candidates += len(generated.samples)
            tokens += sum(one.tokens for one in generated.samples)
            seconds = max(time.monotonic() - began, 1e-9)
            rest = (total - candidates) * seconds / max(candidates, 1)
            rates = f"{candidates / seconds:.1f} candidates/s, {tokens / seconds:.0f} tokens/s"
            bar.set_postfix_str(f"{rates}, {rest / 60:.0f} min left", False)
        if refused:
            reasons = [f"{part.label}: {refused[part.key]}" for part in parts if part.key in refused]
            raise EngineError(f"{first_of(reasons, between='; ')}. What was sampled is kept")

    def _missing(self, requests: Sequence[Request]) -> list[Request]:
        """The missing parts. Those with one source stand together, which helps the prompt cache of an engine or
        server."""
        parts = [part for one in requests for part in missing(one, self._store.stored(one.key, one.n))]
        return sorted(parts, key=lambda part: (part.turns, part.prompt))

    def _wait_for_others(self) -> bool:
        """Take the lock of the model on the store; whether another process had it. The system releases it however the
        process ends. Without locks in the file system nobody waits."""
        from filelock import FileLock, Timeout

        if self._store.path is None:
            return False
        identity = json.dumps(dict(self._plan.engine_class.identity(self._plan.options)), sort_keys=True)
        name = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        lock = FileLock(f"{os.path.realpath(self._store.path)}-{name}.lock", poll_interval=0.2, fallback_to_soft=False)
        waited = False
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waited = True
                say(f"another process samples {self._plan.card.title} into {self._store.path}; waiting for it to end")
                lock.acquire()
        except (OSError, NotImplementedError):
            return False
        self._held.callback(lock.release)
        return waited


@contextmanager
def _redrawn(bar: tqdm[Any]) -> Iterator[None]:
    """Draw the bar again at intervals, so that a long wait does not look like a hang."""
    ended = threading.Event()

    def redraw() -> None:
        while not ended.wait(REFRESH):
            bar.refresh()

    thread = threading.Thread(target=redraw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
