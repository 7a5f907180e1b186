"""The signature, whole: a change of a field's name, order or condition is a change that users see."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric._version import __version__
from mbr_esd_metric.decoding.options import FIELDS
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metric.card import OPTIONS
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import signature_of

MODEL = "mbr-esd|model:meta-llama/Llama-3.3-70B-Instruct|engine:server"
DRAWN = "t:2.0|k:10|seed:0|max:2048"
SAMPLED = f"{MODEL}|d:mbr|n:256|{DRAWN}"
UTILITY = "u:softf1|w:uniform|b:1|g:0.5"
READ = "loc:first|invalid:drop|blank:worst"
REST = f"mqm:paper|prompt:v1|{READ}"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", f"{SAMPLED}|{UTILITY}|{REST}"),
        ("n=64&seed=3&top_k=0&max_tokens=99", f"{MODEL}|d:mbr|n:64|t:2.0|k:0|seed:3|max:99|{UTILITY}|{REST}"),
        ("n=auto/64", f"{MODEL}|d:mbr|n:auto/64|{DRAWN}|{UTILITY}|{REST}"),
        # Where nothing is drawn by lot, N is 1, and top-k and seed change nothing.
        ("rule=greedy&n=64&seed=3", f"{MODEL}|d:greedy|n:1|t:0.0|max:2048|{REST}"),
        ("temperature=0&seed=3", f"{MODEL}|d:mbr|n:1|t:0.0|max:2048|{UTILITY}|{REST}"),
        ("rule=map", f"{MODEL}|d:map|n:256|{DRAWN}|{REST}"),
        ("rule=majority", f"{MODEL}|d:majority|n:256|{DRAWN}|{REST}"),
        ("dtype=float32", f"{SAMPLED}|dtype:float32|{UTILITY}|{REST}"),
        ("grounded=true&lp=en-de", f"{SAMPLED}|{UTILITY}|mqm:paper|prompt:v1|grounded:true|lp:en-de|{READ}"),
        (
            "mqm=google&location=successive&invalid=empty",
            f"{SAMPLED}|{UTILITY}|mqm:google|prompt:v1|loc:successive|invalid:empty|blank:worst",
        ),
        ("model=org/m@abc", f"{SAMPLED}|{UTILITY}|{REST}".replace("meta-llama/Llama-3.3-70B-Instruct", "org/m@abc")),
    ],
)
def test_a_signature_says_what_can_change_a_score(options: str, expected: str) -> None:
    assert signed(f"mbr-esd-llama?{options}".rstrip("?")) == f"{expected}|v:{__version__}"


@pytest.mark.parametrize("name", FIELDS)
def test_every_option_of_a_decision_is_in_it(name: str) -> None:
    """So that two scores with one signature were decided alike; and the documentation says what it is called there."""
    values, changed = FIELDS[name].metadata["valid"] or (lambda: ("f1", "2", "0.5", "text")), set()
    for value in values():
        with suppress(OptionError):  # no value of this option
            changed.add(signed(f"mbr-esd-llama?{name}={value}"))
    changed.discard(signed("mbr-esd-llama"))
    assert changed
    assert set().union(*map(names_in, changed)) <= explained(), "docs/comet.md, What the signature says"


@pytest.mark.parametrize(
    "model", ["mbr-esd-llama?grounded=true&lp=en-de", "mbr-esd-small", "mbr-esd-demo?rule=consensus-corpus"]
)
def test_the_documentation_explains_each_field(model: str) -> None:
    assert names_in(signed(model)) <= explained()


def test_it_needs_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """`wmt score` compares it with that of stored scores, before anything is sampled."""
    monkeypatch.delattr("mbr_esd_metric.generation.embedded.embedded_weights")
    assert signature_of(load_card("mbr-esd-small")).startswith("mbr-esd|model:small-")


def signed(model: str) -> str:
    """The signature of a run by a server, if the model's name leaves the engine open."""
    card = load_card(model)
    return signature_of(replace(card, engine="server") if card.engine == "auto" else card)


def names_in(line: str) -> set[str]:
    """The names of the fields of a signature."""
    return {field.partition(":")[0] for field in line.split("|")[1:]}


def explained() -> set[str]:
    """The names that the documentation explains; what is no short name is explained where the options are."""
    page = (Path(__file__).parents[2] / "docs" / "comet.md").read_text(encoding="utf-8")
    rows = page.split("## What the signature says")[1].split("\n## ")[0].splitlines()
    names = {name for row in rows if row.startswith("| `") for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    return names | {name for name, one in {**OPTIONS, **FIELDS}.items() if not one.metadata["short"]}
