"""A real vLLM server (CPU build) and vLLM in process, held against the engine of transformers.

Everything runs on the embedded model in float32. The server is started by `mbr-esd serve`, once for the whole file and
once more where it is killed. What is asked for is small: the processor is slow.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.cli.sample import sample
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.generation.engine import Request
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.sources import build_requests
from tests.helpers.chat_requests import collect
from tests.helpers.real_server import RealServer, comet_score_goes_on_after_kills

#: vLLM lives in this environment, beside COMET, or in another one that the variable names.
PYTHON = os.environ.get("MBR_ESD_VLLM_PYTHON") or (sys.executable if importlib.util.find_spec("vllm") else "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.model,
    pytest.mark.skipif(
        not PYTHON,
        reason="no vLLM here (scripts/environment.sh new), and MBR_ESD_VLLM_PYTHON names no python that has it",
    ),
]
PLAIN = "mbr-esd-demo?dtype=float32&max_tokens=56&lp=en-de"
CARD = f"{PLAIN}&vllm=max_model_len:2048"
SEGMENTS = [
    Segment("The cat sat on the old mat.", "Der Hund sass auf der neuen Matte.", "segment 1"),
    Segment("I like tea.", "Ich mag Kaffee.", "segment 2"),
    Segment("He gave a talk on physics.", "Er hielt eine Rede über Chemie gestern.", "segment 3"),
]
#: Log-probabilities of up to 56 tokens, in float32, may differ by this much between engines.
TOLERANCE = 1e-2

#: vLLM starts three processes, each of which imports it: what Python compiles is kept, whatever the tests are told.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

#: The stock command, with a vLLM that does not compile first: that takes minutes on a processor.
COMET_SCORE = """
import functools, sys
sys.argv[0] = "comet-score"  # before torch is imported, as in the command
import vllm
from comet.cli.score import score_command

vllm.LLM = functools.partial(vllm.LLM, enforce_eager=True)
score_command()
"""


def serve(port: int) -> list[str]:
    return [PYTHON, "-m", "mbr_esd_metric", "serve", CARD, "--port", str(port), "--enforce-eager"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    pytest.importorskip("aiohttp")
    with RealServer(serve, tmp_path_factory.mktemp("serve") / "log", ENVIRONMENT) as running:
        yield running


def requests(card: str, segments: Sequence[Segment] = SEGMENTS) -> list[Request]:
    return list(build_requests(load_card(card), {}, segments).values())


def engine(server: RealServer) -> ServerEngine:
    return ServerEngine(load_card(f"{CARD}&server={server.url}").engine_options)


@pytest.fixture(scope="module")
def local() -> Iterator[TransformersEngine]:
    pytest.importorskip("torch")
    loaded = TransformersEngine(load_card(PLAIN).engine_options)
    yield loaded
    loaded.close()


def test_greedy_answers_are_the_same_everywhere(server: RealServer, local: TransformersEngine) -> None:
    card = f"{PLAIN}&temperature=0"
    plain, served = (collect(one.generate(requests(card), load_card(card).sampling)) for one in (local, engine(server)))
    for place, one in plain.items():
        assert (served[place].text, served[place].tokens) == (one.text, one.tokens)
        assert served[place].logprob == pytest.approx(one.logprob, abs=TOLERANCE)


def test_all_engines_draw_from_one_grammar_and_distribution(
    server: RealServer, local: TransformersEngine, tmp_path: Path
) -> None:
    """At N = 64, temperature 2 and top-k 10: mean log-probabilities, which are before both, are 3.5 standard errors of
    their difference apart at most. vLLM is in the process of `comet-score`, and a server."""
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("vLLM is in another environment than COMET")
    (tmp_path / "src").write_text(SEGMENTS[0].source)
    (tmp_path / "mt").write_text(SEGMENTS[0].translation)
    words = ["-s", "src", "-t", "mt", "--quiet", "--model", f"{CARD}&engine=vllm&n=64&utility=softdice"]
    environment = {**os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    subprocess.run([PYTHON, "-c", COMET_SCORE, *words], cwd=tmp_path, env=environment, check=True, timeout=1800)
    ((_, inside),) = sample(load_card(f"{CARD}&engine=vllm&n=64"), SEGMENTS[:1])  # all are stored
    (request,), n = requests(f"{PLAIN}&n=64", SEGMENTS[:1]), 64
    drawn = {"vllm": inside}
    for one in (local, engine(server)):
        drawn[one.name] = [*collect(one.generate([request], load_card(PLAIN).sampling)).values()]
    for name, samples in drawn.items():
        assert len(samples) == n
        assert all(one.truncated or re.fullmatch(request.grammar, one.text) for one in samples), name
        assert len({one.text for one in samples}) > n / 4, f"{name}: the seeds of the samples are not apart"
    for pair in itertools.combinations(drawn, 2):
        first, second = (np.array([one.logprob for one in drawn[name]]) for name in pair)
        assert abs(first.mean() - second.mean()) <= 3.5 * ((first.var() + second.var()) / n) ** 0.5, pair


def test_comet_score_goes_on_after_kills(server: RealServer, ted_pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """Last in the file, as it kills the server."""
    comet_score_goes_on_after_kills(CARD, ted_pairs[:3], 6, tmp_path, server)
