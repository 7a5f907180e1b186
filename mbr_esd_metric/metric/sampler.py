"""Draws the candidates that the store lacks: loads the engine when it is needed, stores each part, shows progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.generation.base import Engine, Request, Sample, Sampling
from mbr_esd_metric.generation.registry import engine_class
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.languages import language_note
from mbr_esd_metric.metric.waiting import Watch


def missing(request: Request, have: Sequence[Sample | None]) -> Iterator[Request]:
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

    def __init__(
        self,
        card: ModelCard,
        engine: str,
        sampling: Sampling,
        store: CandidateStore,
        *,
        different: int,
        progress: bool = False,
    ) -> None:
        """Nothing is loaded yet.

        Args:
            card: the model.
            engine, sampling: its engine's name, and how candidates are drawn.
            store: where they go.
            different: segments of the run, identical ones counted once.
            progress: show a bar on standard error.
        """
        self._card, self._engine_name, self._sampling, self._different = card, engine, sampling, different
        self._store, self._progress = store, progress
        self._engine: Engine | None = None
        self._done, self._started = 0, time.monotonic()

    def __enter__(self) -> Sampler:
        return self

    def __exit__(self, *_: object) -> None:
        if self._engine is not None:
            self._engine.close()

    def draw(self, requests: Sequence[Request]) -> None:
        """Put every missing sample of these requests into the store."""
        from tqdm import tqdm

        wanted = [part for request in requests for part in missing(request, self._store.get(request.key, request.n))]
        if not wanted:
            return
        if self._progress and self._engine is None and engine_class(self._engine_name).stored:
            _advise_languages(self._card, requests)
        remaining: dict[str, int] = {}
        for part in wanted:
            remaining[part.key] = remaining.get(part.key, 0) + part.n
        with Watch(f"{self._name} is being loaded", quiet=not self._progress) as watch:
            if self._engine is None:
                self._engine = engine_class(self._engine_name)(self._card.engine_options(self._engine_name))
            with tqdm(
                total=len(requests),
                initial=len(requests) - len(remaining),
                unit="segment",
                desc="sampling",
                file=sys.stderr,
                disable=not self._progress,
                smoothing=0.1,
            ) as bar:
                watch.moved(self._next_step(len(remaining)))
                for generated in self._engine.generate(wanted, self._sampling):
                    self._store.put(generated.key, generated.first, generated.samples)
                    self._done += len(generated.samples)
                    remaining[generated.key] -= len(generated.samples)
                    if remaining[generated.key] == 0:
                        del remaining[generated.key]
                        bar.update()
                    rate = self._done / max(time.monotonic() - self._started, 1e-9)
                    bar.set_postfix_str(f"{rate:.1f} candidates/s", refresh=False)
                    watch.moved(self._next_step(len(remaining)))

    @property
    def _name(self) -> str:
        return f"{self._card.model} (engine={self._engine_name})"

    def _next_step(self, segments: int) -> str:
        n = self._card.samples
        fewer = f"Fewer candidates (?n={n // 4}) take less time. " if n >= 8 else ""
        return (
            f"{self._name} is sampling; {self._done} candidates are stored, and {segments} of "
            f"{self._different} different segments lack some. {fewer}An interrupted run "
            "goes on where it stopped"
        )


def _advise_languages(card: ModelCard, requests: Sequence[Request]) -> None:
    """Say once for each run that samples what the prompt leaves open without a direction."""
    prompt = load_prompt(card.prompt, get_format(card.decision.format).templates)
    if card.lp is None and prompt.names_languages:
        texts = [request.source for request in requests], [request.translation for request in requests]
        print(language_note(card.name, *texts), file=sys.stderr)
