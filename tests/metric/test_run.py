"""The run from segments to decisions: suspect pairs, calls of the engine, stored candidates, decisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.errors import EngineError, NoValidCandidateError
from mbr_esd_metric.generation.engine import Generated, Refused, Request, Sampling
from mbr_esd_metric.metric.card import ModelCard, with_options
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.data_warnings import warnings
from mbr_esd_metric.metric.metric import Metric
from mbr_esd_metric.metric.run import annotate, sample
from mbr_esd_metric.metric.sources import Segment
from tests.helpers.stub_engine import StubEngine, run_stub

CLEAN = '{"errors": []}'
SEGMENTS = [Segment(f"Source {i}.", f"Translation {i}.", f"sample {i}") for i in range(4)]


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelCard:
    run_stub(monkeypatch, lambda request, sampling: CLEAN)
    return load_card(f"mbr-esd-phi4?engine=server&n=4&store={tmp_path / 'store.sqlite'}")


def test_data_frames_go_in_and_rows_come_out(card: ModelCard) -> None:
    pandas = pytest.importorskip("pandas")
    texts = [{"src": one.source, "mt": one.translation, "other": 1.0} for one in SEGMENTS[:3]]
    prediction = Metric(card).predict(pandas.DataFrame(texts), progress_bar=False)
    frame = pandas.DataFrame(prediction.rows())
    assert list(frame["score"]) == prediction.scores == Metric(card).predict(texts, progress_bar=False).scores
    assert list(frame["error_spans"]) == prediction.metadata.error_spans


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
    assert f"|blank:{blank}|" in annotate(card, segments).signature


def test_pairs_that_look_wrong_are_counted_and_not_rescored(card: ModelCard) -> None:
    pairs = [("A house", ""), ("", "Haus"), ("A house", "A house"), ("A house", "Haus"), ("B house", "")]
    prediction = Metric(card).predict([{"src": s, "mt": t} for s, t in pairs], progress_bar=False)
    assert prediction.scores == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert prediction.metadata.data_warning[3] is None
    counts = "2 blank translations (a, e), 1 blank source (b), 1 equal to its source (c)"
    assert warnings(prediction.metadata.data_warning, list("abcde"), "worst") == (
        f"data warnings: {counts}; blank translations get the lowest score (blank=worst)"
    )
    assert warnings([None], ["a"], "worst") is None
    many = warnings(["said twice"] * 7 + [None], list("abcdefgh"), "worst")
    assert many == "data warnings: 7 translations said twice (a, b, c, d, e and 2 more)"
    skipped = Metric(with_options(card, {"blank": "skip"})).predict([{"src": s, "mt": t} for s, t in pairs])
    assert math.isnan(skipped.scores[0])
    assert skipped.system_score == 1.0


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


def test_the_note_on_languages_is_logged_once(
    card: ModelCard, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def notes(card: ModelCard, segments: list[Segment], progress: bool = True) -> int:
        caplog.clear()
        annotate(card, segments, progress=progress)
        return sum("the prompt does not say of what languages the texts are" in line for line in caplog.messages)

    caplog.set_level("INFO", "mbr_esd_metric")
    assert notes(card, SEGMENTS[:2]) == 1
    assert notes(card, SEGMENTS[:2]) == 0, "nothing is sampled"
    (tmp_path / "plain.txt").write_text("{source} {translation}", encoding="utf-8")
    for change in ({"lp": "en-de"}, {"prompt": str(tmp_path / "plain.txt")}):
        assert notes(with_options(card, change), SEGMENTS[2:]) == 0
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
    card, reason = with_options(card, {"rule": rule}), "as the server will not answer: samples[1]: filtered (jailbreak)"
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
    assert f"1 segment counted as without an error (invalid=empty), {reason}" in caplog.messages
