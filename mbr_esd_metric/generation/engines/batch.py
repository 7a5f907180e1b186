"""`engine=batch`: the batch API of a hosted service, at half the price, with answers within a day.

Requests are written to a file, uploaded, and submitted as batches (``/v1/files``, ``/v1/batches``, as OpenAI describes
them). A note in the cache folder, written before and after each submission, says what was submitted. So a run that was
killed finds its batches again and pays for nothing twice. Each batch carries the token of its note. If a note does not
name its batch yet, the batch is looked up by that token.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from mbr_esd_metric.errors import EngineError, first_of, number_of, say
from mbr_esd_metric.files.streams import locked, write_whole
from mbr_esd_metric.generation.cache import cache_folder
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Generated, Request, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine, addresses_of
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.client import Job, RequestPart, RetryPolicy, parts_of
from mbr_esd_metric.generation.server.detection import dialect_of
from mbr_esd_metric.generation.server.failures import InvalidResponse, RequestRejected, Response, TransientError
from mbr_esd_metric.generation.server.http import Http, require_aiohttp, run_coroutine
from mbr_esd_metric.generation.server.replies import check_format, read_reply

#: The most requests and bytes in one batch; OpenAI takes 50,000 and 200 MB.
REQUESTS = 20_000
BYTES = 100_000_000
#: The most bytes that are read of a file of results.
RESULTS = 1 << 30
_OVER = ("completed", "failed", "expired", "cancelled")


class _Gone(EngineError):
    """The service has no such batch or file (404)."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two looks at a batch (the first wait and the longest), and the tries of a failing request."""

    first: float = 10.0
    longest: float = 300.0
    tries: int = 8


