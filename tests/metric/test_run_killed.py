"""A run of the real engine and model that is killed: the next one goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.real_server import stored


@pytest.mark.model
def test_after_kill_9_only_what_is_missing_is_sampled_and_the_output_is_the_same(
    tmp_path: Path, ted_pairs: list[tuple[str, str]]
) -> None:
    """The real engine and model, killed inside a text of several sentences: the next run goes on, byte for byte."""
    pairs = [pair for pair in ted_pairs if all(text.endswith(".") for text in pair)]
    pairs = sorted(pairs, key=lambda pair: len(pair[0]))[:3]
    (tmp_path / "docs").write_text("talk\n", encoding="utf-8")
    for name, texts in zip(("src", "mt"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text(" ".join(texts) + "\n", encoding="utf-8")
    model = "mbr-esd-demo?n=4&max_tokens=32&invalid=empty&unit=sentence&context=document"

    def command(store: str) -> subprocess.Popen[bytes]:
        words = f"score -s src -t mt --documents docs --model {model} --to_json {store}.json --quiet".split()
        environment = {**os.environ, "MBR_ESD_STORE": str(tmp_path / store)}
        program = [sys.executable, "-m", "mbr_esd_metric", *words]
        return subprocess.Popen(program, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)

    undisturbed, _ = command("whole").communicate(timeout=1800)
    killed = command("killed")
    deadline = time.monotonic() + 1800
    while not stored(tmp_path / "killed") and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert 0 < len(stored(tmp_path / "killed")) < 12
    resumed, _ = command("killed").communicate(timeout=1800)
    assert resumed.replace(b"killed.json", b"whole.json") == undisturbed
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert len(stored(tmp_path / "killed")) == 12
