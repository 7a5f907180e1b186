"""Detection of the dialect of a server, and of the models that it serves."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.dialects import DIALECTS, DIALECTS_FILE, Dialect
from mbr_esd_metric.generation.server.http import TransientError, request
from mbr_esd_metric.generation.store import read_cache, write_cache
from mbr_esd_metric.messages import first_of


class Servers:
    """Detects the dialect and the model of servers. Each query is sent to a server only once."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses, self._get = addresses, cache(request)

    def dialect(self) -> str:
        """The dialect of the servers. For a server that does not answer, the dialect of an earlier run is used; if
        there is none for any server, vllm. Raises `EngineError` if the servers use several dialects."""
        earlier, spoken = read_cache(DIALECTS_FILE), dict[str, str]()
        for address in self._addresses:
            with suppress(TransientError, EngineError):
                if name := self._dialect_at(address):
                    spoken[address.url] = name
        known = earlier | spoken
        if known != earlier:
            write_cache(DIALECTS_FILE, known)
        names = {one.url: str(known[one.url]) for one in self._addresses if known.get(one.url) in DIALECTS}
        if len(set(names.values())) > 1:
            pairs = ", ".join(f"{url} {name}" for url, name in names.items())
            raise EngineError(
                f"the servers use several dialects ({pairs}), whose candidates must not be mixed: use servers of one "
                "kind, or set dialect=NAME for all"
            )
        return next(iter(names.values()), "vllm")

    def serving(self, model: str, dialect: Dialect) -> str:
        """The name of the model; if it is "", the only model of the servers. Raises `EngineError` if no server answers,
        or if a server rejects the key, does not serve the model, or serves several models and none is specified."""
        path, field, key = dialect.models
        answered, problem = False, ""
        for address in self._addresses:
            fix = "check its address, which usually ends in /v1"
            try:
                response = self._get(address, path)
                if response.status == 429 or response.status >= 500:
                    fix = "it may be busy, or still loading: try again later"
                models = objects_in(response.json(), field) if response.status == 200 else None
                if models is None and (response.status in (401, 403) or dialect.lists_all):
                    from mbr_esd_metric.generation.server.failures import key_refused, reason_of

                    if response.status in (401, 403):
                        raise key_refused(address, reason_of(response))
                    raise TransientError(reason_of(response), sent=True)
            except TransientError as error:
                problem = f"no server answers at {address} ({error}); start the server, or fix the address"
                if error.sent:
                    problem = f"{address} does not list its models ({error}); {fix}"
                continue
            answered = True
            # Ollama also accepts a name without the tag "latest".
            names = [name for one in models or () if isinstance(name := one.get(key), str)]
            short = list(dict.fromkeys(name.removesuffix(":latest") for name in names))
            if not model and len(short) == 1:
                return short[0]
            if not model:
                serves = f"serves {_name_list(short)}" if short else "does not say which model it serves"
                raise EngineError(f"{address} {serves}; add model=NAME to the model name")
            if models is not None and model not in (*names, *short) and dialect.lists_all:
                near = difflib.get_close_matches(model, names, n=1, cutoff=0.0)
                # The name of a card with an adapter includes the adapter, whatever its option `model` is.
                own = "Use mbr-esd-server?model=NAME&server=URL"
                fix = own if "+" in model else "Add model=NAME to the model's options"
                serves = f"it serves {_name_list([*near, *names, *short]) or 'none'}"
                raise EngineError(f"{address} does not serve {model!r}; {serves}. {fix}, or serve the right one")
        if not answered:
            raise EngineError(problem)
        return model

    def _dialect_at(self, address: Address) -> str | None:
        """The dialect of one server; None if it cannot be determined."""
        if address.is_openai:
            return "openai"
        response = self._get(address, "/models")
        models = objects_in(response.json(), "data") if response.status == 200 else None
        owners = {str(model.get("owned_by", "")) for model in models or ()} - {""}
        for name, dialect in DIALECTS.items():
            if dialect.owner in owners:
                return name
        for name, dialect in DIALECTS.items():
            if dialect.probe is not None:
                path, marker = dialect.probe
                with suppress(TransientError):
                    if marker in self._get(address, path).body:
                        return name
        return None if models is None else "plain"


def _name_list(names: Sequence[str]) -> str:
    return first_of([repr(excerpt(name, 100)) for name in dict.fromkeys(names)], 20)


def objects_in(value: object, field: str) -> list[Mapping[str, Any]] | None:
    """The objects of a list in a reply; None without a list."""
    items = value.get(field) if isinstance(value, Mapping) else None
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else None
