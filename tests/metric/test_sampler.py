"""Each missing candidate is sampled once, also after a killed process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.model_files import model_name
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment
from tests.helpers.chat_server import FakeServer

SEGMENTS, N = 30, 12
MODEL = model_name(load_card("mbr-esd-demo").engine_options("server"))


def start(folder: Path, url: str, store: str, out: str) -> subprocess.Popen[str]:
    name = f"mbr-esd-demo?engine=server&n={N}&concurrency=3&server={url}&store={folder}/{store}"
    code = "import sys; from mbr_esd_metric.cli.main import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", code, "sample", "-s", "src", "-t", "mt", "--model", name, "--quiet", "-o", out],
        cwd=folder,
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
        while "another process samples mbr-esd-demo into" not in (line := second.stderr.readline()):
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


def test_segments_with_one_source_are_requested_together(tmp_path: Path) -> None:
    segments = [Segment(f"source {i % 3}", f"translation {i}", f"segment {i}") for i in range(30)]
    name = f"mbr-esd-demo?engine=server&n=1&invalid=empty&concurrency=1&store={tmp_path}/store&server="
    with FakeServer(MODEL) as server:
        annotate(load_card(name + server.url), segments)
        sources = [body["messages"][0]["content"].split("source ")[1][0] for body in server.bodies]
    assert len(sources) == 30
    assert sources == sorted(sources)


def test_one_segment_that_fails_ends_the_run(tmp_path: Path) -> None:
    """The engine's error ends the run, and the others are stored."""
    segments = [Segment("source", "word " * (2000 if i == 3 else 1), f"segment {i}") for i in range(6)]
    name = f"mbr-esd-demo?engine=server&n=1&concurrency=1&store={tmp_path}/store&server="
    with FakeServer(MODEL, context=5000) as server, pytest.raises(EngineError, match="segment 3"):
        annotate(load_card(name + server.url), segments)
    with CandidateStore(tmp_path / "store") as store:
        keys = [key for (key,) in store._connection.execute("SELECT key FROM request")]
        assert [store.get(key, 1) != [None] for key in keys] == [True]
