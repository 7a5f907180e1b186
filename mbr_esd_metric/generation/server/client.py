"""One run of `engine=server`: sends the requests until every sample is in, in a thread of its own.

The retries are no library's: a request may be tried again at another server or for the rest of its samples, and all
requests wait together if the server says so.
"""

from __future__ import annotations

import asyncio
import json
import queue
import random
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from mbr_esd_metric.errors import EngineError, logger
from mbr_esd_metric.generation.engine import Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.dialects import Dialect, Query
from mbr_esd_metric.generation.server.failures import (
    InvalidResponse,
    RequestRejected,
    RequestTimeout,
    SchemaViolation,
    TransientError,
    token_count,
)
from mbr_esd_metric.generation.server.http import Http
from mbr_esd_metric.generation.server.replies import Reply, Usage, format_violation, read_reply

#: Requests in progress at the same time, for each server: 32 x 16 sequences keep a large GPU busy.
CONCURRENCY = 32
#: The most replies that wait for the reader. A slow disk then slows the connections, and memory stays bounded.
WAITING = 256
#: The end of messages about a run that did not get everything.
ADVICE = "What was sampled is kept; the same command asks for the rest"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The tries of a run, and the waits between them, in seconds.

    Attributes:
        timeout: after which a request counts as stalled; each further try has twice as long.
        first_wait, longest_wait: before the second try, and the limit up to which waits double with each further try.
        tries: of one request, before the client gives up. With the defaults it waits about ten minutes in all, which is
            enough to restart a server with a 70B model.
        bad_replies: tries of a request whose replies are complete and wrong, or do not come in time.
        longest_rest: the most that a server may ask the client to wait (``Retry-After``) before the run ends.
        no_answer: after which a run ends that had no answer at all, where no server asked it to wait.
        refusals: a run without an answer ends when so many of its first segments are refused.
        ending: time that requests under way have when a run ends with an error, as they may be paid for; a tenth of it
            where the run had no answer.
    """

    timeout: float = 600.0
    first_wait: float = 1.0
    longest_wait: float = 60.0
    tries: int = 15
    bad_replies: int = 3
    longest_rest: float = 3600.0
    no_answer: float = 50.0
    refusals: int = 20
    ending: float = 120.0

    def wait(self, failures: int) -> float:
        """Seconds before the next try, shortened at random by up to half, so that requests do not come all at once."""
        return min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)


def cost(price: tuple[float, float], prompt: str | int, answers: int) -> float:
    """The cost of tokens at the prices of a million of prompts and of answers. Of a prompt as a text, the most that it
    can be: a token has a byte at least, and a chat template 64 tokens."""
    tokens = prompt if isinstance(prompt, int) else len(prompt.encode("utf-8", "surrogatepass")) + 64
    return (tokens * price[0] + answers * price[1]) / 1e6


@dataclass(frozen=True, slots=True)
class Job:
    """The settings of a run; `concurrency` is the number of requests in progress at once, None for the default of
    `CONCURRENCY` a server, or what a server says that it works on."""

    servers: Sequence[Address]
    dialect: Dialect
    model: str
    sampling: Sampling
    policy: RetryPolicy
    price: tuple[float, float]
    max_cost: float | None
    concurrency: int | None = None

    def query(self, part: Request) -> Query:
        """The HTTP request of a part of a request."""
        return Query(part, self.model, self.sampling)

    def cost(self, part: Request, usage: Usage | None = None) -> float:
        """What a part cost, the most that it can cost if nothing says how many tokens it used."""
        prompt, answers = (usage.prompt, usage.completion) if usage else (part.text, part.n * self.sampling.max_tokens)
        return cost(self.price, prompt, answers)


@dataclass(slots=True)
class Progress:
    """What happened so far in all calls of `generate` of an engine: whether any request had an answer, how many were
    sent again, what was spent (also on lost replies), and whether a reply named another model."""

    answered: bool = False
    retries: int = 0
    spent: float = 0.0
    renamed: bool = False


@dataclass(slots=True, eq=False)
class _Tries:
    """The tries of a part since its last answer, the first one at `since`: failures, and replies that were wrong or
    late; `single` asks for one sample, as the server may take no more at once."""

    since: float
    failures: int = 0
    bad_replies: int = 0
    single: bool = False


class Client:
    """One call of `generate`, to be iterated over once. Its event loop has a thread of its own, so that a slow reader
    stalls no connection."""

    def __init__(self, job: Job, requests: Iterable[Request], progress: Progress) -> None:
        self._job, self._progress = job, progress
        self._parts = (part for request in requests for part in request.parts(job.dialect.per_request))
        self._limits: dict[Address, asyncio.Semaphore] = {}
        #: The time until which each server gets no request.
        self._rest_until = dict.fromkeys(job.servers, 0.0)
        self._results: queue.SimpleQueue[Generated | Refused | BaseException | None] = queue.SimpleQueue()
        self._backpressure: asyncio.Semaphore
        self._ended: asyncio.Event
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        #: Servers that have answered in the form asked for.
        self._guided_servers: set[Address] = set()
        #: Whether a server answered with several samples, or refuses them and gives one.
        self._takes_several = self._takes_one = False
        self._began, self._last_success, self._told_to_wait = time.monotonic(), -1.0, False
        self._under_way: set[_Tries] = set()
        #: Keys of the first segments, and of those that are refused.
        self._first, self._refused = set[str](), set[str]()

    def __iter__(self) -> Iterator[Generated | Refused]:
        """The replies' samples as they come in, and the requests that are refused; raises `EngineError` if no request
        can succeed, as soon as those under way are in."""
        thread = threading.Thread(target=self._work, name="mbr-esd-server", daemon=True)
        thread.start()
        try:
            while (result := self._results.get()) is not None:
                if isinstance(result, BaseException):
                    raise result
                self._call(self._backpressure.release)
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
        self._backpressure, self._ended = asyncio.Semaphore(WAITING), asyncio.Event()
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopped:
            return
        async with Http() as http:
            workers = [asyncio.create_task(self._worker(http)) for _ in range(await self._limit(http))]
            try:
                done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
                self._ended.set()
                await asyncio.wait(workers, timeout=self._job.policy.ending / (1 if self._progress.answered else 10))
                for worker in done:
                    worker.result()
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    async def _limit(self, http: Http) -> int:
        """Set each server's limit; returns the number of workers."""
        job, slots = self._job, self._job.dialect.slots
        limits = dict.fromkeys(job.servers, job.concurrency or CONCURRENCY)
        for address in job.servers if job.concurrency is None and slots is not None else ():
            with suppress(TransientError, EngineError, KeyError, TypeError):
                count = slots
                if isinstance(slots, tuple):
                    count = token_count((await http.get(address, slots[0])).json()[slots[1]])
                if isinstance(count, int) and count:  # one more waits there, so that the server need not wait for it
                    limits[address] = min(CONCURRENCY, count + 1)
        self._limits = {address: asyncio.Semaphore(limit) for address, limit in limits.items()}
        return job.concurrency or sum(limits.values())

    async def _worker(self, http: Http) -> None:
        job = self._job
        while not self._ended.is_set() and (part := next(self._parts, None)) is not None:
            if job.max_cost is not None and self._progress.spent >= job.max_cost:
                raise EngineError(
                    f"max_cost={job.max_cost:g} is reached: {self._progress.spent:.4f} were spent, and what is "
                    f"under way comes on top. {ADVICE}, with a max_cost of its own"
                )
            if len(self._first) < job.policy.refusals:
                self._first.add(part.key)
            tries = _Tries(time.monotonic())
            self._under_way.add(tries)
            rest = None if part.key in self._refused else part
            while rest is not None:
                rest = await self._attempt(http, rest, tries)
            self._under_way.discard(tries)

    async def _attempt(self, http: Http, part: Request, tries: _Tries) -> Request | None:
        """Send a part once; returns the part that is to be sent next, None where nothing is."""
        job, address, progress = self._job, await self._free_server(part), self._progress
        async with self._limits[address]:
            if self._ended.is_set():
                return None
            sent = replace(part, n=1) if self._takes_one or tries.single else part
            started = time.monotonic()
            try:
                reply = await self._send(http, address, sent, job.policy.timeout * 2**tries.bad_replies)
            except RequestRejected as error:
                if sent.n > 1 and not self._takes_several:
                    tries.single = True
                    return part
                await self._refuse(part, str(error))
                return None
            except TransientError as error:
                failure = error
                progress.spent += job.cost(sent) if error.sent else 0.0
            else:
                progress.spent += job.cost(sent, reply.usage)
                progress.answered, self._last_success = True, time.monotonic()
                self._takes_several |= sent.n > 1
                self._takes_one |= tries.single and not self._takes_several
                tries.failures = tries.bad_replies = 0
                await self._put(Generated(part.key, part.first, reply.samples))
                count = len(reply.samples)
                return replace(part, first=part.first + count, n=part.n - count) if count < part.n else None
        return await self._back_off(failure, address, part, tries, started)

    async def _back_off(
        self, failure: TransientError, address: Address, part: Request, tries: _Tries, started: float
    ) -> Request | None:
        """Wait after a failure; returns the part if it is to be sent again, None if it is given up."""
        policy, dialect, progress = self._job.policy, self._job.dialect, self._progress
        if isinstance(failure, (InvalidResponse, RequestTimeout)):
            tries.bad_replies += 1
        else:  # a server that is busy with other requests of this run has not failed
            tries.failures += not (failure.busy and self._last_success > started)
        self._told_to_wait |= failure.busy
        if failure.wait is not None and failure.wait > policy.longest_rest:
            raise EngineError(f"{address} asks to be left alone for {failure.wait:.0f} s ({failure}). {ADVICE}")
        seconds, now = max(policy.wait(max(tries.failures, 1)), failure.wait or 0.0), time.monotonic()
        # Without an answer, with nobody who asks to wait, and where all that is under way has failed before.
        waits = progress.answered or self._told_to_wait or any(not one.failures for one in self._under_way)
        late = now + seconds > self._began + policy.no_answer and tries.failures > 1 and not waits
        if tries.failures < policy.tries and tries.bad_replies < policy.bad_replies and not late:
            progress.retries += 1
            if progress.retries == 1:
                logger.warning(f"{address}: {failure}; tried again in {seconds:.0f} s, later at longer intervals")
            if isinstance(failure, InvalidResponse):
                await asyncio.sleep(min(seconds, 1.0))
            else:  # all requests leave the server alone
                self._rest_until[address] = max(self._rest_until[address], now + seconds)
            return part
        if isinstance(failure, SchemaViolation) and address not in self._guided_servers:
            raise EngineError(
                f"{address} does not obey the field {dialect.guide}: {failure}. For "
                f"dialect={dialect.name} use a server that has guided output, without a reasoning parser (mbr-esd "
                "serve starts one); dialect=plain asks for none, and counts what is malformed"
            )
        message = f"{address} failed {tries.failures + tries.bad_replies} times in a row, the last time by: {failure}"
        if isinstance(failure, InvalidResponse) or self._last_success > tries.since:
            await self._refuse(part, message)
            return None
        fix = "ask a slow server for less at once (concurrency=N)"
        fix = fix if isinstance(failure, RequestTimeout) else "see whether the server still runs, and start it again"
        raise EngineError(f"{message}; {fix}. {ADVICE}")

    async def _refuse(self, part: Request, reason: str) -> None:
        """Give the segment up; raises `EngineError` where the first segments are refused and none was answered."""
        if part.key in self._refused:
            return
        self._refused.add(part.key)
        all_refused = len(self._first) >= self._job.policy.refusals and self._first <= self._refused
        if all_refused and not self._progress.answered:
            raise EngineError(f"all of the first {len(self._first)} segments are refused, {part.label} so: {reason}")
        await self._put(Refused(part.key, reason))

    async def _put(self, result: Generated | Refused) -> None:
        await self._backpressure.acquire()
        self._results.put(result)

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

    async def _send(self, http: Http, address: Address, part: Request, seconds: float) -> Reply:
        """The checked samples of one reply, perhaps fewer than the part's; raises as `classify` and `read_reply` do."""
        job, dialect, query = self._job, self._job.dialect, self._job.query(part)
        body = json.dumps(dialect.body(query)).encode("ascii")
        # A token takes a few hundred bytes with its log-probability; this limit is several times that.
        limit = (1 << 20) + 2048 * part.n * job.sampling.max_tokens
        response = await http.request("POST", address, dialect.path, body, limit, seconds)
        if response.status != 200:
            raise response.failure(address)
        reply = read_reply(dialect, response.json(), query, address)
        violations = [one for sample in reply.samples if (one := format_violation(dialect, sample, part))]
        if violations:
            raise violations[0]
        if any(not sample.truncated for sample in reply.samples):
            self._guided_servers.add(address)
        if reply.other_model and not self._progress.renamed:
            self._progress.renamed = True
            logger.info(f"{address} answers with the model {reply.other_model!r} where {job.model!r} is asked")
        return reply
