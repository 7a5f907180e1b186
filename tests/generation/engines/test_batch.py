"""`engine=batch` against a server made after OpenAI's description of its batch API."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Sampling
from mbr_esd_metric.generation.engines import batch as batch_module
from mbr_esd_metric.generation.engines.batch import BatchEngine
from mbr_esd_metric.generation.engines.server import ServerEngine
from mbr_esd_metric.generation.server.client import RetryPolicy
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment
from tests.helpers.batch_server import FakeBatchServer
from tests.helpers.chat_requests import MODEL, collect, requests, sampled

FAST = RetryPolicy(first_wait=0.001, longest_wait=0.05, tries=3)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))


def engine(url: str, **more: object) -> BatchEngine:
    return BatchEngine(EngineOptions(model=MODEL, server=(url,), **more), FAST)  # type: ignore[arg-type]


def test_samples_are_those_of_single_requests() -> None:
    with FakeBatchServer(MODEL) as server:
        batched = collect(engine(server.url).generate(requests(5, 40), Sampling()))
        assert len(server.batches) == 1
        assert len(server.lines) == 5 * 3
        with server.chat as chat:
            single = sampled(chat, 5, 40)
            options = EngineOptions(model=MODEL, server=(chat.url,), dialect="openai")
            assert BatchEngine.identity(replace(options, dialect="auto")) == ServerEngine.identity(options)
    assert {key: one.text for key, one in batched.items()} == {key: one.text for key, one in single.items()}


def submitted(server: FakeBatchServer, *of: int) -> None:
    """A run that ends while its batch is waited for; the next look finds the batch done."""
    server.looks = 10**9
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module.time, "sleep", lambda seconds: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            list(engine(server.url).generate(requests(*of), Sampling()))
    server.looks = 1


def test_a_run_that_is_killed_finds_its_batch_and_pays_once(tmp_path: Path) -> None:
    with FakeBatchServer(MODEL) as server:
        submitted(server, 4, 16)
        (note,) = (tmp_path / "cache" / "batches").glob("*.json")
        assert note.stat().st_mode & 0o077 == 0
        assert len(collect(engine(server.url).generate(requests(6, 16), Sampling()))) == 6 * 16
        assert [len(batch["metadata"]) for batch in server.batches.values()] == [1, 1]
        names = [line["custom_id"] for line in server.lines]
        assert len(set(names)) == len(names) == 6, "something was paid for twice"
        assert note.read_text() == "{}"


@pytest.mark.parametrize(
    ("fault", "problem"),
    [({"lose": 1}, "/batches failed 1 times"), ({"nameless": True}, "/batches answers without an id")],
)
def test_a_batch_without_a_known_name_is_looked_up_by_its_token(fault: dict[str, Any], problem: str) -> None:
    with FakeBatchServer(MODEL, **fault) as server:
        with pytest.raises(EngineError, match=f"{problem}.*run the same command again"):
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
        with pytest.raises(EngineError, match=rf"{name} is gone .*404.*expired.*submits its requests again"):
            list(engine(server.url).generate(requests(2, 4), Sampling()))
        assert len(collect(engine(server.url).generate(requests(2, 4), Sampling()))) == 8


@pytest.mark.parametrize(
    ("fault", "message", "keys"),
    [
        ({"fail": "number 1 of"}, "segment 1: .*no way.*asks for the rest", ["key0", "key2"]),
        ({"short": 1}, "segment 2: the batch is expired without it", ["key0", "key1"]),
        ({"invalid": "not this model"}, r"segment 0: the batch is failed without it \(not this model\)", []),
    ],
)
def test_a_failed_request_is_named_and_stops_no_other(fault: dict[str, Any], message: str, keys: list[str]) -> None:
    parts: list[Generated] = []
    with FakeBatchServer(MODEL, **fault) as server, pytest.raises(EngineError, match=message):
        parts.extend(engine(server.url).generate(requests(3, 4), Sampling()))
    assert sorted(part.key for part in parts) == keys


def test_large_runs_are_several_batches_and_money_is_counted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "REQUESTS", 4)
    with FakeBatchServer(MODEL) as server:
        with pytest.raises(EngineError, match="more than max_cost=0.001; nothing was submitted"):
            list(engine(server.url, price=(1.0, 1.0), max_cost=0.001).generate(requests(9, 1), Sampling()))
        assert not server.lines
        assert len(collect(engine(server.url).generate(requests(9, 1), Sampling()))) == 9
        assert len(server.batches) == 3


def test_it_runs_from_a_model_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "_POLICY", FAST)
    with FakeBatchServer("gpt-4.1") as server:
        name = f"mbr-esd-gpt-4.1?engine=batch&n=8&server={server.url}&store={tmp_path / 'store'}"
        run = annotate(load_card(name), [Segment("a", "ein Satz", "1")])
        assert run.decisions[0].valid + run.decisions[0].invalid == 8
        sent = len(server.lines)
        assert annotate(load_card(name.replace("engine=batch", "engine=server")), [Segment("a", "ein Satz", "1")])
        assert len(server.lines) == sent
    assert "|engine:batch|" in run.signature
