"""Which dialect a server speaks, and which models it serves."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mbr_esd_metric.errors import EngineError, first_of
from mbr_esd_metric.generation.model_files import read_cache, write_cache
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.dialects import DIALECTS, DIALECTS_FILE, Dialect
from mbr_esd_metric.generation.server.failures import Response, TransientError, describe, key_refused
from mbr_esd_metric.generation.server.http import Http, run_coroutine


def spoken_dialect(addresses: Sequence[Address]) -> str:
    """The dialect that the servers speak, which are asked. One that does not answer speaks the one of an earlier run;
    servers that were never seen count as vLLM. `EngineError` if they speak several."""
    earlier, spoken = read_cache(DIALECTS_FILE), run_coroutine(_spoken_dialects(addresses))
    if any(earlier.get(address) != name for address, name in spoken.items()):
        write_cache(DIALECTS_FILE, earlier | spoken)
    both = earlier | spoken
    names = {address: both[address] for address in map(str, addresses) if both.get(address) in DIALECTS}
    if len(set(names.values())) > 1:
        pairs = ", ".join(f"{address} {name}" for address, name in names.items())
        raise EngineError(
            f"the servers speak several dialects ({pairs}), and candidates of different ones must not mix: name "
            "servers of one kind, or give dialect=NAME for all"
        )
    return next(iter(names.values()), "vllm")


def served_model(addresses: Sequence[Address], dialect: Dialect, model: str) -> str:
    """The model's name, or the only one that the servers offer if it is ""; they are asked. `EngineError` if no server
    answers, or one that does refuses the key, does not serve the model, or serves several where none is named."""
    for address, names in run_coroutine(_served_models(addresses, dialect)).items():
        if not model:
            different = list(dict.fromkeys(name.removesuffix(":latest") for name in names or ()))
            if len(different) == 1:
                return different[0]
            listed = first_of([repr(excerpt(name, 100)) for name in different], 20)
            serves = f"serves {listed}" if different else "does not say which model it serves"
            raise EngineError(f"{address} {serves}; add model=NAME to the model name")
        if names is not None and model not in names and dialect.lists_all:
            near = difflib.get_close_matches(model, names, n=1, cutoff=0.0)
            listed = first_of([repr(excerpt(name, 100)) for name in dict.fromkeys([*near, *names])], 20)
            # An adapter is part of the name that a card asks for, whatever its option `model` says.
            option = (
                "Take mbr-esd-server?model=NAME&server=URL" if "+" in model else "Add model=NAME to the model's options"
            )
            raise EngineError(
                f"{address} does not serve {model!r}; it serves {listed or 'none'}. {option}, or serve the right one"
            )
    return model


async def _served_models(addresses: Sequence[Address], dialect: Dialect) -> dict[Address, list[str] | None]:
    """Address -> the names of its models, of servers that answer; None if it gives no list, and need not."""
    served: dict[Address, list[str] | None] = {}
    problem = ""
    path, field, key = dialect.models
    async with Http() as http:
        for address in addresses:
            try:
                response = await http.get(address, path)
                models = _listed(response, field) if response.status == 200 else None
                if models is None:
                    message = f"{response.status} {describe(response.value)[0]}"
                    if response.status in (401, 403):
                        raise key_refused(address, message)
                    if dialect.lists_all:
                        raise TransientError(message, sent=True)
            except TransientError as error:
                problem = f"no server answers at {address} ({error}); start the server, or fix the address"
                if error.sent:
                    problem = (
                        f"{address} does not say what it serves ({error}); see its address, which mostly ends in /v1"
                    )
                continue
            names = [name for model in models or () if isinstance(name := model.get(key), str)]
            # Ollama takes a name without its tag "latest", too.
            short = [name.removesuffix(":latest") for name in names if name.endswith(":latest")]
            served[address] = None if models is None else [*names, *short]
    if not served:
        raise EngineError(problem)
    return served


async def _spoken_dialects(addresses: Sequence[Address]) -> dict[str, str]:
    """Address -> dialect, of those servers that answer."""
    names: dict[str, str | None] = {}
    async with Http() as http:
        for address in addresses:
            with suppress(TransientError, EngineError):
                names[str(address)] = await _dialect_at(http, address)
    return {address: name for address, name in names.items() if name}


async def _dialect_at(http: Http, address: Address) -> str | None:
    """The dialect of one server, None if it does not say what it serves."""
    if address.is_openai:
        return "openai"
    response = await http.get(address, "/models")
    models = _listed(response, "data") if response.status == 200 else None
    owners = {model.get("owned_by") for model in models or ()} - {""}
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
