"""The shell functions that choose an interpreter, with interpreters made up for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def interpreter(folder: Path, name: str, version: str) -> None:
    """A "Python" of this version that answers the question that `fits` asks."""
    minor = version.split(".")[1]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$2" -le {minor} ] && [ {minor} -le "$3" ]\n')
    path.chmod(0o755)


def chosen(folder: Path, lowest: int, highest: int, **environment: str) -> tuple[int, str, str]:
    """Status, the interpreter, and what is said, with `folder/bin` and the system's own tools on the PATH."""
    env = {"PATH": f"{folder / 'bin'}:{os.defpath}", "PYENV_ROOT": str(folder / "pyenv"), **environment}
    script = f'. "{ROOT}/scripts/setting_up.sh"; a_python {lowest} {highest}'
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def test_python3_is_taken_where_it_fits(tmp_path: Path) -> None:
    interpreter(tmp_path, "bin/python3", "3.13")
    assert chosen(tmp_path, 10, 14) == (0, "python3", "")


def test_another_one_on_the_path_is_taken_and_named(tmp_path: Path) -> None:
    interpreter(tmp_path, "bin/python3", "3.13")
    interpreter(tmp_path, "bin/python3.12", "3.12")
    status, python, said = chosen(tmp_path, 10, 12)
    assert (status, python) == (0, "python3.12")
    assert "takes python3.12, as python3 is no Python 3.10 to 3.12" in said


def test_one_under_pyenv_is_taken(tmp_path: Path) -> None:
    interpreter(tmp_path, "bin/python3", "3.9")
    interpreter(tmp_path, "pyenv/versions/3.14.2/bin/python3", "3.14")
    for minor in (10, 11, 12, 13, 14):  # hides the machine's own
        interpreter(tmp_path, f"bin/python3.{minor}", "3.9")
    status, python, _ = chosen(tmp_path, 10, 14)
    assert (status, python) == (0, f"{tmp_path}/pyenv/versions/3.14.2/bin/python3")


@pytest.mark.parametrize(
    ("environment", "said"),
    [({}, "needs Python 3.10 to 3.14 with venv; install one"), ({"PYTHON": "python3"}, "PYTHON=python3 is no Python")],
)
def test_where_none_fits_a_line_says_what_to_do(tmp_path: Path, environment: dict[str, str], said: str) -> None:
    interpreter(tmp_path, "bin/python3", "3.9")
    for minor in (10, 11, 12, 13, 14):
        interpreter(tmp_path, f"bin/python3.{minor}", "3.9")
    status, python, line = chosen(tmp_path, 10, 14, **environment)
    assert (status, python) == (3, "")
    assert said in line
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    "script", [path.name for path in sorted((ROOT / "scripts").glob("*.sh")) if path.name != "setting_up.sh"]
)
def test_help_says_what_the_script_does(script: str) -> None:
    done = subprocess.run([ROOT / "scripts" / script, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert script in done.stdout
    assert "set -e" not in done.stdout
