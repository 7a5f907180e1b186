"""`engine=batch`: the batch API of a hosted service, at half the price, with answers within a day.

Requests are written to a file, uploaded, and submitted as batches (``/v1/files``, ``/v1/batches``, as OpenAI describes
them). A ledger in the cache folder, written before and after each submission, says what was submitted. So a run that
was killed finds its batches again and pays for nothing twice. Each batch carries the token of its entry. If an entry
does not name its batch yet, the batch is looked up by that token.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from mbr_esd_metric.errors import EngineError, first_of, number_of, say
from mbr_esd_metric.files.streams import locked, write_whole
from mbr_esd_metric.generation.engine import Generated, Request, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.model_files import cache_folder
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.client import ADVICE, Job, RetryPolicy
from mbr_esd_metric.generation.server.detection import addresses_of
from mbr_esd_metric.generation.server.dialects import Dialect, get_dialect
from mbr_esd_metric.generation.server.failures import (
    InvalidResponse,
    RequestRejected,
    Response,
    TransientError,
    describe,
)
from mbr_esd_metric.generation.server.http import Http, run_coroutine
from mbr_esd_metric.generation.server.replies import check_format, read_reply

#: The most requests and bytes in one batch; OpenAI takes 50,000 and 200 MB.
REQUESTS = 20_000
BYTES = 100_000_000
#: The most bytes that are read of a file of results.
RESULTS = 1 << 30
_OVER = ("completed", "failed", "expired", "cancelled")


class _NotFoundError(EngineError):
    """The service has no such batch or file (404)."""


class BatchEngine(ServerEngine):
    """Asks one server in the dialect openai. Samples are stored under the same keys as those of `engine=server`."""

    name: ClassVar[str] = "batch"
    description: ClassVar[str] = "the batch API of a hosted service: half the price, answers within a day"
    #: Of a failing request. The first wait between two looks at a batch is ten times as long, each further one by half.
    default_policy: ClassVar[RetryPolicy] = RetryPolicy(first_wait=1.0, longest_wait=300.0, tries=8)

    @cached_property
    def addresses(self) -> list[Address]:
        """The only server."""
        servers = addresses_of(self.options)
        if len(servers) > 1:
            raise EngineError("engine=batch takes one server; give one")
        return servers

    @property
    def _address(self) -> Address:
        return self.addresses[0]

    @cached_property
    def dialect(self) -> Dialect:
        """Openai, unless another one is named: services with batches follow OpenAI's."""
        name = "openai" if self.options.dialect == "auto" else self.options.dialect
        return replace(get_dialect(name), reasoning_effort=self.options.reasoning_effort)

    @cached_property
    def problem(self) -> str | None:
        """That of `engine=server`; or the server is one that people run themselves, which has no batches."""
        spoken = ServerEngine(self.options).dialect.name if self.options.server else "openai"
        if spoken not in ("openai", "plain"):
            return f"the server speaks dialect={spoken}, which has no batches; take engine=server"
        return super().problem

    def confirm(self) -> None:
        """Nothing: the dialect was not found out."""

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        """Submit the requests that no earlier batch holds, wait for all batches, and yield their results.

        Whatever ends it, the same command finds the submitted batches again.
        """
        self._announce(sampling)
        job = self.job(sampling)
        parts = {_name(part): part for request in requests for part in request.parts(job.dialect.per_request)}
        failed: list[str] = []
        with _ledger(self._address, job.model) as ledger:
            waiting = self._submitted(job, parts, ledger)
            pause = 10 * self.policy.first_wait
            while waiting:
                for batch in sorted(waiting):
                    try:
                        state = self._json(f"/batches/{batch}")
                        if state.get("status") not in _OVER:
                            continue
                        yield from self._results(job, state, {name: parts[name] for name in waiting[batch]}, failed)
                    except _NotFoundError as error:
                        failed.append(
                            f"{batch} is gone ({error}): it expired, or belongs to another account's key; the same "
                            "command submits its requests again"
                        )
                    del waiting[batch]
                    ledger.forget(batch)
                if waiting:
                    time.sleep(pause)
                    pause = min(pause * 1.5, self.policy.longest_wait)
        if failed:
            raise EngineError(f"{first_of(failed, between='; ')}. {ADVICE}")

    def _submitted(self, job: Job, parts: Mapping[str, Request], ledger: _Ledger) -> dict[str, set[str]]:
        """Batch -> the names of its requests that belong to this run. Requests that no batch holds are submitted."""
        earlier = self._earlier(ledger)
        waiting = {batch: shared for batch, names in earlier.items() if (shared := names & parts.keys())}
        submitted = set().union(*waiting.values())
        # A batch cannot be stopped halfway, so the limit is checked for all of them beforehand.
        bound = sum(map(job.cost, parts.values()))
        if job.prices.most is not None and bound > job.prices.most:
            raise EngineError(
                f"the batch may cost {bound:.4f}, more than max_cost={job.prices.most:g}; nothing was submitted: raise "
                "it, or ask for fewer (n=N)"
            )
        for group in _groups(job, [part for name, part in parts.items() if name not in submitted]):
            token, names = secrets.token_hex(8), {name for name, _ in group}
            ledger.enter(token, None, names)
            order = {
                "input_file_id": self._id_of("/files", b"".join(line for _, line in group)),
                "endpoint": "/v1/chat/completions",
                "completion_window": "24h",
                "metadata": {"mbr_esd": token},
            }
            # One try only: after a lost reply, a second one would submit and bill the batch twice. The ledger finds it.
            batch = self._id_of("/batches", order, tries=1)
            ledger.enter(token, batch, names)
            waiting[batch] = names
            say(f"mbr-esd: submitted to {self._address} as {batch}: {number_of(len(names), 'request')}")
        return waiting

    def _earlier(self, ledger: _Ledger) -> dict[str, set[str]]:
        """The batches of earlier runs, also those that were not noted because the run was killed."""
        if nameless := {token: names for token, (batch, names) in ledger.entries.items() if batch is None}:
            for token, batch in self._by_token().items():
                if token in nameless:
                    ledger.enter(token, batch, nameless[token])
            ledger.forget(None)  # these were never submitted
        return {batch: set(names) for batch, names in ledger.entries.values()}

    def _by_token(self) -> dict[str, str]:
        """Token of an entry -> the batch that carries it, of all batches of the account, the latest first."""
        batches: dict[str, str] = {}
        after = ""
        while True:
            page = self._json(f"/batches?limit=100{after}")
            listed = page.get("data")
            items = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
            for item in items:
                metadata = item.get("metadata")
                token = metadata.get("mbr_esd") if isinstance(metadata, Mapping) else None
                if isinstance(token, str):
                    batches.setdefault(token, str(item.get("id")))
            if not items or page.get("has_more") is not True:
                return batches
            after = f"&after={items[-1].get('id')}"

    def _id_of(self, path: str, body: object, tries: int = 0) -> str:
        """The id of a new file or batch; raises `EngineError` if the reply has none."""
        value = self._json(path, body, tries).get("id")
        if not isinstance(value, str) or not value:
            raise EngineError(
                f"{self._address}{path} answers without an id; what was submitted is noted: run the same command again"
            )
        return value

    def _results(
        self, job: Job, state: Mapping[str, Any], parts: Mapping[str, Request], failed: list[str]
    ) -> Iterator[Generated]:
        """The samples of a finished batch; adds a message to `failed` for each request without one."""
        missing = dict(parts)
        for field in ("output_file_id", "error_file_id"):
            if not isinstance(state.get(field), str):
                continue
            for line in self._ask(f"/files/{state[field]}/content").body.splitlines():
                name, answer, fault = _read_line(line)
                part = missing.pop(name, None)
                if part is None:
                    continue
                try:
                    if fault:
                        raise InvalidResponse(fault)
                    reply = read_reply(job.dialect, answer, job.query(part), self._address)
                    for sample in reply.samples:
                        check_format(job.dialect, sample, part)
                except (InvalidResponse, RequestRejected) as error:
                    failed.append(f"{part.label}: {error}")
                    continue
                yield Generated(part.key, part.first, reply.samples)
                if len(reply.samples) < part.n:
                    failed.append(f"{part.label}: the reply has {len(reply.samples)} candidates of {part.n}")
        status = excerpt(f"{state.get('status')} without it{_reasons(state.get('errors'))}", 300)
        failed.extend(f"{missing[name].label}: the batch is {status}" for name in sorted(missing))

    def _json(self, path: str, body: object = None, tries: int = 0) -> Mapping[str, Any]:
        value = self._ask(path, body, tries).json()
        if not isinstance(value, Mapping):
            raise EngineError(f"{self._address} answers {path.partition('?')[0]} with no object")
        return value

    def _ask(self, path: str, body: object = None, tries: int = 0) -> Response:
        """A reply with the status 200, to a POST if there is a body; temporary failures are tried again."""
        tries, where = tries or self.policy.tries, f"{self._address}{path.partition('?')[0]}"
        for number in range(1, tries + 1):
            try:
                response = run_coroutine(_request(self._address, path, body))
                if response.status == 200:
                    if not path.endswith("/content"):
                        response.json()  # a reply that is cut is asked for again
                    return response
                reason = f"{response.status} {describe(response.value)[0]}"
                if response.status == 404:
                    raise _NotFoundError(f"{where}: {reason}")
                if response.status not in (408, 409, 429) and response.status < 500:
                    raise EngineError(f"{where}: {reason}")
            except TransientError as error:
                reason = str(error)
            if number < tries:
                time.sleep(self.policy.wait(number))
        raise EngineError(
            f"{where} failed {tries} times, the last time by: {reason}. What was submitted is noted; run the same "
            "command again"
        )


