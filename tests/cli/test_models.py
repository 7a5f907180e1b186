"""`mbr-esd models`, `models --check`, and what is said of a model that cannot run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.cli.models import listed, packages
from mbr_esd_metric.decoding.options import FIELDS
from mbr_esd_metric.generation.engine import AUTOMATIC, ENGINES
from mbr_esd_metric.metric.card import OPTIONS
from mbr_esd_metric.metric.cards import get_card
from mbr_esd_metric.prompting.formats import get_format
from tests.helpers.command import Command

#: 123 billion parameters: more than the memory of any machine that runs tests.
LARGE = "mbr-esd-mistral"


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MBR_ESD_SERVER", raising=False)


def test_models_lists_every_card_on_a_line_with_what_it_needs(
    mbr_esd: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = mbr_esd("models").out.splitlines()
    shown = {line.split()[0]: line for line in lines[: len(listed())]}
    assert list(shown) == sorted((card.name for card in listed()), key=lambda name: get_card(name).memory_gb)
    assert "mbr-esd-demo" not in shown
    for card in listed():
        assert (card.model in shown[card.name]) is not card.model.startswith("/")
        assert card.description in shown[card.name]
    assert "141 GB" in shown["mbr-esd-llama"]
    assert "N = 1, greedy" in shown["mbr-esd-llama-distill"]
    assert "N = 256, mbr-softf1 unless" in lines[-3]
    monkeypatch.setenv("MBR_ESD_DEMO", "1")
    assert "mbr-esd-demo " in mbr_esd("models").out


def test_models_shows_one_card_with_its_options_applied_and_what_they_mean(mbr_esd: Command) -> None:
    output = mbr_esd("models mbr-esd-llama?n=64&utility=softf1+scoresim&server=http://me:hunter2@host/v1").out
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in output.splitlines()}
    assert [rows[name][0] for name in ("n", "utility")] == ["64", "softf1+scoresim"]
    assert rows["grounded"] == ["False", "constrain error spans to substrings of the translation: true or false"]
    assert rows["server"][0] == "http://***@host/v1"
    assert "hunter2" not in output
    assert {*OPTIONS, *FIELDS} <= {*rows}
    assert "\nmodel             - " in mbr_esd("models mbr-esd-server").out


def test_check_names_the_engines_that_work_and_fixes_of_the_others(mbr_esd: Command) -> None:
    pytest.importorskip("outlines_core", reason="needs the transformers extra")
    _, head, engines, *cards = mbr_esd("models --check").out.split("\n\n")
    assert [line.split()[0] for line in head.splitlines()] == list(packages())
    assert [line.split()[0] for line in engines.splitlines()] == [f"engine={name}" for name in ENGINES.names()]
    for line in head.splitlines():
        assert ("not installed" in line) == ("pip install" in line)
    by_name = {card.splitlines()[0]: card for card in cards}
    assert list(by_name) == [card.name for card in listed() if card.name != "mbr-esd-model"]
    assert by_name.pop("mbr-esd-server").count("specify your server: mbr-esd-server?server=URL") == 2
    assert by_name.pop("mbr-esd-checks").split() == ["mbr-esd-checks", "checks", "works", "here"]
    for name, card in by_name.items():
        served = not get_format(get_card(name).decision.format).engine
        assert (f"mbr-esd serve {name}" in card) == served
        assert ("tagger" in card) != served
    assert "tagger        works here" in by_name["mbr-esd-small"]
    any_model = "mbr-esd-model?model=org/x"
    assert f"(mbr-esd serve '{any_model}')" in mbr_esd(f"models --check {any_model}").out


def test_a_card_that_cannot_run_says_every_way_with_its_command(
    workdir: Path, mbr_esd: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ENGINES, "builtin", list(AUTOMATIC))  # another engine may run everywhere
    assert "works here" not in mbr_esd("models --check", LARGE, status=1).out
    Path("text").write_text("one line\n", encoding="utf-8")
    [line] = mbr_esd(f"score -s text -t text --model {LARGE}", status=1).err.splitlines()
    assert line.startswith(f"mbr-esd score: error: {LARGE} cannot run here. [1] engine=server: start a server")
    for way in (f"mbr-esd serve {LARGE}", "export MBR_ESD_SERVER=", "[2] engine=vllm: ", "[3] engine=transformers: "):
        assert way in line
    assert not Path("store.sqlite").exists()
