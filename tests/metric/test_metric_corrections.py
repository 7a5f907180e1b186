"""Corrections from a server, and of a text that is judged sentence by sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from sacrebleu import sentence_chrf

from mbr_esd_metric import load_metric
from tests.helpers.chat_server import FakeServer
from tests.helpers.stub_engine import run_stub

WORDS = ("alte", "alter", "junge", "neue")
TEXTS = [f"Die {word} Bank{end}" for word in WORDS for end in ("", "en", "!", " da")]


def written(words: str, correction: str, reason: str = "") -> str:
    error = {"error_span": words, "category": "accuracy", "sub_category": "term", "severity": "major"}
    return json.dumps({"errors": [error | {"correction": correction, "reason": reason}]}, ensure_ascii=False)


def expected(text: str) -> float:
    """The expected utility of one of sixteen corrections."""
    others = [(sentence_chrf(text, [one]).score + sentence_chrf(one, [text]).score) / 200 for one in TEXTS]
    return sum(1.0 if one == text else value for one, value in zip(TEXTS, others, strict=True)) / 16


def test_of_a_servers_sixteen_corrections_the_best_one_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: dict[int, int] = {}

    def answer(prompt: str, seed: int) -> tuple[str, list[float], bool]:
        text = TEXTS[seeds.setdefault(seed, len(seeds))]
        return written("Das Ufer", text, f"because of {text}"), [-1.0], False

    monkeypatch.setattr("tests.helpers.chat_server.answer", answer)
    with FakeServer("m") as server:
        name = f"mbr-esd-server?model=m&server={server.url}&n=16&format=json-corrections&store={tmp_path / 'store'}"
        prediction = load_metric(name).predict([{"src": "The bank closed.", "mt": "Das Ufer schloss."}])
    assert len(seeds) == 16
    best = max(TEXTS, key=expected)
    (span,) = prediction.metadata.error_spans[0]
    assert {key: span[key] for key in ("correction", "reason", "agreement")} == {
        "correction": best,
        "reason": f"because of {best}",
        "agreement": 1 / 16,
    }
    assert prediction.metadata.corrected == [f"{best} schloss."]
    assert "format:json-corrections" in prediction.metadata.signature


def test_sentences_keep_their_corrections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"Das Ufer schloss.": ("Ufer", "Haus"), "Er kaufte ein Ufer.": ("ein Ufer", "eine Bank")}
    run_stub(monkeypatch, lambda request, sampling: written(*said[request.translation]))
    name = f"mbr-esd-demo?n=2&unit=sentence&format=json-corrections&store={tmp_path / 'store'}"
    sample = {"src": "The bank closed. He bought a bank.", "mt": "Das Ufer schloss. Er kaufte ein Ufer."}
    prediction = load_metric(name).predict([sample], progress_bar=False)
    assert prediction.metadata.corrected == ["Das Haus schloss. Er kaufte eine Bank."]
    assert [one["correction"] for one in prediction.metadata.error_spans[0]] == ["Haus", "eine Bank"]
