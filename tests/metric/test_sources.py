"""Each missing candidate is sampled once, also after a killed process; candidates from a file in place of a model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.checks.check import Context
from mbr_esd_metric.cli.models import engine_problems
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.generation.engine import ENGINES, NO_MODEL
from mbr_esd_metric.generation.pretrained import model_name
from mbr_esd_metric.generation.store import CandidateStore, store_path
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.estimate import estimate
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.sampler import Sampler
from mbr_esd_metric.metric.signature import model_title
from mbr_esd_metric.metric.sources import (
    Sampled,
    build_requests,
    choose_engine,
)
from mbr_esd_metric.scoring.wmt import default_name
from tests.helpers.candidates import answer, record
from tests.helpers.chat_server import FakeServer

SEGMENTS, N = 30, 12
PAIRS = [Segment("I like tea.", "Ich mag Kaffee.", "1"), Segment("He slept.", "Er schlief gestern.", "2")]
MODEL = model_name(load_card("mbr-esd-demo").engine_options)


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MBR_ESD_SERVER", raising=False)


def start(folder: Path, url: str, store: str, out: str) -> subprocess.Popen[str]:
    name = f"mbr-esd-demo?engine=server&n={N}&concurrency=3&server={url}"
    code = "import sys; from mbr_esd_metric.cli.main import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "sample", "-s", "src", "-t", "mt", "--model", name, "--quiet", "-o", out],
        cwd=folder,
        env=os.environ | {"MBR_ESD_STORE": store},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_of_a_killed_process_what_is_missing_is_sampled_by_the_one_that_waits(tmp_path: Path) -> None:
    for file in ("src", "mt"):
        (tmp_path / file).write_text("".join(f"{file} {i} with words\n" for i in range(SEGMENTS)))
    with FakeServer(MODEL, delay=3.0) as server:
        first = start(tmp_path, server.url, "store", "first.jsonl")
        end = time.monotonic() + 300
        while not server.busiest:
            assert time.monotonic() < end
            time.sleep(0.02)
        second = start(tmp_path, server.url, "store", "second.jsonl")
        assert second.stderr is not None
        while " is sampling mbr-esd-demo into" not in (line := second.stderr.readline()):
            assert line, "the second does not wait"
        server.delay = 0.0
        first.send_signal(signal.SIGKILL)
        first.communicate()
        second.stderr.read()
        assert second.wait(timeout=300) == 0
        requested = sum(body["n"] for body in server.bodies)
        assert SEGMENTS * N <= requested <= SEGMENTS * N + 4 * N, "no more is lost than was under way"
        start(tmp_path, server.url, "another store", "alone.jsonl").communicate(timeout=300)
    assert (tmp_path / "second.jsonl").read_text() == (tmp_path / "alone.jsonl").read_text()


def test_runs_that_sample_other_texts_do_not_wait(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    segments = [Segment("source", f"translation {i}", f"segment {i}") for i in range(2)]
    with FakeServer(MODEL) as server, CandidateStore(store_path()) as store:
        source = Sampled(load_card(f"mbr-esd-server?model={MODEL}&n=2&server={server.url}"))
        with Sampler(source.engine, store) as other:
            requests = build_requests(source.card, source.engine.identity, segments[:1])
            other.fill(source.card, requests, dict)
            annotate(source.card, segments[1:])
        assert not caplog.messages
    assert [path.name for path in (tmp_path / "store.sqlite.claims").iterdir()] == ["lock"]


def test_segments_with_one_source_are_requested_together() -> None:
    segments = [Segment(f"source {i % 3}", f"translation {i}", f"segment {i}") for i in range(30)]
    name = "mbr-esd-demo?engine=server&n=1&invalid=empty&concurrency=1&server="
    with FakeServer(MODEL) as server:
        annotate(load_card(name + server.url), segments)
        sources = [body["messages"][0]["content"].split("source ")[1][0] for body in server.bodies]
    assert len(sources) == 30
    assert sources == sorted(sources)


def test_candidates_of_another_server_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Two servers of one served name: the second printed the first's scores without a word."""
    segments = [Segment("source", f"translation {i}", f"segment {i}") for i in range(2)]
    name = f"mbr-esd-server?model={MODEL}&server="
    with FakeServer(MODEL) as one, FakeServer(MODEL) as two, FakeServer(MODEL) as three:
        for _ in range(2):
            annotate(load_card(f"{name}{one.url}&n=2"), segments[:1])
        assert not caplog.messages
        annotate(load_card(f"{name}{two.url}&n=2"), segments[1:])
        assert "MBR_ESD_STORE=PATH" in caplog.messages.pop(), "the next run could mix them"
        for n, requests in ((2, 0), (4, 2)):  # nothing is missing; two more of each are
            annotate(load_card(f"{name}{three.url}&n={n}"), segments)
            assert len(three.bodies) == requests
            line = caplog.messages.pop()
            assert f"came from {one.url}, {two.url}, but this run uses {three.url}" in line
            assert "model=NAME" in line


