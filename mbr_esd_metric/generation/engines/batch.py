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
from pathlib import Path
from typing import Any, ClassVar

from mbr_esd_metric.errors import EngineError, first_of, logger, number_of
from mbr_esd_metric.files.streams import locked, write_whole
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.model_files import cache_folder
from mbr_esd_metric.generation.server import http
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.client import ADVICE, Job, RetryPolicy
from mbr_esd_metric.generation.server.detection import objects_in, run_coroutine
from mbr_esd_metric.generation.server.replies import read_reply

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

    def __init__(self, options: EngineOptions, policy: RetryPolicy | None = None) -> None:
        """Services with batches follow OpenAI's dialect; the options may name another one."""
        self._given, self.policy = options, policy or self.default_policy
        super().__init__(replace(options, dialect="openai") if options.dialect == "auto" else options, self.policy)

    @cached_property
    def problem(self) -> str | None:
        """That of `engine=server`; or the server is one that people run themselves, which has no batches."""
        if len(self.options.server) > 1:
            return "engine=batch takes one server; give one"
        server = ServerEngine(self._given)
        if server.problem is not None:
            return server.problem
        if server.dialect.name not in ("openai", "plain"):
            return f"the server speaks dialect={server.dialect.name}, which has no batches; take engine=server"
        return None

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        """Submit the samples that no earlier batch holds, wait for all batches, and yield their results.

        Whatever ends it, the same command finds the submitted batches again.
        """
        if len(self.addresses) > 1:
            raise EngineError(str(self.problem))
        job, wanted, failed = self.job(sampling), _Wanted(requests), list[str]()
        with _ledger(self.addresses[0], job.model) as ledger:
            waiting = self._submitted(job, wanted, ledger)
            pause = 10 * self.policy.first_wait
            while waiting:
                for batch in sorted(waiting):
                    names = waiting[batch]
                    done: set[str] | None = {name for name in names if not wanted.only_part_of(name)}
                    try:
                        state = self._object(f"/batches/{batch}")
                        if state.get("status") not in _OVER:
                            continue
                        yield from self._results(job, state, wanted, names, failed)
                    except _NotFoundError as error:
                        failed.append(
                            f"{batch} is gone ({error}): it expired, or belongs to another account's key; the same "
                            "command submits its requests again"
                        )
                        done = None
                    del waiting[batch]
                    ledger.remove(batch, done)
                if waiting:
                    time.sleep(pause)
                    pause = min(pause * 1.5, self.policy.longest_wait)
        if failed:
            raise EngineError(f"{first_of(failed, between='; ')}. {ADVICE}")

    def _submitted(self, job: Job, wanted: _Wanted, ledger: _Ledger) -> dict[str, set[str]]:
        """Batch -> the names of its requests with samples of this run. Samples that no batch holds are submitted."""
        if nameless := {token: names for token, (batch, names) in ledger.entries.items() if batch is None}:
            for token, batch in self._by_token().items():  # of runs that were killed before they noted the name
                if token in nameless:
                    ledger.enter(token, batch, nameless[token])
            ledger.remove(None)  # these were never submitted
        batches = {batch: set(filter(wanted.indices, names)) for batch, names in ledger.entries.values()}
        waiting = {batch: names for batch, names in batches.items() if batch and names}
        # A batch cannot be stopped halfway, so the limit is checked for all of them beforehand.
        bound = sum(map(job.cost, wanted.parts(job.dialect.per_request)))
        if job.max_cost is not None and bound > job.max_cost:
            raise EngineError(
                f"the batch may cost {bound:.4f}, more than max_cost={job.max_cost:g}; nothing was submitted: raise "
                "it, or ask for fewer (n=N)"
            )
        for group in _groups(job, wanted.parts(job.dialect.per_request, set().union(*waiting.values()))):
            token, names = secrets.token_hex(8), set(group)
            ledger.enter(token, None, names)
            order = {
                "input_file_id": self._id_of("/files", b"".join(group.values())),
                "endpoint": "/v1/chat/completions",
                "completion_window": "24h",
                "metadata": {"mbr_esd": token},
            }
            # One try only: after a lost reply, a second one would submit and bill the batch twice. The ledger finds it.
            batch = self._id_of("/batches", order, tries=1)
            ledger.enter(token, batch, names)
            waiting[batch] = names
            logger.info(f"submitted to {self.addresses[0]} as {batch}: {number_of(len(names), 'request')}")
        return waiting

    def _by_token(self) -> dict[str, str]:
        """Token of an entry -> the batch that carries it, of all batches of the account, the latest first."""
        batches: dict[str, str] = {}
        after = ""
        while True:
            page = self._object(f"/batches?limit=100{after}")
            items = objects_in(page, "data") or []
            for item in items:
                metadata = item.get("metadata")
                token = metadata.get("mbr_esd") if isinstance(metadata, Mapping) else None
                if isinstance(token, str):
                    batches.setdefault(token, str(item.get("id")))
            if not items or page.get("has_more") is not True:
                return batches
            after = f"&after={items[-1].get('id')}"

    def _results(
        self, job: Job, state: Mapping[str, Any], wanted: _Wanted, names: set[str], failed: list[str]
    ) -> Iterator[Generated | Refused]:
        """The samples of a finished batch, and the requests with a reply that is none; adds a message to `failed` for
        each request without a reply."""
        missing, refused, address = set(names), set[str](), self.addresses[0]
        for field in ("output_file_id", "error_file_id"):
            if not isinstance(state.get(field), str):
                continue
            for line in self._ask(f"/files/{state[field]}/content").body.splitlines():
                name, status, answer = _read_line(line)
                if name not in missing:
                    continue
                missing.discard(name)
                part = wanted.part(name)
                try:
                    if status != 200:
                        raise http.classify(status, answer, address)
                    samples = read_reply(job.query(part), answer, address).samples
                except (http.TransientError, http.RequestRejected, EngineError) as error:
                    if part.key not in refused:
                        refused.add(part.key)
                        yield Refused(part.key, str(error))
                    continue
                for run in part.only(wanted.take(part, len(samples))):
                    yield Generated(part.key, run.first, samples[run.first - part.first :][: run.n])
                if len(samples) < part.n:
                    failed.append(f"{part.label}: the reply has {len(samples)} candidates of {part.n}")
        reasons = "; ".join(str(error.get("message")) for error in objects_in(state.get("errors"), "data") or [])
        ended = excerpt(f"{state.get('status')} without it" + (f" ({reasons})" if reasons else ""), 300)
        failed.extend(f"{wanted.part(name).label}: the batch is {ended}" for name in sorted(missing))

    def _id_of(self, path: str, body: object, tries: int = 0) -> str:
        """The id of a new file or batch; raises `EngineError` if the reply has none."""
        value = self._object(path, body, tries).get("id")
        if not isinstance(value, str) or not value:
            raise EngineError(
                f"{self.addresses[0]}{path} answers without an id; what was submitted is noted: run the same command "
                "again"
            )
        return value

    def _object(self, path: str, body: object = None, tries: int = 0) -> Mapping[str, Any]:
        value = self._ask(path, body, tries).json()
        if not isinstance(value, Mapping):
            raise EngineError(f"{self.addresses[0]} answers {path.partition('?')[0]} with no object")
        return value

    def _ask(self, path: str, body: object = None, tries: int = 0) -> http.Response:
        """A reply with the status 200, to a POST if there is a body; temporary failures are tried again."""
        tries, where = tries or self.policy.tries, f"{self.addresses[0]}{path.partition('?')[0]}"
        for number in range(1, tries + 1):
            try:
                response = run_coroutine(_request(self.addresses[0], path, body))
                if response.status == 200:
                    if not path.endswith("/content"):
                        response.json()  # a reply that is cut is asked for again
                    return response
                reason = response.reason
                if response.status == 404:
                    raise _NotFoundError(f"{where}: {reason}")
                if response.status not in (408, 409, 429) and response.status < 500:
                    raise EngineError(f"{where}: {reason}")
            except http.TransientError as error:
                reason = str(error)
            if number < tries:
                time.sleep(self.policy.wait(number))
        raise EngineError(
            f"{where} failed {tries} times, the last time by: {reason}. What was submitted is noted; run the same "
            "command again"
        )


