"""The run from segments to decisions: calls of the engine, stored candidates, refused and killed runs; its summary."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.checks.check import Context
from mbr_esd_metric.cli.sample import sample
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError, NoValidCandidateError
from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.generation.engine import Generated, Refused, Request, Sampling
from mbr_esd_metric.metric.advice import summary
from mbr_esd_metric.metric.card import ModelCard, with_options
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.data_warnings import warnings
from mbr_esd_metric.metric.metric import Metric, Prediction
from mbr_esd_metric.metric.run import annotate
from tests.helpers.candidates import answer, record
from tests.helpers.real_server import stored
from tests.helpers.stub_engine import StubEngine, run_stub

CLEAN = answer()
TRANSLATIONS = ("Der Hund schlief im Garten.", "Die Katze trank Milch.", "Das Ufer war leer.")
SEGMENTS = [Segment(f"Source {i}.", f"Translation {i}.", f"sample {i}") for i in range(4)]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> ModelCard:
    run_stub(monkeypatch, lambda request, sampling: CLEAN)
    return load_card("mbr-esd-phi4?engine=server&n=4")


def test_data_frames_go_in_and_rows_come_out(card: ModelCard) -> None:
    pandas = pytest.importorskip("pandas")
    texts = [{"src": one.source, "mt": one.translation, "other": 1.0} for one in SEGMENTS[:3]]
    prediction = Metric(card).predict(pandas.DataFrame(texts), progress_bar=False)
    frame = pandas.DataFrame(prediction.rows())
    assert list(frame["score"]) == prediction.scores == Metric(card).predict(texts, progress_bar=False).scores
    assert list(frame["error_spans"]) == prediction.metadata.error_spans


def test_a_run_of_several_languages_says_which(card: ModelCard) -> None:
    """Each prompt has the languages of its segment."""
    segments = [replace(SEGMENTS[0], known=Context("en", language)) for language in ("fr", "de", "de")]
    assert "|lp:en-de+en-fr|" in str(annotate(card, segments).signature)
    assert len(StubEngine.calls()) == 2
    assert "|lp:en-de|" in str(annotate(card, segments[1:]).signature)
    assert "|lp:" not in str(annotate(card, SEGMENTS).signature)


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
@pytest.mark.parametrize(("blank", "score"), [("worst", -25.0), ("perfect", 0.0), ("skip", math.nan)])
def test_a_blank_translation_is_judged_without_asking(card: ModelCard, rule: str, blank: str, score: float) -> None:
    """It scored 1.0000 in silence."""
    card = with_options(card, {"blank": blank, "rule": rule})
    segments = [SEGMENTS[0], Segment("Source", " \n", "sample 1"), Segment("", "", "sample 2"), *SEGMENTS[:2]]
    decisions = annotate(card, segments).decisions
    assert StubEngine.calls() == [("Translation 0.", 0, 4), ("Translation 1.", 0, 4)]
    assert [d.mqm for d in decisions] == pytest.approx([0.0, score, 0.0, 0.0, 0.0], nan_ok=True)
    assert all(decision.annotation.spans == () for decision in decisions)
    assert annotate(card, segments[1:2]).decisions[0].mqm == pytest.approx(score, nan_ok=True)
    assert annotate(card, segments).signature.get("blank") == blank


def test_pairs_that_look_wrong_are_counted_and_not_rescored(card: ModelCard) -> None:
    copy = "This is the house of our friends."
    pairs = [("A house", ""), ("", "Haus"), (copy, copy), ("A house", "Haus"), ("B house", "")]
    prediction = Metric(card).predict([{"src": s, "mt": t} for s, t in pairs], progress_bar=False)
    assert prediction.scores == [0.0, 1.0, 1.0, 1.0, 0.0]
    counts = "blank translation: 2 (a, e); blank source: 1 (b); equal to its source: 1 (c)"
    assert warnings(prediction.metadata.data_warning, list("abcde"), "worst") == (
        f"data warnings: {counts}; blank translations get the lowest score (blank=worst)"
    )
    assert warnings([None], ["a"], "worst") is None


def test_a_second_run_loads_no_engine_and_a_larger_n_samples_the_difference(card: ModelCard) -> None:
    first = annotate(card, SEGMENTS)
    assert annotate(card, SEGMENTS) == first
    assert StubEngine.loads == 1
    StubEngine.requests.clear()
    annotate(replace(card, n=6), SEGMENTS[:1])
    assert StubEngine.calls() == [("Translation 0.", 4, 2)]
    assert StubEngine.loads == 2


def test_candidates_before_a_failure_are_stored(card: ModelCard) -> None:
    StubEngine.fail_after = 2
    with pytest.raises(EngineError, match="sample 2: out of memory"):
        annotate(card, SEGMENTS)
    StubEngine.fail_after = None
    StubEngine.requests.clear()
    annotate(card, SEGMENTS)
    assert [request.translation for request in StubEngine.requests] == ["Translation 2.", "Translation 3."]


def test_segments_without_valid_candidate_are_all_named_after_all_is_sampled(
    card: ModelCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_stub(monkeypatch, lambda request, sampling: '{"errors": [{')
    with pytest.raises(NoValidCandidateError, match="sample 0, sample 1, sample 2, sample 3") as caught:
        annotate(card, SEGMENTS)
    assert "max_tokens=4096" in str(caught.value)
    assert len(StubEngine.requests) == 4


def test_the_note_on_languages_is_logged_once(card: ModelCard, caplog: pytest.LogCaptureFixture) -> None:
    def notes(card: ModelCard, segments: list[Segment], progress: bool = True) -> int:
        caplog.clear()
        annotate(card, segments, progress=progress)
        return sum("the prompt does not name the languages of the texts" in line for line in caplog.messages)

    caplog.set_level("INFO", "mbr_esd_metric")
    assert notes(card, SEGMENTS[:2]) == 1
    assert notes(card, SEGMENTS[:2]) == 0, "nothing is sampled"
    assert notes(with_options(card, {"lp": "en-de"}), SEGMENTS[2:]) == 0
    assert notes(card, SEGMENTS[2:], progress=False) == 0
    assert [one.levelname for one in caplog.records] == ["WARNING"], "warnings stay"


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_a_segment_that_is_refused_has_no_score(
    card: ModelCard, rule: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    generate = StubEngine.generate

    def filtered(self: StubEngine, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated | Refused]:
        for one in requests:
            refused = one.source == "Source 1."
            yield from [Refused(one.key, "filtered (jailbreak)")] if refused else generate(self, [one], sampling)

    monkeypatch.setattr(StubEngine, "generate", filtered)
    card, reason = (
        with_options(card, {"rule": rule}),
        "because the server rejected the request: filtered (jailbreak) (samples[1])",
    )
    samples = [{"src": one.source, "mt": one.translation} for one in SEGMENTS]
    prediction = Metric(card).predict(samples, progress_bar=False)
    assert repr(prediction.scores) == "[1.0, nan, 1.0, 1.0]"
    assert prediction.system_score == 1.0
    assert prediction.metadata.refused == [None, "filtered (jailbreak)", None, None]
    assert f"1 segment without a score, {reason}" in caplog.messages
    assert [type(row) for _, row in sample(card, SEGMENTS)] == [list, Refused, list, list]
    empty = Metric(with_options(card, {"invalid": "empty"})).predict(samples, progress_bar=False)
    assert empty.scores == [1.0] * 4
    assert "refused" not in empty.metadata
    assert f"1 segment counted as error-free (invalid=empty), {reason}" in caplog.messages


@pytest.mark.model
def test_after_kill_9_only_what_is_missing_is_sampled_and_the_output_is_the_same(
    tmp_path: Path, ted_pairs: list[tuple[str, str]]
) -> None:
    """The real engine and model, killed inside a text of several sentences: the next run goes on, byte for byte."""
    pairs = [pair for pair in ted_pairs if all(text.endswith(".") for text in pair)]
    pairs = sorted(pairs, key=lambda pair: len(pair[0]))[:3]
    (tmp_path / "docs").write_text("talk\n", encoding="utf-8")
    for name, texts in zip(("src", "mt"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text(" ".join(texts) + "\n", encoding="utf-8")
    model = "mbr-esd-demo?n=4&max_tokens=32&invalid=empty&unit=sentence&context=document"

    def command(store: str) -> subprocess.Popen[bytes]:
        words = f"score -s src -t mt --documents docs --model {model} --to_json {store}.json --quiet".split()
        environment = {**os.environ, "MBR_ESD_STORE": str(tmp_path / store)}
        program = [sys.executable, "-m", "mbr_esd_metric", *words]
        return subprocess.Popen(program, cwd=tmp_path, env=environment, stdout=subprocess.PIPE)

    undisturbed, _ = command("whole").communicate(timeout=1800)
    killed = command("killed")
    deadline = time.monotonic() + 1800
    while not stored(tmp_path / "killed") and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert 0 < len(stored(tmp_path / "killed")) < 12
    resumed, _ = command("killed").communicate(timeout=1800)
    assert resumed.replace(b"killed.json", b"whole.json") == undisturbed
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    assert len(stored(tmp_path / "killed")) == 12


def predicted(folder: Path, texts: Sequence[Sequence[str]], cut: bool = False, options: str = "") -> Prediction:
    """The prediction over these candidates of each translation; a "{" may be cut by the length limit."""
    path = folder / "candidates.jsonl"
    records = [record(f"Source {i}.", mt, *texts[i]) for i, mt in enumerate(TRANSLATIONS)]
    flags = [tuple(cut and text == "{" for text in row) for row in texts]
    columns = [replace(one.columns, truncated=row) for one, row in zip(records, flags, strict=True)]
    write_records(path, [replace(one, columns=some) for one, some in zip(records, columns, strict=True)])
    card = load_card(f"mbr-esd-phi4?candidates={path}&n={len(texts[0])}{options}")
    samples = [{"src": f"Source {i}.", "mt": mt} for i, mt in enumerate(TRANSLATIONS)]
    return Metric(card).predict(samples, progress_bar=False)


MARKED = [
    [CLEAN] * 3 + [answer("Hund")],
    [CLEAN] * 2 + [answer("Katze"), answer("Milch", severity="minor")],
    [CLEAN] * 4,
]
LOST = [
    [answer("Hund")] * 2 + [answer("Wolf", "Fuchs")] * 2,
    [answer("Katze", severity="minor")] * 3 + [answer("Maus")],
    [CLEAN, *[answer("Strand")] * 3],
]
BROKEN = [[CLEAN, answer("Hund"), "{", "{"], [answer("Milch"), "{", "{", "{"], [CLEAN, "{", "{", "{"]]
NOT_FOUND = "not found in the translation"


@pytest.mark.parametrize(
    ("texts", "cut", "line", "advice"),
    [
        ([[answer("Hund")] * 4, [CLEAN] * 4, [answer("Ufer", severity="minor")] * 4], False, "", []),
        (
            MARKED,
            False,
            "",
            [
                "all 3 segments have the score 1.0000: 3 decisions without error spans, and 9 of 12 candidates",
                "score=expected uses the mean over the candidates, which mark 0.00 to 0.50 error spans per segment",
            ],
        ),
        # The expected score is not a help where no candidate marks anything.
        (
            [[CLEAN] * 4] * 3,
            False,
            "",
            ["candidates mark no error; this model detects no errors here: use a larger one"],
        ),
        (
            LOST,
            False,
            f"of 13 error spans 8 {NOT_FOUND}",
            ["most error spans of the candidates were dropped", "grounded=true"],
        ),
        (
            BROKEN,
            True,
            "of 12 candidates 8 cut at max_tokens",
            ["most candidates were cut at max_tokens", "max_tokens=4096 or format=compact", f"2 segments {UNSURE}"],
        ),
        (
            BROKEN,
            False,
            "of 12 candidates 8 could not be read",
            ["most candidates are cut or could not be read", f"2 segments {UNSURE} (samples[0], samples[2])"],
        ),
        # Spans that are not found are not silence, and equal scores are no "no error".
        (
            [[answer("Wolf"), CLEAN]] * 3,
            False,
            f"of 3 error spans 3 {NOT_FOUND}",
            ["most error spans", " 3 of 6 candidates mark no error"],
        ),
        (
            [[answer("Hund\u00a0schlief"), answer("Wolf")], [CLEAN] * 2, [CLEAN] * 2],
            False,
            f"of 2 error spans 1 {NOT_FOUND}, 1 found with other blanks, quotation marks, hyphens, accents or escapes",
            [],
        ),
    ],
)
def test_a_run_says_what_it_lost_and_what_helps(
    tmp_path: Path, texts: list[list[str]], cut: bool, line: str, advice: list[str]
) -> None:
    metadata = predicted(tmp_path, texts, cut).metadata
    assert metadata.summary == line
    assert bool(metadata.advice) == bool(advice)
    assert all(part in "\n".join(metadata.advice) for part in advice)
    assert metadata.unsure == ([True, False, True] if texts == BROKEN else [False] * 3)


def test_a_row_has_one_score(tmp_path: Path) -> None:
    """On the scale of [0, 1], and the MQM score beside it; the metadata keep COMET's name for the first."""
    prediction = predicted(tmp_path, [[answer("Hund")], [CLEAN], [CLEAN]])
    rows = prediction.rows()
    assert [(row["score"], row["mqm"], row["unsure"]) for row in rows] == [
        (0.8, -5, False),
        (1, 0, False),
        (1, 0, False),
    ]
    assert "mqm_scores" not in rows[0]
    assert prediction.metadata.mqm_scores == prediction.scores


def test_the_published_distilled_model_is_to_have_its_authors_prompt() -> None:
    cards = [load_card(f"mbr-esd-llama{name}") for name in ("-distill", "-distill?prompt=authors.txt", "")]
    advice = [summary(card, None, [], [])[1] for card in cards]
    assert [len(lines) for lines in advice] == [1, 0, 0]
    assert "set prompt=FILE" in advice[0][0]
