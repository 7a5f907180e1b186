"""Finds dialects by name, and finds out which one a server speaks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mbr_esd_metric.core.discovery import Catalog
from mbr_esd_metric.errors import EngineError, InputError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.generation.cache import cache_folder
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.dialect import Dialect, DialectSettings
from mbr_esd_metric.generation.server.failures import Transient, key_refused, unreachable, wrong_model
from mbr_esd_metric.generation.server.http import ASKING, Http, run_coroutine

#: Entry points of other packages: ``mbr_esd_metric.dialects``.
DIALECTS = Catalog(
    "dialect",
    "dialects",
    "mbr_esd_metric.generation.server.dialects",
    Dialect,  # type: ignore[type-abstract]
)

#: Seconds before servers that did not answer are asked again, so that a run waits for them only once.
SILENCE = 30.0

_found: dict[tuple[str, ...], str] = {}
_silent: dict[tuple[str, ...], float] = {}
_only: dict[tuple[str, ...], str] = {}
_lock = threading.Lock()


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
        name = _detected(options.server)
    return DIALECTS.get(name)(DialectSettings(options.reasoning_effort, options.max_model_len))


def _detected(servers: Sequence[str]) -> str:
    addresses = tuple(Address.parse(url) for url in servers)
    key = tuple(str(address) for address in addresses)
    if not addresses:
        return "vllm"
    with _lock:
        if key not in _found and time.monotonic() - _silent.get(key, -SILENCE) < SILENCE:
            return _remembered().get(key[0], "vllm")
        if key not in _found:
            spoken = run_coroutine(_ask_all(addresses))
            names = {name for name in spoken if name is not None}
            if len(names) > 1:
                pairs = ", ".join(f"{a} {n}" for a, n in zip(addresses, spoken, strict=True) if n is not None)
                raise EngineError(
                    f"the servers speak several dialects ({pairs}), and candidates of different ones must not mix: "
                    "name servers of one kind, or give dialect=NAME for all"
                )
            if not names:
                _silent[key] = time.monotonic()
                return _remembered().get(key[0], "vllm")
            _found[key] = names.pop()
            _remember(dict.fromkeys(key, _found[key]))
        return _found[key]


def confirm(options: EngineOptions, assumed: Dialect) -> None:
    """Check that the servers speak the dialect that was assumed before they answered.

    Raises:
        EngineError: they speak another one, so that candidates would be stored under wrong keys.
    """
    with _lock:
        _silent.clear()
    spoken = dialect_of(options)
    if spoken.name != assumed.name:
        raise EngineError(
            f"{Address.parse(options.server[0])} did not answer before, and was taken for dialect={assumed.name}; it "
            f"is dialect={spoken.name}: run the same command again"
        )


def forget() -> None:
    """Forget what servers speak, so that they are asked again; for a server that was replaced."""
    with _lock:
        _found.clear()
        _silent.clear()
        _only.clear()


def only_model(options: EngineOptions) -> str:
    """The name of the model that the servers of these options serve, where the user names none.

    Each process asks them once.

    Raises:
        EngineError: no server is named or answers, or the first that does serves several models or does not say which.
    """
    if not options.server:
        raise EngineError("no server is named: add server=URL to the model name, or export MBR_ESD_SERVER=URL")
    addresses = [Address.parse(url) for url in options.server]
    key = tuple(str(address) for address in addresses)
    if key not in _only:
        _only[key] = run_coroutine(_only_model(addresses, dialect_of(options)))
    return _only[key]


async def _only_model(addresses: Sequence[Address], dialect: Dialect) -> str:
    failed: EngineError | None = None
    async with Http(ASKING) as http:
        for address in addresses:
            try:
                names = await dialect.served(http, address)
            except Transient as error:
                failed = EngineError(f"{unreachable(address, error)}, or say with model=NAME which model is meant")
                continue
            different: list[str] = []
            for name in sorted(names or (), key=len):
                if not any(dialect.same_model(name, other) for other in different):
                    different.append(name)
            if len(different) == 1:
                return different[0]
            listed = ", ".join(repr(excerpt(name, 100)) for name in different[:20])
            what = f"serves {listed}" if different else "does not say which model it serves"
            failed = EngineError(f"{address} {what}; add model=NAME to the model name")
            break
    assert failed is not None
    raise failed


async def _ask_all(addresses: Sequence[Address]) -> list[str | None]:
    found: list[str | None] = []
    async with Http(ASKING) as http:
        for address in addresses:
            try:
                found.append(await _spoken(http, address))
            except (Transient, EngineError):
                found.append(None)
    return found


async def _spoken(http: Http, address: Address) -> str | None:
    """The dialect of one server, None if it does not say what it serves."""
    if address.is_openai:
        return "openai"
    answer = await http.get(address, "/models")
    listed: Any = answer.json() if answer.status == 200 else None
    models = listed.get("data") if isinstance(listed, Mapping) else None
    owners = [m.get("owned_by") for m in models if isinstance(m, Mapping)] if isinstance(models, list) else []
    classes = DIALECTS.all()
    for name, cls in classes.items():
        if any(isinstance(owner, str) and owner in cls.owners for owner in owners):
            return name
    for name, cls in classes.items():
        if await cls.answers(http, address):
            return name
    return "plain" if isinstance(models, list) else None


async def check_served(http: Http, address: Address, dialect: Dialect, model: str) -> EngineError | None:
    """Why this server cannot be asked for this model; None if it can, or does not list its models.

    Raises:
        EngineError: the server answers, but does not serve the model, or refuses the key.
    """
    try:
        names = await dialect.served(http, address)
    except Transient as error:
        try:
            answer = await http.get(address, "/models")
        except Transient:
            return unreachable(address, error)
        if answer.status in (401, 403):
            raise key_refused(address, answer.status) from None
        if answer.status == 200:
            return EngineError(f"{address} is no OpenAI-compatible server; its address mostly ends in /v1")
        return unreachable(address, answer)
    if names is not None and model not in names:
        raise wrong_model(address, model, names)
    return None


def _memory() -> Path:
    return cache_folder() / "dialects.json"


def _remembered() -> dict[str, str]:
    try:
        known = json.loads(_memory().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {k: v for k, v in known.items() if isinstance(k, str) and v in DIALECTS.names()}


def _remember(spoken: Mapping[str, str]) -> None:
    """Note which dialects servers speak. If this fails, the next process only asks them again."""
    known = _remembered()
    if all(known.get(address) == name for address, name in spoken.items()):
        return
    with suppress(OSError, InputError):
        _memory().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(_memory(), json.dumps({**known, **spoken}, indent=1))


def dialect_option(text: str) -> str:
    """auto, or the name of a dialect"""
    if text != "auto":
        DIALECTS.get(text)
    return text
