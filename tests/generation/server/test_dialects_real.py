"""Real servers with the demo model, where they are set up.

llama.cpp: `scripts/setup_llamacpp.sh FOLDER`, and MBR_ESD_LLAMACPP=FOLDER. `transformers serve`:
`scripts/setup_transformers_serve.sh FOLDER`, and MBR_ESD_TRANSFORMERS_SERVE=FOLDER/serve. The latter takes one request
at a time and one sample a request, on a processor, so few are asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mbr_esd_metric.cli.sample import sample
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.sources import Segment, build_requests
from tests.helpers.chat_requests import collect
from tests.helpers.real_server import RealServer, comet_score_goes_on_after_kills

pytestmark = pytest.mark.model
LLAMACPP = os.environ.get("MBR_ESD_LLAMACPP", "")
#: Dialect -> the command that takes a port; empty where it is not set up.
COMMANDS = {
    "llamacpp": LLAMACPP and f"{LLAMACPP}/serve",
    "transformers": os.environ.get("MBR_ESD_TRANSFORMERS_SERVE", ""),
}
CARD = "mbr-esd-demo?max_tokens=40&engine=server"
SEGMENTS = [
    Segment("I like tea.", "Ich mag Kaffee.", "segment 1"),
    Segment("He slept.", "Er schlief gestern.", "segment 2"),
]
only_llamacpp = pytest.mark.parametrize("server", ["llamacpp"], indirect=True)


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


@only_llamacpp
@pytest.mark.parametrize("grounded", ["true", "false"])
def test_candidates_are_in_the_grammar(server: RealServer, grounded: str) -> None:
    card = load_card(f"mbr-esd-demo?max_tokens=160&engine=server&grounded={grounded}&n=4&server={server.url}")
    requests = build_requests(card, {}, SEGMENTS).values()
    grammars = {request.key: request.grammar for request in requests}
    samples = collect(ServerEngine(card.engine_options).generate(requests, card.sampling))
    assert len(samples) == 8
    whole = [(key, sample) for (key, _), sample in samples.items() if not sample.truncated]
    assert whole
    assert all(re.fullmatch(grammars[key], sample.text or "") for key, sample in whole)
    assert len({sample.text for sample in samples.values()}) > 2, "the samples of a request are not drawn apart"
    assert all(sample.tokens > 0 for sample in samples.values())


@pytest.mark.parametrize("server", ["transformers"], indirect=True)
def test_candidates_are_sampled_and_their_tokens_counted(server: RealServer) -> None:
    name = f"{CARD}&grounded=false&n=4&server={server.url}"
    ((_, drawn),) = sample(load_card(name), SEGMENTS[:1])
    assert len({candidate.text for candidate in drawn}) > 1, "decoded greedily"
    assert all(0 < candidate.tokens <= 40 and candidate.logprob is None for candidate in drawn)


def test_comet_score_goes_on_after_kills(server: RealServer, tmp_path: Path) -> None:
    """Last in the file, as it kills the server."""
    pairs = [(segment.source, segment.translation) for segment in SEGMENTS]
    comet_score_goes_on_after_kills(f"{CARD}&grounded=false&invalid=empty", pairs, 4, tmp_path, server)
