"""`engine=ray` on a Ray of this machine with a small model: the samples are those of the engine in its actors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines import ray as module
from mbr_esd_metric.generation.engines.ray import RayEngine
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import sample
from mbr_esd_metric.metric.plan import Segment

pytestmark = pytest.mark.model


@pytest.fixture(autouse=True)
def _transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the actors, also where vLLM is installed."""
    monkeypatch.setattr(module, "_engine", lambda: TransformersEngine)


SEGMENTS = [Segment(f"I have {i} cats.", f"Ich habe {i} Hunde.", f"segment {i}") for i in range(2)]


def test_samples_are_those_of_one_machine_and_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends after its first part goes on with what is missing, and comes to what transformers samples."""
    card = f"mbr-esd-demo?dtype=float32&n=18&max_tokens=12&store={tmp_path}/{{0}}&engine={{0}}"
    spread, alone = (load_card(card.format(engine)) for engine in ("ray", "transformers"))
    options = spread.engine_options("ray")
    assert RayEngine.identity(options) == TransformersEngine.identity(options)
    put, generate = CandidateStore.put, RayEngine.generate
    stored, missing = list[int](), list[int]()

    def ended(store: CandidateStore, key: str, first: int, samples: list[object]) -> None:
        put(store, key, first, samples)  # type: ignore[arg-type]
        stored.append(len(samples))
        raise KeyboardInterrupt

    def noted(engine: RayEngine, requests: Iterable[Request], sampling: Sampling) -> object:
        every = list(requests)
        missing.extend(request.n for request in every)
        return generate(engine, every, sampling)

    with monkeypatch.context() as patch:
        patch.setattr(CandidateStore, "put", ended)
        with pytest.raises(KeyboardInterrupt):
            list(sample(spread, SEGMENTS))
    monkeypatch.setattr(RayEngine, "generate", noted)
    pairs = list(sample(spread, SEGMENTS))
    assert len(stored) == 1
    assert sum(missing) == 2 * 18 - stored[0]
    assert [len(samples) for _, samples in pairs] == [18, 18]
    assert pairs == list(sample(alone, SEGMENTS))


def test_an_actors_error_is_the_runs(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"config\.json"):
        list(RayEngine(EngineOptions(model=str(tmp_path))).generate([Request("key", "", "", 1)], Sampling()))
