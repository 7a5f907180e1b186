"""`mbr-esd models --check`, and what is said of a model that cannot run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.cli.models import packages
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.generation.engine import ENGINES
from mbr_esd_metric.metric.cards import CATALOGUE, get_card, listed
from tests.helpers.chat_server import FakeServer

#: 123 billion parameters: more than the memory of any machine that runs tests.
LARGE = "mbr-esd-mistral"


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MBR_ESD_SERVER", raising=False)


def test_check_says_of_every_card_which_engine_works_and_what_fixes_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("outlines_core", reason="needs the transformers extra")
    assert main(["models", "--check"]) == 0
    parts = capsys.readouterr().out.split("\n\n")[1:]
    head, engines, *cards = parts
    assert [line.split()[0] for line in head.splitlines()] == list(packages())
    assert [line.split()[0] for line in engines.splitlines()] == [f"engine={name}" for name in ENGINES.names()]
    for line in head.splitlines():
        assert ("not installed" in line) == ("pip install" in line)
    found = {card.splitlines()[0]: card for card in cards}
    more = list(found)[-1]
    assert more == f"{len(CATALOGUE)} more models: mbr-esd models; of one of them: mbr-esd models NAME --check"
    del found[more]
    assert list(found) == [card.name for card in listed() if card not in CATALOGUE]
    for name, card in found.items():
        if get_card(name).own_model:
            assert card.count("name your server: mbr-esd-server?server=URL") == 2
            continue
        served = not get_format(get_card(name).decision.format).engine
        assert (f"mbr-esd serve {name}" in card) == served
        assert ("take engine=transformers" in card) != served
    assert "transformers  works here" in found["mbr-esd-small"]
    assert "mbr-esd-demo" not in found


def test_check_fails_for_a_card_that_cannot_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--check", LARGE]) == 1
    assert "works here" not in capsys.readouterr().out
    assert main(["models", "--check", "mbr-esd-demo?adapter=/nowhere"]) == 1


def test_check_of_a_model_speaks_of_it_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer("my-model", dialect="llamacpp") as server:
        assert main(["models", "--check", f"mbr-esd-server?model=my-model&server={server.url}"]) == 0
    first, *ways = capsys.readouterr().out.splitlines()
    assert first == "my-model"
    assert [line.split()[0] for line in ways] == ["server", "batch"]
    assert ways[0].endswith("works here")
    assert "dialect=llamacpp, which has no batches" in ways[1]


def test_a_card_that_cannot_run_says_every_way_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("one line\n", encoding="utf-8")
    text, store = str(tmp_path / "text"), tmp_path / "store.sqlite"
    assert main(["score", "-s", text, "-t", text, "--model", f"{LARGE}?store={store}"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mbr-esd score: error: {LARGE} cannot run here. [1] engine=server: start a server")
    assert f"mbr-esd serve {LARGE}" in line
    assert "export MBR_ESD_SERVER=" in line
    assert "[2] engine=vllm: " in line
    assert "[3] engine=transformers: " in line
    assert not store.exists()


def test_check_says_how_to_reach_a_hosted_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--check", "mbr-esd-gpt-4.1"]) == 1
    rows = capsys.readouterr().out.split("mbr-esd-gpt-4.1\n")[1].splitlines()
    problems = dict(row.split(maxsplit=1) for row in rows)
    for engine in ("server", "batch"):
        assert "export MBR_ESD_SERVER=URL" in problems[engine]
        assert "export MBR_ESD_API_KEY=KEY" in problems[engine]
    assert "its weights are not published" in problems["transformers"]
    assert "mbr-esd serve" not in "".join(rows)
    assert "GPU" not in "".join(rows)
    assert "engine=server needs" not in "".join(rows)
