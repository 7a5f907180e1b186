"""Samples missing candidates: loads the engine when needed, stores each part when it arrives, shows progress.

Processes that need the same candidates in a store wait for each other instead of sampling them twice. Each part that an
engine yields is committed immediately, so a killed run can resume.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mbr_esd_metric.generation.engine import Engine, Refused, Request
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.log import LINE_PAUSE, logger, progress_bar
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting.languages import language_note

if TYPE_CHECKING:
    from tqdm import tqdm

_T = TypeVar("_T")
#: Seconds between updates of the progress bar without progress, to update the time.
REFRESH = 10.0


class Sampler(AbstractContextManager["Sampler"]):
    """Samples missing candidates into a store; a context manager that closes the engine, or with `keep` leaves it
    loaded unless sampling failed.

    Attributes:
        refused: key of a request -> the reason why a server rejected it.
    """

    def __init__(self, engine: Engine, store: CandidateStore, progress: bool = False, *, keep: bool = False) -> None:
        self._engine, self._store, self._progress, self._keep = engine, store, progress, keep
        self._held = ExitStack()
        self._begun = False
        self.refused: dict[str, Refused] = {}

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._held:
            if kind is not None or not self._keep:
                self._engine.close()

    def fill(
        self, card: ModelCard, requests: Mapping[_T, Request], again: Callable[[], Mapping[_T, Request]]
    ) -> Mapping[_T, Request]:
        """Sample the missing candidates of these requests. Returns the requests, rebuilt with `again` if the engine is
        not the remembered one.

        Raises:
            EngineError, StoreError: earlier samples are in the store.
        """
        if not self._begun and self.missing(requests.values()):
            assumed = dict(self._engine.identity)
            self._engine.confirm()
            if self._engine.identity != assumed:  # the remembered engine is outdated, and so are the keys
                return self.fill(card, again(), again)
        self.sample(card, requests.values())
        return requests

    def missing(self, requests: Iterable[Request]) -> list[Request]:
        """The parts of these requests that the store lacks, grouped by source to use the prompt cache of an engine or
        server."""
        distinct = {one.key: one for one in requests if one.key not in self.refused}.values()
        parts = [
            part for one in distinct for part in one.only(set(range(one.n)) - set(self._store.stored(one.key, one.n)))
        ]
        return sorted(parts, key=lambda part: (part.turns, part.prompt))

    def sample(self, card: ModelCard, requests: Collection[Request]) -> None:
        """Sample every missing candidate of these requests into the store; raises the exceptions of `fill`."""
        parts = self.missing(requests)
        if parts and not self._begun:
            self._begun = True
            lacking = self.missing([replace(one, n=card.samples) for one in requests])
            if self._claim(card, {one.key for one in lacking}):
                parts = self.missing(requests)
            unnamed = [one for one in requests if one.lp is None]
            if self._progress and unnamed and card.names_languages:
                logger.info(language_note([one.source for one in unnamed], [one.translation for one in unnamed]))
        if not parts:
            return
        wanted = {one.key: one.n for one in requests}
        left = sum(part.n for part in parts)
        total = sum(wanted.values())
        with (
            progress_bar("sampling", " candidates", total=total, done=total - left, shown=self._progress) as bar,
            _redrawn(bar, self._engine),
        ):
            bar.set_description(f"loading {card.model or self._engine.name}", refresh=sys.stderr.isatty())
            self._engine.load()
            bar.set_description("sampling", refresh=False)
            answered = False
            for generated in self._engine.generate(parts, card.sampling):
                if isinstance(generated, Refused):
                    self.refused[generated.key] = generated
                    bar.update(sum(part.n for part in parts if part.key == generated.key))
                else:
                    if not answered:  # record only servers that returned candidates
                        self._store.add_servers(self._engine.digest, self._engine.servers)
                        answered = True
                    self._store.put(generated.key, generated.first, generated.samples)
                    bar.update(len(generated.samples))

    def _claim(self, card: ModelCard, keys: set[str]) -> bool:
        """Claim these keys of the store until the run ends. Returns whether another run, which has ended now, had
        claimed some of them. A claim is a file of keys with a lock, which the system releases when the process ends.
        Without file locks, runs do not wait.
        """
        from filelock import FileLock, Timeout

        if self._store.path is None:
            return False
        waited, folder = False, Path(f"{os.path.realpath(self._store.path)}.claims")
        own = folder / f"{os.getpid()}-{id(self)}.keys"
        try:
            folder.mkdir(exist_ok=True)
            while True:
                with FileLock(folder / "lock", fallback_to_soft=False):
                    other = next((one for one in folder.glob("*.keys") if keys & {*one.read_text().split()}), None)
                    if other is None:
                        self._held.callback(_remove, own)
                        self._held.enter_context(FileLock(own.with_suffix(".lock"), fallback_to_soft=False))
                        own.write_text("\n".join(keys))
                        return waited
                lock = FileLock(other.with_suffix(".lock"), poll_interval=0.2, fallback_to_soft=False)
                with suppress(Timeout), lock.acquire(timeout=0):
                    _remove(other)  # left by a killed process
                    continue
                logger.warning(
                    f"process {other.name.partition('-')[0]} is sampling {card.title} into {self._store.path}; "
                    "waiting for it to finish (set MBR_ESD_STORE=PATH to use another store)"
                )
                waited = True
                with lock:
                    continue
        except (OSError, NotImplementedError):
            return waited


def _remove(claim: Path) -> None:
    for path in (claim, claim.with_suffix(".lock")):
        with suppress(OSError):
            path.unlink()


@contextmanager
def _redrawn(bar: tqdm[Any], engine: Engine) -> Iterator[None]:
    """Update the bar periodically, with the engine's retries, so that a long wait does not look like a hang."""
    ended, pause = threading.Event(), REFRESH if sys.stderr.isatty() else 2 * LINE_PAUSE

    def redraw() -> None:
        while not (ended.wait(pause) or bar.disable):
            if engine.retries:
                bar.set_description(f"sampling ({engine.retries} retries)", refresh=False)
            bar.refresh()

    thread = threading.Thread(target=redraw, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
