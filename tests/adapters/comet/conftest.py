"""Files to score with stored candidates, and COMET's commands run in this process as the interpreter would run them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.comet_commands import ERRORS, SOURCES, TRANSLATIONS, Files, Outcome, answer


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))
    files = Files(tmp_path)
    files.write(files.sources, *SOURCES)
    files.write(files.translations, *TRANSLATIONS)
    records = [
        {"id": str(i), "src": s, "mt": t, "candidates": [{"text": answer(e), "logprob": -1.0}] * 3}
        for i, (s, t, e) in enumerate(zip(SOURCES, TRANSLATIONS, ERRORS, strict=True))
    ]
    files.write("candidates.jsonl", *(json.dumps(record) for record in records))
    return files


@pytest.fixture
def comet_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Runs `comet-score` ("score") or `comet-compare` ("compare") in this process."""
    pytest.importorskip("comet.models")
    from mbr_esd_metric.adapters.comet.compatibility import patch_comet

    def run(name: str, *words: str) -> Outcome:
        module = importlib.import_module(f"comet.cli.{name}")
        monkeypatch.setattr(sys, "argv", [f"comet-{name}", *words])
        monkeypatch.setattr(module, "json", json)
        monkeypatch.setattr(json.JSONEncoder, "default", json.JSONEncoder.default)
        patch_comet()  # as the registration does in a process of its own
        monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
        capsys.readouterr()
        status = 0
        try:
            try:
                getattr(module, f"{name}_command")()
            except (Exception, KeyboardInterrupt) as error:
                sys.excepthook(type(error), error, error.__traceback__)
                status = 1
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        written = capsys.readouterr()
        return Outcome(status, written.out, written.err)

    return run
