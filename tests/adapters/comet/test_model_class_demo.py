"""`comet-score --model mbr-esd-demo` on real translations: sampled, interrupted, resumed, and taken from the store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.real_server import stored

pytest.importorskip("comet.models")
pytestmark = [pytest.mark.comet, pytest.mark.model]

#: The same settings as the card's, but for a limit that most answers keep and that makes the test half as long.
MODEL = "mbr-esd-demo?max_tokens=64&lp=en-de"
#: COMET's command in a process where no language model can be loaded.
NO_MODEL = """
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
def refuse(*_):
    raise SystemExit("a model is loaded")
TransformersEngine.__init__ = refuse
from comet.cli.score import score_command
score_command()
"""


@pytest.fixture
def systems(ted_pairs: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """`src.txt`, `a.txt` and `b.txt`: two short TED sentences and two translations of each; returns the four pairs."""
    monkeypatch.chdir(tmp_path)
    translations: dict[str, list[str]] = {}
    for source, translation in ted_pairs:
        translations.setdefault(source, []).append(translation)
    sources = sorted((s for s, t in translations.items() if len(t) > 1 and len(s) > 25), key=lambda s: (len(s), s))[:2]
    Path("src.txt").write_text("".join(f"{s}\n" for s in sources), encoding="utf-8")
    for number, name in enumerate(("a.txt", "b.txt")):
        Path(name).write_text("".join(f"{translations[s][number]}\n" for s in sources), encoding="utf-8")
    return [(s, translations[s][number]) for number in (0, 1) for s in sources]


def comet_score(out: str, *program: str) -> subprocess.Popen[str]:
    words = [*program, "-s", "src.txt", "-t", "a.txt", "b.txt", "--model", MODEL, "--gpus", "0", "--to_json", out]
    env = {**os.environ, "MBR_ESD_STORE": "store.sqlite", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        words,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell gives what it runs in the background an ignored SIGINT, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_real_translations(systems: list[tuple[str, str]]) -> None:
    script = str(Path(sys.executable).with_name("comet-score"))

    first = comet_score("never.json", script)
    store = Path("store.sqlite")
    while not stored(store) and first.poll() is None:
        time.sleep(0.2)
    first.send_signal(signal.SIGINT)
    _, err = first.communicate()
    assert first.returncode == 130, err
    assert "Traceback" not in err
    assert "comet-score: interrupted; what was sampled is kept" in err
    assert not Path("never.json").exists()
    before = set(stored(store))
    assert 0 < len(before) < 16 * len(systems)

    second = comet_score("sampled.json", script)
    out, err = second.communicate()
    assert second.returncode == 0, err
    assert "mbr-esd|" in err
    assert before < set(stored(store))
    assert len(stored(store)) == 16 * len(systems)
    rows = [row for rows in json.loads(Path("sampled.json").read_text(encoding="utf-8")).values() for row in rows]
    assert [(row["src"], row["mt"]) for row in rows] == systems
    for row in rows:
        assert 0 <= row["COMET"] <= 1
        assert (row["COMET"] == 1) == ("errors" not in row)
        for error in row.get("errors", ()):
            assert error["text"] == row["mt"][error["start"] : error["end"]] != ""
            assert error["severity"] in ("major", "minor")
            assert 0 < error["confidence"] <= 1

    third = comet_score("stored.json", sys.executable, "-c", NO_MODEL)
    again, err = third.communicate()
    assert third.returncode == 0, err
    assert again.replace("stored.json", "sampled.json") == out
    assert Path("stored.json").read_bytes() == Path("sampled.json").read_bytes()
