"""`engine=batch` against a server made after OpenAI's description of its batch API."""

from __future__ import annotations

import email
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Refused, Sampling
from mbr_esd_metric.generation.engines import batch as batch_module
from mbr_esd_metric.generation.engines.batch import BatchEngine
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate
from tests.helpers.chat_requests import MODEL, collect, outcome, requests, sampled
from tests.helpers.chat_server import FakeServer

FAST = RetryPolicy(first_wait=0.001, longest_wait=0.05, tries=3)


@dataclass(eq=False)
class FakeBatchServer(FakeServer):
    """Files and batches; `lines` are those of every batch that was submitted."""

    dialect: str = "openai"
    _: KW_ONLY
    #: How often a batch is looked at before it is over.
    looks: int = 2
    #: The first so many submissions fail, though the batch is taken.
    lose: int = 0
    #: Changes a batch that is over, and its results and errors.
    finish: Callable[[dict[str, Any], list[Any], list[Any]], object] = lambda batch, good, bad: None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.lines: list[dict[str, Any]] = []
        self._names, self._pages = itertools.count(), itertools.cycle((True, False))

    def describe(self, path: str) -> tuple[int, Any]:
        kind, name, *_ = [*path.removeprefix("/v1/").split("/"), ""]
        if path == "/v1/batches":
            # A page of others' batches comes before ours.
            others = next(self._pages)
            page = [{"id": "another", "metadata": ["no object"]}] if others else list(self.batches.values())[::-1]
            return 200, {"data": page, "has_more": others}
        if kind == "batches" and name in self.batches:
            return 200, self.look(name)
        if kind == "files" and name in self.files:
            return 200, self.files[name]
        return super().describe(path)

    def post(self, path: str, body: bytes, kind: str) -> tuple[int, Any]:
        if path == "/v1/files":
            name = f"file{next(self._names)}"
            purpose, file = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body).get_payload()
            assert purpose.get_payload(decode=True) == b"batch"
            self.files[name] = file.get_payload(decode=True)
            return 200, {"id": name, "object": "file"}
        name, order = f"batch{next(self._names)}", json.loads(body)
        assert (order["endpoint"], order["completion_window"]) == ("/v1/chat/completions", "24h")
        self.lines += [json.loads(line) for line in self.files[order["input_file_id"]].splitlines()]
        self.batches[name] = {"id": name, "status": "in_progress", "looks": 0, **order}
        self.lose -= 1
        return 502 if self.lose >= 0 else 200, self.batches[name]

    def look(self, name: str) -> dict[str, Any]:
        batch = self.batches[name]
        batch["looks"] += 1
        if batch["looks"] >= self.looks and batch["status"] == "in_progress":
            batch["status"] = "completed"
            good, bad = list[Any](), list[Any]()
            for request in map(json.loads, self.files[batch["input_file_id"]].splitlines()):
                status, value = self.complete(request["body"])
                good.append({"custom_id": request["custom_id"], "response": {"status_code": status, "body": value}})
            self.finish(batch, good, bad)
            # In another order than they were sent in, as the description warns.
            for field, results in (("output_file_id", good[::-1]), ("error_file_id", bad)):
                batch[field] = file = f"file{next(self._names)}"
                self.files[file] = b"".join(json.dumps(line).encode() + b"\n" for line in results)
        return batch


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))


def engine(url: str, **more: object) -> BatchEngine:
    return BatchEngine(EngineOptions(model=MODEL, server=(url,), **more), FAST)  # type: ignore[arg-type]


def texts(samples: Mapping[tuple[str, int], Candidate]) -> dict[tuple[str, int], str | None]:
    return {place: one.text for place, one in samples.items()}


def submitted(server: FakeBatchServer, *of: int) -> None:
    """A run that ends while its batch is waited for; the next look finds the batch done."""
    server.looks = 10**9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module.time, "sleep", lambda seconds: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            list(engine(server.url).generate(requests(*of), Sampling()))
    server.looks = 1