def test_a_server_that_gave_nothing_is_not_named(caplog: pytest.LogCaptureFixture) -> None:
    """After a wrong address the next run warned of candidates that were not there."""
    with FakeServer(MODEL, context=1) as refuses, FakeServer(MODEL) as answers:
        for server in (refuses, answers):
            annotate(load_card(f"mbr-esd-server?model={MODEL}&n=2&server={server.url}"), PAIRS[:1])
    assert refuses.bodies
    assert "came from" not in caplog.text


def test_a_segment_whose_every_answer_is_withheld_has_no_score() -> None:
    """It ended the run: a filter may also answer with status 200."""
    with FakeServer(MODEL, dialect="openai") as server:

        def withhold(reply: Any, number: int) -> None:
            for choice in reply["choices"] if "guns" in str(server.bodies[-1]) else reply["choices"][:1]:
                choice.update(message={"content": ""}, finish_reason="content_filter")

        server.spoil = withhold
        name = f"mbr-esd-server?model={MODEL}&n=2&concurrency=1&dialect=openai"
        segments = [Segment("source", one, one) for one in ("guns", "Satz mit Wort")]
        for _ in range(2):
            run = annotate(load_card(f"{name}&server={server.url}"), segments)
            assert [one.refused for one in run.judged] == ["it withholds the answer: content_filter", None]
            assert run.decisions[1].valid


def test_the_model_may_be_left_out_where_the_server_serves_one() -> None:
    with FakeServer("my-model-1.5B", dialect="llamacpp") as server:
        named = annotate(load_card(f"mbr-esd-server?model=my-model-1.5B&server={server.url}&n=4"), PAIRS)
        requests = len(server.bodies)
        left_out = annotate(load_card(f"mbr-esd-server?server={server.url}&n=4"), PAIRS)
        assert len(server.bodies) == requests, "they are not the same candidates"
        assert default_name(f"mbr-esd-server?server={server.url}&n=4") == "my-model-1.5B_n=4"
        one = estimate(load_card(f"mbr-esd-server?server={server.url}&n=4"), PAIRS)
    assert left_out.signature == named.signature
    assert str(left_out.signature).startswith("mbr-esd|model:my-model-1.5B|dialect:llamacpp|engine:server|")
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
            annotate(load_card(f"mbr-esd-server?server={server.url}&n=4"), PAIRS)
        assert annotate(load_card(f"mbr-esd-server?model=one&server={server.url}&n=4"), PAIRS).decisions


def test_ollamas_latest_is_no_second_model() -> None:
    with FakeServer("gemma3:latest", dialect="ollama") as server:
        assert choose_engine(load_card(f"mbr-esd-server?server={server.url}")).model == "gemma3"


def test_only_the_ways_to_a_server_are_listed() -> None:
    with FakeServer("one", dialect="llamacpp") as server:
        problems = engine_problems(load_card(f"mbr-esd-server?server={server.url}"))
    batch = "the server uses dialect=llamacpp, which has no batch API; use engine=server"
    assert (problems["server"], problems["batch"]) == (None, batch)
    assert NO_MODEL not in problems
    assert not any(ENGINES.get(name).loads_weights for name in problems)
    down = engine_problems(load_card(f"mbr-esd-server?server={server.url[:-3]}/other"))
    assert down["batch"] == down["server"] is not None
    lacking = engine_problems(load_card("mbr-esd-server"))
    for name in ("server", "batch"):
        assert "specify your server: mbr-esd-server?server=URL" in str(lacking[name])


@pytest.mark.parametrize(
    ("options", "translations", "message"),
    [
        ("n=1", "acd", r"no candidates for segment c \(nor for 1 more\)"),
        ("n=16", "a", "has 3 candidates for segment a, but n=16; set n=3"),
        ("rule=greedy", "a", "has 3 candidates for segment a, but greedy.*rule=map"),
    ],
)
def test_what_a_file_lacks_is_an_error_that_names_the_segment(
    tmp_path: Path, options: str, translations: str, message: str
) -> None:
    path = tmp_path / "candidates.jsonl"
    card = load_card(f"mbr-esd-llama?candidates={path}&{options}")
    segments = [Segment("src", text, f"segment {text}") for text in translations]
    with pytest.raises(EngineError, match="candidates file .* does not exist; set candidates=PATH"):
        annotate(card, segments)
    write_records(path, [record("src", "a", *[answer()] * 3)])
    with pytest.raises(EngineError, match=message):
        annotate(card, segments)


def test_each_request_names_the_languages_of_its_segment() -> None:
    """Those of the card come first; of a prompt that names none, equal texts are one request."""
    known = [Context("en", language) for language in ("de-AT", "fr", None)]
    segments = [Segment("OK", "OK", str(one), known=one) for one in known]
    card = load_card("mbr-esd-demo")
    prompts = [one.prompt for one in build_requests(card, {}, segments).values()]
    assert [("German" in one, "French" in one) for one in prompts] == [(True, False), (False, True), (False, False)]
    requests = build_requests(load_card("mbr-esd-demo?lp=en-ja"), {}, segments)
    assert len({one.key for one in requests.values()}) == 1
    assert "Japanese" in next(iter(requests.values())).prompt