class _Wanted:
    """The samples that a run asks for, and their places in the requests of batches, each named KEY-FIRST-N."""

    def __init__(self, requests: Iterable[Request]) -> None:
        self._requests: dict[str, Request] = {}
        self._asked: dict[str, set[int]] = {}
        for request in requests:
            key = request.key[:40]
            self._requests[key] = request
            self._asked.setdefault(key, set()).update(range(request.first, request.first + request.n))
        self._left = {key: set(indices) for key, indices in self._asked.items()}

    def indices(self, name: str) -> set[int]:
        """The samples of a batch's request that this run asks for."""
        key, numbers = _place(name)
        return self._asked.get(key, set()) & {*numbers}

    def only_part_of(self, name: str) -> bool:
        """Whether the batch's request holds further samples, which a later run may ask for."""
        return len(self.indices(name)) < len(_place(name)[1])

    def part(self, name: str) -> Request:
        """The batch's request."""
        key, numbers = _place(name)
        return replace(self._requests[key], first=numbers.start, n=len(numbers))

    def parts(self, size: int, held: Iterable[str] = ()) -> Iterator[Request]:
        """Requests of so many samples at most for all that no batch holds."""
        left = {key: set(indices) for key, indices in self._asked.items()}
        for name in held:
            left[_place(name)[0]] -= self.indices(name)
        for key, request in self._requests.items():
            for run in request.only(left[key]):
                yield from run.parts(size)

    def take(self, part: Request, count: int) -> set[int]:
        """Which of the first samples of a batch's request are still wanted; from now on they are not."""
        taken = self._left[part.key[:40]] & set(range(part.first, part.first + count))
        self._left[part.key[:40]] -= taken
        return taken


