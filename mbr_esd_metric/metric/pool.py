"""Models that are joined by ``+``: one decision over the candidates of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metric.card import ModelCard


def pooled(names: Sequence[str], cards: Sequence[ModelCard]) -> ModelCard:
    """The first card, with the others; two language models of one card are numbered."""
    _check_decided_together(names, cards)
    # The same weights with other settings count as one model.
    identities = [(card.model or card.servers, card.adapter, card.candidates) for card in cards]
    bases = [card.title if card.own_model else name.partition("?")[0] for name, card in zip(names, cards, strict=True)]
    of_base = {
        base: list(dict.fromkeys(w for w, b in zip(identities, bases, strict=True) if b == base)) for base in bases
    }
    members = []
    for card, base, which in zip(cards, bases, identities, strict=True):
        numbered = base if len(of_base[base]) == 1 else f"{base}#{of_base[base].index(which) + 1}"
        # One decision is about one text, so the first says what is judged at once.
        card = dataclasses.replace(card, unit=cards[0].unit, context=cards[0].context)
        members.append(card if card.own_model else dataclasses.replace(card, name=numbered))
    return dataclasses.replace(members[0], others=tuple(members[1:]))


def _check_decided_together(names: Sequence[str], cards: Sequence[ModelCard]) -> None:
    """See that one decision can take the candidates of all; each model has its own answer format."""
    first = cards[0].decision
    for card in cards:
        expected, actual = first.described(), card.decision.described()
        unequal = [key for key in expected if expected[key] != actual[key] and key != "format"]
        if unequal:
            differ = ", ".join(f"{key}={expected[key]} and {actual[key]}" for key in unequal)
            raise OptionError(f"models joined by + are decided together, and these say {differ}; give one for all")
    if first.decided_by.needs_logprobs or first.decided_by.candidates == "one":
        raise OptionError(
            f"rule={first.rule} does not go with models joined by +, whose log-probabilities cannot be compared; take "
            "rule=mbr"
        )
    if len(set(names)) < len(names):
        raise OptionError("the name has one model with the same options twice; leave one out")
