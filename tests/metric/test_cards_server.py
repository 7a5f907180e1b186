"""`mbr-esd-server`: any model on a server of the user's, under the name of that model."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.estimate import estimate
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.signature import model_title
from mbr_esd_metric.metric.sources import Segment, choose_engine, engine_problems
from mbr_esd_metric.scoring.wmt import default_name
from tests.helpers.chat_server import FakeServer

SEGMENTS = [Segment("I like tea.", "Ich mag Kaffee.", "1"), Segment("He slept.", "Er schlief gestern.", "2")]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path))
    monkeypatch.delenv("MBR_ESD_SERVER", raising=False)


def test_the_model_may_be_left_out_where_the_server_serves_one() -> None:
    with FakeServer("my-model-1.5B", dialect="llamacpp") as server:
        named = annotate(load_card(f"mbr-esd-server?model=my-model-1.5B&server={server.url}&n=4"), SEGMENTS)
        requests = len(server.bodies)
        left_out = annotate(load_card(f"mbr-esd-server?server={server.url}&n=4"), SEGMENTS)
        assert len(server.bodies) == requests, "they are not the same candidates"
        assert default_name(f"mbr-esd-server?server={server.url}&n=4") == "my-model-1.5B_n=4"
        one = estimate(load_card(f"mbr-esd-server?server={server.url}&n=4"), SEGMENTS)
    assert left_out.signature == named.signature
    assert left_out.signature.startswith("mbr-esd|model:my-model-1.5B|dialect:llamacpp|engine:server|")
    assert one["  in the store"] == "8"
    # By this name rows of two servers' models are told apart.
    assert model_title(load_card("mbr-esd-server"), named.signature) == "my-model-1.5B"
    assert model_title(load_card("mbr-esd-llama?n=4"), named.signature) == "mbr-esd-llama"


@pytest.mark.parametrize("dialect", ["vllm", "plain"])
def test_a_server_of_several_models_needs_a_name(dialect: str) -> None:
    with FakeServer("one", dialect=dialect) as server:
        both = [{"id": name, "object": "model", "owned_by": dialect} for name in ("one", "two")]
        server.describe = lambda path: (200, {"data": both})  # type: ignore[method-assign]
        with pytest.raises(EngineError, match=r"serves 'one', 'two'; add model=NAME"):
            annotate(load_card(f"mbr-esd-server?server={server.url}&n=4"), SEGMENTS)
        assert annotate(load_card(f"mbr-esd-server?model=one&server={server.url}&n=4"), SEGMENTS).decisions


def test_ollamas_latest_is_no_second_model() -> None:
    with FakeServer("gemma3:latest", dialect="ollama") as server:
        assert choose_engine(load_card(f"mbr-esd-server?server={server.url}")).model == "gemma3"


def test_a_server_that_is_down_is_named_with_what_to_do() -> None:
    with FakeServer("one") as server:
        url = server.url
    with pytest.raises(EngineError, match="no server answers at .*; start the server, or fix the address"):
        annotate(load_card(f"mbr-esd-server?server={url}"), SEGMENTS)


def test_only_the_ways_to_a_server_are_listed() -> None:
    with FakeServer("one", dialect="llamacpp") as server:
        problems = engine_problems(load_card(f"mbr-esd-server?server={server.url}"))
    batch = "the server speaks dialect=llamacpp, which has no batches; take engine=server"
    assert problems == {"server": None, "batch": batch}
    down = engine_problems(load_card(f"mbr-esd-server?server={server.url[:-3]}/other"))
    assert down["batch"] == down["server"] is not None
    lacking = engine_problems(load_card("mbr-esd-server")).values()
    assert all("name your server: mbr-esd-server?server=URL" in str(problem) for problem in lacking)