def test_a_batch_without_a_known_name_is_looked_up_by_its_token() -> None:
    with FakeBatchServer(MODEL, lose=1) as server:
        with pytest.raises(EngineError, match="/batches failed 1 times.*run the same command again"):
            list(engine(server.url).generate(requests(3, 16), Sampling()))
        assert len(collect(engine(server.url).generate(requests(3, 16), Sampling()))) == 48
        assert len(server.batches) == 1


@pytest.mark.parametrize("lost", ["batch", "file"])
def test_what_the_service_no_longer_has_is_submitted_again_by_the_next_run(lost: str) -> None:
    with FakeBatchServer(MODEL) as server:
        submitted(server, 2, 4)
        ((name, batch),) = server.batches.items()
        if lost == "batch":
            del server.batches[name]
        else:
            server.look(name)
            del server.files[batch["output_file_id"]]
        with pytest.raises(
            EngineError, match=rf"{name} does not exist any more .*404.*expired.*submits its requests again"
        ):
            list(engine(server.url).generate(requests(2, 4), Sampling()))
        assert len(collect(engine(server.url).generate(requests(2, 4), Sampling()))) == 8


@pytest.mark.parametrize(
    "runs",
    [
        [(0, 2, 16), (2, 5, 16)],  # fewer segments, then the others
        [(0, 5, 8), (0, 5, 16)],  # fewer candidates, then all
        [(0, 5, 4), (1, 3, 9), (0, 5, 24)],  # and more in the end
    ],
)
def test_of_an_earlier_batch_a_run_takes_its_segments_and_leaves_the_others(
    runs: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    stored: dict[tuple[str, int], Candidate] = {}
    with FakeBatchServer(MODEL) as server:
        submitted(server, 5, 16)
        (note,) = (tmp_path / "cache" / "batches").glob("*.json")
        assert note.stat().st_mode & 0o077 == 0
        for begin, end, n in runs:
            left = {one: [i for i in range(n) if (one.key, i) not in stored] for one in requests(5, n)[begin:end]}
            asked = [part for one, indices in left.items() for part in one.only(indices)]
            got = collect(engine(server.url).generate(asked, Sampling()))
            assert set(got) >= {(one.key, index) for one in asked for index in one.indices}
            stored |= got
        assert texts(stored) == texts(sampled(server, 5, n))
        assert sum(line["body"]["n"] for line in server.lines) == len(stored) == 5 * n, "something is paid for twice"
    assert note.read_text() == "{}"


def without_key1(batch: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    bad.append({"custom_id": good.pop(1)["custom_id"], "response": None, "error": {"message": "no way"}})


def test_a_refused_request_is_named_and_stops_no_other() -> None:
    with FakeBatchServer(MODEL, finish=without_key1) as server:
        samples, refusals = outcome(engine(server.url).generate(requests(3, 16), Sampling()))
    assert {key for key, _ in samples} == {"key0", "key2"}
    assert refusals == {"key1": "the reply has no answer: no way"}


def failed(batch: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    good.clear()
    batch |= {"status": "failed", "errors": {"data": [{"message": "not this model", "line": 1}]}}


@pytest.mark.parametrize(
    ("finish", "message", "keys"),
    [
        (lambda batch, good, bad: good.pop(), "segment 2: the batch is completed without it", ["key0", "key1"]),
        (failed, r"segment 0, segment 1, segment 2: the batch is failed without it \(not this model\)", []),
    ],
)
def test_a_request_without_an_answer_is_asked_for_again(finish: Any, message: str, keys: list[str]) -> None:
    parts: list[Generated | Refused] = []
    with FakeBatchServer(MODEL, finish=finish) as server, pytest.raises(EngineError, match=message):
        parts.extend(engine(server.url).generate(requests(3, 4), Sampling()))
    assert sorted(part.key for part in parts) == keys


def each(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any], list[Any], list[Any]], object]:
    return lambda batch, good, bad: [change(one["response"]) for one in good]


def repeated(batch: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    good += [good[0], {**good[1], "custom_id": "somebody-0-1"}, {"custom_id": None}, {"custom_id": 7}, ["x"], None, "x"]
    bad.append({"custom_id": good[0]["custom_id"], "response": {"status_code": 500, "body": {"error": "oops"}}})


@pytest.mark.parametrize(
    "finish",
    [
        each(lambda one: one.update(status_code="200")),
        each(lambda one: one.update(status_code=None)),
        each(lambda one: one.pop("status_code")),
        each(lambda one: one.update(body=json.dumps(one["body"]))),
        repeated,
    ],
)
def test_odd_results_are_read_where_they_are_clear(finish: Any) -> None:
    with FakeBatchServer(MODEL, finish=finish) as server:
        assert len(collect(engine(server.url).generate(requests(3, 16), Sampling()))) == 48


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"status_code": "400", "body": {"error": {"message": "no seed"}}}, "400 no seed"),
        ({"status_code": None, "body": None}, "has no answer"),
        ({"status_code": 200, "body": "half a {"}, "half a {"),
        ("a text", "has no answer"),
    ],
)
def test_odd_results_that_are_not_clear_are_refused_alone(response: Any, reason: str) -> None:
    def finish(batch: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
        good[1]["response"] = response

    with FakeBatchServer(MODEL, finish=finish) as server:
        samples, refusals = outcome(engine(server.url).generate(requests(3, 16), Sampling()))
    assert {key for key, _ in samples} == {"key0", "key2"}
    assert list(refusals) == ["key1"]
    assert reason in refusals["key1"]


def test_a_line_that_cannot_be_read_is_named_where_a_result_is_missing() -> None:
    def finish(batch: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
        del good[1]["custom_id"]

    message = "the results have invalid lines: line 2 of file.*; segment 1: the batch is completed without it"
    with FakeBatchServer(MODEL, finish=finish) as server, pytest.raises(EngineError, match=message):
        list(engine(server.url).generate(requests(3, 16), Sampling()))


def test_what_expired_is_asked_for_by_the_next_run() -> None:
    def finish(batch: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
        error = {"code": "batch_expired", "message": "not executed in time"}
        if len(server.batches) == 1:
            batch["status"] = "expired"
            bad += [{"custom_id": one["custom_id"], "response": None, "error": error} for one in good[1:]]
            del good[1:]

    parts: list[Generated | Refused] = []
    message = (
        r"segment 1, segment 2: the batch is expired without it \(expired or cancelled there\)\. .* to sample the rest"
    )
    with FakeBatchServer(MODEL, finish=finish) as server:
        with pytest.raises(EngineError, match=message):
            parts.extend(engine(server.url).generate(requests(3, 4), Sampling()))
        assert [part.key for part in parts] == ["key0"]
        assert len(collect(engine(server.url).generate(requests(3, 4)[1:], Sampling()))) == 8
        assert len(server.batches) == 2


def test_large_runs_are_several_batches_and_money_is_counted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "REQUESTS", 4)
    with FakeBatchServer(MODEL) as server:
        with pytest.raises(EngineError, match="more than max_cost=0.001; nothing was submitted"):
            list(engine(server.url, price=(1.0, 1.0), max_cost=0.001).generate(requests(9, 1), Sampling()))
        assert not server.lines
        assert len(collect(engine(server.url).generate(requests(9, 1), Sampling()))) == 9
        assert len(server.batches) == 3


def test_it_runs_from_a_model_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchEngine, "default_policy", FAST)
    with FakeBatchServer("gpt-4.1") as server:
        name = f"mbr-esd-server?model=gpt-4.1&dialect=openai&engine=batch&n=8&server={server.url}"
        run = annotate(load_card(name), [Segment("a", "ein Satz", "1")])
        assert run.decisions[0].valid + run.decisions[0].invalid == 8
        sent = len(server.lines)
        assert annotate(load_card(name.replace("engine=batch", "engine=server")), [Segment("a", "ein Satz", "1")])
        assert len(server.lines) == sent
    assert run.signature.get("engine") == "batch"
