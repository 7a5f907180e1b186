"""A real `transformers serve` with the demo model: `scripts/setup_transformers_serve.sh FOLDER`, and
MBR_ESD_TRANSFORMERS_SERVE=FOLDER/serve.

It takes one request at a time and one sample a request, on a processor, so few are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate, sample
from mbr_esd_metric.metric.plan import Segment
from tests.helpers.chat_server import FaultyProxy
from tests.helpers.real_server import RealServer, comet_score_goes_on_after_kills

SERVE = os.environ.get("MBR_ESD_TRANSFORMERS_SERVE", "")
pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(
        not SERVE, reason="MBR_ESD_TRANSFORMERS_SERVE names no command (see scripts/setup_transformers_serve.sh)"
    ),
]
CARD = "mbr-esd-demo?grounded=false&invalid=empty&max_tokens=40"
SEGMENT = Segment("I like tea.", "Ich mag Kaffee.", "segment 1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    pytest.importorskip("aiohttp")
    with RealServer(lambda port: [SERVE, str(port)], tmp_path_factory.mktemp("serve") / "log") as running:
        yield running


def test_it_is_recognised_by_asking(server: RealServer) -> None:
    options = load_card(f"{CARD}&server={server.url}").engine_options("server")
    assert ServerEngine.identity(options)["dialect"] == "transformers"
    assert ServerEngine.problem(options) is None


def test_candidates_are_sampled_and_their_tokens_counted(server: RealServer, tmp_path: Path) -> None:
    name = f"{CARD}&n=4&engine=server&server={server.url}&store={tmp_path / 'store'}"
    ((_, drawn),) = sample(load_card(name), [SEGMENT])
    assert len({candidate.text for candidate in drawn}) > 1, "decoded greedily"
    assert all(0 < candidate.tokens <= 40 and candidate.logprob is None for candidate in drawn)
    run = annotate(load_card(name), [SEGMENT])
    assert "|dialect:transformers|" in run.signature
    assert run.decisions[0].valid + run.decisions[0].invalid == 4


def test_faults_before_it_lose_nothing(server: RealServer, tmp_path: Path) -> None:
    with FaultyProxy(server.url, 0.5, stall=1.0, faults=("drop", "500", "429", "cut", "html")) as proxy:
        name = f"{CARD}&n=6&dialect=transformers&engine=server&server={proxy.url}&concurrency=1"
        (decision,) = annotate(load_card(f"{name}&store={tmp_path / 'store'}"), [SEGMENT]).decisions
    assert proxy.faults
    assert decision.valid + decision.invalid == 6


def test_comet_score_goes_on_after_kills(server: RealServer, tmp_path: Path) -> None:
    """Last in the file, as it kills the server."""
    pairs = [("I like tea.", "Ich mag Kaffee."), ("He slept.", "Er schlief.")]
    comet_score_goes_on_after_kills(server, CARD, pairs, 3, tmp_path)
