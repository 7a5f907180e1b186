"""Samples what the store lacks: loads the engine when it is needed, stores each part as it comes, shows progress.

One process at a time samples a model into a store. The next waits, and finds the candidates of the first there. Each
part that an engine yields is committed to the store at once. So a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import logger
from mbr_esd_metric.files.streams import progress_bar
from mbr_esd_metric.generation.engine import Engine, Refused, Request
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.requests import Pair, Segment, build_requests
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import language_note

if TYPE_CHECKING:
    from tqdm import tqdm


#: Seconds after which a bar is drawn again where nothing moves, so that the time goes on.
REFRESH = 10.0


def fill_store(
    engine: Engine,
    card_now: Callable[[], ModelCard],
    segments: Sequence[Segment],
    store: CandidateStore,
    progress: bool,
) -> tuple[Mapping[Pair, Request], dict[Pair, int], Mapping[str, Refused]]:
    """Sample what the store lacks: the requests, the number of candidates of each that count, and key -> why a request
    will never be answered. The card may depend on what the engine finds out before the first sample."""
    card = card_now()
    requests = build_requests(card, engine.identity, segments)
    with Sampler(card, engine, store, progress=progress) as sampler:
        try:
            if card.adaptive:
                counts = _sample_in_rounds(card, requests, sampler)
            else:
                sampler.sample(requests.values())
                counts = dict.fromkeys(requests, card.samples)
        except _IdentityChanged:
            return fill_store(engine, card_now, segments, store, progress)
    return requests, counts, sampler.refused


def _sample_in_rounds(card: ModelCard, requests: Mapping[Pair, Request], sampler: Sampler) -> dict[Pair, int]:
    from mbr_esd_metric.metric.adaptive import rounds, settled

    # All segments go through a round together, and those whose decision is settled leave. Further candidates in the
    # store do not count, so that a run that is repeated comes to the same decisions.
    counts: dict[Pair, int] = {}
    for n in rounds(card.samples):
        left = {pair: replace(request, n=n) for pair, request in requests.items() if pair not in counts}
        sampler.sample(left.values())
        for pair, request in left.items():
            candidates = [one for one in sampler.store.get(request.key, n) if one is not None]
            source = card.decision.source_of(request.source)
            done = n == card.samples or request.key in sampler.refused
            if done or settled(candidates, request.translation, card.decision, source=source):
                counts[pair] = n
    return counts


class _IdentityChanged(Exception):
    """The engine took its identity from memory, and is another: the keys of the requests are of no use."""


class Sampler(AbstractContextManager["Sampler"]):
    """Puts missing candidates into a store; a context manager, which closes the engine.

    Attributes:
        refused: key of a request -> why it will never be answered.
    """

    def __init__(self, card: ModelCard, engine: Engine, store: CandidateStore, *, progress: bool = False) -> None:
        self.card, self._engine, self.store, self._progress = card, engine, store, progress
        self._held = ExitStack()
        self._begun = False
        self.refused: dict[str, Refused] = {}

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def missing(self, requests: Iterable[Request]) -> list[Request]:
        """The parts of these requests that the store lacks. Those with one source stand together, which helps the
        prompt cache of an engine or server."""
        distinct = {one.key: one for one in requests if one.key not in self.refused}.values()
        parts = [
            part for one in distinct for part in one.only(set(range(one.n)) - set(self.store.stored(one.key, one.n)))
        ]
        return sorted(parts, key=lambda part: (part.turns, part.prompt))

    def sample(self, requests: Collection[Request]) -> None:
        """Put every missing candidate of these requests into the store; if an error ends it, those before it are
        there."""
        card, parts = self.card, self.missing(requests)
        if parts and not self._begun:
            self._begun, assumed = True, dict(self._engine.identity)
            self._engine.confirm()
            if self._engine.identity != assumed:
                raise _IdentityChanged
            if self._wait_for_others():
                parts = self.missing(requests)
            answers = get_format(card.decision.format)
            if self._progress and card.lp is None and answers.prompt(card.prompt).names_languages:
                texts = [one.source for one in requests], [one.translation for one in requests]
                logger.info(language_note(card.name, *texts))
        if not parts:
            return
        left: dict[str, int] = {}
        for part in parts:
            left[part.key] = left.get(part.key, 0) + part.n
        total = len({one.key for one in requests})
        with (
            progress_bar("sampling", "segment", total=total, done=total - len(left), shown=self._progress) as bar,
            _redrawn(bar, self._engine),
        ):
            self._generate(parts, left, bar)

    def _generate(self, parts: Sequence[Request], left: dict[str, int], bar: tqdm[Any]) -> None:
        bar.set_description(f"loading {self.card.model or self._engine.name}", refresh=sys.stderr.isatty())
        self._held.callback(self._engine.close)
        self._engine.load()
        bar.set_description("sampling", refresh=False)
        self.store.add_servers(self._engine.digest, self._engine.servers)
        candidates, tokens, total = 0, 0, sum(left.values())
        began = time.monotonic()
        for generated in self._engine.generate(parts, self.card.sampling):
            if isinstance(generated, Refused):
                self.refused[generated.key] = generated
                bar.update()
                continue
            self.store.put(generated.key, generated.first, generated.samples)
            left[generated.key] -= len(generated.samples)
            bar.update(not left[generated.key])
            candidates += len(generated.samples)
            tokens += sum(one.tokens for one in generated.samples)
            seconds = max(time.monotonic() - began, 1e-9)
            rest = (total - candidates) * seconds / max(candidates, 1)
            rates = f"{candidates / seconds:.1f} candidates/s, {tokens / seconds:.0f} tokens/s"
            bar.set_postfix_str(rates + (f", {rest / 60:.0f} min left" if rest >= 30 else ""), False)

    def _wait_for_others(self) -> bool:
        """Take the lock of the model on the store; whether another process had it. The system releases it however the
        process ends. Without locks in the file system nobody waits."""
        from filelock import FileLock, Timeout

        if self.store.path is None:
            return False
        path = f"{os.path.realpath(self.store.path)}-{self._engine.digest}.lock"
        lock = FileLock(path, poll_interval=0.2, fallback_to_soft=False)
        waited = False
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                waited = True
                logger.warning(
                    f"process {Path(path).read_text(encoding='utf-8') or 'unknown'} samples {self.card.title} into "
                    f"{self.store.path}; waiting for it to end (store=PATH takes another store)"
                )
                lock.acquire()
            self._held.callback(lock.release)
            Path(path).write_text(str(os.getpid()), encoding="utf-8")
        except (OSError, NotImplementedError):
            pass
        return waited


@contextmanager
def _redrawn(bar: tqdm[Any], engine: Engine) -> Iterator[None]:
    """Draw the bar again at intervals with the engine's retries, so that a long wait does not look like a hang."""
    ended = threading.Event()

    def redraw() -> None:
        while not ended.wait(REFRESH):
            if engine.retries:
                bar.set_description(f"sampling ({engine.retries} tries again)", refresh=False)
            bar.refresh()

    thread = threading.Thread(target=redraw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
