"""The same candidates have one score, whichever command or function gives it."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from mbr_esd_metric import decide, load_metric
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, write_scores
from mbr_esd_metric.core.annotation import unit_score
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.records import CandidateRecord, write_records
from mbr_esd_metric.prompting.formats.json import render_answer
from tests.helpers.candidates import record, with_segment
from tests.helpers.command import Command
from tests.helpers.pages import page_data
from tests.helpers.wmt_folder import write_texts

N = 6
ODD = (
    *("eins zwei drei", "🙂 eins 👩‍👩‍👧", "מילה eins", "e\u0301ins eins", "\u200beins zwei"),
    *("ein\ufffds eins", '\'"eins"<b>', "=eins+zwei"),
)


def records(decision: dict[str, str], two_sided: bool = False) -> list[CandidateRecord]:
    """Forty pairs, four of them blank."""
    rng = random.Random(7)

    def error(text: str, category: str, sub_category: str) -> dict[str, str]:
        severity = rng.choice(["major", "minor"])
        return {"error_span": text, "category": category, "sub_category": sub_category, "severity": severity}

    made = []
    for number in range(1, 41):
        texts = []
        for _ in range(N):
            words = rng.choices(["eins", "eins", "zwei", "drei"], k=rng.choice([0, 0, 1, 2]))
            errors = [error(word, rng.choice(["fluency", "accuracy"]), "punctuation") for word in words]
            if two_sided and rng.random() < 0.5:
                errors.append(error("left out", "accuracy", "omission"))
            texts.append(render_answer(errors))
        if number == 5:
            texts[0] = "no JSON"
        pair = f"source {number - 1} left out", f"{ODD[(number - 1) % len(ODD)]} {number - 1}" if number % 10 else ""
        form = "json-omissions" if two_sided else None
        made.append(record(*pair, *texts, number=number, format=form, system="mt", decision=decision))
    return made


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize(
    "decision",
    [
        {"rule": "mbr", "utility": "softf1", "score": "chosen", "mqm": "paper"},
        {"rule": "mbr", "utility": "f1", "score": "expected", "mqm": "google", "weights": "model"},
        {"rule": "majority", "blank": "skip"},
    ],
)
def test_one_score(workdir: Path, mbr_esd: Command, decision: dict[str, str], two_sided: bool) -> None:
    made = records(decision, two_sided)
    write_records("c.jsonl", made)
    for name, texts in (
        ("src.txt", [one.segment.source for one in made]),
        ("mt.txt", [one.segment.translation for one in made]),
    ):
        Path(name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    model = f"mbr-esd-llama?candidates=c.jsonl&n={N}&lp=en-de"
    options = DecisionOptions().changed(decision, "{}={}".format)

    expected: list[float | None] = []
    for one in made:
        decision_of = decide(one.candidates, one.segment.translation, options, source=one.segment.source)
        expected.append(None if one.segment.translation == "" and options.blank == "skip" else decision_of.score)
    numbers = [score for score in expected if score is not None]
    mean = sum(numbers) / len(numbers)
    close = [None if score is None else pytest.approx(score, abs=1e-12) for score in expected]

    prediction = load_metric(model).predict(
        [{"src": one.segment.source, "mt": one.segment.translation} for one in made], progress_bar=False
    )
    assert [None if score != score else score for score in prediction.scores] == close
    assert prediction.system_score == pytest.approx(mean)

    output = mbr_esd("score -s src.txt -t mt.txt --model", model, "--to_json o.json --quiet").out
    assert f"mt.txt\tscore: {mean:.4f}\n" in output
    assert [row["COMET"] for row in json.loads(Path("o.json").read_text(encoding="utf-8"))["mt.txt"]] == close

    mbr_esd("decide c.jsonl -o d.jsonl --quiet")
    decided = [json.loads(line) for line in Path("d.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["id"]: row["score"] for row in decided} == {
        one.segment.label: score for one, score in zip(made, close, strict=True) if score is not None
    }

    for path in ("o.json", "c.jsonl", "d.jsonl"):
        table = json.loads(mbr_esd("compare", path, "--table json").out)
        (row,) = (table[0] if isinstance(table, list) else table)["rows"]
        assert (row["score"], row["segments"]) == (pytest.approx(mean), len(numbers)), path

    for inputs in (["o.json"], ["c.jsonl"], ["d.jsonl", "c.jsonl"]):
        mbr_esd("report", *inputs, "-o page.html")
        scores = page_data(Path("page.html"))["columns"][0]["own"]
        if inputs[0] == "d.jsonl":  # decisions have no line of what is left out
            assert [score for score in scores if score is not None] == pytest.approx(numbers)
        else:
            assert scores == close, inputs
        shown = mbr_esd("show", *inputs, "--id 10 --id 1").out
        assert f"score {numbers[0]:.4f}" in shown
        assert ("score 0.0000  MQM -25" in shown) == (options.blank == "worst")


def test_a_board_takes_it(tmp_path: Path, mbr_esd: Command) -> None:
    """`wmt score` writes the MQM score beside people's, on their scale; what is shown of it is the score."""
    rated = [one for one in records({"rule": "mbr", "score": "expected"}) if one.segment.translation]
    layout = Layout(tmp_path, "tiny", "en-de")
    write_texts(
        layout,
        [one.segment.source for one in rated],
        {s: [one.segment.translation for one in rated] for s in ("mt", "x")},
    )
    write_scores(layout.human_file("mqm", "seg.score"), {s: [0.0] * len(rated) for s in ("mt", "x")})
    path = tmp_path / "c.jsonl"
    write_records(path, [with_segment(one, system="") for one in rated])
    model = f"mbr-esd-llama?candidates={path}&n={N}"
    mbr_esd(f"wmt score --test-set {tmp_path}/tiny --lp en-de --model", f"M={model}", "--quiet")
    test_set = load_test_set(tmp_path, "tiny", "en-de")
    expected = [
        decide(one.candidates, one.segment.translation, score="expected", source=one.segment.source).mqm
        for one in rated
    ]
    scores = test_set.metric("M-src").scores[test_set.systems.index("mt")]
    assert scores.tolist() == pytest.approx(expected)
    shown = mbr_esd(f"show --test-set {tmp_path}/tiny --lp en-de --metric M --system mt").out
    assert re.findall(r"score (\S+)", shown) == [f"{unit_score(mqm):.4f}" for mqm in expected]


def test_spans_without_a_score_have_one_everywhere(workdir: Path, mbr_esd: Command) -> None:
    """Files of other programs; a span that is there twice counts once."""
    span = {"start": 0, "end": 3, "severity": "minor"}
    rows = [
        {"src": "A dog.", "mt": "Ein Hund.", "errors": [span, span]},
        {"src": "A cat.", "mt": "Katze.", "errors": []},
    ]
    Path("spans.json").write_text(json.dumps({"A": rows}), encoding="utf-8")
    shown = mbr_esd("show spans.json").out
    assert "score 0.9600  MQM -1\n" in shown
    assert "score 1.0000  MQM 0\n" in shown
    assert json.loads(mbr_esd("compare spans.json --table json").out)["rows"][0]["score"] == pytest.approx(0.98)
