"""The table of model names, and the parser of names with options.

mbr-esd-llama                                    the card
mbr-esd-llama?n=64&utility=scoresim              the card with options, written like a URL's query
path/to/folder                                   a folder with a COMET-style ``hparams.yaml`` (same option names)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.generation.server.address import shown
from mbr_esd_metric.metric.card import ANY_MODEL, LOCAL_MODEL, ModelCard, with_options

#: Decision options of models other than the paper's. If most candidates mark nothing, decisions mark nothing either,
#: but the mean score over the candidates still separates translations (docs/evidence/one-model.md).
_EXPECTED = DecisionOptions(score="expected")


def _paper(name: str, model: str, description: str, memory_gb: float, rule: str = "mbr", **more: Any) -> ModelCard:
    # Length and location as in the paper's released code.
    decision = DecisionOptions(rule, location="first")
    return ModelCard(f"mbr-esd-{name}", description, memory_gb, model=model, max_tokens=2048, decision=decision, **more)


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
            rule="greedy",
            n=1,
        ),
        ModelCard(
            ANY_MODEL,
            "any model on a server: ?model=NAME&server=URL; without model=, the server's only model",
            engine="server",
            unit="auto",
            decision=_EXPECTED,
        ),
        ModelCard(
            LOCAL_MODEL,
            "any model with weights: ?model=HUB_ID or a folder; in process or with mbr-esd serve",
            unit="auto",
            decision=_EXPECTED,
        ),
        ModelCard(
            "mbr-esd-checks",
            "no model: only rule-based errors, such as lost placeholders (docs/metric.md)",
            engine="checks",
            n=1,
            decision=DecisionOptions("greedy", format="json-omissions", checks="true"),
        ),
    )
}

_PACKAGE = Path(__file__).parents[1]
#: Name -> folder in this package, description and size of a model whose ``hparams.yaml`` has its decoding options.
_EMBEDDED = {
    "mbr-esd-small": (
        "small",
        "multilingual-e5-small trained to tag errors, for any machine: detects gross errors (docs/small-model.md)",
        0.3,
    ),
    "mbr-esd-demo": ("demo/sft", "SmolLM2 135M, for tests: too small to judge translations", 0.3),
    "mbr-esd-demo-distill": ("demo/distill", "the same, distilled from its own MBR decisions: one greedy pass", 0.3),
}


#: The names of all cards; only a checkout has the demo.
CARD_NAMES = (*CARDS, *(name for name, (folder, *_) in _EMBEDDED.items() if (_PACKAGE / folder).is_dir()))


@cache
def get_card(name: str) -> ModelCard:
    """The card of one of `CARD_NAMES`."""
    if name in CARDS:
        return CARDS[name]
    from mbr_esd_metric.metric.model_folder import folder_card

    folder, description, memory_gb = _EMBEDDED[name]
    card = folder_card(_PACKAGE / folder)
    return dataclasses.replace(card, name=name, description=description, memory_gb=memory_gb)


def load_card(name: str, options: Mapping[str, object] | None = None) -> ModelCard:
    """The card of a name or model folder, optionally followed by ``?option=value&...``, with further `options` as for
    `with_options`.

    Raises:
        OptionError: an unknown name, option or value (the message names the nearest valid ones).
        InputError: the name is not a text, or the folder has no ``hparams.yaml`` of ours.
    """
    if not isinstance(name, str) or not name.partition("?")[0]:
        raise InputError(
            f"a model name must be a text such as 'mbr-esd-small', got {name!r}; `mbr-esd models` lists the names"
        )
    base, _, query = name.partition("?")
    if base in CARD_NAMES:
        card = get_card(base)
    else:
        from mbr_esd_metric.metric.model_folder import other_card

        card = other_card(base, CARD_NAMES)
    values: dict[str, object] = {option: value for option, value in (options or {}).items() if value is not None}
    for part in query.split("&") if query else ():
        key, equals, value = part.partition("=")
        if not equals:
            raise OptionError(
                f"model option {shown(part)!r} has no value; use the form {base}?option=value&option=value"
            )
        if key in values:
            raise OptionError(f"model option {key!r} is given twice")
        values[key] = unquote(value)
    card = with_options(card, values)
    if base == LOCAL_MODEL and not card.model:
        raise OptionError(f"{base} needs a model: {base}?model=HUB_ID, or a local folder")
    return card


def limits(models: Iterable[str | None]) -> list[str]:
    """A line for each of these models that is ours and has known limits. Models are given by card title, with or
    without options, or as in signatures."""
    names = dict.fromkeys(model.partition("?")[0] for model in models if model)
    cards = dict.fromkeys(card.name for name in names if (card := _named_card(name)) is not None and card.limits)
    return [f"{name} {get_card(name).limits}" for name in cards]


def _named_card(name: str) -> ModelCard | None:
    if name in CARD_NAMES:
        return get_card(name)
    from mbr_esd_metric.generation.pretrained import model_name

    for embedded in filter(CARD_NAMES.__contains__, _EMBEDDED):
        folder = _EMBEDDED[embedded][0]
        if name.startswith(f"{Path(folder).name}-") and name == model_name(get_card(embedded).engine_options):
            return get_card(embedded)
    return None


def is_ours(model: str) -> bool:
    """Whether a name starts with a card or model folder, even if its first option incorrectly starts with &."""
    base = model.partition("?")[0]
    if {base, base.partition("&")[0]} & {*CARD_NAMES}:
        return True
    from mbr_esd_metric.metric.model_folder import is_model_folder

    return is_model_folder(base)
