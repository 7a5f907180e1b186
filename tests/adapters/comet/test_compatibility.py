"""COMET's own models and commands, with random weights: the same with COMET's requirements and with everything new."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.comet_checkpoint import SENTENCES, make_checkpoint
from tests.helpers.comet_commands import MODEL

pytest.importorskip("comet.models")
pytestmark = pytest.mark.comet

from comet import load_from_checkpoint  # noqa: E402

import mbr_esd_metric  # noqa: E402
from mbr_esd_metric.adapters.comet.compatibility import patch_comet  # noqa: E402

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "comet.json").read_text(encoding="utf-8"))
SAMPLES = [{"src": SENTENCES[i], "mt": SENTENCES[i + 1], "ref": SENTENCES[(i + 3) % 8]} for i in range(0, 8, 2)]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: make_checkpoint(tmp_path_factory.mktemp(kind), kind) for kind in GOLDEN["scores"]}


@pytest.mark.parametrize("kind", GOLDEN["scores"])
def test_stock_models_score_as_with_comets_requirements(kind: str, checkpoints: dict[str, Path]) -> None:
    result = load_from_checkpoint(str(checkpoints[kind])).predict(SAMPLES, gpus=0, progress_bar=False, batch_size=2)
    assert result.scores == pytest.approx(GOLDEN["scores"][kind], abs=1e-5)
    if kind == "xcomet":
        for spans, expected in zip(result.metadata.error_spans, GOLDEN["spans"], strict=True):
            assert [[s[key] for key in ("start", "end", "severity")] for s in spans] == [span[:3] for span in expected]
            assert [s["confidence"] for s in spans] == pytest.approx([span[3] for span in expected], abs=1e-5)


#: The program's name tells torch's entry point that this is one of COMET's commands; Ctrl-C comes while it ends.
COMMAND = """
import atexit, os, signal, sys
sys.argv[0] = "comet-score"
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
from comet.cli.score import score_command
score_command()
"""
#: Makes a Python as new as 3.14 of this one: `functools._HashedSeq` went with 3.14; argparse passes an argument more
#: since 3.12.8 and 3.13.1.
NEW_PYTHON = """
import argparse, functools, sys
vars(functools).pop("_HashedSeq", None)
parse = argparse.ArgumentParser._parse_known_args
if "intermixed" not in parse.__code__.co_varnames:
    argparse.ArgumentParser._parse_known_args = lambda self, words, space, intermixed: parse(self, words, space)
"""


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("python", ["", NEW_PYTHON], ids=["this Python", "a new Python"])
@pytest.mark.parametrize("model", ["ours", "unified"])
def test_a_process_of_comet_gets_what_comet_misses(model: str, python: str, checkpoints: dict[str, Path]) -> None:
    name = MODEL if model == "ours" else checkpoints[model]
    words = f"-s src.txt -t mt.txt --gpus 0 --to_json out.json --model {name}".split()
    environment = {**os.environ, "PYTHONPATH": str(Path(mbr_esd_metric.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", python + COMMAND, *words], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert model != "ours" or "Traceback" not in done.stderr
    assert len(json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]) == 3


def test_workers_are_forked_where_python_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux, since Python 3.14: a worker that is not a fork has nothing of what is supplied."""
    import comet.models.base as base
    from torch.utils.data import DataLoader

    monkeypatch.setattr(base, "DataLoader", DataLoader)
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["fork", "spawn", "forkserver"])
    patch_comet()
    assert base.DataLoader is DataLoader
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["forkserver", "fork", "spawn"])
    patch_comet()
    assert base.DataLoader([1], num_workers=2).multiprocessing_context.get_start_method() == "fork"
    assert list(base.DataLoader([1, 2], num_workers=0)) == [1, 2]
