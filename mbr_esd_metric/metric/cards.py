"""The table of model names, and the reading of a name with its options.

mbr-esd-llama                                    the card
mbr-esd-llama?n=64&utility=scoresim              the card with options, written like a URL's query
path/to/folder                                   a folder with a COMET-style ``hparams.yaml`` (same option names)
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.generation.server.address import shown
from mbr_esd_metric.metric.card import OWN_MODEL, ModelCard, with_options
from mbr_esd_metric.metric.catalogue import CATALOGUE, Judge
from mbr_esd_metric.metric.model_folder import CLASS_IDENTIFIER, folder_card, is_model_folder

#: How models decide whose settings are not the paper's. Where most candidates of a model mark nothing, the answer marks
#: nothing anywhere, and the mean over the candidates still tells translations apart (docs/models.md has the figures).
_EXPECTED = DecisionOptions(score="expected")


def _paper(name: str, description: str, memory_gb: float, model: str, context: int = 131_072) -> ModelCard:
    return ModelCard(name, description, memory_gb, context, model, max_tokens=2048)  # as in the authors' code


def _of_entry(entry: Judge) -> ModelCard:
    """The card of an entry of the catalogue; a hosted model is asked in the dialect of its service."""
    return ModelCard(
        f"mbr-esd-{entry.name}",
        entry.description,
        entry.memory_gb,
        entry.context,
        entry.model,
        engine="server" if entry.hosted else "auto",
        dialect=entry.dialect,
        reasoning_effort=entry.reasoning_effort,
        temperature=entry.temperature,
        unit="auto",
        decision=_EXPECTED,
        # Reasoning counts as part of the answer.
        max_tokens=4096 if entry.reasons else 512,
    )


_PACKAGE = Path(__file__).parents[1]


def _embedded(name: str, folder: str, description: str, memory_gb: float) -> ModelCard:
    """The card of a model folder that comes with this package; its ``hparams.yaml`` says how to decode it."""
    card = folder_card(_PACKAGE / folder)
    return dataclasses.replace(card, name=name, description=description, memory_gb=memory_gb, engine="transformers")


#: Models that the tests ask for JSON, grammars and servers. They judge nothing, and are in a checkout alone.
_FOR_TESTS = (
    ("mbr-esd-demo", "demo/sft", "SmolLM2 135M, for tests: too small to judge translations", 0.3),
    ("mbr-esd-demo-distill", "demo/distill", "the same, distilled from its own MBR decisions: one greedy pass", 0.3),
)

CARDS: dict[str, ModelCard] = {
    card.name: card
    for card in (
        _paper("mbr-esd-llama", "Llama 3.3 70B, the paper's main model", 141.1, "meta-llama/Llama-3.3-70B-Instruct"),
        _paper("mbr-esd-gemma2", "Gemma 2 27B", 54.5, "google/gemma-2-27b-it", 8192),
        _paper("mbr-esd-phi4", "Phi 4 14B", 29.3, "microsoft/phi-4", 16384),
        _paper("mbr-esd-mistral", "Mistral Large 123B", 245.2, "mistralai/Mistral-Large-Instruct-2407"),
        ModelCard(
            "mbr-esd-llama-distill",
            "Llama 3.3 70B distilled from MBR decisions: one greedy pass",
            141.1,
            131_072,
            "lyu-boxuan/Llama-3.3-70B-ESD-MBR-DPODistill",
            decision=DecisionOptions("greedy"),
            n=1,
            max_tokens=2048,
        ),
        ModelCard(
            OWN_MODEL,
            "your own model, on a server of yours: ?model=NAME&server=URL; without model=, the only one served there",
            engine="server",
            unit="auto",
            decision=_EXPECTED,
        ),
        *map(_of_entry, CATALOGUE),
        _embedded(
            "mbr-esd-small",
            "small",
            "Gemma 3 270M trained on MQM, post-edits and spoilt translations: a weak judge (docs/small-model.md)",
            0.6,
        ),
        *(_embedded(*one) for one in _FOR_TESTS if (_PACKAGE / one[1]).is_dir()),
    )
}


def listed() -> list[ModelCard]:
    """The cards that lists of models show; those of the tests where ``MBR_ESD_DEMO=1`` says so."""
    shown = os.environ.get("MBR_ESD_DEMO") == "1"
    return [card for card in CARDS.values() if shown or card.name not in {name for name, *_ in _FOR_TESTS}]


def load_card(name: str, options: Mapping[str, str] | None = None) -> ModelCard:
    """The card of a model name or folder, with its options applied; of several joined by ``+``, their pool.

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
    parts = spelled_out(with_named(name, options or {}))
    cards = [_one_card(part) for part in parts]
    return _pool(parts, cards) if len(cards) > 1 else cards[0]


#: Checkpoints that COMET loads, as its hub names them: a name without its owner is taken for none of ours.
_OF_COMET = (
    "Unbabel/XCOMET-XL",
    "Unbabel/XCOMET-XXL",
    "Unbabel/wmt22-comet-da",
    "Unbabel/wmt22-cometkiwi-da",
    "Unbabel/wmt23-cometkiwi-da-xl",
    "Unbabel/wmt23-cometkiwi-da-xxl",
)

#: Options that a model does not take from the end of a name: they say what it is, and not how it is asked.
_OWN = ("model", "adapter", "revision", "candidates")


