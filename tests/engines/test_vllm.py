"""A real vLLM server (CPU build, own environment) and vLLM in process, held against the engine of transformers.

Everything runs on the embedded model in float32. The server is started by `mbr-esd serve`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from mbr_esd_metric import Annotation
from mbr_esd_metric.elicit.grammar import output_grammar
from mbr_esd_metric.elicit.grounded import grounded_grammar
from mbr_esd_metric.elicit.parse import parse_candidate
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.generation.base import Generated, Request, Sample, Sampling
from mbr_esd_metric.generation.server import Patience, ServerEngine
from mbr_esd_metric.generation.transformers import TransformersEngine
from mbr_esd_metric.models import load_card
from mbr_esd_metric.pipeline import Segment, annotate
from mbr_esd_metric.records import read_candidates

from .openai_server import FaultyProxy

PYTHON = os.environ.get("MBR_ESD_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.model,
    pytest.mark.skipif(not PYTHON, reason="MBR_ESD_VLLM_PYTHON names no python (see scripts/setup_vllm_cpu.sh)"),
]
CARD = "mbr-esd-demo?dtype=float32&max_model_len=2048&max_tokens=64"
SEGMENTS = [
    Segment("The cat sat on the old mat.", "Der Hund sass auf der neuen Matte.", "segment 1"),
    Segment("I like tea.", "Ich mag Kaffee.", "segment 2"),
    Segment("He gave a talk on physics.", "Er hielt eine Rede über Chemie gestern.", "segment 3"),
]


class Server:
    """`mbr-esd serve` of the vLLM environment, on a port of its own; can be killed and started again."""

    def __init__(self, log: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.log, self.url = log, f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        command = [PYTHON, "-m", "mbr_esd_metric", "serve", CARD, "--port", str(self.port), "--enforce-eager"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def wait(self, seconds: float = 400) -> None:
        deadline = time.monotonic() + seconds
        while f"export MBR_ESD_SERVER={self.url}" not in self.log.read_text(errors="replace"):
            assert self._process.poll() is None, self.log.read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, "the server is not ready in time"
            time.sleep(0.5)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.log.write_text("")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("openai")
    running = Server(tmp_path_factory.mktemp("serve") / "log")
    running.start()
    try:
        running.wait()
        yield running
    finally:
        running.kill()


def wanted(n: int, grounded: bool = False, of: Sequence[Segment] = SEGMENTS) -> list[Request]:
    prompt = load_prompt()
    return [
        Request(
            segment.label,
            prompt.render(segment.source, segment.translation, "en-de"),
            grounded_grammar(segment.translation) if grounded else output_grammar(),
            n,
            0,
            segment.label,
            segment.source,
            segment.translation,
        )
        for segment in of
    ]


def engine(server: Server) -> ServerEngine:
    return ServerEngine(load_card(f"{CARD}&server={server.url}").engine_options("server"))


def in_process(folder: Path, verb: str, segments: Sequence[Segment], options: str, *output: str) -> None:
    """A command of ours with `engine=vllm`, in vLLM's environment, over the segments; it writes into the folder."""
    (folder / "src").write_text("".join(f"{segment.source}\n" for segment in segments))
    (folder / "mt").write_text("".join(f"{segment.translation}\n" for segment in segments))
    command = [PYTHON, "-m", "mbr_esd_metric", verb, "-s", "src", "-t", "mt", "--engine", "vllm", "--quiet", *output]
    command += ["--model", f"{CARD}&{options}&store={folder}/store"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]


def test_sixteen_guided_candidates(server: Server) -> None:
    parts = list(engine(server).generate(wanted(16), Sampling(max_tokens=64)))
    assert sorted(part.key for part in parts) == [segment.label for segment in SEGMENTS]
    samples = [sample for part in parts for sample in part.samples]
    assert len(samples) == 48
    grammar = re.compile(output_grammar())
    assert all(sample.truncated or grammar.fullmatch(sample.text) for sample in samples)
    assert all(sample.logprob < 0 and 1 <= sample.tokens <= 64 for sample in samples)
    assert len({sample.text for sample in samples}) > 5, "the seeds of the samples are not apart"
    assert engine(server).count_tokens("hello") == 31


def test_grounded_spans_are_all_in_the_translation(server: Server) -> None:
    spans = 0
    by_key = {segment.label: segment.translation for segment in SEGMENTS}
    for part in engine(server).generate(wanted(8, grounded=True), Sampling(max_tokens=64)):
        for sample in part.samples:
            if not sample.truncated:
                for error in json.loads(sample.text)["errors"]:
                    spans += 1
                    assert error["error_span"] in by_key[part.key]
    assert spans > 0