class BatchEngine(Engine):
    """Asks one server in the dialect openai. Samples are stored under the same keys as those of `engine=server`."""

    name: ClassVar[str] = "batch"
    description: ClassVar[str] = "the batch API of a hosted service: half the price, answers within a day"
    packages: ClassVar[tuple[str, ...]] = ("aiohttp",)
    extra: ClassVar[str] = "server"
    loads_weights: ClassVar[bool] = False

    def __init__(self, options: EngineOptions, pace: Pace | None = None) -> None:
        """Read the options; the server is not asked yet.

        Raises:
            EngineError: no server is named, or several are.
        """
        self._options, self._pace = _as_openai(options), pace or Pace()
        servers = addresses_of(options)
        if len(servers) > 1:
            raise EngineError("engine=batch takes one server; give one")
        self._address = servers[0]
        self._job: Job | None = None
        self._pause = self._pace.first

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        """As of `engine=server`; or the server is one that people run themselves, which has no batches."""
        spoken = dialect_of(options).name if options.server else "openai"
        if spoken not in ("openai", "plain"):
            return f"the server speaks dialect={spoken}, which has no batches; take engine=server"
        return ServerEngine.problem(_as_openai(options))

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        """That of `engine=server`: how a request travels changes no candidate."""
        return ServerEngine.identity(_as_openai(options))

    @classmethod
    def lacks(cls, options: EngineOptions, *, logprobs: bool, grammar: bool) -> str | None:
        """As of `engine=server`."""
        return ServerEngine.lacks(_as_openai(options), logprobs=logprobs, grammar=grammar)

    @classmethod
    def left_out(cls, options: EngineOptions, sampling: Sampling) -> tuple[str, ...]:
        """As of `engine=server`."""
        return ServerEngine.left_out(_as_openai(options), sampling)

    @classmethod
    def samples_a_request(cls, options: EngineOptions) -> int | None:
        """As of `engine=server`."""
        return ServerEngine.samples_a_request(_as_openai(options))

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        """Submit the requests that no earlier batch holds, wait for all batches, and yield their results.

        Raises:
            EngineError: the service refuses the key, a file or a batch. Or some segments failed: then it is raised at
                the end and names them. The same command finds the submitted batches again.
        """
        self._job = ServerEngine.job(self._options, sampling, [self._address], RetryPolicy())
        parts = {_name(part): part for part in parts_of(requests, self._job.dialect.per_request)}
        ledger = _Ledger(self._address, self._job.model)
        failed: list[str] = []
        try:
            waiting = self._submitted(parts, ledger)
            while waiting:
                for batch in sorted(waiting):
                    try:
                        state = self._state(batch, ledger)
                        if state.get("status") not in _OVER:
                            continue
                        yield from self._results(state, waiting[batch], parts, failed)
                    except _Gone as error:
                        failed.append(
                            f"{batch} is gone ({error}): it expired, or belongs to another account's key; the same "
                            "command submits its requests again"
                        )
                    del waiting[batch]
                    ledger.forget(batch)
                if waiting:
                    time.sleep(self._next_pause())
        finally:
            ledger.close()
        if failed:
            shown = first_of(failed, between="; ")
            raise EngineError(f"{shown}. What was sampled is kept; the same command asks for the rest")

    def _submitted(self, parts: Mapping[str, RequestPart], ledger: _Ledger) -> dict[str, set[str]]:
        """Batch -> the names of its requests that this run wants. Requests that no batch holds are submitted."""
        waiting = {batch: names & parts.keys() for batch, names in self._under_way(ledger).items()}
        waiting = {batch: names for batch, names in waiting.items() if names}
        held = set().union(*waiting.values()) if waiting else set()
        left = [part for name, part in parts.items() if name not in held]
        self._check_money([parts[name] for name in held], left)
        for group in self._groups(left):
            token = secrets.token_hex(8)
            names = {name for name, _ in group}
            ledger.note(token, names)
            batch = self._submit(token, b"".join(line for _, line in group))
            ledger.name(token, batch)
            waiting[batch] = names
            say(f"mbr-esd: submitted to {self._address} as {batch}: {number_of(len(names), 'request')}")
        self._pause = self._pace.first
        return waiting

    def _under_way(self, ledger: _Ledger) -> dict[str, set[str]]:
        """The batches of earlier runs, also those whose names were not noted because the run was killed."""
        nameless = {token for token, (batch, _) in ledger.read().items() if batch is None}
        if nameless:
            for token, batch in self._by_token().items():
                if token in nameless:
                    ledger.name(token, batch)
                    nameless.remove(token)
            for token in nameless:  # these were never submitted
                ledger.drop(token)
        return {batch: set(names) for batch, names in ledger.read().values() if batch is not None}

    def _state(self, batch: str, ledger: _Ledger) -> Mapping[str, Any]:
        """The batch as the service describes it. One that it does not know is looked up by the token of its note.

        Raises:
            _Gone: it has no such batch.
        """
        try:
            return self._json("GET", f"/batches/{batch}")
        except _Gone:
            tokens = {token for token, (name, _) in ledger.read().items() if name == batch}
            names = [name for token, name in self._by_token().items() if token in tokens and name != batch]
            if not names:
                raise
            return self._json("GET", f"/batches/{names[0]}")

    def _by_token(self) -> dict[str, str]:
        """Token of a note -> the batch that carries it, of all batches of the account."""
        batches: dict[str, str] = {}
        for batch in self._listed():
            marks = batch.get("metadata")
            token = marks.get("mbr_esd") if isinstance(marks, Mapping) else None
            if isinstance(token, str):
                batches.setdefault(token, str(batch["id"]))
        return batches

    def _listed(self) -> Iterator[Mapping[str, Any]]:
        """The batches of the account, the latest first."""
        after = ""
        while True:
            page = self._json("GET", f"/batches?limit=100{after}")
            listed = page.get("data")
            found = (
                [batch for batch in listed if isinstance(batch, Mapping) and "id" in batch]
                if isinstance(listed, list)
                else []
            )
            yield from found
            if not found or page.get("has_more") is not True:
                return
            after = f"&after={found[-1]['id']}"

    def _check_money(self, held: Iterable[RequestPart], left: Iterable[RequestPart]) -> None:
        """Check that all requests stay within the limit; a batch cannot be stopped halfway."""
        assert self._job is not None
        most, job = self._job.prices.most, self._job
        if most is None:
            return
        bound = sum(job.bound(part) for part in [*held, *left])
        if bound > most:
            raise EngineError(
                f"the batch may cost {bound:.4f}, more than max_cost={most:g}; nothing was submitted: raise it, or ask "
                "for fewer (n=N)"
            )

    def _groups(self, parts: Iterable[RequestPart]) -> Iterator[list[tuple[str, bytes]]]:
        """Names and lines of requests, as many as one batch takes."""
        assert self._job is not None
        group: list[tuple[str, bytes]] = []
        size = 0
        for part in parts:
            body = self._job.dialect.body(self._job.query(part))
            line = {"custom_id": _name(part), "method": "POST", "url": "/v1/chat/completions", "body": body}
            written = json.dumps(line).encode("ascii") + b"\n"
            if group and (len(group) == REQUESTS or size + len(written) > BYTES):
                yield group
                group, size = [], 0
            group.append((_name(part), written))
            size += len(written)
        if group:
            yield group

    def _submit(self, token: str, lines: bytes) -> str:
        """The name of the new batch of these requests."""
        file = self._json("POST", "/files", lines)
        order = {
            "input_file_id": _id_of(file, f"{self._address}/files"),
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"mbr_esd": token},
        }
        # One try only: after a lost reply, a second one would submit and bill the batch twice. The note finds it.
        return _id_of(self._json("POST", "/batches", order, tries=1), f"{self._address}/batches")

    def _results(
        self, state: Mapping[str, Any], wanted: set[str], parts: Mapping[str, RequestPart], failed: list[str]
    ) -> Iterator[Generated]:
        """The samples of a finished batch; adds a message to `failed` for each request without one."""
        assert self._job is not None
        seen: set[str] = set()
        for field in ("output_file_id", "error_file_id"):
            if not isinstance(state.get(field), str):
                continue
            for line in self._get(f"/files/{state[field]}/content").splitlines():
                name, answer, wrong = _read_line(line)
                if name not in wanted or name in seen:
                    continue
                seen.add(name)
                part = parts[name]
                try:
                    if wrong:
                        raise InvalidResponse(wrong)
                    reply = read_reply(self._job.dialect, answer, self._job.query(part))
                    for sample in reply.samples:
                        check_format(self._job.dialect, sample, part.request)
                except (InvalidResponse, RequestRejected) as error:
                    failed.append(f"{part.label}: {error}")
                    continue
                yield Generated(part.request.key, part.first, reply.samples)
                if len(reply.samples) < part.n:
                    failed.append(f"{part.label}: the reply has {len(reply.samples)} candidates of {part.n}")
        status = excerpt(f"{state.get('status')} without it{_reasons(state.get('errors'))}", 300)
        failed.extend(f"{parts[name].label}: the batch is {status}" for name in sorted(wanted - seen))

    def _next_pause(self) -> float:
        pause, self._pause = self._pause, min(self._pause * 1.5, self._pace.longest)
        return pause

    def _json(self, method: str, path: str, body: object = None, tries: int = 0) -> Mapping[str, Any]:
        value = json.loads(self._get(path, method, body, tries))
        if not isinstance(value, Mapping):
            raise EngineError(f"{self._address} answers {path.partition('?')[0]} with no object")
        return value

    def _get(self, path: str, method: str = "GET", body: object = None, tries: int = 0) -> bytes:
        """The body of a reply with the status 200; temporary failures are tried again.

        Raises:
            _Gone: the status is 404.
            EngineError: another refusal, or too many failures.
        """
        tries, where = tries or self._pace.tries, f"{self._address}{path.partition('?')[0]}"
        for number in range(1, tries + 1):
            try:
                response = run_coroutine(_request(self._address, method, path, body))
                if response.status == 200:
                    if not path.endswith("/content"):
                        response.json()  # a reply that is cut is asked for again
                    return response.body
                reason = f"{response.status} {response.message}"
                if response.status == 404:
                    raise _Gone(f"{where}: {reason}")
                if response.status not in (408, 409, 429) and response.status < 500:
                    raise EngineError(f"{where}: {reason}")
            except TransientError as error:
                reason = str(error)
            if number < tries:
                time.sleep(min(self._pace.first * 2.0 ** (number - 1) / 10, self._pace.longest))
        raise EngineError(
            f"{where} failed {tries} times, the last time by: {reason}. What was submitted is noted; run the same "
            "command again"
        )


