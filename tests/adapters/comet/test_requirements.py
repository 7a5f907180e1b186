"""What COMET requires, held against what is installed."""

from __future__ import annotations

import importlib.metadata

import pytest

import mbr_esd_metric.adapters.comet.requirements as requirements
from mbr_esd_metric.cli.main import main

ASKED = ["numpy (>=1.20.0,<2.0.0)", "torch (>=1.6.0)", "protobuf (>=4.24.4,<5.0.0)", "entmax ; extra == 'more'"]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Packages and versions that seem to be installed."""
    pytest.importorskip("packaging")
    versions = {"unbabel-comet": "2.2.7", "numpy": "1.26.4", "torch": "2.13.0+cpu", "protobuf": "4.25.9"}

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    def requires(name: str) -> list[str]:
        version(name)
        return ASKED

    monkeypatch.setattr(requirements, "version", version)
    monkeypatch.setattr(requirements, "requires", requires)
    return versions


def test_as_it_asks_there_is_nothing_to_say(installed: dict[str, str]) -> None:
    assert requirements.unmet() == []
    assert requirements.remark() is None


def test_without_comet_there_is_nothing_to_say(installed: dict[str, str]) -> None:
    del installed["unbabel-comet"]
    assert requirements.remark() is None


def test_every_requirement_that_is_not_met_is_named(installed: dict[str, str]) -> None:
    installed["numpy"] = "2.4.6"
    del installed["protobuf"]
    assert requirements.unmet() == [
        "numpy 2.4.6 (it asks for <2.0.0,>=1.20.0)",
        "no protobuf (it asks for <5.0.0,>=4.24.4)",
    ]
    assert "unbabel-comet 2.2.7 is installed against its requirements, beside numpy 2.4.6" in str(requirements.remark())


def test_the_check_of_the_machine_says_so(installed: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    installed["numpy"] = "2.4.6"
    main(["models", "--check"])
    assert "against its requirements, beside numpy 2.4.6" in capsys.readouterr().out