def spelled_out(name: str) -> list[str]:
    """The models that a name joins, each with its own options and those at the end that it does not set.

    The answer format of a file of candidates is the file's.
    """
    *others, last = joined_names(name)
    shared = [option for option in last.partition("?")[2].split("&") if option.partition("=")[0] not in _OWN]
    found = []
    for part in others:
        own = [option for option in part.partition("?")[2].split("&") if option]
        keys = {option.partition("=")[0] for option in own}
        keys |= {"format"} if "candidates" in keys else set()
        more = [option for option in shared if option and option.partition("=")[0] not in keys]
        found.append("?".join(filter(None, (part.partition("?")[0], "&".join([*own, *more])))))
    return [*found, last]


def joined_names(name: str) -> list[str]:
    """The models that a name joins by ``+``, each with its own options. A name without ``+`` is one model."""
    parts = name.split("+")[:1]
    for piece in name.split("+")[1:]:
        if _named(piece):
            parts.append(piece)
        else:  # a plus in a path or a value
            parts[-1] += f"+{piece}"
    return parts


def with_named(model: str, options: Mapping[str, str]) -> str:
    """The name of a model, or of several joined by ``+``, with these options at its end."""
    more = "&".join(f"{option}={quote(value, safe='/:+,.~=?')}" for option, value in options.items())
    mark = "&" if "?" in joined_names(model)[-1] else "?"
    return f"{model}{mark}{more}" if more else model


def is_ours(model: str) -> bool:
    """Whether a name is that of one or several models of this package, or of a model folder."""
    return _named(joined_names(model)[0])


def _named(model: str) -> bool:
    """Whether a name, with options, begins with one of ours; also where its first option is written with an &."""
    base = model.partition("?")[0]
    return base in CARDS or base.partition("&")[0] in CARDS or is_model_folder(base)


def _pool(names: Sequence[str], cards: Sequence[ModelCard]) -> ModelCard:
    """The first card, with the others; two language models of one card are numbered."""
    _check_decided_together(names, cards)
    # Settings of one language model are one model.
    weights = [(card.model or card.servers, card.adapter, card.revision, card.candidates) for card in cards]
    bases = [card.title if card.own_model else name.partition("?")[0] for name, card in zip(names, cards, strict=True)]
    of_base = {base: list(dict.fromkeys(w for w, b in zip(weights, bases, strict=True) if b == base)) for base in bases}
    named = []
    for card, base, which in zip(cards, bases, weights, strict=True):
        numbered = base if len(of_base[base]) == 1 else f"{base}#{of_base[base].index(which) + 1}"
        # One decision is about one text, so the first says what is judged at once.
        card = dataclasses.replace(card, unit=cards[0].unit, context=cards[0].context)
        named.append(card if card.own_model else dataclasses.replace(card, name=numbered))
    return dataclasses.replace(named[0], others=tuple(named[1:]))


def _check_decided_together(names: Sequence[str], cards: Sequence[ModelCard]) -> None:
    """See that one decision can take the candidates of all."""
    first = cards[0]
    for card in cards:
        # How a model says its errors is its own matter.
        if dataclasses.replace(card.decision, format=first.decision.format) != first.decision:
            mine, its = first.decision.described(), card.decision.described()
            unequal = [key for key in mine if mine[key] != its[key] and key != "format"]
            differ = ", ".join(f"{key}={mine[key]} and {its[key]}" for key in unequal)
            raise OptionError(f"models joined by + are decided together, and these say {differ}; give one for all")
    if first.decision.decided_by.needs_logprobs or first.decision.decided_by.candidates == "one":
        raise OptionError(
            f"rule={first.decision.rule} does not go with models joined by +, whose log-probabilities cannot be "
            "compared; take rule=mbr"
        )
    if len(set(names)) < len(names):
        raise OptionError("the name has one model with the same options twice; leave one out")


def _one_card(name: str) -> ModelCard:
    base, _, query = name.partition("?")
    if base in CARDS:
        card = CARDS[base]
    elif is_model_folder(base):
        card = folder_card(Path(base))
    elif Path(base).is_dir():
        raise InputError(f"{base} is no model folder: it has no hparams.yaml with class_identifier: {CLASS_IDENTIFIER}")
    elif base.startswith(("/", "./", "../", "~")):
        raise InputError(f"{base}: no such model folder")
    elif base.partition("&")[0] in CARDS:
        raise OptionError(
            f"the first option of a model begins with ?, not with &: {base.partition('&')[0]}?option=value&option=value"
        )
    else:
        known = (*CARDS, *_OF_COMET)
        raise OptionError(f"{unknown('model', base, known, '`mbr-esd models`')}; or give {_own(base, query)}")
    options: dict[str, str] = {}
    for part in query.split("&") if query else ():
        key, equals, value = part.partition("=")
        if not equals:
            raise OptionError(f"model option {shown(part)!r} has no value; write {base}?option=value&option=value")
        if key in options:
            raise OptionError(f"model option {key!r} is given twice")
        options[key] = unquote(value)
    return with_options(card, options)


def _own(base: str, query: str) -> str:
    """What a user may mean by a name that is no card's: a model of their own. No password of a server is shown."""
    given = [part for part in query.split("&") if part]
    for at, part in enumerate(given):
        if part.startswith("server="):
            given[at] = f"server={shown(unquote(part[7:]))}"
    if base.endswith(".gguf"):
        server = "server=URL where llama.cpp's server serves that file (llama-server -m, or scripts/setup_llamacpp.sh)"
        return f"{OWN_MODEL}?{'&'.join(given) if any(part.startswith('server=') for part in given) else server}"
    if not any(part.startswith("model=") for part in given):
        given.insert(0, f"model={'NAME' if base.startswith('mbr-esd') else base}")
    if not any(part.startswith("server=") for part in given):
        given.append("server=URL")
    return f"the path of a model folder, or the name of a model on a server of yours: {OWN_MODEL}?{'&'.join(given)}"
