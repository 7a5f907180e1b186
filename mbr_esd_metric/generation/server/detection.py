"""Which dialect a server speaks, and which models it serves."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mbr_esd_metric.errors import EngineError, first_of, require
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.model_files import read_cache, write_cache
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

#: File of the cache folder: address -> the dialect that it spoke in an earlier run.
_MEMORY = "dialects.json"


def addresses_of(options: EngineOptions) -> list[Address]:
    """The servers of the options; raises `EngineError` if there is none, one that is no address, or no aiohttp."""
    if not options.server:
        raise EngineError("no server is named: add server=URL to the model name, or export MBR_ESD_SERVER=URL")
    require("aiohttp", "server", "engine=server")
    return [Address.parse(url) for url in options.server]


def known_dialect(options: EngineOptions) -> Dialect | None:
    """The dialect that these options name, or with `dialect=auto` the one that their servers spoke in an earlier run;
    None if one was never seen. Raises `OptionError` for an unknown name, and `EngineError` for a malformed address."""
    names = {options.dialect}
    if options.dialect == "auto":
        earlier = read_cache(_MEMORY)
        names = {str(earlier.get(str(Address.parse(url)))) for url in options.server} or {"vllm"}
    if options.dialect == "auto" and not (len(names) == 1 and names <= DIALECTS.keys()):
        return None
    return replace(get_dialect(names.pop()), reasoning_effort=options.reasoning_effort)


def spoken_dialect(options: EngineOptions) -> Dialect:
    """The dialect that the servers speak, which are asked. One that does not answer speaks the one of an earlier run;
    servers that were never seen count as vLLM. `EngineError` if they speak several."""
    key, earlier = [str(Address.parse(url)) for url in options.server], read_cache(_MEMORY)
    spoken = run_coroutine(_dialects_of([Address.parse(url) for url in options.server]))
    if any(earlier.get(address) != name for address, name in spoken.items()):
        write_cache(_MEMORY, earlier | spoken)
    names = {address: str(earlier[address]) for address in key if earlier.get(address) in DIALECTS} | spoken
    if len(set(names.values())) > 1:
        pairs = ", ".join(f"{address} {name}" for address, name in names.items())
        raise EngineError(
            f"the servers speak several dialects ({pairs}), and candidates of different ones must not mix: name "
            "servers of one kind, or give dialect=NAME for all"
        )
    return replace(get_dialect(next(iter(names.values()), "vllm")), reasoning_effort=options.reasoning_effort)


def only_model(options: EngineOptions, dialect: Dialect) -> str:
    """The name of the model that the servers of these options serve, where the user names none; they are asked.

    Raises:
        EngineError: no server is named or answers, or the first that does serves several models or does not say which.
    """
    return run_coroutine(_only_model(addresses_of(options), dialect))


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
