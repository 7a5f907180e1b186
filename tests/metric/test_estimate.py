"""`mbr-esd score --dry-run`, `mbr-esd serve`'s command and vLLM's calls, as far as they need no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.generation.engines import vllm
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from mbr_esd_metric.generation.pretrained import model_name
from mbr_esd_metric.metric.cards import CARDS, load_card
from mbr_esd_metric.metric.estimate import estimate, timed
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.sources import choose_engine
from tests.helpers.chat_server import FakeServer
from tests.helpers.command import Command

SEGMENTS = [Segment(f"source {i % 5}", f"ein Satz mit {i % 5} Fehlern", f"segment {i}") for i in range(7)]


def estimated(name: str, segments: Sequence[Segment] = SEGMENTS) -> dict[str, str]:
    """The estimate's rows, by default of the usual segments."""
    return {row.strip(): text for row, text in estimate(load_card(name), segments).items()}


def test_it_counts_what_a_run_then_samples(tmp_path: Path) -> None:
    with FakeServer(model_name(load_card("mbr-esd-demo").engine_options)) as server:
        name = f"mbr-esd-demo?engine=server&server={server.url}&n="
        before = estimated(name + "40", [*SEGMENTS, Segment("source", "", "empty")])
        counts = [before[row] for row in ("segments", "distinct pairs", "candidates", "in the store")]
        assert counts == ["8", "5", "200", "0"]
        assert before["tokens to generate"].startswith("12,800 (estimated; tokens a candidate: a guess")
        assert not (tmp_path / "store.sqlite").exists(), "a dry run leaves a file"
        assert not server.bodies
        annotate(load_card(name + "40"), SEGMENTS)
        assert len(server.bodies) == 5 * 3
        assert before["requests"] == "15 (engine=server)"
        after = estimated(name + "64")
        assert (after["in the store"], after["candidates"], after["to sample"]) == ("200", "320", "120")
        assert after["requests"].startswith("10 ")
        assert 1 * 120 < int(after["tokens to generate"].split()[0]) < 3 * 120


@pytest.mark.parametrize("name", [name for name, card in CARDS.items() if card.model])
def test_every_card_is_counted_without_an_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MBR_ESD_SERVER", raising=False)
    monkeypatch.setattr("mbr_esd_metric.metric.sources.engine_problem", lambda card, engine: "not here")
    one = estimated(name)
    assert one["candidates"] == f"{5 * load_card(name).samples:,}"
    assert one["requests"].endswith("(engine=server)")
    note = f"{name} does not run here (see mbr-esd models --check)"
    assert one.get("note", "").startswith(note) == (load_card(name).engine == "auto")


def test_a_trial_measures_the_time_and_stores_its_candidates(tmp_path: Path, mbr_esd: Command) -> None:
    for file in ("src", "mt"):
        (tmp_path / file).write_text("".join(f"Satz {number}\n" for number in range(20)))
    score = f"score -s {tmp_path}/src -t {tmp_path}/mt"
    with FakeServer(model_name(load_card("mbr-esd-phi4").engine_options), delay=0.2) as server:
        model = f"mbr-esd-phi4?server={server.url}&n=16&concurrency=1"
        output = mbr_esd(score, "--model", model, "--dry-run").out
        assert "time                 not known; --dry-run 4 samples" in output
        output = mbr_esd(score, "--model mbr-esd-small --dry-run").out
        assert "time                 about 40 s for 1,000" in output
        assert not server.bodies
        output = mbr_esd(score, "--model", model, "--dry-run 4").out
        assert "in the store       64" in output
        assert "to load the model" not in output, "the server has loaded it"
        assert len(server.bodies) == 4
        segments = [Segment(f"Satz {number}", f"Satz {number}", str(number)) for number in range(20)]
        one = timed(load_card(model), segments, 5)
        assert len(server.bodies) == 9
        assert one is not None
        assert (one.segments, one.candidates) == (4, 64)
        assert 4 * 0.2 < one.seconds < 4 * 3
        annotate(load_card(model), segments)
        assert estimated(model, segments)["time"] == "none: all candidates are stored"
        assert len(server.bodies) == 20
    assert "--dry-run 1" in mbr_esd(score, "--dry-run 1", status=1).err


def test_a_hosted_model_has_a_price() -> None:
    """2 pairs, 20 candidates each, 16 a request: 4 requests, each of which pays for its prompt."""
    name = "mbr-esd-server?model=gpt-4.1&dialect=openai&server=http://127.0.0.1:9/v1&n=20"
    segments = [Segment("a", "b", "1"), Segment("c", "d", "2")]
    assert "cost" not in estimated(name, segments)
    rows = estimated(f"{name}&price=2/8&max_cost=0.01", segments)
    assert (rows["requests"], rows["tokens to generate"].split()[0]) == ("4 (engine=server)", "2,560")
    expected, prompts, bound = (float(one) for one in re.findall(r"[\d.]+", rows["cost"].replace(",", "")))
    assert expected == pytest.approx((prompts * 2 + 40 * 64 * 8) / 1e6, abs=1e-4)
    assert expected < bound < (40 * 512 * 8 + 4 * 20_000) / 1e6
    assert rows["max_cost"] == "0.0100: the run stops before exceeding it"


def test_a_dry_run_says_what_the_run_would_stop_at() -> None:
    with FakeServer("another") as server:
        name = f"mbr-esd-phi4?n=2&server={server.url}"
        note = estimated(name)["note"]
        assert note.startswith("the run would fail: ")
        assert "does not serve 'microsoft/phi-4'; it serves 'another'. Add model=NAME" in note
        assert "note" not in estimated(f"{name}&model=another")
        annotate(load_card(f"{name}&model=another"), SEGMENTS)
    assert "note" not in estimated(f"{name}&model=another&dialect=vllm"), "all are stored"


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
