"""One run of `engine=server`: asks for every sample until it is in, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.errors import EngineError, first_of
from mbr_esd_metric.generation.engine import Generated, Request
from mbr_esd_metric.generation.server.address import Address
from mbr_esd_metric.generation.server.budget import Budget
from mbr_esd_metric.generation.server.dialect import Reply
from mbr_esd_metric.generation.server.event_stream import ASKED, Arrived
from mbr_esd_metric.generation.server.failures import (
    Disobeyed,
    GuidanceIgnored,
    NoSuchModel,
    Odd,
    Refused,
    Slow,
    Transient,
    classify,
    wrong_model,
)
from mbr_esd_metric.generation.server.http import ASKING, Http
from mbr_esd_metric.generation.server.job import Job, RequestPart, parts_of
from mbr_esd_metric.generation.server.limits import Lanes, Rests

#: The most replies that wait for the reader. A slow disk then slows the connections, and memory stays bounded.
WAITING = 256


@dataclass(slots=True)
class _Tries:
    """How often a part was asked for in vain, in a row: by failures, and by odd replies; and since when."""

    since: float
    failures: int = 0
    odd: int = 0


class Asking:
    """One call of `generate`. Its event loop has a thread of its own, so that a slow reader stalls no connection.

    Iterate over it once; `stop` ends it.
    """

    def __init__(self, job: Job, requests: Iterable[Request]) -> None:
        self._job = job
        self._requests = requests
        self._new: Iterator[RequestPart] = iter(())
        self._lanes: dict[Address, Lanes] = {}
        self._again: deque[RequestPart] = deque()
        self._results: queue.SimpleQueue[Generated | BaseException | None] = queue.SimpleQueue()
        self._room: asyncio.Semaphore | None = None
        self._ended: asyncio.Event
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._rests = Rests(job.patience.longest_rest)
        self._obedient: set[Address] = set()
        self._last_success = -1.0
        #: Key of a request -> the message, for each segment that failed.
        self._failed: dict[str, str] = {}
        self._over = False
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
            while (item := self._results.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                self._call(self._make_room)
                yield item
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """End the work from another thread; requests in progress are dropped."""
        self._stopped = True
        if self._task is not None:
            self._call(self._task.cancel)

    def _call(self, function: object) -> None:
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # the loop closed between the look and the call
                self._loop.call_soon_threadsafe(function)  # type: ignore[arg-type]

    def _make_room(self) -> None:
        assert self._room is not None
        self._room.release()

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
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._room, self._ended = asyncio.Semaphore(WAITING), asyncio.Event()
        if self._stopped:
            return
        budget = Budget(self._job.prices)
        async with Http(self._job.patience.timeout) as http:
            await self._prepare(http)
            # A request is taken when it can be sent: another process may take the others.
            count = min(self._job.concurrency, sum(lanes.most for lanes in self._lanes.values()))
            workers = [asyncio.create_task(self._worker(http, budget)) for _ in range(count)]
            try:
                done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
                # What is under way may have been paid for: it comes in before the run ends with an error.
                self._ended.set()
                await asyncio.wait(workers, timeout=self._job.patience.ending)
                for worker in done:
                    worker.result()
            finally:
                self.spent = budget.spent
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        kept = "What was sampled is kept; the same command asks for the rest"
        if self._over:
            raise EngineError(
                f"max_cost={self._job.prices.most:g} would be passed: {budget.spent:.4f} were spent, and the next "
                f"request may cost more than is left. {kept}, with a max_cost of its own"
            )
        if self._failed:
            raise EngineError(f"{self._named()}. {kept}")

    async def _prepare(self, http: Http) -> None:
        """Cut the requests into parts, and find how many each server can work on."""
        job, per_request = self._job, self._job.dialect.per_request
        slots: dict[Address, int | None] = dict.fromkeys(job.servers)
        for address in job.servers if job.paced else ():
            with suppress(Transient, EngineError, asyncio.TimeoutError):
                slots[address] = await asyncio.wait_for(job.dialect.slots(http, address), ASKING)
        per_request = min([per_request, *(known for known in slots.values() if known)])
        self._new = parts_of(self._requests, per_request)
        for address, known in slots.items():
            # One waits there, so that the server need not wait for it.
            most = min(job.concurrency, known // per_request + 1) if known else job.concurrency
            self._lanes[address] = Lanes(most, streamed=known is not None)

    def _named(self) -> str:
        return first_of(list(self._failed.values()), between="; ")

    async def _worker(self, http: Http, budget: Budget) -> None:
        while not (self._over or self._ended.is_set()):
            part = self._again.popleft() if self._again else next(self._new, None)
            if part is None:
                return
            if part.request.key not in self._failed:
                await self._see_through(part, http, budget)

    async def _see_through(self, part: RequestPart, http: Http, budget: Budget) -> None:
        """Ask until all samples of a part are in: for all of it again, for its halves, or for the rest."""
        tries, left = _Tries(time.monotonic()), part
        while (after := await self._once(left, tries, http, budget)) is not None:
            left = after

    async def _once(self, part: RequestPart, tries: _Tries, http: Http, budget: Budget) -> RequestPart | None:
        """Ask for a part once; what is to be asked for next, None where nothing is."""
        job, address = self._job, await self._free(part)
        bound = job.bound(part)
        if not await budget.reserve(bound):
            if part.n > 1:
                return self._halve(part)
            self._over = True
            self._again.appendleft(part)
            return None
        asked, cost, lanes = time.monotonic(), 0.0, self._lanes[address]
        try:
            if self._ended.is_set():
                return None
            async with lanes:
                if self._ended.is_set():
                    return None
                asked = time.monotonic()
                reply = await self._ask(http, address, part)
            cost = bound if reply.usage is None else job.prices.of(reply.usage)
        except Refused as error:
            if error.split and part.n > 1:
                return self._halve(part)
            self._fail(part, str(error))
            return None
        except Odd as error:
            cost = bound
            tries.odd += 1
            if tries.odd >= job.patience.odd:
                self._odd(part, address, error, tries.odd)
                return None
            await asyncio.sleep(min(job.patience.wait(tries.odd), 1.0))
            return part
        except Transient as error:
            cost = bound if error.sent else 0.0
            return await self._after(error, part, address, tries, asked)
        finally:
            await budget.settle(bound, cost)
        lanes.replied()
        tries.failures = tries.odd = 0
        return next(iter(await self._keep(part, [(part.first, reply.samples)])), None)

    async def _after(
        self, error: Transient, part: RequestPart, address: Address, tries: _Tries, asked: float
    ) -> RequestPart | None:
        """What is to be asked for after a failure of a request that was sent at `asked`."""
        # A server that is busy with other requests of this run has not failed.
        tries.failures += not (error.busy and self._last_success > asked)
        if tries.failures >= self._job.patience.tries:
            self._give_up(part, address, tries.failures, str(error), tries.since)
            return None
        self._rest(address, error, tries.failures)
        if isinstance(error, Slow):
            self._lanes[address].slow(asked)
        if error.came:
            left = await self._keep(part, error.came)
            if not left:
                return None
            (part, *others), tries.failures = left, 0
            self._again.extend(others)
        return self._halve(part) if isinstance(error, Slow) and part.n > 1 else part

    async def _keep(self, part: RequestPart, came: Sequence[tuple[int, tuple[Candidate, ...]]]) -> list[RequestPart]:
        """Hand samples to the reader, each piece with the number of its first; returns what is left of the part."""
        assert self._room is not None
        self._last_success = time.monotonic()
        left = [part]
        for first, samples in came:
            await self._room.acquire()
            self._results.put(Generated(part.request.key, first, samples))
            left += left.pop().without(first, len(samples))
        return left

    def _halve(self, part: RequestPart) -> RequestPart:
        half, rest = part.halves()
        self._again.appendleft(rest)
        return half

    def _fail(self, part: RequestPart, reason: str) -> None:
        """Note why a segment failed. The others go on, unless five segments failed and none ever succeeded."""
        self._failed.setdefault(part.request.key, f"{part.label}: {reason}")
        if self._last_success < 0 and len(self._failed) >= 5:
            raise EngineError(f"every request so far was refused; {self._named()}")

    def _odd(self, part: RequestPart, address: Address, error: Odd, tries: int) -> None:
        if isinstance(error, Disobeyed) and address not in self._obedient:
            dialect = self._job.dialect
            raise GuidanceIgnored(address, dialect.name, dialect.field, error.text)
        self._fail(part, f"{address} gave {tries} odd replies, the last one: {error}")

    def _rest(self, address: Address, error: Transient, failures: int) -> None:
        """Leave the server alone for as long as it says, or twice as long as the last time."""
        patience = self._job.patience
        wait = patience.wait(max(failures, 1))
        if error.wait is not None:
            if error.wait > patience.longest_rest:
                raise EngineError(
                    f"{address} asks to be left alone for {error.wait:.0f} s ({error}). What was sampled is kept; run "
                    "the same command then"
                )
            wait = max(wait, error.wait)
        self._rests.rest(address, wait)

    def _give_up(self, part: RequestPart, address: Address, tries: int, reason: str, since: float) -> None:
        message = f"{address} failed {tries} times in a row, the last time by: {reason}"
        if self._last_success <= since:
            raise EngineError(
                f"{message}. See whether the server still runs, start it again, and run the same command: what was "
                "sampled is kept"
            )
        self._fail(part, message)

    async def _free(self, part: RequestPart) -> Address:
        """The server for the part. Parts with the same source go to the same one, so that its prefix cache helps; while
        it rests or has enough to do, the next one takes its place."""
        servers = self._job.servers
        home = zlib.crc32((part.request.source or part.request.prompt).encode("utf-8", "surrogatepass"))
        order = [servers[(home + step) % len(servers)] for step in range(len(servers))]
        while True:
            left = {address: self._rests.left(address) for address in order}
            address = min(order, key=lambda address: (left[address], self._lanes[address].full))
            if left[address] <= 0 or self._ended.is_set():
                return address
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), left[address])

    async def _ask(self, http: Http, address: Address, part: RequestPart) -> Reply:
        """The checked samples of one reply; fewer than asked for if the reply has fewer.

        Raises:
            Transient: another try may succeed.
            Refused: no try for this segment will succeed.
            EngineError: no try for any segment will succeed.
        """
        job, ask = self._job, self._job.ask(part)
        lanes, arrived = self._lanes[address], None
        fields = job.dialect.body(ask)
        if job.dialect.streams and lanes.streamed:
            arrived, fields = Arrived(), {**fields, **ASKED}
        body = json.dumps(fields).encode("ascii")
        tokens = part.n * job.sampling.max_tokens
        # A token takes a few hundred bytes, with its log-probability or its event; this limit is several times that.
        limit, path = (1 << 20) + 2048 * tokens, job.dialect.path
        if arrived is None:
            answer = await http.post(address, path, body, limit)
        else:
            try:
                streamed = await http.stream(address, path, body, limit, arrived.take, lanes.alive)
                if streamed is None and not arrived.ended:
                    raise Transient("the reply breaks off", sent=True)
            except Odd:
                raise
            except Transient as broken:
                broken.came = self._whole(arrived, part, address)
                raise
            if streamed is None:
                return self._checked(arrived.whole(), address, part)
            answer = streamed
        self._rests.note(address, answer.headers, len(body) // 3 + tokens)
        if answer.status != 200:
            error = classify(answer, address, job.model)
            if isinstance(error, NoSuchModel):
                names: list[str] | None = []
                with suppress(Transient):
                    names = await job.dialect.served(http, address)
                raise wrong_model(address, job.model, names or [])
            raise error
        return self._checked(answer.json(), address, part)

    def _whole(self, arrived: Arrived, part: RequestPart, address: Address) -> list[tuple[int, tuple[Candidate, ...]]]:
        """What came of a reply that broke off: the samples that are whole and sound."""
        came = []
        for index, value in arrived.runs():
            first = part.first + index
            with suppress(Odd):
                run = RequestPart(part.request, first, len(value["choices"]))
                came.append((first, self._read(value, run, address).samples))
        return came

    def _read(self, value: object, part: RequestPart, address: Address) -> Reply:
        dialect = self._job.dialect
        reply = dialect.read(value, self._job.ask(part))
        wrong: list[Disobeyed] = []
        for sample in reply.samples:
            try:
                dialect.check(sample, part.request)
            except Disobeyed as error:
                wrong.append(error)
        whole = sum(not sample.truncated for sample in reply.samples)
        if wrong and not (dialect.loses_tokens and (address in self._obedient or len(wrong) < whole)):
            raise wrong[0]
        return reply

    def _checked(self, value: object, address: Address, part: RequestPart) -> Reply:
        reply = self._read(value, part, address)
        if any(not sample.truncated for sample in reply.samples):
            self._obedient.add(address)
        return reply
