"""A run that seems to hang says what it is waiting for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mbr_esd_metric import errors
from mbr_esd_metric.metric import sampler
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment
from mbr_esd_metric.metric.waiting import Watch
from tests.helpers.chat_server import FakeServer


def recording(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the watch of a run says, which here becomes impatient soon."""
    said: list[str] = []

    def say(line: str) -> None:
        errors.say(line)
        said.append(line)

    monkeypatch.setattr(sampler, "Watch", lambda what, quiet: Watch(what, quiet=quiet, patience=0.1, say=say))
    return said


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "nothing was said"
        time.sleep(0.01)


def test_it_says_what_stands_still_and_each_time_later() -> None:
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if len(said) == 1:
            watch.moved("segment 1 is being sampled")

    watch = Watch("the model is loading", patience=0.05, say=say)
    started = time.monotonic()
    with watch:
        wait_until(lambda: len(said) >= 3)
    assert time.monotonic() - started >= 0.05 + 0.1  # once more after twice the time
    assert [line.split(": ")[1] for line in said[:3]] == ["the model is loading", *["segment 1 is being sampled"] * 2]


def test_it_is_silent_while_something_moves_and_where_nobody_looks() -> None:
    said: list[str] = []
    with (
        Watch("one", patience=5.0, say=said.append) as watch,
        Watch("two", quiet=True, patience=0.01, say=said.append),
    ):
        for _ in range(20):
            watch.moved()
            time.sleep(0.01)
    assert said == []


def test_a_slow_engine_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mbr_esd_metric.generation.engines.replay import ReplayEngine
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.metric.pipeline import annotate
    from mbr_esd_metric.metric.plan import Segment

    candidates = tmp_path / "candidates.jsonl"
    candidates.write_text(
        '{"id": "1", "src": "a", "mt": "b", "candidates": [{"text": "{\\"errors\\": []}", "logprob": -1.0}]}\n'
    )
    generate, lines = ReplayEngine.generate, recording(monkeypatch)

    def slow(self, requests, sampling):  # type: ignore[no-untyped-def]
        wait_until(lambda: any("is sampling" in line for line in lines))
        yield from generate(self, requests, sampling)

    monkeypatch.setattr(ReplayEngine, "generate", slow)
    card = load_card(f"mbr-esd-llama?n=1&candidates={candidates}")
    annotate(card, [Segment("a", "b", "segment 1")], progress=True)
    assert "still waiting after" in (said := capsys.readouterr().err)
    assert "engine=replay) is sampling; 0 candidates are stored, and 1 of 1 different segments lack some" in said
    assert "Fewer candidates" not in said  # one is asked for


def test_fewer_candidates_are_proposed_where_many_are_asked_for() -> None:
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.metric.plan import plan

    candidates = Path(__file__).parents[2] / "docs" / "examples" / "candidates.jsonl"
    for n, advice in ((256, "(?n=64)"), (8, "(?n=2)"), (4, None)):
        todo = plan(load_card(f"mbr-esd-llama?n={n}&candidates={candidates}"), [])
        said = sampler.Sampler(todo, None)._next_step(1)  # type: ignore[arg-type]
        assert ("Fewer candidates" in said) is (advice is not None)
        assert advice is None or advice in said


def test_a_run_that_goes_on_counts_what_was_stored_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    segment = Segment("a", "b", "segment 1")
    said = recording(monkeypatch)

    def spoil(value: object, number: int) -> object:
        if number > 1:  # of the second run
            wait_until(lambda: any("is sampling" in line for line in said))
        return value

    with FakeServer("microsoft/phi-4", dialect="llamacpp", spoil=spoil) as server:
        model = f"mbr-esd-phi4?server={server.url}&store={tmp_path}/store&n="
        annotate(load_card(f"{model}4"), [segment])
        annotate(load_card(f"{model}6"), [segment], progress=True)
    assert "is sampling; 4 candidates are stored, and 1 of 1" in capsys.readouterr().err
