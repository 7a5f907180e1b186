"""The client of `engine=server`, which sends requests until all samples are received. Unlike the retries of HTTP
libraries, it can retry a request on another server or for the remaining samples, and pauses all requests if a server
asks for it."""

from __future__ import annotations

import asyncio
import json
import queue
import random
import threading
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Refused, Request, Sampling
from mbr_esd_metric.generation.server import http
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.dialects import Dialect, Query
from mbr_esd_metric.generation.server.replies import read_reply
from mbr_esd_metric.log import logger

if TYPE_CHECKING:
    from aiohttp import ClientSession

#: The number of concurrent requests per server: 32 x 16 sequences keep a large GPU busy.
CONCURRENCY = 32
#: The maximum number of unread replies. It bounds the memory: a slow reader slows down the connections.
WAITING = 256
#: The longest pause in seconds that a server may request (``Retry-After``); the run ends if it is longer.
LONGEST_REST = 3600.0
#: The run ends if this number of segments are rejected at its start without any answer, or fail in a row.
REFUSALS = 20
#: Seconds to wait for requests in progress, which may be billed, after an error; a tenth of it if nothing was answered.
ENDING = 120.0
#: The advice in messages about incomplete runs.
ADVICE = "Sampled candidates are kept; run the same command to sample the rest"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The policy for timeouts and retries; times are in seconds.

    Attributes:
        timeout: the timeout of a request; it doubles after each late or invalid reply.
        first_wait, longest_wait: the wait before the second attempt, and the maximum; waits double after each failure.
        tries: the maximum number of attempts per request. With the defaults, they take about ten minutes, enough to
            restart a server with a 70B model.
        lone_tries: the maximum number of attempts if the server answers a request with status 500, but other requests
            normally.
        bad_replies: the maximum number of invalid or late replies per request.
        no_answer: the time after which a run without any answer ends, unless a server asked to wait.
    """

    timeout: float = 600.0
    first_wait: float = 1.0
    longest_wait: float = 60.0
    tries: int = 15
    lone_tries: int = 6
    bad_replies: int = 3
    no_answer: float = 50.0

    def wait(self, failures: int) -> float:
        """Seconds before the next attempt, randomly shortened by up to half to spread the requests."""
        return min(self.longest_wait, self.first_wait * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)


def cost(price: tuple[float, float], prompt: str | int, answers: int) -> float:
    """The cost of prompt and answer tokens, with prices per million tokens.

    Args:
        price: the prices of prompts and of answers.
        prompt: the number of tokens; or the text, for an upper bound: at least one byte per token, and 64 tokens for
            the chat template.
        answers: the number of answer tokens.
    """
    tokens = prompt if isinstance(prompt, int) else len(prompt.encode("utf-8", "surrogatepass")) + 64
    return (tokens * price[0] + answers * price[1]) / 1e6


@dataclass(slots=True)
class Progress:
    """Statistics over all runs of an engine.

    Attributes:
        answered: whether any request was answered.
        retries: the number of retried requests.
        spent: the cost so far, including lost replies.
        renamed: whether a reply had another model name.
    """

    answered: bool = False
    retries: int = 0
    spent: float = 0.0
    renamed: bool = False


@dataclass(slots=True, eq=False)
class _Server:
    """A server: its concurrency limit, the end of its current pause, and whether an answer had the required format."""

    address: Address
    slots: asyncio.Semaphore
    paused_until: float = 0.0
    guided: bool = False


@dataclass(slots=True, eq=False)
class _Tries:
    """The attempts for a part since its last answer, starting at `since`: failures, and invalid or late replies."""

    since: float = field(default_factory=time.monotonic)
    failures: int = 0
    bad_replies: int = 0


@dataclass(eq=False)
class Client:
    """One call of `generate`. The event loop runs in a separate thread, so that a slow reader does not block
    connections."""

    addresses: Sequence[Address]
    dialect: Dialect
    model: str
    sampling: Sampling
    options: EngineOptions
    policy: RetryPolicy
    progress: Progress

    def __post_init__(self) -> None:
        self._parts: Iterator[Request] = iter(())
        self._results: queue.SimpleQueue[Generated | Refused | None] = queue.SimpleQueue()
        self._servers: list[_Server] = []
        self._ended = asyncio.Event()
        self._start, self._last_success, self._server_busy = time.monotonic(), -1.0, False
        self._in_progress = set[_Tries]()
        #: Keys of the first segments, and of rejected ones; the number of segments that failed since the last answer.
        self._first, self._refused, self._failed_in_a_row = set[str](), set[str](), 0
        self._reported = set[str]()

    def query(self, part: Request) -> Query:
        """The query for a part of a request."""
        return Query(part, self.model, self.sampling, self.dialect)

    def cost(self, part: Request, billed: tuple[int, int] | None = None) -> float:
        """The cost of a part, from the billed tokens if known, otherwise an upper bound; 0 without prices."""
        price, most = self.options.price, (part.text, part.n * self.sampling.max_tokens)
        return cost(price, *(billed or most)) if price else 0.0

    def generate(self, requests: Iterable[Request]) -> Iterator[Generated | Refused]:
        """The samples as they arrive, and rejected requests. Raises `EngineError` if the run cannot continue, after
        requests in progress have ended."""
        self._parts = (part for request in requests for part in request.parts(self.dialect.per_request))
        loop = asyncio.new_event_loop()
        run = loop.create_task(self._run())
        ended = asyncio.wait([run])
        thread = threading.Thread(target=loop.run_until_complete, args=(ended,), name="mbr-esd-server", daemon=True)
        thread.start()
        try:
            while (result := self._results.get()) is not None:
                yield result
        finally:
            loop.call_soon_threadsafe(run.cancel)
            thread.join()
            loop.close()
        run.result()

    async def _run(self) -> None:
        """Send all parts with concurrent workers. After an error, requests in progress have some time to finish."""
        try:
            async with http.connections() as session:
                limits = {address: await self._limit(session, address) for address in self.addresses}
                self._servers = [_Server(address, asyncio.Semaphore(limit)) for address, limit in limits.items()]
                count = self.options.concurrency or sum(limits.values())
                workers = [asyncio.create_task(self._work(session)) for _ in range(count)]
                try:
                    done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
                    self._ended.set()
                    await asyncio.wait(workers, timeout=ENDING / (1 if self.progress.answered else 10))
                    for worker in done:
                        worker.result()
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)
        finally:
            self._results.put(None)

    async def _limit(self, session: ClientSession, address: Address) -> int:
        concurrency, slots = self.options.concurrency, self.dialect.slots
        if concurrency is not None or slots is None:
            return concurrency or CONCURRENCY
        with suppress(http.TransientError, EngineError, KeyError, TypeError):
            if isinstance(slots, tuple):
                slots = http.token_count((await http.fetch(session, address, slots[0])).json()[slots[1]])
            if slots:  # one more, so that the server always has a request in its queue
                return min(CONCURRENCY, slots + 1)
        return CONCURRENCY

    async def _work(self, session: ClientSession) -> None:
        """Send parts one after the other, each until all of its samples are received or it is rejected."""
        most = self.options.max_cost
        while not self._ended.is_set() and (part := next(self._parts, None)) is not None:
            while self._results.qsize() >= WAITING:
                await asyncio.sleep(0.05)
            if most is not None and (spent := self.progress.spent) >= most:
                raise EngineError(
                    f"max_cost={most:g} is reached: {spent:.4f} was spent, plus requests "
                    f"in progress. {ADVICE}; max_cost is per run"
                )
            if len(self._first) < REFUSALS:
                self._first.add(part.key)
            tries, left = _Tries(), None if part.key in self._refused else part
            self._in_progress.add(tries)
            while left is not None and not self._ended.is_set():
                left = await self._attempt(session, left, tries)
            self._in_progress.discard(tries)

    async def _attempt(self, session: ClientSession, part: Request, tries: _Tries) -> Request | None:
        """Send a part once. Returns the remaining part, or None if there is none."""
        progress, server = self.progress, await self._free_server(part)
        async with server.slots:
            if self._ended.is_set():
                return None
            query, started = self.query(part), time.monotonic()
            body = json.dumps(query.body).encode("ascii")
            # A token with its log-probability takes a few hundred bytes; the limit is several times higher.
            limit = (1 << 20) + 2048 * part.n * self.sampling.max_tokens
            seconds = self.policy.timeout * 2**tries.bad_replies
            try:
                response = await http.fetch(session, server.address, self.dialect.path, body, limit, seconds)
                if response.status != 200:
                    from mbr_esd_metric.generation.server.failures import failure_of

                    raise failure_of(response, server.address)
                reply = read_reply(query, response.json(), server.address)
            except http.RequestRejected as error:
                self._refuse(part, str(error))
                return None
            except http.TransientError as error:
                failure = error
                progress.spent += self.cost(part) if error.sent else 0.0
            else:
                progress.spent += self.cost(part, reply.billed)
                progress.answered, self._last_success = True, time.monotonic()
                server.guided |= any(not sample.truncated for sample in reply.samples)
                tries.failures = tries.bad_replies = self._failed_in_a_row = 0
                if reply.other_model and not progress.renamed:
                    progress.renamed, other = True, reply.other_model
                    logger.info(f"{server.address} answered with the model {other!r} instead of {self.model!r}")
                self._results.put(Generated(part.key, part.first, reply.samples))
                count = len(reply.samples)
                return replace(part, first=part.first + count, n=part.n - count) if count < part.n else None
        return await self._back_off(failure, server, part, tries, started)

    async def _free_server(self, part: Request) -> _Server:
        """The server for a part. Parts with the same source are sent to the same server to use its prefix cache; if it
        is paused or at its concurrency limit, the next one is used."""
        home = zlib.crc32((part.source or part.prompt).encode("utf-8", "surrogatepass")) % len(self._servers)
        order = self._servers[home:] + self._servers[:home]
        while True:
            now = time.monotonic()
            server = min(order, key=lambda one: (max(0.0, one.paused_until - now), one.slots.locked()))
            if server.paused_until <= now or self._ended.is_set():
                return server
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), server.paused_until - now)

    async def _back_off(
        self, failure: http.TransientError, server: _Server, part: Request, tries: _Tries, started: float
    ) -> Request | None:
        """Wait after a failure. Returns the part if it is to be retried, None if it is rejected."""
        policy, dialect, progress, address = self.policy, self.dialect, self.progress, server.address
        if isinstance(failure, (http.InvalidResponse, http.RequestTimeout)):
            tries.bad_replies += 1
        else:  # a server that is busy with other requests of this run does not count as a failure
            tries.failures += not (failure.busy and self._last_success > started)
        self._server_busy |= failure.busy
        if failure.wait is not None and failure.wait > LONGEST_REST:
            raise EngineError(f"{address} requests a pause of {failure.wait:.0f} s ({failure}). {ADVICE}")
        seconds, now = max(policy.wait(max(tries.failures, 1)), failure.wait or 0.0), time.monotonic()
        # Give up early if nothing was answered, no server is busy, and all requests in progress have failed before.
        waits = progress.answered or self._server_busy or any(not one.failures for one in self._in_progress)
        late = now + seconds > self._start + policy.no_answer and tries.failures > 1 and not waits
        # Other requests were answered in the meantime, so the text of this one may be the cause.
        alone = failure.of_request and self._last_success > tries.since
        most = min(policy.lone_tries, policy.tries) if alone else policy.tries
        if tries.failures < most and tries.bad_replies < policy.bad_replies and not late:
            progress.retries += 1
            self._report(failure, address, part, tries, most, seconds)
            if isinstance(failure, http.InvalidResponse):
                await asyncio.sleep(min(seconds, 1.0))
            elif alone:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), seconds)
            else:  # pause the server for all requests
                server.paused_until = max(server.paused_until, now + seconds)
            return part
        if isinstance(failure, http.SchemaViolation) and not server.guided:
            fix = f"for dialect={dialect.name} use a server that has guided output, without a reasoning parser"
            raise EngineError(
                f"{address} ignores the field {dialect.guide}: {failure}; {fix} (mbr-esd serve starts one); "
                "dialect=plain does without, and counts malformed answers"
            )
        message = f"{address} failed {tries.failures + tries.bad_replies} times in a row, the last time by: {failure}"
        if failure.of_request and progress.answered:
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= REFUSALS:
                raise EngineError(f"{REFUSALS} segments in a row got no answer: {message}. {ADVICE}")
        others = (failure.of_request and progress.answered) or self._last_success > tries.since
        if others or isinstance(failure, http.InvalidResponse):
            self._refuse(part, message)
            return None
        fix = "check whether the server is running, and restart it"
        if isinstance(failure, http.RequestTimeout):
            fix = "send fewer concurrent requests to a slow server (concurrency=N)"
        raise EngineError(f"{message}; {fix}. {ADVICE}")

    def _report(
        self, failure: http.TransientError, address: Address, part: Request, tries: _Tries, most: int, seconds: float
    ) -> None:
        """Log the first retry of the run, and then a few segments without an answer, once for each reason."""
        reason = str(failure)
        if self.progress.retries == 1:
            self._reported.add(reason)
            logger.warning(f"{address}: {reason}; retrying in {seconds:.0f} s, then at longer intervals")
            return
        known, waiting = self._reported, f"{part.label}: {reason}"
        unknown = waiting not in known if failure.of_request else reason not in known
        if tries.failures == 2 and unknown and len(known) < 5:
            known |= {reason, waiting}
            logger.warning(f"{part.label} still has no answer ({reason}); trying up to {most} times")

    def _refuse(self, part: Request, reason: str) -> None:
        """Reject the segment. Raises `EngineError` if all first segments are rejected and none was answered."""
        if part.key in self._refused:
            return
        self._refused.add(part.key)
        all_refused = len(self._first) >= REFUSALS and self._first <= self._refused
        if all_refused and not self.progress.answered:
            fix = "; dialect=plain requests one candidate at a time" if part.n > 1 else ""
            raise EngineError(f"the first {REFUSALS} segments were all rejected ({part.label}: {reason}){fix}")
        self._results.put(Refused(part.key, reason))
