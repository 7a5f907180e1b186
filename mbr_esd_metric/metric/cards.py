"""The table of model names, and the reading of a name with its options.

mbr-esd-llama                                    the card
mbr-esd-llama?n=64&utility=scoresim              the card with options, written like a URL's query
path/to/folder                                   a folder with a COMET-style ``hparams.yaml`` (same option names)
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.generation.server.address import shown
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, ModelCard, with_options

#: How models decide whose settings are not the paper's. Where most candidates of a model mark nothing, the answer marks
#: nothing anywhere, and the mean over the candidates still tells translations apart (docs/evidence/one-model.md).
_EXPECTED = DecisionOptions(score="expected")


def _paper(name: str, model: str, description: str, memory_gb: float, **more: Any) -> ModelCard:
    # The length is that of the authors' code.
    return ModelCard(f"mbr-esd-{name}", description, memory_gb, model=model, max_tokens=2048, **more)


CARDS: dict[str, ModelCard] = {
    card.name: card
    for card in (
        _paper("llama", "meta-llama/Llama-3.3-70B-Instruct", "Llama 3.3 70B, the paper's main model", 141.1),
        _paper("gemma2", "google/gemma-2-27b-it", "Gemma 2 27B", 54.5),
        _paper("phi4", "microsoft/phi-4", "Phi 4 14B", 29.3),
        _paper("mistral", "mistralai/Mistral-Large-Instruct-2407", "Mistral Large 123B", 245.2),
        _paper(
            "llama-distill",
            "lyu-boxuan/Llama-3.3-70B-ESD-MBR-DPODistill",
            "Llama 3.3 70B distilled from MBR decisions: one greedy pass",
            141.1,
            needs_prompt=True,
            decision=DecisionOptions("greedy"),
            n=1,
        ),
        ModelCard(
            ANY_MODEL,
            "your own model, on a server of yours: ?model=NAME&server=URL; without model=, the only one served there",
            engine="server",
            unit="auto",
            decision=_EXPECTED,
        ),
        ModelCard(
            LOCAL_MODEL,
            "any other model: ?model=HUB_ID or a folder; in process, or on a server of mbr-esd serve",
            unit="auto",
            decision=_EXPECTED,
        ),
    )
}

_PACKAGE = Path(__file__).parents[1]
#: Name -> folder in this package, description and size of a model whose ``hparams.yaml`` says how to decode it.
_EMBEDDED = {
    "mbr-esd-small": (
        "small",
        "multilingual-e5-small trained to tag errors, for any machine: a weak judge (docs/small-model.md)",
        0.3,
    ),
    "mbr-esd-demo": ("demo/sft", "SmolLM2 135M, for tests: too small to judge translations", 0.3),
    "mbr-esd-demo-distill": ("demo/distill", "the same, distilled from its own MBR decisions: one greedy pass", 0.3),
}


def card_names() -> list[str]:
    """The names of all cards."""
    return [*CARDS, *(name for name, (folder, *_) in _EMBEDDED.items() if (_PACKAGE / folder).is_dir())]


@cache
def get_card(name: str) -> ModelCard:
    """The card of one of `card_names`."""
    if name in CARDS:
        return CARDS[name]
    from mbr_esd_metric.metric.model_folder import folder_card

    folder, description, memory_gb = _EMBEDDED[name]
    card = folder_card(_PACKAGE / folder)
    return dataclasses.replace(card, name=name, description=description, memory_gb=memory_gb)


def listed() -> list[ModelCard]:
    """The cards in lists of models; ``MBR_ESD_DEMO=1`` adds those of the tests, which are in a checkout alone."""
    every = os.environ.get("MBR_ESD_DEMO") == "1"
    return [get_card(name) for name in card_names() if every or not name.startswith("mbr-esd-demo")]


def load_card(name: str, options: Mapping[str, str] | None = None) -> ModelCard:
    """The card of a model name or folder with its options, or the pool of several names joined by ``+``.

    Args:
        name: a card's name or a model folder, optionally followed by ``?option=value&...``. If several are joined,
            an option at the end is for every model that does not set it, but for those that say which weights or
            candidates a model has.
        options: more of them, which stand at the end of the name.

    Raises:
        OptionError: an unknown name, option or value (the message names the nearest valid ones), or joined models with
            different decision options.
        InputError: not a text, or a folder whose ``hparams.yaml`` is not one of ours.
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"a model name is a text such as 'mbr-esd-small', not {name!r}; `mbr-esd models` lists them")
    if options:
        query = "&".join(f"{option}={quote(value, safe='/:+,.~=?')}" for option, value in options.items())
        name = f"{name}{'&' if '?' in joined_names(name)[-1] else '?'}{query}"
    parts = spelled_out(name)
    cards = [_one_card(part) for part in parts]
    return cards[0] if len(cards) == 1 else _pooled(parts, cards)


