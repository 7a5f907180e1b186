"""Real servers with the demo model, where they are set up.

llama.cpp: `scripts/setup_llamacpp.sh FOLDER`, and MBR_ESD_LLAMACPP=FOLDER. `transformers serve`:
`scripts/setup_transformers_serve.sh FOLDER`, and MBR_ESD_TRANSFORMERS_SERVE=FOLDER/serve. The latter takes one sample
at a time, on a processor, so few are asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.sources import build_requests
from tests.helpers.chat_requests import collect
from tests.helpers.real_server import RealServer, comet_score_goes_on_after_kills

pytestmark = pytest.mark.model
LLAMACPP = os.environ.get("MBR_ESD_LLAMACPP", "")
#: Dialect -> the command that takes a port; empty where it is not set up.
COMMANDS = {
    "llamacpp": LLAMACPP and f"{LLAMACPP}/serve",
    "transformers": os.environ.get("MBR_ESD_TRANSFORMERS_SERVE", ""),
}
CARD = "mbr-esd-demo?engine=server"
SEGMENTS = [
    Segment("I like tea.", "Ich mag Kaffee.", "segment 1"),
    Segment("He slept.", "Er schlief gestern.", "segment 2"),
]


@pytest.fixture(scope="module", params=COMMANDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    pytest.importorskip("aiohttp")
    if not (command := COMMANDS[request.param]):
        pytest.skip(f"the server of {request.param} is not set up")
    with RealServer(lambda port: [command, str(port)], tmp_path_factory.mktemp("serve") / "log") as running:
        running.dialect = request.param
        yield running


def test_it_is_recognised_by_asking(server: RealServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = load_card(f"mbr-esd-demo?server={server.url}").engine_options
    assert ServerEngine(options).problem is None
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path))
    assert ServerEngine(options).identity["dialect"] == server.dialect


@pytest.mark.parametrize("grounded", ["true", "false"])
def test_candidates_are_drawn_apart_and_in_the_grammar(server: RealServer, grounded: str) -> None:
    held = server.dialect == "llamacpp"
    n, most = (8, 160) if held else (2, 40)
    card = load_card(f"{CARD}&max_tokens={most}&grounded={grounded}&n={n}&server={server.url}")
    requests = {request.key: request for request in build_requests(card, {}, SEGMENTS).values()}
    samples = collect(ServerEngine(card.engine_options).generate(requests.values(), card.sampling))
    assert len({sample.text for sample in samples.values()}) > 2, "the samples of a request are not drawn apart"
    assert len(samples) == 2 * n
    assert all(0 < sample.tokens <= most for sample in samples.values())
    for (key, _), sample in samples.items():
        assert sample.truncated or not held or re.fullmatch(requests[key].grammar, sample.text or "")


def test_comet_score_goes_on_after_kills(server: RealServer, tmp_path: Path) -> None:
    """Last in the file, as it kills the server."""
    pairs = [(segment.source, segment.translation) for segment in SEGMENTS]
    comet_score_goes_on_after_kills(f"{CARD}&max_tokens=40&grounded=false&invalid=empty", pairs, 4, tmp_path, server)
