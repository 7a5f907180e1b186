"""What `predict` returns: held to stored predictions; confidences of a single answer; corrections.

What is meant to change a prediction writes the stored ones anew: ``python tests/golden/make_predictions.py``.
"""

from __future__ import annotations

import gc
import json
import math
import pickle
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from sacrebleu import sentence_chrf

from mbr_esd_metric import load_metric
from mbr_esd_metric.core.recalibration import Recalibration
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.files.records import write_recalibration
from tests.golden.make_predictions import PATH, cases, outcome, rounded
from tests.helpers.chat_server import FakeServer
from tests.helpers.stub_engine import StubEngine, run_stub

STORED = json.loads(PATH.read_text(encoding="utf-8"))
CASES = list(cases())


@pytest.mark.parametrize(("name", "options"), CASES, ids=[name for name, _ in CASES])
def test_a_prediction_is_the_stored_one(
    name: str, options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path))
    assert rounded(outcome(name, options)) == STORED[name]


def test_no_stored_prediction_is_left_over() -> None:
    assert list(STORED) == [name for name, _ in CASES]


MODEL = "lyu-boxuan/Llama-3.3-70B-ESD-MBR-DPODistill"
PIECES = ['{"errors": [{', '"error_span": "', "a", 'b", ', '"category": "style", ']
PIECES += ['"sub_category": "x", "severity": "', "major", '"}]}']
LOGPROBS = [-0.1, 0.0, -0.2, -0.4, -5.0, -6.0, -0.05, -0.7]
#: What says the span: that there is an error, its words, its severity.
PROBABILITY = math.exp(-0.1 - 0.2 - 0.4 - 0.05)
SAMPLES = [{"src": "x", "mt": "ab c"}, {"src": "y", "mt": "c ab"}]


def spelt(value: dict[str, object], number: int) -> dict[str, object]:
    """A reply in the tokens above, and the closing one."""
    content = [{"token": "?", "bytes": [*p.encode()], "logprob": v} for p, v in zip(PIECES, LOGPROBS, strict=True)]
    content.append({"token": "<|eot|>", "bytes": None, "logprob": -0.3})
    for choice in value["choices"]:  # type: ignore[attr-defined]
        choice["message"]["content"] = "".join(PIECES)
        choice["finish_reason"] = "stop"
        choice["logprobs"] = {"content": content}
    return value


def confidences(name: str) -> list[float]:
    spans = load_metric(name).predict(SAMPLES, progress_bar=False).metadata.error_spans
    return [span["confidence"] for of_sample in spans for span in of_sample]


def test_confidence_is_the_probability_of_the_tokens_also_from_the_store_and_calibrated(tmp_path: Path) -> None:
    (tmp_path / "hparams.yaml").write_text(f"class_identifier: mbr_esd_metric\nmodel: {MODEL}\nrule: greedy\n")
    write_recalibration(tmp_path / "calibration.json", Recalibration((0.0, 1.0), (0.0, 0.5)))
    with FakeServer(MODEL, spoil=spelt) as server:
        query = f"?server={server.url}"
        for _ in range(2):
            assert confidences(f"mbr-esd-llama-distill{query}") == pytest.approx([PROBABILITY] * 2, rel=1e-6)
            assert len(server.bodies) == 2
        assert confidences(f"{tmp_path}{query}") == pytest.approx([PROBABILITY / 2] * 2, rel=1e-6)


def test_a_model_in_process_is_loaded_once_and_freed_with_its_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    run_stub(monkeypatch, lambda request, sampling: '{"errors": []}')
    monkeypatch.setattr(StubEngine, "close", lambda engine: closed.append(engine.options.device))

    held = [load_metric("mbr-esd-demo?n=2")]
    metric = held[0]

    def predict(text: str, gpus: int = 1) -> None:
        held[0].predict([{"src": "x", "mt": text}], gpus=gpus, progress_bar=False)

    for text in ("a", "b", "a"):
        predict(text)
    assert (StubEngine.loads, closed) == (1, [])
    predict("c", gpus=0)
    assert (StubEngine.loads, closed) == (2, ["auto"]), "on the CPU it is another engine"
    predict("d")
    metric.close()
    metric.close()
    assert closed == ["auto", "cpu", "auto"]
    assert repr(pickle.loads(pickle.dumps(metric))) == repr(metric)
    with metric:
        predict("e")
    assert (StubEngine.loads, len(closed)) == (4, 4)
    predict("f")
    held.clear()
    del metric
    gc.collect()
    assert len(closed) == 5


def test_an_engine_that_failed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    run_stub(monkeypatch, lambda request, sampling: '{"errors": []}')
    metric = load_metric("mbr-esd-demo?n=2")
    closed: list[StubEngine] = []
    monkeypatch.setattr(StubEngine, "close", lambda engine: closed.append(engine))
    monkeypatch.setattr(StubEngine, "fail_after", 1)
    samples = [{"src": "x", "mt": text} for text in "ab"]
    with pytest.raises(EngineError):
        metric.predict(samples, progress_bar=False)
    assert len(closed) == 1
    monkeypatch.setattr(StubEngine, "fail_after", None)
    assert metric.predict(samples, progress_bar=False).scores == [1.0, 1.0]


WORDS = ("alte", "alter", "junge", "neue")
TEXTS = [f"Die {word} Bank{end}" for word in WORDS for end in ("", "en", "!", " da")]


def written(words: str, correction: str, reason: str = "") -> str:
    error = {"error_span": words, "category": "accuracy", "sub_category": "term", "severity": "major"}
    return json.dumps({"errors": [error | {"correction": correction, "reason": reason}]}, ensure_ascii=False)


def expected(text: str) -> float:
    """The expected utility of one of sixteen corrections."""
    others = [(sentence_chrf(text, [one]).score + sentence_chrf(one, [text]).score) / 200 for one in TEXTS]
    return sum(1.0 if one == text else value for one, value in zip(TEXTS, others, strict=True)) / 16


def test_of_a_servers_sixteen_corrections_the_best_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: dict[int, int] = {}

    def answer(prompt: str, seed: int) -> tuple[str, list[float], bool]:
        text = TEXTS[seeds.setdefault(seed, len(seeds))]
        return written("Das Ufer", text, f"because of {text}"), [-1.0], False

    monkeypatch.setattr("tests.helpers.chat_server.answer", answer)
    with FakeServer("m") as server:
        name = f"mbr-esd-server?model=m&server={server.url}&n=16&format=json-corrections"
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


def test_sentences_keep_their_corrections(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"Das Ufer schloss.": ("Ufer", "Haus"), "Er kaufte ein Ufer.": ("ein Ufer", "eine Bank")}
    run_stub(monkeypatch, lambda request, sampling: written(*said[request.translation]))
    name = "mbr-esd-demo?n=2&unit=sentence&format=json-corrections"
    sample = {"src": "The bank closed. He bought a bank.", "mt": "Das Ufer schloss. Er kaufte ein Ufer."}
    prediction = load_metric(name).predict([sample], progress_bar=False)
    assert prediction.metadata.corrected == ["Das Haus schloss. Er kaufte eine Bank."]
    assert [one["correction"] for one in prediction.metadata.error_spans[0]] == ["Haus", "eine Bank"]
