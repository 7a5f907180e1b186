"""The shell functions that choose an interpreter, with interpreters made up for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def interpreter(path: Path, minor: int) -> None:
    """A "Python" of this version that answers the question that `fits` asks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$2" -le {minor} ] && [ {minor} -le "$3" ]\n')
    path.chmod(0o755)


def chosen(folder: Path, lowest: int, highest: int, **environment: str) -> tuple[int, str, str]:
    """Status, the interpreter, and what is said, with `folder/bin` and the system's own tools on the PATH."""
    env = {"PATH": f"{folder / 'bin'}:{os.defpath}", "PYENV_ROOT": str(folder / "pyenv"), **environment}
    script = f'. "{ROOT}/scripts/setting_up.sh"; a_python {lowest} {highest}'
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


@pytest.mark.parametrize(
    ("installed", "bounds", "environment", "expected", "message"),
    [
        ({"bin/python3": 13}, (10, 14), {}, "python3", ""),
        ({"bin/python3": 13, "bin/python3.12": 12}, (10, 12), {}, "python3.12", "because python3 is not Python 3.10"),
        ({"pyenv/versions/3.14.2/bin/python3": 14}, (10, 14), {}, "{}/pyenv/versions/3.14.2/bin/python3", None),
        ({}, (10, 14), {}, "", "needs Python 3.10 to 3.14 with venv; install one"),
        ({}, (10, 14), {"PYTHON": "python3"}, "", "PYTHON=python3 is not Python"),
    ],
)
def test_an_interpreter_that_fits_is_taken_or_a_line_says_what_to_do(
    tmp_path: Path,
    installed: dict[str, int],
    bounds: tuple[int, int],
    environment: dict[str, str],
    expected: str,
    message: str | None,
) -> None:
    names = ["bin/python3", *(f"bin/python3.{minor}" for minor in range(10, 15))]  # hides the machine's own
    for name, minor in (dict.fromkeys(names, 9) | installed).items():
        interpreter(tmp_path / name, minor)
    status, python, line = chosen(tmp_path, *bounds, **environment)
    assert (status, python) == (0 if expected else 3, expected.format(tmp_path))
    assert message is None or (message in line if message else line == "")
    assert len(line.splitlines()) <= 1


@pytest.mark.parametrize(
    "script", [path.name for path in sorted((ROOT / "scripts").glob("*.sh")) if path.name != "setting_up.sh"]
)
def test_help_says_what_the_script_does(script: str) -> None:
    done = subprocess.run([ROOT / "scripts" / script, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert script in done.stdout
    assert "set -e" not in done.stdout