@contextmanager
def _ledger(address: Address, model: str) -> Iterator[_Ledger]:
    """The entries for a service: a file in the cache folder that only its owner can read, for one process at a time."""
    folder = cache_folder() / "batches"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(f'{address} {model}'.encode()).hexdigest()[:16]}.json"
    with locked(path.with_suffix(".lock"), f"batches for {address}"):
        try:
            ledger = _Ledger(path)
        except ValueError:
            raise EngineError(
                f"{path} is damaged; it names the batches that were submitted: look them up with the service, then "
                "delete it"
            ) from None
        yield ledger


class _Ledger:
    """The batches that were submitted to a service.

    Attributes:
        entries: token -> batch (None until its name is known) and the names of its requests.
    """

    def __init__(self, path: Any) -> None:
        self._path = path
        self.entries: dict[str, list[Any]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def enter(self, token: str, batch: str | None, names: Iterable[str]) -> None:
        """Write an entry, or write it anew."""
        self.entries[token] = [batch, sorted(names)]
        self._write()

    def forget(self, batch: str | None) -> None:
        """Remove the entries of a batch, or those that name none."""
        self.entries = {token: entry for token, entry in self.entries.items() if entry[0] != batch}
        self._write()

    def _write(self) -> None:
        write_whole(str(self._path), json.dumps(self.entries))
        self._path.chmod(0o600)


async def _request(address: Address, path: str, body: object) -> Response:
    """The reply; bytes are sent as the file of a form, and an object as JSON."""
    data: Any = None
    if isinstance(body, bytes):
        import aiohttp

        data = aiohttp.FormData({"purpose": "batch"})
        data.add_field("file", io.BytesIO(body), filename="requests.jsonl", content_type="application/jsonl")
    elif body is not None:
        data = json.dumps(body).encode("ascii")
    method, limit = ("GET", RESULTS) if body is None else ("POST", 1 << 24)
    async with Http(600.0) as http:
        return await http.request(method, address, path, data, limit)


def _groups(job: Job, parts: Iterable[Request]) -> Iterator[list[tuple[str, bytes]]]:
    """Names and lines of requests, as many as one batch takes."""
    group: list[tuple[str, bytes]] = []
    size = 0
    for part in parts:
        body = job.dialect.body(job.query(part))
        line = {"custom_id": _name(part), "method": "POST", "url": "/v1/chat/completions", "body": body}
        written = json.dumps(line).encode("ascii") + b"\n"
        if group and (len(group) == REQUESTS or size + len(written) > BYTES):
            yield group
            group, size = [], 0
        group.append((_name(part), written))
        size += len(written)
    if group:
        yield group


def _reasons(errors: object) -> str:
    """The reasons of a batch that failed as a whole: ``{"data": [{"message": ..., "line": ...}]}``."""
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    messages = [str(error.get("message")) for error in listed or () if isinstance(error, Mapping)]
    return f" ({'; '.join(messages[:3])})" if messages else ""


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


def _name(part: Request) -> str:
    return f"{part.key[:40]}-{part.first}-{part.n}"
