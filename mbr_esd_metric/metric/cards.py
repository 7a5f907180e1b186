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
from mbr_esd_metric.metric.card import ANY_MODEL, ModelCard, with_options

#: How models decide whose settings are not the paper's. Where most candidates of a model mark nothing, the answer marks
#: nothing anywhere, and the mean over the candidates still tells translations apart (docs/models.md has the figures).
_EXPECTED = DecisionOptions(score="expected")


def _paper(name: str, model: str, description: str, memory_gb: float, context: int = 131_072, **more: Any) -> ModelCard:
    # The length is that of the authors' code.
    return ModelCard(f"mbr-esd-{name}", description, memory_gb, context, model=model, max_tokens=2048, **more)


def _open(
    name: str, model: str, description: str, memory_gb: float, context: int, effort: str | None = None, **more: Any
) -> ModelCard:
    """A model with weights. Give an `effort` for one that reasons before it answers; "none" turns that off."""
    longest = 512 if effort in (None, "none") else 4096  # reasoning counts as part of the answer
    settings = {"model": model, "unit": "auto", "decision": _EXPECTED, "max_tokens": longest, **more}
    return ModelCard(f"mbr-esd-{name}", description, memory_gb, context, reasoning_effort=effort, **settings)


def _hosted(
    name: str,
    model: str,
    description: str,
    context: int,
    effort: str | None = None,
    dialect: str = "openai",
    **more: Any,
) -> ModelCard:
    """A model of a service, by the name under which it offers it."""
    more |= {"hosted": True, "engine": "server", "dialect": dialect}
    return _open(name, model, description, 0, context, effort, **more)


#: Models that people use today, beside those of the paper. None of them has been tried in this role here; the paper's
#: have been, by its authors. The lines were held against public pages in November 2026: names and contexts of hosted
#: models against OpenAI's, Google's and DeepSeek's documentation, Mistral's against services that pass it on (its API
#: takes temperatures up to 1.5, its OpenAPI description); the others against their model cards or pages that quote
#: them. Sizes are those of the files on the hub, with the parts that read images (bfloat16 where nothing else stands).
# fmt: off
CATALOGUE = (
    _open("qwen3.5-2b", "Qwen/Qwen3.5-2B", "Qwen 3.5 2B", 4.5, 262_144),
    _open("qwen3.5-4b", "Qwen/Qwen3.5-4B", "Qwen 3.5 4B", 9.3, 262_144),
    _open("qwen3.5-9b", "Qwen/Qwen3.5-9B", "Qwen 3.5 9B", 19.3, 262_144),
    _open("qwen3.8-27b", "Qwen/Qwen3.8-27B", "Qwen 3.8 27B", 55.6, 262_144),
    _open("qwen3.6-35b-a3b", "Qwen/Qwen3.6-35B-A3B", "Qwen 3.6 35B, 3B active", 71.9, 262_144),
    _open("qwen3-14b", "Qwen/Qwen3-14B", "Qwen 3 14B", 29.5, 32_768),
    _open("qwen3-32b", "Qwen/Qwen3-32B", "Qwen 3 32B", 65.5, 32_768),
    _open("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen 3 30B, 3B active", 61.1, 262_144),
    _open("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen 3 235B, 22B active", 470.2, 262_144),
    _open("qwen2.5-72b", "Qwen/Qwen2.5-72B-Instruct", "Qwen 2.5 72B", 145.4, 32_768),
    _open("llama3.2-3b", "meta-llama/Llama-3.2-3B-Instruct", "Llama 3.2 3B", 6.4, 131_072),
    _open("llama3.1-8b", "meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B", 16.1, 131_072),
    _open("gemma3-4b", "google/gemma-3-4b-it", "Gemma 3 4B", 8.6, 131_072),
    _open("gemma3-12b", "google/gemma-3-12b-it", "Gemma 3 12B", 24.4, 131_072),
    _open("gemma3-27b", "google/gemma-3-27b-it", "Gemma 3 27B", 54.9, 131_072),
    _open("gemma4-12b", "google/gemma-4-12B-it", "Gemma 4 12B", 23.9, 262_144),
    _open("gemma4-26b-a4b", "google/gemma-4-26B-A4B-it", "Gemma 4 26B, 4B active", 51.6, 262_144),
    _open("gemma4-31b", "google/gemma-4-31B-it", "Gemma 4 31B", 62.5, 262_144),
    _open("mistral-nemo", "mistralai/Mistral-Nemo-Instruct-2407", "Mistral Nemo 12B", 24.5, 131_072),
    _open("mistral-small", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", "Mistral Small 3.2", 48.0, 131_072),
    _open("phi4-mini", "microsoft/Phi-4-mini-instruct", "Phi 4 mini 3.8B", 7.7, 131_072),
    _open("gpt-oss-20b", "openai/gpt-oss-20b", "gpt-oss 20B, 4 bits; reasons", 13.8, 131_072, "low"),
    _open("gpt-oss-120b", "openai/gpt-oss-120b", "gpt-oss 120B, 4 bits; reasons", 65.3, 131_072, "low"),
    _hosted("gpt-6-luna", "gpt-6-luna", "OpenAI GPT-6 Luna, told not to reason", 1_050_000, "none"),
    _hosted("gpt-6.1-terra", "gpt-6.1-terra", "OpenAI GPT-6.1 Terra; reasons", 1_050_000, "low"),
    _hosted("gpt-4.1", "gpt-4.1", "OpenAI GPT-4.1; OpenAI ends it on 14 January 2027", 1_047_576),
    _hosted("gpt-4.1-mini", "gpt-4.1-mini", "OpenAI GPT-4.1 mini; ends on 14 January 2027", 1_047_576),
    _hosted("gemini-3.8-flash", "gemini-3.8-flash", "Google Gemini 3.8 Flash; reasons", 1_048_576, "low"),
    _hosted("gemini-3.5-flash-lite", "gemini-3.5-flash-lite", "Google Flash-Lite; reasons", 1_048_576, "low"),
    _hosted("deepseek-flash", "deepseek-flash", "DeepSeek V4.1 Flash; reasons", 1_000_000, "low", dialect="plain"),
    _hosted("mistral-large-api", "mistral-large-latest", "Mistral Large 3, hosted", 262_144, None, "plain",
            temperature=1.5),
)
# fmt: on

CARDS: dict[str, ModelCard] = {
    card.name: card
    for card in (
        _paper("llama", "meta-llama/Llama-3.3-70B-Instruct", "Llama 3.3 70B, the paper's main model", 141.1),
        _paper("gemma2", "google/gemma-2-27b-it", "Gemma 2 27B", 54.5, 8192),
        _paper("phi4", "microsoft/phi-4", "Phi 4 14B", 29.3, 16384),
        _paper("mistral", "mistralai/Mistral-Large-Instruct-2407", "Mistral Large 123B", 245.2),
        _paper(
            "llama-distill",
            "lyu-boxuan/Llama-3.3-70B-ESD-MBR-DPODistill",
            "Llama 3.3 70B distilled from MBR decisions: one greedy pass",
            141.1,
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
        *CATALOGUE,
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
    return with_options(card, options)
