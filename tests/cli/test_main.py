"""`mbr-esd` itself: without a verb, and with one that there is not."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.cli.verbs import VERBS
from mbr_esd_metric.errors import EngineError, unknown
from tests.helpers.command import Command


def test_help_is_shown_without_a_verb_and_is_a_word_too(mbr_esd: Command, capsys: pytest.CaptureFixture[str]) -> None:
    shown = mbr_esd(status=2).err
    assert all(f"    {verb}" in shown for verb in VERBS.names())
    assert "    import " in mbr_esd("wmt", status=2).err
    for words, shown in (("help", "    leaderboard"), ("help wmt score", "usage: mbr-esd wmt score")):
        with pytest.raises(SystemExit, match="^0$"):
            mbr_esd(words)
        assert shown in capsys.readouterr().out


def test_the_nearest_name_may_differ_in_case() -> None:
    message = str(unknown("name", "SOFTF1", ["BLEU", "softf1", "SoftF1"]))
    assert message == "unknown name 'SOFTF1'; did you mean 'SoftF1' or 'softf1'? valid: BLEU, SoftF1, softf1"


def test_no_text_of_a_server_drives_the_terminal() -> None:
    error = EngineError("it said: \x1b[2J\x9b2J\x07 \u202egnp \ud800 a\nmbr-esd: done")
    assert str(error) == "it said: ␛[2J\ufffd2J␇ \ufffdgnp \ufffd a mbr-esd: done"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of every verb."""
    verb: Any = ModuleType("verb")
    verb.configure = verb.run = lambda _: 0
    monkeypatch.setattr("importlib.import_module", lambda _: verb)
    return verb


@pytest.mark.parametrize("stage", ["configure", "run"])
def test_ctrl_c_at_any_time_is_one_line(stage: str, module: Any, mbr_esd: Command) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    setattr(module, stage, interrupted)
    assert mbr_esd("score", status=130).err.startswith("mbr-esd: interrupted; sampled candidates are kept")
    assert mbr_esd("leaderboard", status=130).err == "mbr-esd: interrupted\n"


def test_what_the_terminal_cannot_show_ends_no_run(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module.run = lambda _: print("ä \ud800") or 0
    for encoding, expected in (("ascii", b"\\xe4 \\ud800\n"), ("utf-8", "ä \\ud800\n".encode())):
        buffer = io.BytesIO()
        stream = io.TextIOWrapper(buffer, encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["models"]) == 0
        stream.flush()
        assert buffer.getvalue() == expected
    for name in ("stdin", "stdout", "stderr"):  # closed, as some schedulers leave them
        monkeypatch.setattr(sys, name, None)
    assert main(["models"]) == 0


def test_completion_in_the_shell(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete", reason="the extra completion is not installed")
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "out"), "_ARGCOMPLETE_IFS": "\n"}
    asked |= {"COMP_LINE": "mbr-esd decide --", "COMP_POINT": "17", "COMP_TYPE": "9"}
    subprocess.run([sys.executable, "-m", "mbr_esd_metric"], env={**os.environ, **asked}, check=True, timeout=300)
    offered = {word.strip() for word in (tmp_path / "out").read_text().split("\n")}
    assert {"--rule", "--utility"} <= offered
    assert "--to_json" not in offered


def test_ctrl_c_after_the_work_is_no_traceback() -> None:
    """The interpreter ends for a moment after everything is written, and Ctrl-C came out of its last lines."""
    code = (
        "import atexit, os, signal, sys; from mbr_esd_metric.cli.main import main; sys.argv = ['mbr-esd', 'models'];"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mbr-esd-demo" in done.stdout or "mbr-esd-small" in done.stdout
