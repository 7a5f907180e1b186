"""An engine without a model, which a test runs in place of the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import ClassVar

import pytest

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import Engine, Generated, Request, Sampling


class StubEngine(Engine):
    """Gives the texts of `run_stub` one by one and notes its requests. The class has the state: a run makes engines."""

    name: ClassVar[str] = "stub"
    requests: ClassVar[list[Request]]
    loads: ClassVar[int]
    fail_after: ClassVar[int | None]
    text: ClassVar[Callable[[Request, Sampling], str]]

    _loaded = False

    @property
    def problem(self) -> str | None:
        return None

    @property
    def identity(self) -> Mapping[str, str]:
        return {"engine": self.name, "model": self.options.model}

    @classmethod
    def calls(cls) -> list[tuple[str, int, int]]:
        """Translation, first index and number of candidates of each request."""
        return [(request.translation, request.first, request.n) for request in cls.requests]

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        type(self).loads += not self._loaded
        self._loaded = True
        for number, request in enumerate(requests):
            if number == self.fail_after:
                raise EngineError(f"{request.label}: out of memory; use a smaller n")
            self.requests.append(request)
            for index in request.indices:
                text = type(self).text(request, sampling)
                yield Generated(request.key, index, (Candidate(text, logprob=-1.0 - index, tokens=3),))


def run_stub(monkeypatch: pytest.MonkeyPatch, text: Callable[[Request, Sampling], str]) -> None:
    """Whatever engine a card names, candidates come from a new `StubEngine` with these texts."""
    state = {"requests": [], "loads": 0, "fail_after": None, "text": staticmethod(text)}
    for name, value in state.items():
        monkeypatch.setattr(StubEngine, name, value, raising=False)
    monkeypatch.setattr("mbr_esd_metric.metric.sources.choose_engine", lambda card: StubEngine(card.engine_options))
