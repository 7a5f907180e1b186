"""The command line, as a test calls it."""

from __future__ import annotations

import shlex

import pytest

from mbr_esd_metric.cli.main import main
from tests.helpers.command import Command


@pytest.fixture
def mbr_esd(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `mbr-esd WORDS`, which ends with that status; what it prints. Texts are divided as by a shell."""

    def run(*words: object, status: int = 0) -> pytest.CaptureResult[str]:
        capsys.readouterr()
        given = [shlex.split(word) if isinstance(word, str) else [str(word)] for word in words]
        ended = main([word for some in given for word in some])
        printed = capsys.readouterr()
        assert ended == status, printed.err
        return printed

    return run