class _Ledger:
    """The notes of what was submitted to a service: one file in the cache folder that only its owner can read."""

    def __init__(self, address: Address, model: str) -> None:
        place = hashlib.sha256(f"{address} {model}".encode()).hexdigest()[:16]
        folder = cache_folder() / "batches"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path: Path = folder / f"{place}.json"
        self._lock = locked(self._path.with_suffix(".lock"), f"batches for {address}")
        self._lock.__enter__()
        self._notes: dict[str, list[Any]] = {}
        if self._path.is_file():
            try:
                self._notes = json.loads(self._path.read_text(encoding="utf-8"))
            except ValueError:
                raise EngineError(
                    f"{self._path} is damaged; it names the batches that were submitted: look them up with the "
                    "service, then delete it"
                ) from None

    def read(self) -> dict[str, tuple[str | None, list[str]]]:
        """Token -> batch (None if its name is not known) and the names of its requests."""
        return {token: (batch, names) for token, (batch, names) in self._notes.items()}

    def note(self, token: str, names: set[str]) -> None:
        self._notes[token] = [None, sorted(names)]
        self._write()

    def name(self, token: str, batch: str) -> None:
        self._notes[token][0] = batch
        self._write()

    def drop(self, token: str) -> None:
        del self._notes[token]
        self._write()

    def forget(self, batch: str) -> None:
        self._notes = {token: note for token, note in self._notes.items() if note[0] != batch}
        self._write()

    def close(self) -> None:
        self._lock.__exit__(None, None, None)

    def _write(self) -> None:
        write_whole(str(self._path), json.dumps(self._notes))
        self._path.chmod(0o600)


