"""MQM scores, span by span, by hand."""

from __future__ import annotations

import pytest

from mbr_esd_metric import Annotation, ErrorSpan, mqm_score
from mbr_esd_metric.core.mqm import unit_score

#: Severity and category of one span -> its penalty under "paper" and under "google".
PENALTIES = {
    ("major", "accuracy/mistranslation"): (-5.0, -5.0),
    ("minor", "accuracy/mistranslation"): (-1.0, -1.0),
    ("minor", "Fluency/Punctuation"): (-1.0, -0.1),
    ("major", "fluency/punctuation"): (-5.0, -5.0),
    ("major", "Non-translation!"): (-5.0, -25.0),
    ("minor", "non-translation"): (-1.0, -1.0),
    ("major", None): (-5.0, -5.0),
    ("minor", None): (-1.0, -1.0),
}


@pytest.mark.parametrize(("severity", "category"), PENALTIES)
def test_each_span_costs_what_the_weights_say(severity: str, category: str | None) -> None:
    annotation = Annotation([ErrorSpan(0, 2, severity, category)])  # type: ignore[arg-type]
    paper, google = PENALTIES[severity, category]
    assert (mqm_score(annotation), mqm_score(annotation, "google")) == (paper, google)


@pytest.mark.parametrize("weights", ["paper", "google"])
def test_the_sum_ends_at_the_floor(weights: str) -> None:
    spans = [ErrorSpan(at, at + 1, "major") for at in range(7)]
    scores = [mqm_score(Annotation(spans[:count]), weights) for count in range(8)]
    assert scores == [0.0, -5.0, -10.0, -15.0, -20.0, -25.0, -25.0, -25.0]
    assert [unit_score(score, weights) for score in scores[:6]] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.0])


def test_penalties_are_added_one_after_the_other_with_every_python() -> None:
    """From Python 3.12 on `sum` gives -0.6000000000000001 here."""
    commas = [ErrorSpan(i, i + 1, "minor", "Fluency/Punctuation") for i in range(6)]
    assert mqm_score(commas, "google") == -0.1 - 0.1 - 0.1 - 0.1 - 0.1 - 0.1
