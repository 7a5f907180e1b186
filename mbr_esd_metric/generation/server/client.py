"""One run of `engine=server`: sends the requests until every sample is in, in a thread of its own.

The retries are this package's own and not a library's. A failed request may be tried again as two halves, at another
server, or for the rest of its samples; and all requests wait together if the server says so.
"""

from __future__ import annotations

import asyncio
import json
import queue
import random
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from mbr_esd_metric.errors import EngineError, first_of
from mbr_esd_metric.generation.engine import Generated, Request, Sampling
from mbr_esd_metric.generation.server.address import Address, excerpt
from mbr_esd_metric.generation.server.detection import slot_count
from mbr_esd_metric.generation.server.dialects import Dialect, Query
from mbr_esd_metric.generation.server.failures import (
    InvalidResponse,
    RequestRejected,
    RequestTimeout,
    SchemaViolation,
    TransientError,
    classify,
)
from mbr_esd_metric.generation.server.http import PROBE_SECONDS, Http
from mbr_esd_metric.generation.server.replies import Reply, Usage, check_format, read_reply

#: The most replies that wait for the reader. A slow disk then slows the connections, and memory stays bounded.
WAITING = 256
#: The most tokens of a chat template around a prompt.
_TEMPLATE = 64
#: Seconds that requests under way have to come in when a run ends with an error: they may have been paid for.
_ENDING = 120.0
#: The end of messages about a run that did not get everything.
ADVICE = "What was sampled is kept; the same command asks for the rest"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The tries of a run, and the waits between them.

    Attributes:
        timeout: seconds until a request counts as stalled; it is then tried again in two halves.
        first_wait, longest_wait: seconds before the second try, and the limit up to which they double with each
            further try.
        tries: of one request, before the client gives up. With the defaults it waits about ten minutes in all, which is
            enough to restart a server with a 70B model.
        invalid: tries of a request whose replies are complete and wrong.
        longest_rest: the most seconds that a server may ask the client to wait (``Retry-After``); if it asks for
            more, the run ends.
    """

    timeout: float = 600.0
    first_wait: float = 1.0
    longest_wait: float = 60.0
    tries: int = 15
    invalid: int = 3
    longest_rest: float = 3600.0

    def wait(self, failures: int) -> float:
        """Seconds before the next try, shortened at random by up to half, so that requests do not come all at once."""
        return min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens, and the most that a run may cost (None: no limit), in one currency."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0
    most: float | None = None

    def of(self, usage: Usage) -> float:
        """The cost of these tokens."""
        return (usage.prompt * self.tokens_in + usage.completion * self.tokens_out) / 1e6

    def bound(self, prompt: str, tokens: int) -> float:
        """The most that a request for `tokens` tokens can cost: a token has at least one byte."""
        return self.of(Usage(len(prompt.encode("utf-8", "surrogatepass")) + _TEMPLATE, tokens))


@dataclass(frozen=True, slots=True)
class Job:
    """The settings of a run.

    Attributes:
        concurrency: requests in progress at the same time.
        paced: whether a server that says how many samples it works on at once gets no more than that, one a request, so
            that each is stored when it is done.
    """

    servers: Sequence[Address]
    dialect: Dialect
    model: str
    sampling: Sampling
    policy: RetryPolicy
    prices: Prices
    concurrency: int
    paced: bool = True

    def query(self, part: Request) -> Query:
        """The HTTP request of a part of a request."""
        return Query(part, self.model, self.sampling)

    def bound(self, part: Request) -> float:
        """The most that it can cost."""
        return self.prices.bound(part.text, part.n * self.sampling.max_tokens)


@dataclass(slots=True)
class _Tries:
    """The failures of a part in a row, since that time; `invalid` counts replies that do not fit the request."""

    since: float
    failures: int = 0
    invalid: int = 0


class Client:
    """One call of `generate`. Its event loop has a thread of its own, so that a slow reader stalls no connection.

    Iterate over it once.

    Attributes:
        spent: on replies that came, and on requests whose reply was lost after the work may have been done.
    """

    def __init__(self, job: Job, requests: Iterable[Request]) -> None:
        self._job, self._requests = job, requests
        self._parts: Iterator[Request] = iter(())
        self._again: deque[Request] = deque()
        self._limits: dict[Address, asyncio.Semaphore] = {}
        #: The time until which each server gets no request.
        self._rest_until = dict.fromkeys(job.servers, 0.0)
        self._results: queue.SimpleQueue[Generated | BaseException | None] = queue.SimpleQueue()
        self._room: asyncio.Semaphore
        self._ended: asyncio.Event
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        #: Servers that have answered in the form asked for.
        self._obedient: set[Address] = set()
        self._last_success = -1.0
        #: Key of a request -> the message, for each segment that failed.
        self._failed: dict[str, str] = {}
        self._over = self._stopped = False
        self.spent = 0.0

    def __iter__(self) -> Iterator[Generated]:
        """The replies' samples as they come in.

        Raises:
            EngineError: if no request can succeed, as soon as the requests under way are in; at the end, with the
                segments' labels, if some failed.
        """
        thread = threading.Thread(target=self._work, name="mbr-esd-server", daemon=True)
        thread.start()
        try:
            while (result := self._results.get()) is not None:
                if isinstance(result, BaseException):
                    raise result
                self._call(self._room.release)
                yield result
        finally:
            self._stopped = True
            if self._task is not None:
                self._call(self._task.cancel)
            thread.join()

    def _call(self, function: Callable[[], object]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(function)

    def _work(self) -> None:
        """The body of the thread. The last result is None, after the error if there was one."""
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass
        except BaseException as error:  # handed to the reader's thread
            self._results.put(error)
        self._results.put(None)

    async def _main(self) -> None:
        self._room, self._ended = asyncio.Semaphore(WAITING), asyncio.Event()
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopped:
            return
        async with Http(self._job.policy.timeout) as http:
            workers = [asyncio.create_task(self._worker(http)) for _ in range(await self._prepare(http))]
            try:
                done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
                self._ended.set()
                await asyncio.wait(workers, timeout=_ENDING)
                for worker in done:
                    worker.result()
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        if self._over:
            raise EngineError(
                f"max_cost={self._job.prices.most:g} is reached: {self.spent:.4f} were spent, with what was under way. "
                f"{ADVICE}, with a max_cost of its own"
            )
        if self._failed:
            raise EngineError(f"{first_of([*self._failed.values()], between='; ')}. {ADVICE}")

    async def _prepare(self, http: Http) -> int:
        """Cut the requests into parts, and set each server's limit; returns the number of workers."""
        job, per_request = self._job, self._job.dialect.per_request
        limits = dict.fromkeys(job.servers, job.concurrency)
        for address in job.servers if job.paced else ():
            with suppress(TransientError, EngineError, asyncio.TimeoutError):
                slots = await asyncio.wait_for(slot_count(http, address, job.dialect), PROBE_SECONDS)
                if slots:
                    # One more waits there, so that the server need not wait for it.
                    limits[address], per_request = min(job.concurrency, slots + 1), 1
        self._limits = {address: asyncio.Semaphore(limit) for address, limit in limits.items()}
        self._parts = (part for request in self._requests for part in request.parts(per_request))
        return min(job.concurrency, sum(limits.values()))

    async def _worker(self, http: Http) -> None:
        most = self._job.prices.most
        while not (self._over or self._ended.is_set()):
            part = self._again.popleft() if self._again else next(self._parts, None)
            if part is None:
                return
            if most is not None and self.spent >= most:
                self._over = True
                return
            tries, rest = _Tries(time.monotonic()), None if part.key in self._failed else part
            while rest is not None:
                rest = await self._attempt(http, rest, tries)

    async def _attempt(self, http: Http, part: Request, tries: _Tries) -> Request | None:
        """Send a part once; returns the part that is to be sent next, None where nothing is."""
        job, address = self._job, await self._free_server(part)
        async with self._limits[address]:
            if self._ended.is_set():
                return None
            started = time.monotonic()
            try:
                reply = await self._send(http, address, part)
            except RequestRejected as error:
                if error.split and part.n > 1:
                    return self._halve(part)
                self._fail(part, str(error))
                return None
            except TransientError as error:
                failure = error
                self.spent += job.bound(part) if error.sent else 0.0
            else:
                self.spent += job.bound(part) if reply.usage is None else job.prices.of(reply.usage)
                tries.failures = tries.invalid = 0
                self._last_success = time.monotonic()
                await self._room.acquire()
                self._results.put(Generated(part.key, part.first, reply.samples))
                count = len(reply.samples)
                return replace(part, first=part.first + count, n=part.n - count) if count < part.n else None
        if isinstance(failure, InvalidResponse):
            tries.invalid += 1
            if tries.invalid < job.policy.invalid:
                await asyncio.sleep(min(job.policy.wait(tries.invalid), 1.0))
                return part
            if isinstance(failure, SchemaViolation) and address not in self._obedient:
                raise EngineError(
                    f"{address} does not obey the field {job.dialect.guide}: it answered "
                    f"{excerpt(failure.text, 60)!r}. For dialect={job.dialect.name} use a server that has guided "
                    "output, without a reasoning parser (mbr-esd serve starts one); dialect=plain asks for none, and "
                    "counts what is malformed"
                )
            self._fail(part, f"{address} gave {tries.invalid} invalid replies, the last one: {failure}")
            return None
        # A server that is busy with other requests of this run has not failed.
        tries.failures += not (failure.busy and self._last_success > started)
        if tries.failures >= job.policy.tries:
            message = f"{address} failed {tries.failures} times in a row, the last time by: {failure}"
            if self._last_success <= tries.since:
                fix = "See whether the server still runs, start it again, and run the same command"
                raise EngineError(f"{message}. {fix}: what was sampled is kept")
            self._fail(part, message)
            return None
        self._rest(address, failure, tries.failures)
        return self._halve(part) if isinstance(failure, RequestTimeout) and part.n > 1 else part

    def _halve(self, part: Request) -> Request:
        """The first half of a part; the rest is sent later."""
        half = (part.n + 1) // 2
        self._again.appendleft(replace(part, first=part.first + half, n=part.n - half))
        return replace(part, n=half)

    def _fail(self, part: Request, reason: str) -> None:
        """Note why a segment failed. The others go on, unless five segments failed and none ever succeeded."""
        self._failed.setdefault(part.key, f"{part.label}: {reason}")
        if self._last_success < 0 and len(self._failed) >= 5:
            messages = first_of([*self._failed.values()], between="; ")
            raise EngineError(f"every request so far was refused; {messages}")

    def _rest(self, address: Address, error: TransientError, failures: int) -> None:
        """Leave the server alone for as long as it says, or twice as long as the last time."""
        policy = self._job.policy
        if error.wait is not None and error.wait > policy.longest_rest:
            raise EngineError(
                f"{address} asks to be left alone for {error.wait:.0f} s ({error}). What was sampled is kept; run the "
                "same command then"
            )
        seconds = max(policy.wait(max(failures, 1)), error.wait or 0.0)
        self._rest_until[address] = max(self._rest_until[address], time.monotonic() + seconds)

    async def _free_server(self, part: Request) -> Address:
        """The server for the part. Parts with the same source go to the same one, so that its prefix cache helps; while
        it rests or has enough to do, the next one takes its place."""
        servers = self._job.servers
        home = zlib.crc32((part.source or part.prompt).encode("utf-8", "surrogatepass"))
        order = [servers[(home + step) % len(servers)] for step in range(len(servers))]
        while True:
            now = time.monotonic()
            waits = {address: max(0.0, self._rest_until[address] - now) for address in order}
            address = min(order, key=lambda address: (waits[address], self._limits[address].locked()))
            if waits[address] <= 0 or self._ended.is_set():
                return address
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), waits[address])

    async def _send(self, http: Http, address: Address, part: Request) -> Reply:
        """The checked samples of one reply, perhaps fewer than the part's. Errors as `classify` and `read_reply`."""
        job, dialect, query = self._job, self._job.dialect, self._job.query(part)
        body = json.dumps(dialect.body(query)).encode("ascii")
        # A token takes a few hundred bytes with its log-probability; this limit is several times that.
        limit = (1 << 20) + 2048 * part.n * job.sampling.max_tokens
        response = await http.request("POST", address, dialect.path, body, limit)
        if response.status != 200:
            raise classify(response, address, job.model)
        reply = read_reply(dialect, response.json(), query)
        whole, violations = 0, []
        for sample in reply.samples:
            whole += not sample.truncated
            try:
                check_format(dialect, sample, part)
            except SchemaViolation as error:
                violations.append(error)
        if violations and not (dialect.loses_tokens and (address in self._obedient or len(violations) < whole)):
            raise violations[0]
        if whole:
            self._obedient.add(address)
        return reply
