"""The bridge to Google's toolkit, on a stand-in for its `EvalSet` with the same names; the toolkit is not needed.

That a real `EvalSet` gives the same leaderboard as the data folder was checked with mt-metrics-eval at 68a481a.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.mtme import annotation_of, evaluate_spans_of, load_eval_set
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.adapters.wmt.test_set import metric_set_of
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, compute_leaderboard
from tests.helpers.wmt_folder import write_texts


@dataclass
class Error:
    start: int
    end: int
    category: str | None = None
    severity: str | None = None
    score: float | None = None
    is_source_error: bool = False


@dataclass
class Rating:
    errors: list[Error] = field(default_factory=list)


TEXTS = {"refB": ["eins", "zwei"], "bad": ["ein!", "zwo"], "good": ["eins", "zwei"], "MSLC": ["x", "y"]}
GOLD = {"good": [-1.0, None], "refB": [0.0, 0.0], "bad": [-6.0, None], "MSLC": [-25.0, None], "refC": [None, None]}
METRICS = {
    "BLEU-refB": {"good": [90.0, 1.0], "bad": [10.0, 2.0], "MSLC": [0.0, 0.0]},
    "BLEU-refC": {"good": [80.0, 1.0], "bad": [20.0, 2.0], "MSLC": [0.0, 0.0]},
    "ours-src": {"good": [-1.0, 0.0], "bad": [-5.0, 0.0], "MSLC": [0.0, 0.0], "refB": [0.0, 0.0]},
}
BAD = Rating([Error(0, 3, "x", "major"), Error(0, 9, "y", "major", None, True), Error(3, 4, "z", "neutral")])
HUMAN: dict[str, list[Any]] = {"good": [Rating([Error(0, 4, "Style", "Minor")]), None], "bad": [BAD, None]}


class EvalSet:
    """The part of an `EvalSet` that the bridge uses."""

    name, lp, std_ref = "wmt24", "en-de", "refB"
    outlier_sys_names = frozenset({"MSLC"})
    metric_names = frozenset(METRICS)
    human_rating_names = frozenset({"mqm.rater1"})
    src = ("one", "two")
    sys_outputs = TEXTS

    def StdHumanScoreName(self, level: str) -> str | None:
        return "mqm" if level == "seg" else None

    def Scores(self, level: str, scorer: str) -> Any:
        assert level == "seg"
        return GOLD if scorer == "mqm" else METRICS[scorer]

    def Ratings(self, name: str) -> Any:
        return {"mqm.rater1": HUMAN}[name]


OURS: dict[str, list[Any]] = {"good": [Annotation([ErrorSpan(0, 4, "minor")]), EMPTY], "bad": [Rating(), Rating()]}


def test_what_is_left_out_or_cut_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = metric_set_of(load_eval_set(EvalSet())).notes
    assert line.startswith("BLEU-refC is left out in en-de: it uses refC, and the standard reference is refB")
    twice = Rating([Error(0, 4, "Style", "minor"), Error(0, 4, "Fluency", "minor"), Error(1, 1, "z", "minor")])
    people = {"good": [twice, None], "bad": [Rating([Error(0, 5, "x", "major")]), None]}
    monkeypatch.setattr(EvalSet, "Ratings", lambda *_: people)
    data = metric_set_of(load_eval_set(EvalSet(), {"ours-src": {**OURS, "good": people["good"]}}), ["ours-src"])
    assert data.notes[0].startswith("error spans of people, en-de in 2 translations: 1 end past the translation and")
    bad, good = (row[0] for row in data.human[0])
    assert bad == Annotation([ErrorSpan(0, 4, "major")])
    # A span that is marked twice is kept twice, a person's and a metric's; measures of characters see the set.
    assert len(good or ()) == 2  # type: ignore[arg-type]
    assert [len(row[0] or ()) for row in data.entries[0].spans or ()] == [0, 2]  # type: ignore[arg-type]


def test_span_measures_on_an_eval_set() -> None:
    scores = evaluate_spans_of(EvalSet(), OURS)
    assert scores.rated == 2
    assert scores.values["f1"] == 0.5
    assert (scores.counts.minor, scores.counts.gold_major, scores.counts.gold_minor) == (1, 1, 1)
    exact = evaluate_spans_of(EvalSet(), HUMAN, raters=["mqm.rater1"], measures=["softf1", "mpp-corpus"])
    assert exact.values == {"softf1": 1.0, "mpp-corpus": 1.0}


def test_the_same_leaderboard_as_from_the_data_folder(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "wmt24", "en-de")
    write_texts(layout, EvalSet.src, TEXTS)
    files.write_scores(layout.human_file("mqm", "seg.score"), {s: v for s, v in GOLD.items() if s != "refC"})
    for name, scores in METRICS.items():
        files.write_scores(layout.metric_file(name, "seg.score"), scores)
    human = {s: [annotation_of(r) for r in ratings] for s, ratings in HUMAN.items()}
    write_ratings(layout.human_file("mqm.rater1", "seg.rating"), human, {s: ["r", None] for s in human})
    sets = (load_test_set(tmp_path, "wmt24", "en-de"), load_eval_set(EvalSet()))
    settings = LeaderboardSettings(draws=20)
    stored, bridged = (compute_leaderboard("wmt24", [metric_set_of(one)], settings) for one in sets)
    assert (stored.rows, stored.human) == (bridged.rows, bridged.human)


def test_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="did you mean 'ours-src'"):
        metric_set_of(load_eval_set(EvalSet()), ["our-src"])
    with pytest.raises(OptionError, match="unknown set of human ratings 'mqm.rater9'"):
        evaluate_spans_of(EvalSet(), OURS, raters=["mqm.rater9"])
    monkeypatch.setattr(EvalSet, "metric_names", frozenset())
    monkeypatch.setattr(EvalSet, "human_rating_names", frozenset())
    with pytest.raises(InputError, match="read_stored_metric_scores=True"):
        metric_set_of(load_eval_set(EvalSet()))
    monkeypatch.setattr(EvalSet, "StdHumanScoreName", lambda *_: None)
    with pytest.raises(InputError, match="wmt24 en-de: no gold scores"):
        metric_set_of(load_eval_set(EvalSet()))