def _pooled(names: Sequence[str], cards: Sequence[ModelCard]) -> ModelCard:
    """One card for several models, which one decision takes together: the first, with the others. Each has its own
    answer format. Different weights under one name are numbered."""
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
    # The same weights with other settings count as one model.
    identities = [(card.model or card.servers, card.adapter, card.candidates) for card in cards]
    bases = [name.partition("?")[0] for name in names]
    members = []
    for base, card, identity in zip(bases, cards, identities, strict=True):
        of_base = list(dict.fromkeys(i for b, i in zip(bases, identities, strict=True) if b == base))
        number = f"#{of_base.index(identity) + 1}" if len(of_base) > 1 else ""
        title = card.name if card.any_model else f"{base}{number}"
        # One decision is about one text, so the first says what is judged at once.
        members.append(dataclasses.replace(card, name=title, unit=cards[0].unit, context=cards[0].context))
    return dataclasses.replace(members[0], others=tuple(members[1:]))


#: Options that a model does not take from the end of a name: its weights or candidates.
_INHERENT = ("model", "adapter", "candidates")


def spelled_out(name: str) -> list[str]:
    """The names that a name joins, each with all its options: its own, and those at the end that it does not set."""
    *others, last = joined_names(name)
    shared = [option for option in _options(last) if _key(option) not in _INHERENT]
    names = []
    for part in others:
        options = _options(part)
        keys = {_key(option) for option in options}
        keys |= {"format"} if "candidates" in keys else set()  # the file says it
        options += [option for option in shared if _key(option) not in keys]
        names.append("?".join(filter(None, (part.partition("?")[0], "&".join(options)))))
    return [*names, last]


def _options(name: str) -> list[str]:
    """The options of one model's name, each as KEY=VALUE."""
    return [option for option in name.partition("?")[2].split("&") if option]


def _key(option: str) -> str:
    return option.partition("=")[0]


def joined_names(name: str) -> list[str]:
    """The models that a name joins by ``+``, each with its own options. A name without ``+`` is one model."""
    first, *pieces = name.split("+")
    parts = [first]
    for piece in pieces:
        if is_ours(piece):
            parts.append(piece)
        else:  # a plus in a path or a value
            parts[-1] += f"+{piece}"
    return parts


def is_ours(model: str) -> bool:
    """Whether a name begins with a card or a model folder, even if its first option is written with &."""
    base = model.partition("?")[0].partition("+")[0]
    if {base, base.partition("&")[0]} & {*card_names()}:
        return True
    from mbr_esd_metric.metric.model_folder import is_model_folder

    return is_model_folder(model.partition("?")[0])


def _one_card(name: str) -> ModelCard:
    base, _, query = name.partition("?")
    if base in card_names():
        card = get_card(base)
    else:
        from mbr_esd_metric.metric.model_folder import other_card

        card = other_card(base, _options(name), card_names())
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        key, equals, value = part.partition("=")
        if not equals:
            raise OptionError(f"model option {shown(part)!r} has no value; write {base}?option=value&option=value")
        if key in options:
            raise OptionError(f"model option {key!r} is given twice")
        options[key] = unquote(value)
    card = with_options(card, options)
    if base == LOCAL_MODEL and not card.model:
        raise OptionError(f"{base} needs the model: {base}?model=HUB_ID, or a folder on this disk")
    return card
