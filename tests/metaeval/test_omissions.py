"""Omissions: precision and recall of spans of the source, and choices among candidates."""

from __future__ import annotations

import numpy as np
import pytest

from mbr_esd_metric import Annotation, Candidate, ErrorSpan
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.metaeval import Evaluator, evaluate_omissions
from mbr_esd_metric.metaeval.choosing import Sampled, choose_all, oracle

MT, SRC = "Der Hund bellt.", "The big dog barks at night."
NIGHT = Annotation([ErrorSpan(18, 26, "major", "omission", side="source")])
OMISSION = Candidate("omitted major <at night>", format="compact-omissions")
NOTHING = Candidate("none", format="compact-omissions")


def left_out(*places: tuple[int, int], unplaced: int = 0) -> Annotation:
    spans = [ErrorSpan(start, end, "major", side="source") for start, end in places]
    return Annotation([*spans, ErrorSpan(0, 9, "minor")]).missing(["minor"] * unplaced)


def test_a_span_is_right_if_it_meets_one_of_the_other_side() -> None:
    human = [[left_out((0, 5), (10, 15)), left_out((3, 4)), left_out(), None]]
    predicted = [[left_out((4, 11)), left_out((4, 8), (20, 25)), left_out((1, 2)), left_out((1, 2))]]
    scores = evaluate_omissions(predicted, [human])
    assert (scores.predicted, scores.right, scores.gold, scores.found) == (4, 1, 3, 2)
    assert (scores.precision, scores.recall) == (1 / 4, 2 / 3)
    assert scores.f1 == pytest.approx(2 * (1 / 4) * (2 / 3) / (1 / 4 + 2 / 3))
    assert scores.rated == 3
    # Several raters count as several translations, and omissions without a place are counted alone.
    scores = evaluate_omissions([[left_out((0, 5))]], [[[left_out((3, 9))]], [[left_out()]], [[None]]])
    assert (scores.precision, scores.recall, scores.rated) == (1 / 2, 1.0, 2)
    scores = evaluate_omissions([[left_out(unplaced=2), left_out(unplaced=1)]], [[[left_out(unplaced=1), left_out()]]])
    assert scores.unplaced == 3
    assert np.isnan([scores.precision, scores.recall, scores.f1]).all()


def test_rules_and_the_oracle_choose_over_both_sides() -> None:
    cell = Sampled(MT, [OMISSION, OMISSION, NOTHING], source=SRC)
    for rule in ("mbr", "mbr-corpus"):
        assert choose_all([[cell]], DecisionOptions(rule)) == [[NIGHT]]
        one_sided = Sampled(MT, [Candidate("none", format="compact")])
        assert choose_all([[cell, one_sided]], DecisionOptions(rule)) == [[NIGHT, Annotation()]]
    assert oracle([[cell]], [[[NIGHT]]]) == [[NIGHT]]
    assert oracle([[cell]], [[[Annotation()]]]) == [[Annotation()]]


def test_score_counts_both_sides_and_span_measures_the_translation() -> None:
    clean = [[[Annotation()], [Annotation()]]]
    scores = Evaluator([[-5.0], [0.0]], clean, [[len(MT)], [len(MT)]]).evaluate([[NIGHT], [Annotation()]])
    assert scores.acc_eq == 1.0
    assert scores.spans is not None
    assert scores.spans.values["softf1"] == 1.0
