"""`engine=batch`: the batch API of a hosted service, at half the price, with answers within a day.

Requests are uploaded as files and submitted as batches. A ledger in the cache folder, written before and after each
submission, records the batches, so that a run that was killed finds them again and pays only once. Each batch has the
token of its ledger entry as metadata, so that it can be found if the entry does not have its id yet.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.files.streams import locked, write_whole
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server import http
from mbr_esd_metric.generation.server.address import excerpt
from mbr_esd_metric.generation.server.client import ADVICE, Client, RetryPolicy
from mbr_esd_metric.generation.server.detection import objects_in
from mbr_esd_metric.generation.server.failures import classify, failure_of, reason_of
from mbr_esd_metric.generation.server.replies import read_reply
from mbr_esd_metric.generation.store import cache_folder
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import first_of, number_of

#: The maximum number of requests and bytes per batch; OpenAI's limits are 50,000 and 200 MB.
REQUESTS = 20_000
BYTES = 100_000_000
#: The maximum size of a result file in bytes.
RESULTS = 1 << 30
#: The number of characters of the key in the name of a request.
_KEY = 40
_OVER = ("completed", "failed", "expired", "cancelled")
#: Codes of requests that were not processed before the batch ended. They are valid and not billed.
_NOT_RUN = ("batch_expired", "batch_cancelled")


class _NotFoundError(EngineError):
    """The service has no such batch or file (404)."""


class BatchEngine(ServerEngine):
    """Samples from one server with the dialect openai. Samples have the same store keys as those of `engine=server`."""

    name: ClassVar[str] = "batch"
    description: ClassVar[str] = "the batch API of a hosted service: half the price, answers within a day"
    #: The retry policy of requests. Batches are polled after ten times `first_wait`, then at growing intervals.
    default_policy: ClassVar[RetryPolicy] = RetryPolicy(first_wait=1.0, longest_wait=300.0, tries=8)

    def __init__(self, options: EngineOptions, policy: RetryPolicy | None = None) -> None:
        self._given, self.policy = options, policy or self.default_policy
        super().__init__(replace(options, dialect="openai") if options.dialect == "auto" else options, self.policy)

    @cached_property
    def problem(self) -> str | None:
        """The problem of `engine=server`, or a message that a server has no batch API."""
        if len(self.options.server) > 1:
            return "engine=batch supports one server only; specify a single one"
        server = ServerEngine(self._given)
        if server.problem is None and server.dialect.name not in ("openai", "plain"):
            return f"the server uses dialect={server.dialect.name}, which has no batch API; use engine=server"
        return server.problem

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        """Submit the samples that are not in earlier batches, wait for all batches, and yield their results, including
        samples of these segments from other runs. After an interruption, the same command finds the batches again."""
        if len(self.addresses) > 1:
            raise EngineError(str(self.problem))
        client, failed = self.client(sampling), list[str]()
        address, folder = self.addresses[0], cache_folder() / "batches"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{hashlib.sha256(f'{address} {self.model}'.encode()).hexdigest()[:16]}.json"
        with locked(path.with_suffix(".lock"), f"batches for {address}"):
            ledger = _Ledger(path)
            waiting = self._submitted(client, list(requests), ledger)
            pause = 10 * self.policy.first_wait
            while waiting:
                for batch in sorted(waiting):
                    try:
                        state = self._object(f"/batches/{batch}")
                        if state.get("status") not in _OVER:
                            continue
                        yield from self._results(client, state, waiting[batch], failed)
                        ledger.remove(batch, waiting[batch])
                    except _NotFoundError as error:
                        fix = "or belongs to another account's key; the same command submits its requests again"
                        failed.append(f"{batch} does not exist any more ({error}): it expired, {fix}")
                        ledger.remove(batch)
                    del waiting[batch]
                if waiting:
                    time.sleep(pause)
                    pause = min(pause * 1.5, self.policy.longest_wait)
        if failed:
            raise EngineError(f"{first_of(failed, between='; ')}. {ADVICE}")

    def _submitted(self, client: Client, requests: list[Request], ledger: _Ledger) -> dict[str, dict[str, Request]]:
        """Submit the samples that are not in any batch. Returns batch -> request name -> request, for all batches with
        samples of these requests."""
        if nameless := {token: names for token, (batch, names) in ledger.entries.items() if not batch}:
            for token, batch in self._by_token().items():  # from runs that were killed before they recorded the id
                if token in nameless:
                    ledger.enter(token, batch, nameless[token])
            ledger.remove("")  # the remaining ones were never submitted
        segments = {request.key[:_KEY]: request for request in requests}
        wanted = {(request.key, index) for request in requests for index in request.indices}
        waiting: dict[str, dict[str, Request]] = {}
        for batch, names in ledger.entries.values():
            for name in names:
                key, first, n = name.rsplit("-", 2)
                if key in segments:
                    part = replace(segments[key], first=int(first), n=int(n))
                    if held := wanted & {(part.key, index) for index in part.indices}:
                        waiting.setdefault(batch, {})[name] = part
                        wanted -= held
        size = client.dialect.per_request
        left = [
            part
            for request in requests
            for run in request.only(index for index in request.indices if (request.key, index) in wanted)
            for part in run.parts(size)
        ]
        # A batch cannot be stopped once it is submitted, so the limit is checked for all batches in advance.
        bound, most = sum(client.cost(part) for one in requests for part in one.parts(size)), self.options.max_cost
        if most is not None and bound > most:
            fix = "nothing was submitted: raise it, or request fewer candidates (n=N)"
            raise EngineError(f"the batch may cost {bound:.4f}, more than max_cost={most:g}; {fix}")
        for group, lines in _groups(client, left):
            token = secrets.token_hex(8)
            ledger.enter(token, "", group)
            order = {"input_file_id": self._object("/files", lines)["id"], "metadata": {"mbr_esd": token}}
            order |= {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
            # No retry: after a lost reply, it would submit and bill the batch twice. The token finds the batch again.
            submitted = self._object("/batches", order, tries=1)["id"]
            ledger.enter(token, submitted, group)
            waiting[submitted] = group
            logger.info(f"submitted to {self.addresses[0]} as {submitted}: {number_of(len(group), 'request')}")
        return waiting

    def _by_token(self) -> dict[str, str]:
        """Ledger token -> batch id, for all batches of the account; the latest batch if a token occurs repeatedly."""
        batches: dict[str, str] = {}
        after = ""
        while True:
            page = self._object(f"/batches?limit=100{after}")
            items = objects_in(page, "data") or []
            for item in items:
                if isinstance(metadata := item.get("metadata"), Mapping):
                    batches.setdefault(str(metadata.get("mbr_esd")), str(item.get("id")))
            if not items or page.get("has_more") is not True:
                return batches
            after = f"&after={items[-1].get('id')}"

    def _results(
        self, client: Client, state: Mapping[str, Any], parts: Mapping[str, Request], failed: list[str]
    ) -> Iterator[Generated | Refused]:
        """The samples of a finished batch, and its rejected requests. Messages about missing results are appended to
        `failed`."""
        missing, refused, address = dict(parts), set[str](), self.addresses[0]
        unreadable, not_run = list[str](), list[str]()
        for field in ("output_file_id", "error_file_id"):
            if not isinstance(state.get(field), str):
                continue
            for number, line in enumerate(self._ask(f"/files/{state[field]}/content").body.splitlines(), 1):
                if not line.strip():
                    continue
                if (result := _Result.read(line)) is None:
                    unreadable.append(
                        f"line {number} of {state[field]} ({excerpt(line.decode('utf-8', 'replace'), 60)})"
                    )
                    continue
                if (part := missing.get(result.name)) is None:
                    continue
                if result.not_run:
                    not_run.append(part.label)
                    continue
                del missing[result.name]
                try:
                    if result.status != 200:
                        raise classify(result.status, result.body, address)
                    samples = read_reply(client.query(part), result.body, address).samples
                except (http.TransientError, http.RequestRejected, EngineError) as error:
                    if part.key not in refused:
                        refused.add(part.key)
                        yield Refused(part.key, str(error))
                    continue
                yield Generated(part.key, part.first, samples)
                if len(samples) < part.n:
                    failed.append(f"{part.label}: the reply has {len(samples)} candidates of {part.n}")
        if unreadable and missing:
            failed.append(f"the results have invalid lines: {first_of(unreadable)}")
        reasons = "; ".join(str(error.get("message")) for error in objects_in(state.get("errors"), "data") or [])
        ended = excerpt(f"{state.get('status')} without it" + (f" ({reasons})" if reasons else ""), 300)
        if missing:
            expired = " (expired or cancelled there)" if not_run else ""
            labels = [*dict.fromkeys(missing[name].label for name in sorted(missing))]
            failed.append(f"{first_of(labels)}: the batch is {ended}{expired}")

    def _object(self, path: str, body: object = None, tries: int = 0) -> Mapping[str, Any]:
        """The JSON object of a reply, which must have an id for a new file or batch; otherwise raises `EngineError`."""
        value = self._ask(path, body, tries).json()
        if not isinstance(value, Mapping) or (body is not None and not isinstance(value.get("id"), str)):
            where = f"{self.addresses[0]}{path.partition('?')[0]}"
            raise EngineError(f"{where} returned no id; submitted batches are recorded: run the same command again")
        return value

    def _ask(self, path: str, body: object = None, tries: int = 0) -> http.Response:
        """A reply with status 200. A body of bytes is sent as a form with a file. Temporary failures are retried."""
        tries, where = tries or self.policy.tries, f"{self.addresses[0]}{path.partition('?')[0]}"
        for number in range(1, tries + 1):
            data: Any = None if body is None or isinstance(body, bytes) else json.dumps(body).encode("ascii")
            if isinstance(body, bytes):
                import aiohttp

                data = aiohttp.FormData({"purpose": "batch"})
                data.add_field("file", body, filename="requests.jsonl", content_type="application/jsonl")
            try:
                response = http.request(self.addresses[0], path, data, RESULTS, 600.0)
                if response.status == 404:
                    raise _NotFoundError(f"{where}: {reason_of(response)}")
                if response.status != 200:
                    raise failure_of(response, self.addresses[0])
                if not path.endswith("/content"):
                    response.json()  # raises TransientError for a truncated reply, which is retried
                return response
            except http.RequestRejected as error:
                raise EngineError(str(error)) from None
            except http.TransientError as error:
                reason = str(error)
            if number < tries:
                time.sleep(self.policy.wait(number))
        fix = "Submitted batches are recorded; run the same command again"
        raise EngineError(f"{where} failed {tries} times, the last time by: {reason}. {fix}")


class _Ledger:
    """The batches that were submitted to a service, in a file that only its owner can read. `entries` maps tokens to
    the batch id ("" until it is known) and the names of its requests, each KEY-FIRST-N."""

    def __init__(self, path: Path) -> None:
        self._path, self.entries = path, dict[str, tuple[str, list[str]]]()
        try:
            self.entries |= json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except ValueError:
            fix = "it lists the submitted batches: look them up at the service, then delete it"
            raise EngineError(f"{path} is damaged; {fix}") from None

    def enter(self, token: str, batch: str, names: Iterable[str]) -> None:
        self.entries[token] = batch, sorted(names)
        self._write()

    def remove(self, batch: str, names: Iterable[str] | None = None) -> None:
        """Remove requests of a batch (None for all), and its entry if there are none left."""
        for token, (known, noted) in list(self.entries.items()):
            if known == batch:
                left = set() if names is None else {*noted} - {*names}
                self.entries[token] = known, sorted(left)
                if not left:
                    del self.entries[token]
        self._write()

    def _write(self) -> None:
        write_whole(str(self._path), json.dumps(self.entries))
        self._path.chmod(0o600)


def _groups(client: Client, parts: Iterable[Request]) -> Iterator[tuple[dict[str, Request], bytes]]:
    """The requests of each batch by name, and the content of its file."""
    group: dict[str, Request] = {}
    lines = bytearray()
    for part in parts:
        name = f"{part.key[:_KEY]}-{part.first}-{part.n}"
        line = {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": client.query(part).body}
        written = json.dumps(line).encode("ascii") + b"\n"
        if group and (len(group) == REQUESTS or len(lines) + len(written) > BYTES):
            yield group, bytes(lines)
            group, lines = {}, bytearray()
        group[name] = part
        lines += written
    if group:
        yield group, bytes(lines)


@dataclass(frozen=True, slots=True)
class _Result:
    """One line of a result file: the name of the request, and the status and body of the reply, unless it was
    `not_run`."""

    name: str
    status: int
    body: object
    not_run: bool = False

    @classmethod
    def read(cls, line: bytes) -> _Result | None:
        """Parse a line; None if it is not JSON or has no name. A status as a string, a body as a JSON string, and a
        missing status are accepted."""
        try:
            value = json.loads(line)
            name, response, error = value["custom_id"], value.get("response"), value.get("error")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        if not isinstance(name, str):
            return None
        if isinstance(error, Mapping) and str(error.get("code")) in _NOT_RUN:
            return cls(name, 0, None, not_run=True)
        if not isinstance(response, Mapping):
            return cls(name, 200, value)
        status, body = response.get("status_code"), response.get("body", response)
        with suppress(ValueError, RecursionError):
            body = json.loads(body) if isinstance(body, str) else body
        body = {"error": error} if body is None and error else body
        known = re.fullmatch(r"\s*([1-5]\d\d)(\.0)?\s*", str(status), re.ASCII)
        return cls(name, int(known[1]) if known else 200, body)
