"""`engine=ray` on a Ray of this machine with a small model: the samples are those of the engine in its actors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")
from mbr_esd_metric.elicit.formats.json import output_grammar
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


def test_samples_are_those_of_one_machine_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends after its first part goes on with what is missing, and comes to what transformers samples."""
    card = f"mbr-esd-demo?dtype=float32&n=18&max_tokens=12&store={tmp_path}/{{0}}&engine={{0}}"
    spread, here = (load_card(card.format(engine)) for engine in ("ray", "transformers"))
    options = spread.engine_options("ray")
    assert RayEngine.identity(options) == TransformersEngine.identity(options)
    put, generate = CandidateStore.put, RayEngine.generate
    kept: list[int] = []
    asked: list[int] = []

    def ended(store: CandidateStore, key: str, first: int, samples: list[object]) -> None:
        put(store, key, first, samples)  # type: ignore[arg-type]
        kept.append(len(samples))
        raise KeyboardInterrupt

    def noted(engine: RayEngine, requests: Iterable[Request], sampling: Sampling) -> object:
        every = list(requests)
        asked.extend(request.n for request in every)
        return generate(engine, every, sampling)

    with monkeypatch.context() as patch:
        patch.setattr(CandidateStore, "put", ended)
        with pytest.raises(KeyboardInterrupt):
            list(sample(spread, SEGMENTS))
    monkeypatch.setattr(RayEngine, "generate", noted)
    found = list(sample(spread, SEGMENTS))
    assert len(kept) == 1
    assert sum(asked) == 2 * 18 - kept[0]
    assert [len(samples) for _, samples in found] == [18, 18]
    assert found == list(sample(here, SEGMENTS))


def requests() -> list[Request]:
    return [Request(f"key{i}", f"Say {i}.", output_grammar(), 18, 0, f"segment {i}") for i in range(2)]


def test_an_actor_s_error_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="config.json|no folder"):
        list(RayEngine(EngineOptions(model=str(tmp_path))).generate(requests(), Sampling()))
