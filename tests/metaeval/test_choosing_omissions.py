"""Choices among candidates that also say what is left out."""

from __future__ import annotations

from mbr_esd_metric import Annotation, Candidate, ErrorSpan
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.metaeval import Evaluator
from mbr_esd_metric.metaeval.choosing import Sampled, choose_all, oracle

MT, SRC = "Der Hund bellt.", "The big dog barks at night."
NIGHT = Annotation([ErrorSpan(18, 26, "major", "omission", side="source")])
SAID = Candidate("omitted major <at night>", format="compact-omissions")
NOTHING = Candidate("none", format="compact-omissions")


def test_rules_and_the_oracle_choose_over_both_sides() -> None:
    cell = Sampled(MT, [SAID, SAID, NOTHING], source=SRC)
    for rule in ("mbr", "mbr-corpus"):
        assert choose_all([[cell]], DecisionOptions(rule)) == [[NIGHT]]
    assert oracle([[cell]], [[[NIGHT]]]) == [[NIGHT]]
    assert oracle([[cell]], [[[Annotation()]]]) == [[Annotation()]]


def test_score_counts_both_sides_and_span_measures_the_translation() -> None:
    clean = [[[Annotation()], [Annotation()]]]
    found = Evaluator([[-5.0], [0.0]], clean, [[len(MT)], [len(MT)]]).evaluate([[NIGHT], [Annotation()]])
    assert found.acc_eq == 1.0
    assert found.spans is not None
    assert found.spans.values["softf1"] == 1.0
