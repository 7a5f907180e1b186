"""Examples in the question: their choice, their messages, and their place in keys and signatures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import signature_of
from mbr_esd_metric.metric.shots import Shots
from mbr_esd_metric.metric.sources import build_requests
from mbr_esd_metric.prompting.formats import get_format

UFER = {"start": 4, "end": 8, "severity": "major"}
SHOTS = [
    {"src": "The bank closed.", "mt": "Das Ufer schloss.", "spans": [UFER]},
    {"src": "He left early today.", "mt": "Er ging früh.", "spans": []},
    {"src": "The bank opened at nine.", "mt": "Die Bank öffnete um neun.", "spans": []},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shots.jsonl"
    path.write_text("".join(json.dumps(shot) + "\n" for shot in SHOTS), encoding="utf-8")
    return path


def test_the_nearest_come_last_and_never_the_source_itself(file: Path) -> None:
    shots = Shots(f"{file}:2", get_format("json"))
    assert [shot.source for shot in shots.for_source("The bank opened.")] == [
        "The bank closed.",
        "The bank opened at nine.",
    ]
    others = ["He left early today.", "The bank opened at nine."]
    assert [shot.source for shot in shots.for_source("the  BANK closed.")] == others
    assert len(Shots(str(file), get_format("json")).for_source("Something else")) == 3


def test_they_are_turns_before_the_question_and_part_of_key_and_signature(file: Path) -> None:
    name = "mbr-esd-llama?lp=en-de&format=compact&server=http://127.0.0.1:9/v1&dialect=vllm"
    segments = [Segment("The bank opened.", "Die Bank öffnete.", "segment 1")]
    plain, shown = (load_card(name + more) for more in ("", f"&shots={file}:2"))
    (without,), (request,) = (build_requests(card, {}, segments).values() for card in (plain, shown))
    question = without.prompt.replace("The bank opened.", SHOTS[0]["src"]).replace("Die Bank öffnete.", SHOTS[0]["mt"])
    assert request.turns[:2] == (("user", question), ("assistant", "major <Ufer>"))
    assert [role for role, _ in request.turns] == ["user", "assistant"] * 2
    assert request.messages[-1]["content"] == request.prompt == without.prompt
    assert request.key != without.key
    assert signature_of(replace(shown, engine="server")).get("shots")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[", "line 1: not JSON"),
        (json.dumps({"src": "a", "mt": "b", "spans": [UFER]}), "ends past the translation"),
        (json.dumps({"src": "a", "mt": "das das", "spans": [{**UFER, "end": 7}]}), "cannot express 1 of its errors"),
        (json.dumps({"src": "a", "mt": "b"}), "line 1: an example needs the texts src and mt, and the list spans"),
        (json.dumps({"src": "a", "mt": "b", "spans": [{**UFER, "severity": "mayor"}]}), "'minor', got 'mayor'"),
        ("", "has no examples"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Shots(str(path), get_format("json"))


def test_tags_take_no_examples(file: Path) -> None:
    with pytest.raises(OptionError, match="format=tags does not support examples"):
        Shots(str(file), get_format("tags"))
