"""A single greedy answer: the confidence of a span is the probability of its tokens; stored, calibrated, in files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

from mbr_esd_metric.core.recalibration import Recalibration
from mbr_esd_metric.files.records import write_recalibration
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.metric import Metric
from tests.helpers.chat_server import FakeServer

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


def name(server: FakeServer, folder: Path, *options: str) -> str:
    return "&".join([f"mbr-esd-llama-distill?server={server.url}", f"store={folder}/store", *options])


def confidences(name: str) -> list[float]:
    spans = Metric(load_card(name)).predict(SAMPLES, progress_bar=False).metadata.error_spans
    return [span["confidence"] for of_sample in spans for span in of_sample]


def test_confidence_is_the_probability_of_the_tokens_also_from_the_store(tmp_path: Path) -> None:
    with FakeServer(MODEL, spoil=spelt) as server:
        assert confidences(name(server, tmp_path)) == pytest.approx([PROBABILITY] * 2, rel=1e-6)
        assert len(server.bodies) == 2
        assert confidences(name(server, tmp_path)) == pytest.approx([PROBABILITY] * 2, rel=1e-6)
        assert len(server.bodies) == 2


def test_a_calibration_is_applied_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "hparams.yaml").write_text(f"class_identifier: mbr_esd_metric\nmodel: {MODEL}\nrule: greedy\n")
    write_recalibration(folder / "calibration.json", Recalibration((0.0, 1.0), (0.0, 0.5)))
    with FakeServer(MODEL, spoil=spelt) as server:
        halves = confidences(f"{folder}?server={server.url}&store={tmp_path}/store")
    assert halves == pytest.approx([PROBABILITY / 2] * 2, rel=1e-6)


def test_tokens_that_spell_another_text_are_not_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def odd(value: dict[str, object], number: int) -> dict[str, object]:
        value = spelt(value, number)
        value["choices"][0]["logprobs"]["content"][2]["bytes"] = [1, 2]  # type: ignore[index]
        return value

    with FakeServer(MODEL, spoil=odd) as server:
        assert confidences(name(server, tmp_path)) == [1.0, 1.0]
    assert caplog.text.count("2 of 2 answers come without their tokens' log-probabilities") == 1
