"""Where the candidates of a run come from: a model with a store, or a file.

One process at a time samples a model into a store. The next waits, and finds the candidates of the first there. Each
part that an engine yields is committed to the store at once. So a run that was killed goes on where it stopped, and a
run with all candidates in the store loads no model and asks no server.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import EngineError, MissingCandidatesError, logger
from mbr_esd_metric.files.join import Join, SegmentKey, occurrences
from mbr_esd_metric.files.records import CandidateRecord, read_candidates
from mbr_esd_metric.files.streams import progress_bar
from mbr_esd_metric.generation.engine import Engine, Refused, Request
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.engines import choose_engine
from mbr_esd_metric.metric.requests import Pair, Segment, build_requests, pair_of
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import language_note
from mbr_esd_metric.prompting.text import is_blank

if TYPE_CHECKING:
    from tqdm import tqdm

#: Seconds after which a bar is drawn again where nothing moves, so that the time goes on.
REFRESH = 10.0


class CandidateSource(Protocol):
    """Where candidates come from."""

    @property
    def card(self) -> ModelCard:
        """The card with what the user's leaves open: the answer format of the file, or the model of the server."""

    @property
    def engine(self) -> Engine | None:
        """The engine that samples; None where candidates are stored in a file."""

    def collect(
        self, segments: Sequence[Segment], progress: bool
    ) -> Iterator[tuple[list[int], list[Candidate] | Refused]]:
        """The numbers of segments that share candidates, and the candidates, or why there will never be any. Segments
        without a translation have none."""


def candidate_source(card: ModelCard) -> CandidateSource:
    """The source that a card names; `EngineError` or `OptionError` if no engine fits it on this machine, or the file is
    missing."""
    return Sampled(card) if card.candidates is None else FromFile(card)


class Sampled:
    """Candidates of a model, sampled where the store lacks them."""

    def __init__(self, card: ModelCard) -> None:
        self.engine = choose_engine(card)
        self._card = card if card.model else replace(card, model=self.engine.model)

    @property
    def card(self) -> ModelCard:
        if self._card.temperature is not None:
            return self._card
        return replace(self._card, temperature=self.engine.default_temperature)

    def collect(
        self, segments: Sequence[Segment], progress: bool
    ) -> Iterator[tuple[list[int], list[Candidate] | Refused]]:
        with self.sampled(segments, progress) as stored:
            numbers: dict[Pair, list[int]] = {pair: [] for pair in stored.requests}
            for number, segment in enumerate(segments):
                if (pair := pair_of(segment)) in numbers:
                    numbers[pair].append(number)
            for pair, shared in numbers.items():
                yield shared, stored.candidates(pair)

    @contextmanager
    def sampled(self, segments: Sequence[Segment], progress: bool) -> Iterator[StoredCandidates]:
        """The candidates of these segments in the open store, after what it lacks is sampled."""
        card, engine = self.card, self.engine
        requests = build_requests(card, engine.identity, segments)
        with CandidateStore.open(card.store) as store:
            with Sampler(card, engine, store, progress=progress) as sampler:
                if sampler.missing(requests.values()):
                    engine.confirm()
                    card = sampler.card = self.card
                    requests = build_requests(card, engine.identity, segments)
                sampler.warn_of_other_servers(requests.values())
                counts = _sample_all(card, requests, sampler)
            yield StoredCandidates(requests, store, counts, sampler.refused)


@dataclass(frozen=True, slots=True)
class StoredCandidates:
    """The requests of a run, the store with their candidates, how many of each count, and key -> why it is refused."""

    requests: Mapping[Pair, Request]
    store: CandidateStore
    counts: Mapping[Pair, int]
    refused: Mapping[str, Refused]

    def candidates(self, pair: Pair) -> list[Candidate] | Refused:
        """The candidates of source, translation and context, or why there will never be any."""
        key = self.requests[pair].key
        return self.refused.get(key) or [one for one in self.store.get(key, self.counts[pair]) if one is not None]


def _sample_all(card: ModelCard, requests: Mapping[Pair, Request], sampler: Sampler) -> Mapping[Pair, int]:
    """Sample what the store lacks; the number of candidates of each request that count."""
    if not card.adaptive:
        sampler.sample(requests.values())
        return dict.fromkeys(requests, card.samples)
    from mbr_esd_metric.metric.adaptive import rounds

    # All segments go through a round together, and those whose decision is settled leave. Further candidates in the
    # store do not count, so that a run that is repeated comes to the same decisions.
    counts: dict[Pair, int] = {}
    for n in rounds(card.samples):
        left = {pair: replace(request, n=n) for pair, request in requests.items() if pair not in counts}
        sampler.sample(left.values())
        for pair, request in left.items():
            candidates = [one for one in sampler.store.get(request.key, n) if one is not None]
            done = n == card.samples or request.key in sampler.refused
            if done or _settled(card, request.source, request.translation, candidates):
                counts[pair] = n
    return counts


def _settled(card: ModelCard, source: str, translation: str, candidates: Sequence[Candidate]) -> bool:
    from mbr_esd_metric.metric.adaptive import settled

    return settled(candidates, translation, card.decision, source=card.decision.source_of(source))


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
        parts = self.missing(requests)
        if parts and not self._begun:
            self._begun = True
            if self._wait_for_others():
                parts = self.missing(requests)
            self._note_languages(requests)
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

    def warn_of_other_servers(self, requests: Iterable[Request]) -> None:
        """Warn where stored candidates of this model came from other servers than the run's, which may serve another
        model of the same name."""
        known, named = self.store.servers(self._name), self._engine.servers
        if known and not {*named} <= {*known} and any(self.store.stored(one.key, one.n) for one in requests):
            logger.warning(
                f"candidates of {self.card.title} in {self.store.path} came from {', '.join(known)}, and "
                f"this run asks {', '.join(named)}: if that is another model, keep them apart with store=PATH, or "
                "serve it under another name and give it as model=NAME"
            )

    @cached_property
    def _name(self) -> str:
        """A name of what the engine samples, for locks."""
        identity = json.dumps(dict(self._engine.identity), sort_keys=True)
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:8]

    def _generate(self, parts: Sequence[Request], left: dict[str, int], bar: tqdm[Any]) -> None:
        bar.set_description(f"loading {self.card.model or self._engine.name}", refresh=sys.stderr.isatty())
        self._held.callback(self._engine.close)
        self._engine.load()
        bar.set_description("sampling", refresh=False)
        self.store.add_servers(self._name, self._engine.servers)
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

    def _note_languages(self, requests: Iterable[Request]) -> None:
        card = self.card
        if self._progress and card.lp is None and get_format(card.decision.format).prompt(card.prompt).names_languages:
            texts = [one.source for one in requests], [one.translation for one in requests]
            logger.info(language_note(card.name, *texts))

    def _wait_for_others(self) -> bool:
        """Take the lock of the model on the store; whether another process had it. The system releases it however the
        process ends. Without locks in the file system nobody waits."""
        from filelock import FileLock, Timeout

        if self.store.path is None:
            return False
        path = f"{os.path.realpath(self.store.path)}-{self._name}.lock"
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
        from mbr_esd_metric.metric.adaptive import rounds

        for n in rounds(self.card.samples):
            if n > len(candidates) or _settled(self.card, segment.source, segment.translation, candidates[:n]):
                break
        return n