async def _request(address: Address, method: str, path: str, body: object) -> Response:
    """The reply; bytes are sent as the file of a form, and an object as JSON."""
    data: Any = body
    if isinstance(body, bytes):
        data = require_aiohttp().FormData({"purpose": "batch"})
        data.add_field("file", io.BytesIO(body), filename="requests.jsonl", content_type="application/jsonl")
    elif body is not None:
        data = json.dumps(body).encode("ascii")
    async with Http(600.0) as http:
        return await http.request(method, address, path, data, RESULTS if method == "GET" else 1 << 24)


def _id_of(value: Mapping[str, Any], where: str) -> str:
    """The id of what was made.

    Raises:
        EngineError: the reply has none.
    """
    if not isinstance(value.get("id"), str) or not value["id"]:
        raise EngineError(f"{where} answers without an id; what was submitted is noted: run the same command again")
    return str(value["id"])


def _reasons(errors: object) -> str:
    """What a batch that failed as a whole says of it: ``{"data": [{"message": ..., "line": ...}]}``."""
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    said = [str(error.get("message")) for error in listed or () if isinstance(error, Mapping)]
    return f" ({'; '.join(said[:3])})" if said else ""


def _read_line(line: bytes) -> tuple[str, object, str]:
    """Name and reply of one line of results, and what went wrong; the name is "" if the line cannot be read."""
    try:
        value = json.loads(line)
        name, response, error = str(value["custom_id"]), value.get("response"), value.get("error")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", None, ""
    if not isinstance(response, Mapping):
        return name, None, excerpt(str(error))
    status, body = response.get("status_code"), response.get("body")
    return name, body, "" if status == 200 else f"{status} {excerpt(str(body))}"


def _name(part: RequestPart) -> str:
    return f"{part.request.key[:40]}-{part.first}-{part.n}"


def _as_openai(options: EngineOptions) -> EngineOptions:
    """The options, with the dialect openai unless another one is named: services with batches follow OpenAI's."""
    return replace(options, dialect="openai") if options.dialect == "auto" else options
