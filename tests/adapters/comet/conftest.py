"""Files to score with stored candidates, and COMET's commands run in this process as the interpreter would run them."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.comet_commands import DATA, MODEL
from tests.helpers.command import Command


@pytest.fixture
def files(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, which is the current one, with src.txt, mt.txt and candidates.jsonl."""
    monkeypatch.setenv("MBR_ESD_CACHE", str(workdir / "cache"))
    return Path(shutil.copytree(DATA, workdir, dirs_exist_ok=True))


@pytest.fixture
def comet_command(files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `comet-score` or `comet-compare` with the stored candidates and these further words, as `mbr_esd` runs a
    verb. Of an option that is given twice the last counts."""
    pytest.importorskip("comet.models")
    from mbr_esd_metric.adapters.comet.compatibility import patch_comet

    def run(*words: object, status: int = 0) -> pytest.CaptureResult[str]:
        name, *more = " ".join(map(str, words)).split()
        module = importlib.import_module(f"comet.cli.{name}")
        usual = f"-s src.txt -t mt.txt --gpus 0 --model {MODEL}".split()
        monkeypatch.setattr(sys, "argv", [f"comet-{name}", *usual, *more])
        monkeypatch.setattr(module, "json", json)
        monkeypatch.setattr(json.JSONEncoder, "default", json.JSONEncoder.default)
        patch_comet()  # as the registration does in a process of its own
        monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
        capsys.readouterr()
        ended: object = 0
        try:
            try:
                getattr(module, f"{name}_command")()
            except (Exception, KeyboardInterrupt) as error:
                sys.excepthook(type(error), error, error.__traceback__)
                ended = 1
        except SystemExit as end:
            ended = end.code
        output = capsys.readouterr()
        assert ended == status, output.err
        return output

    return run
