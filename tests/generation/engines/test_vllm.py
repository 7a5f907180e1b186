"""A real vLLM server (CPU build) and vLLM in process, held against the engine of transformers.

Everything runs on the embedded model in float32. The server is started by `mbr-esd serve`, once for the whole file and
once more where it is killed; vLLM in process is loaded once. What is asked for is small: the processor is slow.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.generation.engine import Generated, Request, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.sources import Segment
from mbr_esd_metric.prompting.formats.json import output_grammar
from mbr_esd_metric.prompting.prompt import load_prompt
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
PLAIN = "mbr-esd-demo?dtype=float32&max_tokens=56"
CARD = f"{PLAIN}&vllm=max_model_len:2048"
SEGMENTS = [
    Segment("The cat sat on the old mat.", "Der Hund sass auf der neuen Matte.", "segment 1"),
    Segment("I like tea.", "Ich mag Kaffee.", "segment 2"),
    Segment("He gave a talk on physics.", "Er hielt eine Rede über Chemie gestern.", "segment 3"),
]
PAPER = Sampling(max_tokens=56)
GREEDY = Sampling(temperature=0, max_tokens=56)
#: Log-probabilities of up to 56 tokens, in float32, may differ by this much between engines.
TOLERANCE = 1e-2

#: vLLM starts three processes, each of which imports it: what Python compiles is kept, whatever the tests are told.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

#: Runs of `engine=vllm` on one vLLM, in its environment.
IN_PROCESS = """
import functools, pickle, sys
import vllm
from mbr_esd_metric.generation.engines.vllm import VllmEngine

vllm.LLM = functools.partial(vllm.LLM, enforce_eager=True)
options, runs = pickle.load(sys.stdin.buffer)
engine = VllmEngine(options)
parts = [list(engine.generate(requests, sampling)) for requests, sampling in runs]
engine.close()
with open(sys.argv[1], "wb") as file:
    pickle.dump(parts, file)
"""


def serve(port: int) -> list[str]:
    return [PYTHON, "-m", "mbr_esd_metric", "serve", CARD, "--port", str(port), "--enforce-eager"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    pytest.importorskip("aiohttp")
    with RealServer(serve, tmp_path_factory.mktemp("serve") / "log", ENVIRONMENT) as running:
        yield running


def requests(n: int) -> list[Request]:
    made = []
    for one in SEGMENTS:
        text = load_prompt().render(one.source, one.translation, "en-de")
        made.append(Request(one.label, text, output_grammar(), n, 0, one.label, one.source, one.translation))
    return made


def engine(server: RealServer) -> ServerEngine:
    return ServerEngine(load_card(f"{CARD}&server={server.url}").engine_options)


@pytest.fixture(scope="module")
def local() -> Iterator[TransformersEngine]:
    pytest.importorskip("torch")
    loaded = TransformersEngine(load_card(PLAIN).engine_options)
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> list[list[Generated]]:
    """The parts of two runs of `engine=vllm`: greedy, and 64 candidates of the first segment."""
    path = tmp_path_factory.mktemp("in_process") / "parts"
    runs = [(requests(1), GREEDY), (requests(64)[:1], PAPER)]
    done = subprocess.run(
        [PYTHON, "-c", IN_PROCESS, str(path)],
        input=pickle.dumps((load_card(CARD).engine_options, runs)),
        capture_output=True,
        timeout=1800,
        env={**ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
    )
    assert done.returncode == 0, done.stderr[-3000:].decode()
    parts: list[list[Generated]] = pickle.loads(path.read_bytes())
    return parts


def test_greedy_answers_are_the_same_everywhere(server: RealServer, local: TransformersEngine, in_process: Any) -> None:
    inside, _ = in_process
    plain, served = (list(one.generate(requests(1), GREEDY)) for one in (local, engine(server)))
    for other in (served, inside):
        others = collect(other)
        for place, sample in collect(plain).items():
            assert (others[place].text, others[place].tokens) == (sample.text, sample.tokens)
            assert others[place].logprob == pytest.approx(sample.logprob, abs=TOLERANCE)


def test_all_engines_draw_from_one_grammar_and_distribution(
    server: RealServer, local: TransformersEngine, in_process: Any
) -> None:
    """At N = 64, temperature 2 and top-k 10: mean log-probabilities, which are before both, are 3.5 standard errors of
    their difference apart at most."""
    n, (request, *_) = 64, requests(64)
    parts = {one.name: one.generate([request], PAPER) for one in (local, engine(server))} | {"vllm": in_process[1]}
    drawn = {name: [sample for part in of for sample in part.samples] for name, of in parts.items()}
    for name, samples in drawn.items():
        assert len(samples) == n
        assert all(one.truncated or re.fullmatch(request.grammar, one.text) for one in samples), name
        assert len({one.text for one in samples}) > n / 4, f"{name}: the seeds of the samples are not apart"
    for pair in itertools.combinations(drawn, 2):
        one, other = (np.array([sample.logprob for sample in drawn[name]]) for name in pair)
        assert abs(one.mean() - other.mean()) <= 3.5 * ((one.var() + other.var()) / n) ** 0.5, pair


def test_comet_score_goes_on_after_kills(server: RealServer, ted_pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """Last in the file, as it kills the server."""
    comet_score_goes_on_after_kills(CARD, ted_pairs[:3], 6, tmp_path, server)
