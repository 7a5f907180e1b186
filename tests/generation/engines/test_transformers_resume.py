"""A run of the real engine that is killed goes on where it stopped and ends with the same candidates, bit by bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.generation.store import CandidateStore

SEGMENTS, N = 15, 20
RUN = """
import dataclasses, sys
from mbr_esd_metric.elicit.formats.json import output_grammar
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.store import CandidateStore
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
model, path, segments, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
engine = TransformersEngine(EngineOptions(model=model, device="cpu"))
with CandidateStore(path) as store:
    wanted = []
    for i in range(segments):
        first = n - store.get(f"key {i}", n).count(None)
        if first < n:
            wanted.append(Request(f"key {i}", f"Mark the errors. {i}", output_grammar(), n - first, first))
    for part in engine.generate(wanted, Sampling(max_tokens=30)):
        store.put(part.key, part.first, part.samples)
        print(part.key, part.first, len(part.samples), flush=True)
"""


def start(model: Path, store: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(model), str(store), str(SEGMENTS), str(N)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def stored(path: Path) -> list[list[Candidate | None]]:
    with CandidateStore(path) as store:
        return [store.get(f"key {i}", N) for i in range(SEGMENTS)]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_run_goes_on_and_ends_with_the_same_candidates(tiny: Path, tmp_path: Path) -> None:
    whole = start(tiny, tmp_path / "whole.sqlite")
    killed = start(tiny, tmp_path / "killed.sqlite")
    assert killed.stdout is not None
    said = [killed.stdout.readline() for _ in range(3)]
    killed.send_signal(signal.SIGKILL)
    said += killed.stdout.readlines()
    killed.wait()
    out, err = whole.communicate(timeout=300)
    assert whole.returncode == 0, err
    assert len(out.splitlines()) == 2 * SEGMENTS
    kept = sum(one is not None for samples in stored(tmp_path / "killed.sqlite") for one in samples)
    assert 16 + 4 + 16 <= kept < SEGMENTS * N, "the kill should come in the middle"

    again = start(tiny, tmp_path / "killed.sqlite")
    out, err = again.communicate(timeout=300)
    assert again.returncode == 0, err
    assert sum(int(line.split()[-1]) for line in out.splitlines()) == SEGMENTS * N - kept, "only what was missing"
    assert stored(tmp_path / "killed.sqlite") == stored(tmp_path / "whole.sqlite")
