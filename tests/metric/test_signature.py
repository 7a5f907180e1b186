"""What is in a signature, and explained; the stored predictions hold whole ones."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.decoding.options import FIELDS
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metric.card import OPTIONS
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import signature_of


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
    assert str(signature_of(load_card("mbr-esd-small"))).startswith("mbr-esd|model:small-")


def signed(model: str) -> Signature:
    """The signature of a run by a server, if the model's name leaves the engine open."""
    card = load_card(model)
    return signature_of(replace(card, engine="server") if card.engine == "auto" else card)


def names_in(signature: Signature) -> set[str]:
    """The names of the fields of a signature."""
    return {name for name, _ in signature.fields}


def explained() -> set[str]:
    """The names that the documentation explains; what is not a short name is explained where the options are."""
    page = (Path(__file__).parents[2] / "docs" / "comet.md").read_text(encoding="utf-8")
    rows = page.split("## What the signature says")[1].split("\n## ")[0].splitlines()
    names = {name for row in rows if row.startswith("| `") for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    return names | {name for name, one in {**OPTIONS, **FIELDS}.items() if not one.metadata["short"]}


def test_decisions_and_candidates_are_told_apart_by_the_options() -> None:
    """A new option of a decision that `core.signature` does not know would look like other candidates."""
    short = {FIELDS[name].metadata["short"] or name for name in FIELDS if name != "format"}
    base = Signature("mbr-esd")
    unknown = [name for name in sorted(short) if not base.same_candidates(Signature("mbr-esd", ((name, "x"),)))]
    assert not unknown, "add them to _OF_DECISION in core/signature.py"
    assert not any(
        base.same_candidates(Signature("mbr-esd", ((one.metadata["short"] or name, "x"),)))
        for name, one in OPTIONS.items()
        if name != "calibration"
    )
