"""Which dialect a server speaks, and which models it serves."""

from __future__ import annotations

import difflib
import math
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from mbr_esd_metric.errors import EngineError, first_of, require
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.model_files import recall, remember
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.dialects import DIALECTS, Dialect, get_dialect
from mbr_esd_metric.generation.server.failures import (
    Response,
    TransientError,
    describe,
    key_refused,
    token_count,
)
from mbr_esd_metric.generation.server.http import PROBE_SECONDS, Http, run_coroutine

#: Seconds before servers that did not answer are asked again, so that a run waits for them only once.
SILENCE = 30.0
#: File of the cache folder: address -> the dialect that it spoke in an earlier run.
_MEMORY = "dialects.json"

#: Servers -> their dialect, and the time until which it counts. If they were silent, they are asked again then.
_dialects: dict[tuple[str, ...], tuple[str, float]] = {}
_lock = threading.Lock()


def addresses_of(options: EngineOptions) -> list[Address]:
    """The servers of the options; raises `EngineError` if there is none, one that is no address, or no aiohttp."""
    if not options.server:
        raise EngineError("no server is named: add server=URL to the model name, or export MBR_ESD_SERVER=URL")
    require("aiohttp", "server", "engine=server")
    return [Address.parse(url) for url in options.server]


def dialect_of(options: EngineOptions) -> Dialect:
    """The dialect that these options name, or with `dialect=auto` the one that their servers speak.

    Each process asks the servers once. If none answers, the dialect that they last spoke counts, so that a run whose
    candidates are all stored needs no server. Servers that were never seen count as vLLM.

    Raises:
        OptionError: an unknown name.
        EngineError: a malformed address, or servers that speak several dialects.
    """
    name = options.dialect
    if name == "auto":
        name = _detect([Address.parse(url) for url in options.server]) if options.server else "vllm"
    return replace(get_dialect(name), reasoning_effort=options.reasoning_effort)


def _detect(addresses: Sequence[Address]) -> str:
    key = tuple(map(str, addresses))
    with _lock:
        name, until = _dialects.get(key, ("", 0.0))
        if time.monotonic() < until:
            return name
        names = run_coroutine(_dialects_of(addresses))
        if len(set(names.values())) > 1:
            pairs = ", ".join(f"{address} {name}" for address, name in names.items())
            raise EngineError(
                f"the servers speak several dialects ({pairs}), and candidates of different ones must not mix: name "
                "servers of one kind, or give dialect=NAME for all"
            )
        earlier = recall(_MEMORY)
        if names:
            name, until = next(iter(names.values())), math.inf
            if any(earlier.get(address) != name for address in key):
                remember(_MEMORY, earlier | dict.fromkeys(key, name))
        else:
            name, until = str(earlier.get(key[0])), time.monotonic() + SILENCE
            name = name if name in DIALECTS else "vllm"
        _dialects[key] = name, until
        return name


def confirm(options: EngineOptions, assumed: Dialect) -> None:
    """Check that the servers speak the dialect that was assumed before they answered, as part of the store's keys."""
    with _lock:
        for key in [key for key, (_, until) in _dialects.items() if until < math.inf]:
            del _dialects[key]
    spoken = dialect_of(options)
    if spoken.name != assumed.name:
        raise EngineError(
            f"{Address.parse(options.server[0])} did not answer before, and was taken for dialect={assumed.name}; it "
            f"is dialect={spoken.name}: run the same command again"
        )


@cache
def only_model(options: EngineOptions) -> str:
    """The name of the model that the servers of these options serve, where the user names none.

    Each process asks them once.

    Raises:
        EngineError: no server is named or answers, or the first that does serves several models or does not say which.
    """
    return run_coroutine(_only_model(addresses_of(options), dialect_of(options)))


async def _only_model(addresses: Sequence[Address], dialect: Dialect) -> str:
    problem = ""
    async with Http(PROBE_SECONDS) as http:
        for address in addresses:
            try:
                names = await model_names(http, address, dialect)
            except TransientError as error:
                problem = f"{_unreachable(address, error)}, or say with model=NAME which model is meant"
                continue
            different = list(dict.fromkeys(name.removesuffix(":latest") for name in names or ()))
            if len(different) == 1:
                return different[0]
            listed = ", ".join(repr(excerpt(name, 100)) for name in different[:20])
            serves = f"serves {listed}" if different else "does not say which model it serves"
            raise EngineError(f"{address} {serves}; add model=NAME to the model name")
    raise EngineError(problem)