def _name(part: Request) -> str:
    return f"{part.key[:40]}-{part.first}-{part.n}"


def _place(name: str) -> tuple[str, range]:
    """Key and samples of a request of that name."""
    key, first, n = name.rsplit("-", 2)
    return key, range(int(first), int(first) + int(n))


@contextmanager
def _ledger(address: Address, model: str) -> Iterator[_Ledger]:
    """The entries for a service: a file in the cache folder that only its owner can read, for one process at a time."""
    folder = cache_folder() / "batches"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(f'{address} {model}'.encode()).hexdigest()[:16]}.json"
    with locked(path.with_suffix(".lock"), f"batches for {address}"):
        try:
            entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except ValueError:
            raise EngineError(
                f"{path} is damaged; it names the batches that were submitted: look them up with the service, then "
                "delete it"
            ) from None
        yield _Ledger(path, entries)


class _Ledger:
    """The batches that were submitted to a service.

    Attributes:
        entries: token -> batch (None until its name is known) and the names of its requests.
    """

    def __init__(self, path: Path, entries: dict[str, tuple[str | None, list[str]]]) -> None:
        self._path, self.entries = path, entries

    def enter(self, token: str, batch: str | None, names: Iterable[str]) -> None:
        """Write an entry, or write it anew."""
        self.entries[token] = batch, sorted(names)
        self._write()

    def remove(self, batch: str | None, names: Iterable[str] | None = None) -> None:
        """Remove these requests of a batch, and its entry with the last one; None: all of them."""
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


async def _request(address: Address, path: str, body: object) -> http.Response:
    """The reply; bytes are sent as the file of a form, and an object as JSON."""
    data: Any = None
    if isinstance(body, bytes):
        import aiohttp

        data = aiohttp.FormData({"purpose": "batch"})
        data.add_field("file", io.BytesIO(body), filename="requests.jsonl", content_type="application/jsonl")
    elif body is not None:
        data = json.dumps(body).encode("ascii")
    async with http.connections() as session:
        return await http.fetch(session, address, path, data, RESULTS, 600.0)


def _groups(job: Job, parts: Iterable[Request]) -> Iterator[dict[str, bytes]]:
    """Name -> line of requests, as many as one batch takes."""
    group: dict[str, bytes] = {}
    size = 0
    for part in parts:
        line = {"custom_id": _name(part), "method": "POST", "url": "/v1/chat/completions", "body": job.query(part).body}
        written = json.dumps(line).encode("ascii") + b"\n"
        if group and (len(group) == REQUESTS or size + len(written) > BYTES):
            yield group
            group, size = {}, 0
        group[_name(part)] = written
        size += len(written)
    if group:
        yield group


def _read_line(line: bytes) -> tuple[str, int, object]:
    """Name, status and body of one line of results; the name is "" if the line cannot be read."""
    try:
        value = json.loads(line)
        name, response = str(value["custom_id"]), value.get("response")
        if not isinstance(response, Mapping):
            return name, 200, value
        return name, response["status_code"], response.get("body")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", 0, None