def test_greedy_output_and_its_probability_are_those_of_transformers(server: Server) -> None:
    pytest.importorskip("torch")

    def greedy(of: object) -> dict[str, Sample]:
        parts = of.generate(wanted(1), Sampling(temperature=0, max_tokens=64))  # type: ignore[attr-defined]
        return {part.key: part.samples[0] for part in parts}

    here = TransformersEngine(load_card(CARD).engine_options("transformers"))
    plain, served = greedy(here), greedy(engine(server))
    here.close()
    for key, sample in plain.items():
        assert (served[key].text, served[key].tokens) == (sample.text, sample.tokens)
        assert served[key].logprob == pytest.approx(sample.logprob, abs=1e-2)


def test_vllm_in_process_finds_the_same_greedy_annotations(server: Server, tmp_path: Path) -> None:
    card = load_card(f"{CARD}&decision=greedy&invalid=empty&server={server.url}&store={tmp_path}/served&engine=server")
    served = annotate(card, SEGMENTS)
    in_process(tmp_path, "score", SEGMENTS, "decision=greedy&invalid=empty", "--to_json", "out.json")
    rows = json.loads((tmp_path / "out.json").read_text())["mt"]
    found = [[(e["start"], e["end"], e["severity"]) for e in row.get("errors", [])] for row in rows]
    assert found == [list(decision.annotation.key) for decision in served.decisions]


def test_a_faulty_network_before_the_server_changes_nothing(server: Server) -> None:
    """Three in ten requests spoilt on their way: greedy answers as without faults, samples each once."""
    patience = Patience(timeout=120, first_wait=0.05, longest_wait=0.5, tries=20)
    options = load_card(CARD).engine_options("server")
    segments = [Segment(f"I have {i} old cats.", f"Ich habe {i} junge Hunde.", f"segment {i}") for i in range(16)]
    greedy = Sampling(temperature=0, max_tokens=64)

    def texts(url: str) -> dict[str, str]:
        running = ServerEngine(dataclasses.replace(options, server=(url,)), patience)
        return {part.key: part.samples[0].text for part in running.generate(wanted(1, of=segments), greedy)}

    clean = texts(server.url)
    with FaultyProxy(server.url, 0.3, stall=1.0) as proxy:
        assert texts(proxy.url) == clean
        spoilt = ServerEngine(dataclasses.replace(options, server=(proxy.url,)), patience)
        found = [
            (part.key, index)
            for part in spoilt.generate(wanted(16), Sampling(max_tokens=64))
            for index in range(part.first, part.first + len(part.samples))
        ]
    assert len(clean) == 16
    assert len(found) == len(set(found)) == 3 * 16
    assert sum(proxy.faults.values()) >= 3


def test_all_engines_draw_from_one_distribution(server: Server, tmp_path: Path) -> None:
    """At N = 64: shares of empty, invalid and located candidates, 3.5 standard errors of a difference apart at most."""
    pytest.importorskip("torch")
    n, segments, sampling = 64, SEGMENTS[:1], Sampling(temperature=1.0, max_tokens=64)
    here = TransformersEngine(load_card(CARD).engine_options("transformers"))
    drawn = {"transformers": _texts(here.generate(wanted(n, of=segments), sampling))}
    here.close()
    drawn["server"] = _texts(engine(server).generate(wanted(n, of=segments), sampling))
    in_process(tmp_path, "sample", segments, f"n={n}&temperature=1.0&grounded=false&lp=en-de", "-o", "out.jsonl")
    records = read_candidates(tmp_path / "out.jsonl")
    drawn["vllm"] = [(record.mt, None if c.truncated else str(c.text)) for record in records for c in record.candidates]
    shares = {name: _shares(texts) for name, texts in drawn.items()}
    for one, other in itertools.combinations(shares, 2):
        for kind, a in shares[one].items():
            b = shares[other][kind]
            mean = (a + b) / 2
            error = (2 * mean * (1 - mean) / (n * len(segments))) ** 0.5
            assert abs(a - b) <= 3.5 * error, (one, other, kind, shares)


def _texts(parts: Iterable[Generated]) -> list[tuple[str, str | None]]:
    """(translation, text or None where cut) of each sample."""
    by_key = {segment.label: segment.translation for segment in SEGMENTS}
    return [(by_key[p.key], None if s.truncated else s.text) for p in parts for s in p.samples]


def _shares(texts: list[tuple[str, str | None]]) -> dict[str, float]:
    assert len(texts) == 64
    read = [None if text is None else parse_candidate(text, translation) for translation, text in texts]
    valid = [annotation for annotation in read if isinstance(annotation, Annotation)]
    return {
        "invalid": 1 - len(valid) / len(texts),
        "empty": sum(text == '{"errors": []}' for _, text in texts) / len(texts),
        "located": sum(bool(annotation.spans) for annotation in valid) / len(texts),
    }


def test_a_killed_server_is_waited_for(server: Server) -> None:
    """Last in the file: the server is killed while it works and started again."""
    found: set[tuple[str, int]] = set()
    killed = False
    for part in engine(server).generate(wanted(32), Sampling(max_tokens=64)):
        for index in range(part.first, part.first + len(part.samples)):
            assert (part.key, index) not in found
            found.add((part.key, index))
        if not killed:
            server.kill()
            server.start()
            killed = True
    assert len(found) == 3 * 32
