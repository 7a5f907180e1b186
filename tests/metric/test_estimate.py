"""`mbr-esd score --dry-run`, `mbr-esd serve`'s command and vLLM's calls, as far as they need no model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.generation.engines import vllm
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from mbr_esd_metric.generation.model_files import model_name
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.cards import CARDS, load_card
from mbr_esd_metric.metric.estimate import Estimate, estimate
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.sources import Segment, choose_engine
from tests.helpers.chat_server import FakeServer
from tests.helpers.command import Command

SEGMENTS = [Segment(f"source {i % 5}", f"ein Satz mit {i % 5} Fehlern", f"segment {i}") for i in range(7)]


def estimated(card: ModelCard, segments: Sequence[Segment] = SEGMENTS) -> Estimate:
    """The estimate of the usual segments."""
    return estimate(card, segments)


def test_it_counts_what_a_run_then_samples(tmp_path: Path) -> None:
    with FakeServer(model_name(load_card("mbr-esd-demo").engine_options)) as server:
        name = f"mbr-esd-demo?engine=server&server={server.url}&store={tmp_path}/store&n="
        before = estimated(load_card(name + "40"), [*SEGMENTS, Segment("source", "", "empty")])
        assert (before.segments, before.pairs, before.candidates, before.stored) == (8, 5, 200, 0)
        assert before.tokens == 200 * 64
        assert not (tmp_path / "store").exists(), "a dry run leaves a file"
        assert not server.bodies
        annotate(load_card(name + "40"), SEGMENTS)
        assert len(server.bodies) == before.requests == 5 * 3
        after = estimated(load_card(name + "64"))
        assert (after.stored, after.candidates, after.requests) == (200, 320, 5 * 2)
        assert 1 * 120 < after.tokens < 3 * 120
        assert "at most 320" in "\n".join(estimated(load_card(name + "auto/64")).lines())


@pytest.mark.parametrize("name", [name for name, card in CARDS.items() if card.model])
def test_every_card_is_counted_without_an_engine(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MBR_ESD_SERVER", raising=False)
    monkeypatch.setattr("mbr_esd_metric.metric.sources.engine_problem", lambda card, engine: "not here")
    one = estimated(load_card(f"{name}?store={tmp_path}/store"))
    assert (one.candidates, one.engine) == (5 * load_card(name).samples, "server")
    note = f"{name} does not run here (mbr-esd models --check says why)"
    assert (note in "\n".join(one.lines())) == (load_card(name).engine == "auto")


def test_a_trial_measures_the_time_and_stores_its_candidates(tmp_path: Path, mbr_esd: Command) -> None:
    for file in ("src", "mt"):
        (tmp_path / file).write_text("".join(f"Satz {number}\n" for number in range(20)))
    score = f"score -s {tmp_path}/src -t {tmp_path}/mt"
    with FakeServer(model_name(load_card("mbr-esd-phi4").engine_options), delay=0.2) as server:
        model = f"mbr-esd-phi4?server={server.url}&n=16&concurrency=1&store={tmp_path}/store"
        output = mbr_esd(score, "--model", model, "--dry-run").out
        assert "time                 not known; --dry-run 4 samples" in output
        output = mbr_esd(score, f"--model mbr-esd-small?store={tmp_path}/small --dry-run").out
        assert "time                 about 40 s for 1,000" in output
        assert not server.bodies
        output = mbr_esd(score, "--model", model, "--dry-run 4").out
        assert "in the store       64" in output
        assert "to load the model" not in output, "the server has loaded it"
        assert len(server.bodies) == 4
        segments = [Segment(f"Satz {number}", f"Satz {number}", str(number)) for number in range(20)]
        one = estimate(load_card(model), segments, 5)
        assert len(server.bodies) == 9
        assert one.timing is not None
        assert (one.timing.segments, one.timing.candidates) == (4, 64)
        assert 4 * 0.2 < one.timing.seconds < 4 * 3
        annotate(load_card(model), segments)
        lines = estimated(load_card(model), segments).lines()
        assert "time                 none for sampling: all candidates are stored" in lines
        assert len(server.bodies) == 20
    assert "--dry-run 1" in mbr_esd(score, "--dry-run 1", status=1).err


def test_a_hosted_model_has_a_price(tmp_path: Path) -> None:
    """2 pairs, 20 candidates each, 16 a request: 4 requests, each of which pays for its prompt."""
    name = f"mbr-esd-server?model=gpt-4.1&dialect=openai&server=http://127.0.0.1:9/v1&n=20&store={tmp_path}/store"
    segments = [Segment("a", "b", "1"), Segment("c", "d", "2")]
    assert estimated(load_card(name), segments).cost is None
    one = estimated(load_card(f"{name}&price=2/8&max_cost=0.01"), segments)
    assert (one.requests, one.tokens) == (4, 40 * 64)
    assert one.cost is not None
    expected, bound = one.cost
    assert expected == pytest.approx((one.prompt_tokens * 2 + one.tokens * 8) / 1e6)
    assert expected < bound < (40 * 512 * 8 + 4 * 20_000) / 1e6
    assert "max_cost           0.0100: the run stops" in "\n".join(one.lines())


def test_a_dry_run_says_what_the_run_would_stop_at(tmp_path: Path) -> None:
    with FakeServer("another") as server:
        name = f"mbr-esd-phi4?n=2&server={server.url}&store={tmp_path}/store"
        note = estimated(load_card(name)).lines()[-1]
        assert note.startswith("note                 as things are, the run would stop")
        assert "does not serve 'microsoft/phi-4'; it serves 'another'. Add model=NAME" in note
        assert estimated(load_card(f"{name}&model=another")).note == ""
        annotate(load_card(f"{name}&model=another"), SEGMENTS)
    assert estimated(load_card(f"{name}&model=another&dialect=vllm")).note == "", "all are stored"


@pytest.mark.parametrize(("build", "expected"), [(True, "transformers"), (False, "vllm")])
def test_a_small_model_does_not_wait_for_vllms_cpu_build(
    build: bool, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hparams.yaml").write_text("class_identifier: mbr_esd_metric\n")
    (tmp_path / "model.safetensors").write_bytes(b" " * 1000)
    monkeypatch.delenv("MBR_ESD_SERVER", raising=False)
    monkeypatch.setattr(vllm, "is_cpu_build", lambda: build)
    monkeypatch.setattr(vllm.VllmEngine, "problem", None)
    monkeypatch.setattr(TransformersEngine, "problem", None)
    assert choose_engine(load_card("mbr-esd-demo?engine=auto")).name == expected
    assert choose_engine(load_card(str(tmp_path))).name == expected
    assert choose_engine(load_card("mbr-esd-llama")).name == "vllm"
    monkeypatch.setattr(TransformersEngine, "problem", "not here")
    assert choose_engine(load_card("mbr-esd-demo?engine=auto")).name == "vllm"
