"""A real llama.cpp server with the demo model: `scripts/setup_llamacpp.sh FOLDER`, and MBR_ESD_LLAMACPP=FOLDER."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mbr_esd_metric.generation.engine import Generated
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment, plan
from tests.helpers.chat_requests import collect
from tests.helpers.chat_server import FaultyProxy
from tests.helpers.real_server import RealServer, comet_score_goes_on_after_kills

FOLDER = os.environ.get("MBR_ESD_LLAMACPP", "")
pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not FOLDER, reason="MBR_ESD_LLAMACPP names no folder (see scripts/setup_llamacpp.sh)"),
]
CARD = "mbr-esd-demo?dialect=llamacpp&max_tokens=40&engine=server"
SEGMENTS = [
    Segment("I like tea.", "Ich mag Kaffee.", "segment 1"),
    Segment("He slept.", "Er schlief gestern.", "segment 2"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    pytest.importorskip("aiohttp")
    with RealServer(lambda port: [f"{FOLDER}/serve", str(port)], tmp_path_factory.mktemp("serve") / "log") as running:
        yield running


def sampled(url: str, options: str, first: int = 0, n: int = 4) -> list[Generated]:
    card = load_card(f"{CARD}&n={n}&server={url}{options}")
    todo = plan(card, SEGMENTS)
    asked = [dataclasses.replace(request, first=first) for request in todo.requests.values()]
    return list(ServerEngine(card.engine_options("server")).generate(asked, card.sampling))


def test_it_is_recognised_by_asking(server: RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path))
    options = load_card(f"mbr-esd-demo?server={server.url}").engine_options("server")
    assert ServerEngine.identity(options)["dialect"] == "llamacpp"
    assert ServerEngine.problem(options) is None


@pytest.mark.parametrize("grounded", ["true", "false"])
def test_candidates_are_in_the_grammar(server: RealServer, grounded: str) -> None:
    found = collect(sampled(server.url, f"&grounded={grounded}"))
    card = load_card(f"{CARD}&grounded={grounded}&n=4&server={server.url}")
    grammars = {key: request.grammar for key, request in plan(card, SEGMENTS).requests.items()}
    assert len(found) == 8
    whole = [(key, sample) for (key, _), sample in found.items() if not sample.truncated]
    assert whole
    assert all(re.fullmatch(grammars[key], sample.text) for key, sample in whole)
    assert len({sample.text for sample in found.values()}) > 2, "the samples of a request are not drawn apart"


def test_a_long_translation_is_grounded(server: RealServer) -> None:
    """Its grammar repeats a tree of all runs of words up to twelve times."""
    long = Segment("Nobody knows.", " ".join(f"Wort{number}" for number in range(60)), "segment 1")
    card = load_card(f"{CARD}&grounded=true&format=compact&n=1&server={server.url}")
    todo = plan(card, [long])
    found = list(ServerEngine(card.engine_options("server")).generate(todo.requests.values(), card.sampling))
    assert len(found) == 1


def test_one_sample_a_request_is_what_several_are(server: RealServer) -> None:
    """Where the run does not say how many requests the server gets, each sample is a request, and stored when done."""
    single = collect(sampled(server.url, ""))
    together = collect(sampled(server.url, "&concurrency=2"))
    assert single.keys() == together.keys()
    same = [together[key].text == sample.text for key, sample in single.items()]
    assert sum(same) >= 2, "rounding differs with the size of a batch and may change some"
    assert all(sample.tokens > 0 for sample in single.values())


def test_faults_before_it_lose_nothing(server: RealServer, tmp_path: Path) -> None:
    with FaultyProxy(server.url, 0.7, stall=1.0, faults=("drop", "drop after", "500", "429", "cut", "html")) as proxy:
        card = load_card(f"{CARD}&n=6&invalid=empty&server={proxy.url}&concurrency=1&store={tmp_path / 'store'}")
        run = annotate(card, [Segment(f"I like tea {i}.", "Ich mag Kaffee.", str(i)) for i in range(4)])
    assert sum(proxy.faults.values()) > 0
    assert all(decision.valid + decision.invalid == 6 for decision in run.decisions)
    assert "|dialect:llamacpp|" in run.signature


def test_comet_score_goes_on_after_kills(server: RealServer, ted_pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """Last in the file, as it kills the server."""
    comet_score_goes_on_after_kills(server, f"{CARD}&invalid=empty", ted_pairs[:4], 4, tmp_path)
