"""A grid of settings: its names are those of later runs, and nothing is sampled twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metric.cards import load_card, with_named
from mbr_esd_metric.metric.grid import grid, measure, planned
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment
from tests.helpers.chat_server import FakeServer

SEGMENTS = [Segment(f"source {i}", f"ein Satz mit {i} Fehlern", f"segment {i}") for i in range(3)]


def test_every_combination_is_a_name() -> None:
    found = grid("mbr-esd-llama?n=4", ["temperature=.7,1", "format=json,compact", "lp=en-de"])
    assert [list(one.values.values()) for one in found] == [
        [".7", "json", "en-de"],
        [".7", "compact", "en-de"],
        ["1", "json", "en-de"],
        ["1", "compact", "en-de"],
    ]
    assert found[1].card == load_card("mbr-esd-llama?n=4&temperature=.7&format=compact&lp=en-de")
    assert with_named("mbr-esd-llama+mbr-esd-gemma2", {"n": "4"}) == "mbr-esd-llama+mbr-esd-gemma2?n=4"
    path = with_named("mbr-esd-llama?n=2", {"prompt": "100%/a&b.txt"})
    assert path == "mbr-esd-llama?n=2&prompt=100%25/a%26b.txt"
    assert load_card(path).prompt == "100%/a&b.txt"


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (["temperature"], "write an option of the model and its values"),
        (["temperature=.7,,1"], "write an option"),
        (["temperature=1", "temperature=2"], "names temperature twice"),
        (["temperature=1,1"], "a value is there twice"),
        (["n=4,8"], "'n' is given twice"),
        (["temprature=1,2"], "did you mean 'temperature'"),
        (["format=json,jsn"], "jsn"),
        ([f"{option}={','.join(map(str, range(1, 33)))}" for option in ("seed", "max_tokens")], "asks for 1,024"),
    ],
)
def test_a_grid_of_another_form_is_told(axes: list[str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        grid("mbr-esd-llama?n=2", axes)


def test_nothing_is_sampled_twice(tmp_path: Path) -> None:
    with FakeServer("served") as server:
        base = f"mbr-esd-server?model=served&server={server.url}&store={tmp_path}/store&seed=1"
        settings = grid(base, ["n=4,8", "rule=mbr,majority"])
        plans = [sum(one.candidates - one.stored for one in planned(one, SEGMENTS)) for one in settings]
        assert plans == [12, 12, 24, 24]
        assert not server.bodies
        found = [measure(one, SEGMENTS) for one in settings]
        assert [one.sampled for one in found] == [12, 0, 12, 0]
        assert [one.seconds is None for one in found] == [False, True, False, True]
        assert all(one.tokens is not None and one.tokens > 1 for one in found)
        asked = len(server.bodies)
        again = [measure(one, SEGMENTS) for one in settings]
        assert [one.run for one in again] == [one.run for one in found]
        assert annotate(load_card(settings[2].model), SEGMENTS) == found[2].run
        assert len(server.bodies) == asked


def test_a_setting_without_a_valid_candidate_does_not_stop_the_others(tmp_path: Path) -> None:
    def spoil(value: dict[str, Any], number: int) -> object:
        for choice in value["choices"]:
            choice["message"]["content"], choice["finish_reason"] = "I see no error.", "stop"
        return value

    with FakeServer("served", dialect="plain", spoil=spoil) as server:
        base = f"mbr-esd-server?model=served&server={server.url}&store={tmp_path}/store&dialect=plain"
        (setting,) = grid(base, ["n=2"])
        found = measure(setting, SEGMENTS)
    assert found.lacking
    assert (found.run.summary.unreadable, found.run.summary.candidates) == (6, 6)


def test_stored_candidates_have_no_grid(tmp_path: Path) -> None:
    (setting,) = grid(f"mbr-esd-llama?candidates={tmp_path}/c.jsonl", ["n=2"])
    with pytest.raises(OptionError, match="--grid changes nothing with engine=replay"):
        planned(setting, SEGMENTS)
