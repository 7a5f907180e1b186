"""Annotations, equal whatever the order of their spans, and their MQM scores by hand."""

from __future__ import annotations

import itertools
import pickle
import warnings

import pytest

from mbr_esd_metric import Annotation, ErrorSpan, mqm_score
from mbr_esd_metric.core.annotation import Severity, unit_score
from mbr_esd_metric.errors import InputError

SPANS = (ErrorSpan(0, 2, "major"), ErrorSpan(3, 5, "minor"), ErrorSpan(4, 6, "major"))


def test_the_order_of_spans_makes_no_difference() -> None:
    for count in range(4):
        sound = Annotation(SPANS[:count])
        assert sound.spans == SPANS[:count]
        for order in itertools.permutations(SPANS[:count]):
            for other in (Annotation(order), Annotation.of_rater(order), Annotation.of_keys({s.key: s for s in order})):
                assert (other, other.spans, hash(other)) == (sound, sound.spans, hash(sound))


def test_the_side_is_part_of_a_span() -> None:
    marked, omitted = ErrorSpan(0, 3, "minor"), ErrorSpan(0, 3, "minor", side="source")
    assert repr(marked) == "ErrorSpan(start=0, end=3, severity='minor', category=None, confidence=None)"
    assert repr(omitted).endswith("confidence=None, side='source')")
    both = Annotation([omitted, ErrorSpan(7, 9, "major"), marked])
    assert [(span.side, span.start) for span in both] == [("translation", 0), ("translation", 7), ("source", 0)]
    assert both != Annotation([marked, ErrorSpan(7, 9, "major")])
    assert Annotation([{"start": 0, "end": 3, "severity": "minor", "side": "source"}]) == Annotation([omitted])


def test_both_sides_are_joined_into_one_text_and_split_again() -> None:
    spans = [ErrorSpan(2, 4, "minor", "fluency", 0.5), ErrorSpan(0, 3, "major", "omission", 0.25, "source")]
    both = Annotation(spans).with_unplaced(["minor"])
    joined = both.concatenate_sides(10)
    assert joined.key == ((2, 4, "minor"), (10, 13, "major"))
    back = joined.split_sides(10)
    assert (back, list(back)) == (both, spans) == (pickle.loads(pickle.dumps(both)), spans)
    # A span over the seam, which only a rule of another package could make, is one on each side.
    seam = Annotation([ErrorSpan(8, 12, "minor")]).split_sides(10)
    assert [*seam] == [ErrorSpan(8, 10, "minor"), ErrorSpan(0, 2, "minor", side="source")]
    with pytest.raises(InputError, match=r"\[2, 4\) ends past the translation, which has 3"):
        both.concatenate_sides(3)


def test_scores_count_both_sides_and_what_has_no_place() -> None:
    spans = Annotation([ErrorSpan(0, 3, "minor"), ErrorSpan(0, 3, "major", side="source")])
    assert [mqm_score(spans.with_unplaced(["major"] * n)) for n in (0, 1, 5)] == [-6, -11, -25]
    assert Annotation().with_unplaced(["minor"]) != Annotation()
    assert not Annotation().with_unplaced(["minor"]).clean


def test_a_severity_that_nobody_knows_is_a_warning() -> None:
    """It has no span, as everywhere; "neutral" says so itself."""
    with pytest.warns(UserWarning, match="error span 2 is left out: its severity 'majr' is not one of critical, major"):
        spans = Annotation([{"start": 0, "end": 2, "severity": s} for s in ("minor", "majr")])
    assert [span.severity for span in spans] == ["minor"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Annotation([{"start": 0, "end": 2, "severity": "Neutral"}]) == Annotation()


def test_each_span_costs_what_the_weights_say() -> None:
    costs: list[tuple[Severity, str | None, float, float]] = [
        ("major", "accuracy/mistranslation", -5.0, -5.0),
        ("minor", "accuracy/mistranslation", -1.0, -1.0),
        ("minor", "Fluency/Punctuation", -1.0, -0.1),
        ("major", "fluency/punctuation", -5.0, -5.0),
        ("major", "Non-translation!", -5.0, -25.0),
        ("minor", "non-translation", -1.0, -1.0),
        ("major", None, -5.0, -5.0),
        ("minor", None, -1.0, -1.0),
    ]
    for severity, category, *expected in costs:
        annotation = [ErrorSpan(0, 2, severity, category)]
        assert [mqm_score(annotation, weights) for weights in ("paper", "google")] == expected

    # The sum ends at the floor.
    assert [mqm_score([ErrorSpan(at, at + 1, "major") for at in range(n)]) for n in (4, 5, 6)] == [-20, -25, -25]
    assert [unit_score(score) for score in (0, -5, -25)] == [1.0, 0.8, 0.0]


def test_penalties_are_added_one_after_the_other_with_every_python() -> None:
    """From Python 3.12 on `sum` gives -0.6000000000000001 here."""
    commas = [ErrorSpan(i, i + 1, "minor", "Fluency/Punctuation") for i in range(6)]
    assert mqm_score(commas, "google") == -0.1 - 0.1 - 0.1 - 0.1 - 0.1 - 0.1
