"""The bridge to Google's toolkit, on a stand-in for its `EvalSet` with the same names; the toolkit is not needed.

That a real `EvalSet` gives the same leaderboard as the data folder was checked with mt-metrics-eval at 68a481a.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mbr_esd_metric.adapters.mtme import annotation_of, evaluate_spans_of, load_eval_set
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, read_scores, read_text
from mbr_esd_metric.adapters.wmt.rating_files import read_ratings
from mbr_esd_metric.adapters.wmt.test_set import metric_set_of
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, compute_leaderboard
from tests.helpers.refused import refused
from tests.helpers.wmt_folder import write_folder


def rating(*errors: tuple[int, int, str], source: bool = False) -> Any:
    """A `Rating` of the toolkit."""
    keys = ("start", "end", "severity")
    made = [SimpleNamespace(category="x", is_source_error=source, **dict(zip(keys, e, strict=True))) for e in errors]
    return SimpleNamespace(errors=made)


class EvalSet:
    """The part of an `EvalSet` that the bridge uses, of a data folder."""

    outlier_sys_names: frozenset[str] = frozenset()

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.name, self.lp, self.std_ref = layout.test_set, layout.lp, "refA"
        self.metric_names = frozenset(layout.metrics())
        self.human_rating_names = frozenset(layout.human_files("seg.rating"))
        self.src = read_text(layout.source(), "source")
        self.sys_outputs = {s: read_text(path, "hypothesis") for s, path in layout.outputs().items()}

    def StdHumanScoreName(self, level: str) -> str | None:
        return "mqm" if level == "seg" else None

    def Scores(self, level: str, scorer: str) -> Any:
        of = self.layout.human_file if scorer == "mqm" else self.layout.metric_file
        return read_scores(of(scorer, f"{level}.score"))

    def Ratings(self, name: str) -> Any:
        people = read_ratings(self.layout.human_file(name, "seg.rating"))
        return {s: [one and rating(*(span.key for span in one)) for one in row] for s, row in people.items()}


@pytest.fixture
def evs(tmp_path: Path) -> EvalSet:
    return EvalSet(write_folder(tmp_path))


def test_the_same_leaderboard_as_from_the_data_folder(evs: EvalSet) -> None:
    stored = load_test_set(evs.layout.data, evs.name, evs.lp)
    bridged = load_eval_set(evs, {"spans-src": read_ratings(evs.layout.metric_file("spans-src", "seg.rating"))})
    settings = LeaderboardSettings(draws=20)
    names = ["length", "noise", "spans"]
    first, second = (compute_leaderboard("made", [metric_set_of(one, names)], settings) for one in (stored, bridged))
    assert (first.rows, first.human) == (second.rows, second.human)
    evs.outlier_sys_names, evs.std_ref = frozenset({"C"}), "refB"
    one = load_eval_set(evs)
    assert one.systems == ("A", "B", "D")
    assert metric_set_of(one).notes[0].startswith("noise-refA is left out in en-de: it uses refA, and the standard ref")


def test_span_measures_on_an_eval_set(evs: EvalSet) -> None:
    exact = evaluate_spans_of(evs, evs.Ratings("mqm.merged"), raters=["mqm.merged"], measures=["softf1", "mpp-corpus"])
    assert exact.values == {"softf1": 1.0, "mpp-corpus": 1.0}
    assert exact.counts.major == exact.counts.gold_major > 0
    # Errors of the source, and neutral ones, are not spans.
    for none in (rating((0, 9, "major"), source=True), rating((3, 4, "neutral"))):
        assert annotation_of(none) == Annotation()


def test_problems(evs: EvalSet, monkeypatch: pytest.MonkeyPatch) -> None:
    evs.metric_names = evs.human_rating_names = frozenset()
    refused("read_stored_metric_scores=True", load_eval_set, evs)
    monkeypatch.setattr(EvalSet, "StdHumanScoreName", lambda *_: None)
    refused("made en-de: no gold scores", load_eval_set, evs)