async def _dialects_of(addresses: Sequence[Address]) -> dict[str, str]:
    """Address -> dialect, of those servers that answer."""
    names: dict[str, str] = {}
    async with Http(PROBE_SECONDS) as http:
        for address in addresses:
            with suppress(TransientError, EngineError):
                name = await _dialect_at(http, address)
                names |= {} if name is None else {str(address): name}
    return names


async def _dialect_at(http: Http, address: Address) -> str | None:
    """The dialect of one server, None if it does not say what it serves."""
    if address.is_openai:
        return "openai"
    response = await http.get(address, "/models")
    models = _listed(response, "data") if response.status == 200 else None
    owners = {model.get("owned_by") for model in models or ()}
    for name, dialect in DIALECTS.items():
        if dialect.owner in owners:
            return name
    for name, dialect in DIALECTS.items():
        if dialect.probe is not None:
            path, marker = dialect.probe
            with suppress(TransientError):
                if marker in (await http.get(address, path)).body:
                    return name
    return None if models is None else "plain"


def _listed(response: Response, field: str) -> list[Mapping[str, Any]] | None:
    """The objects of a list in a reply; None if there is no list."""
    value = response.json()
    listed = value.get(field) if isinstance(value, Mapping) else None
    return [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else None


async def model_names(http: Http, address: Address, dialect: Dialect) -> list[str] | None:
    """The names of the models that a server offers; None if its list cannot be relied on.

    Raises:
        TransientError: as `Http.get`, or it answers with an error.
        EngineError: as `Http.get`, or it refuses the key.
    """
    path, field, key = dialect.models or ("/models", "", "")
    response = await http.get(address, path)
    message = f"{response.status} {describe(response.value)[0]}"
    if response.status in (401, 403):
        raise key_refused(address, message)
    if dialect.models is None:
        return None
    models = _listed(response, field) if response.status == 200 else None
    if models is None:
        raise TransientError(message, sent=True)
    names = [model[key] for model in models if isinstance(model.get(key), str)]
    # Ollama takes a name without its tag "latest", too.
    return [*names, *(name for full in names if (name := full.removesuffix(":latest")) != full)]


async def slot_count(http: Http, address: Address, dialect: Dialect) -> int | None:
    """The number of samples that a server works on at once; None if it does not say, and queues what is too many."""
    if not isinstance(dialect.slots, tuple):
        return dialect.slots
    path, field = dialect.slots
    value = (await http.get(address, path)).json()
    return token_count(value.get(field)) if isinstance(value, Mapping) else None


def _unreachable(address: Address, failure: TransientError) -> EngineError:
    """The error of a server that cannot say what it serves."""
    if failure.sent:
        return EngineError(
            f"{address} does not say what it serves ({failure}); see its address, which mostly ends in /v1"
        )
    return EngineError(f"no server answers at {address} ({failure}); start the server, or fix the address")


async def check_served(http: Http, address: Address, dialect: Dialect, model: str) -> EngineError | None:
    """Why this server does not answer; None if it serves the model, or does not list its models.

    Raises:
        EngineError: the server answers, but does not serve the model, or refuses the key.
    """
    try:
        names = await model_names(http, address, dialect)
    except TransientError as error:
        return _unreachable(address, error)
    if names is not None and model not in names:
        if not names:
            raise EngineError(f"{address} serves no model {model!r}, and no other")
        near = difflib.get_close_matches(model, names, n=1, cutoff=0.0)
        listed = first_of([repr(excerpt(name, 100)) for name in dict.fromkeys([*near, *names])], 20)
        # An adapter is part of the name that a card asks for, whatever its option `model` says.
        option = (
            "Take mbr-esd-server?model=NAME&server=URL" if "+" in model else "Add model=NAME to the model's options"
        )
        raise EngineError(f"{address} does not serve {model!r}; it serves {listed}. {option}, or serve the right one")
    return None
