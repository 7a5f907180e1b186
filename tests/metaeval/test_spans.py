"""Span evaluation, omissions, lambda sweep and curves of precision and recall, against plain definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbr_esd_metric import Annotation, Candidate, ErrorSpan, soft_f1
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval import (
    MetricEntry,
    MetricSet,
    evaluate_metrics,
    evaluate_omissions,
    evaluate_spans,
    lambda_sweep,
)
from mbr_esd_metric.metaeval.choosing import Sampled, choose_all
from mbr_esd_metric.metaeval.spans import (
    OmissionScores,
    SpanCounts,
    confidence_of,
    expand_measures,
    precision_recall_curve,
    rater_agreement,
)
from tests.helpers.annotations import matrix

LENGTH = 30


def annotations(rng: np.random.Generator, systems: int, segments: int, most: int = 3) -> list[list[Annotation]]:
    return matrix(rng, systems, segments, LENGTH, most, sure=1.0)


def vector(annotation: Annotation) -> list[float]:
    return [
        1.0 * any(s.severity == "major" and s.start <= i < s.end for s in annotation)
        + 0.5 * any(s.severity == "minor" and s.start <= i < s.end for s in annotation)
        for i in range(LENGTH)
    ]


def plain_parts(predicted: Annotation, human: Annotation, name: str) -> tuple[float, float, float]:
    """The credit of both sides and the most that each could earn, character by character."""
    if name == "softdice-corpus":
        shared = sum(min(x, y) for x, y in zip(vector(predicted), vector(human), strict=True))
        return shared, sum(vector(predicted)), sum(vector(human))
    covers = [
        [Counter(span.severity for span in side if span.start <= i < span.end) for i in range(LENGTH)]
        for side in (predicted, human)
    ]
    if name == "f1-corpus":  # a character counts once
        covers = [[Counter(set(one)) for one in side] for side in covers]
        credits = [1.0 if p & h else 0.5 if p and h else 0.0 for p, h in zip(*covers, strict=True)]
        return sum(credits), *(sum(map(bool, side)) for side in covers)
    credit = 0.0
    for p, h in zip(*covers, strict=True):
        same = (p & h).total()
        credit += same + 0.5 * (min(p.total(), h.total()) - same)
    return credit, *(sum(span.end - span.start for span in side) for side in (predicted, human))


def plain_corpus(pairs: Sequence[tuple[Annotation, Annotation]], name: str) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean."""
    earned, most, gold = np.sum([plain_parts(a, b, name) for a, b in pairs], axis=0)
    if not most + gold:
        return 1.0, 1.0, 1.0
    return earned / most if most else 1.0, earned / gold if gold else 1.0, 2 * earned / (most + gold)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_measures_are_their_definitions(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    predicted, human = annotations(rng, 2, 4, most), annotations(rng, 2, 4, most)
    human_matrix: list[list[Annotation | None]] = [list(row) for row in human]
    human_matrix[0][2] = None
    corpus = ("f1-corpus", "softdice-corpus", "f1-wmt25-corpus")
    of_segments = ("softf1", "f1", "softdice", "mpp")
    measures = expand_measures(["scoresim", "softf1+scoresim", *(f"{name}-parts" for name in (*of_segments, *corpus))])
    scores = evaluate_spans(predicted, [human_matrix], np.full((2, 4), LENGTH), measures)
    pairs = [(predicted[i][j], human[i][j]) for i, j in itertools.product(range(2), range(4)) if (i, j) != (0, 2)]
    assert scores.rated == 7
    for name in (*of_segments, "scoresim", "softf1+scoresim"):
        similarity = get_similarity(name)
        assert scores.values[name] == pytest.approx(np.mean([similarity.scalar(a, b, LENGTH) for a, b in pairs]))
        if name in of_segments:
            parts = np.mean([similarity.precision_recall(a, b, LENGTH) for a, b in pairs], axis=0)
            assert [scores.values[f"{name}-{part}"] for part in ("precision", "recall")] == pytest.approx(parts)
    for name in corpus:
        parts = [scores.values[f"{name}{part}"] for part in ("-precision", "-recall", "")]
        assert parts == pytest.approx(plain_corpus(pairs, name), abs=1e-12)
    assert scores.counts.major == sum(s.severity == "major" for a, _ in pairs for s in a)
    assert scores.counts.gold_minor == sum(s.severity == "minor" for _, b in pairs for s in b)
    for values in scores.statistics.values():
        assert np.argwhere(np.isnan(values).any(axis=2)).tolist() == [[0, 2]]


def test_silent_and_empty_predictions() -> None:
    names = expand_measures(["f1-parts", "f1-corpus-parts", "mpp-corpus-parts", "softdice-corpus-parts"])
    silent = evaluate_spans([[()]], [ONE], [[LENGTH]], names).values
    assert [silent[name] for name in names] == [0.0, 1.0, 0.0] * 4
    nothing = evaluate_spans([[()]], [[[()]]], [[LENGTH]], names)
    assert set(nothing.values.values()) == {1.0}
    assert math.isnan(nothing.counts.ratio)


def test_corpus_mpp_adds_up_spans_not_translations() -> None:
    predicted = [[ErrorSpan(0, 4, "major")], [ErrorSpan(i, i + 2, "minor") for i in (0, 10, 20)]]
    human = [[ErrorSpan(2, 6, "major")], [ErrorSpan(0, 2, "minor")]]
    scores = evaluate_spans([predicted], [[human]], [[LENGTH, LENGTH]])
    precision, recall = (0.5 + 1) / 4, (0.5 + 1) / 2
    assert scores.values["mpp-corpus"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert scores.counts.ratio == 2.0


def test_several_raters_count_their_mean() -> None:
    rng = np.random.default_rng(4)
    predicted, one, two = (annotations(rng, 1, 6) for _ in range(3))
    second: list[list[Annotation | None]] = [[None, *two[0][1:]]]
    mean = evaluate_spans(predicted, [one, second], [[LENGTH] * 6], ["softf1"])
    means = [
        np.mean([soft_f1(span, human, LENGTH) for human in ([a] if number == 0 else [a, b])])
        for number, (span, a, b) in enumerate(zip(predicted[0], one[0], two[0], strict=True))
    ]
    assert mean.values["softf1"] == pytest.approx(np.mean(means))


ONE: list[list[Any]] = [[Annotation([ErrorSpan(0, 9, "major")])]]


@pytest.mark.parametrize(
    ("predicted", "gold", "options", "message"),
    [
        ([[None]], [ONE], {}, "no prediction for system 1, segment 1"),
        (ONE, [ONE], {"lengths": [[5]]}, r"rater 1, system 1, segment 1: error span \[0, 9\) ends past"),
        ([[(), ()]], [ONE], {}, r"the shape of prediction differs from that of the lengths \(1 systems x 1 segments"),
        (ONE, [[[None]]], {}, "no translation is rated"),
        (ONE, [], {}, "no human annotations"),
        (ONE, [ONE], {"measures": ["mp-corpus"]}, "did you mean 'mpp-corpus'"),
        (ONE, [ONE], {"measures": ["scoresim-precision"]}, "has no precision and recall"),
    ],
)
def test_span_inputs_are_checked(predicted: Any, gold: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, OptionError), match=message):
        evaluate_spans(predicted, gold, **{"lengths": [[LENGTH]], **options})


def test_a_sweep_drops_the_spans_below_each_threshold() -> None:
    predicted = annotations(np.random.default_rng(9), 4, 20)
    for threshold, swept in lambda_sweep(predicted).items():
        assert swept == [
            [Annotation(s for s in a if (s.confidence or 0) >= threshold) for a in row] for row in predicted
        ]
    with pytest.raises(InputError, match=r"system 2, segment 1: .* \[0, 1\) has confidence None"):
        lambda_sweep([[[]], [[ErrorSpan(0, 1, "major")]]])
    with pytest.raises(OptionError, match=r"lambda must be in \[0, 1\], like confidences \(got 1.5"):
        lambda_sweep(predicted, [1.5])


def test_without_raters_spans_are_counted_where_there_is_gold() -> None:
    spans = annotations(np.random.default_rng(9), 2, 2)
    gold = np.array([[0.0, np.nan], [-2.0, np.nan]])
    data = MetricSet("en-de", gold, np.full((2, 2), LENGTH), (), [MetricEntry.of_spans("m", spans)])
    (result,) = evaluate_metrics(data).values()
    rated = Counter(span.severity for row in spans for span in row[0])
    assert (result.counts.major, result.counts.minor) == (rated["major"], rated["minor"])
    assert set(result.values) == {"spa", "acc_eq"}


def test_what_a_person_marks_twice_counts_twice() -> None:
    """In span numbers, MPP and scoresim; the measures of characters see covered characters."""
    once = [ErrorSpan(2, 6, "minor", "Accuracy"), ErrorSpan(8, 9, "major")]
    twice = Annotation.of_rater([*once, ErrorSpan(2, 6, "minor", "Style")])
    names = ("mpp-corpus", "softf1", "f1", "softdice", "scoresim")
    scores = evaluate_spans([[Annotation(twice)]], [[[twice]]], [[12]], names)
    assert scores.counts == SpanCounts(1, 1, 1, 2)
    # P = 1, and R = 2 of 3, as each predicted span is matched once.
    assert [scores.values[name] for name in names] == pytest.approx([4 / 5, 1, 1, 1, 1 - 1 / 25])


def test_one_rater_against_the_others_where_both_rated() -> None:
    a, b, c = Annotation([ErrorSpan(0, 4, "major")]), Annotation([ErrorSpan(0, 6, "major")]), Annotation()
    raters = [[[a, b, None]], [[b, None, a]], [[c, a, None]]]
    scores = rater_agreement(raters, [[10, 10, 10]], ("softf1", "softdice-corpus"))
    pairs = [[(a, [b, c]), (b, [a, c]), (c, [a, b])], [(b, [a]), (a, [b])]]
    # A translation with three raters does not count more than one with two.
    means = [np.mean([soft_f1(one, other, 10) for one, others in each for other in others]) for each in pairs]
    assert scores["softf1"] == pytest.approx(np.mean(means), abs=1e-12)
    assert 0 < scores["softdice-corpus"] < 1
    assert rater_agreement([[[a, None]], [[None, b]]], [[10, 10]], ("softf1",)) == {}
    assert rater_agreement([[[a]]], [[10]], ("softf1",)) == {}


@pytest.mark.parametrize("measure", ["f1-corpus", "f1-wmt25-corpus", "mpp-corpus", "softdice-corpus"])
def test_each_point_is_an_evaluation_of_what_is_left(measure: str) -> None:
    rng = np.random.default_rng(5)
    predicted = matrix(rng, 3, 8, LENGTH, sure=0.9)  # a span without a confidence is certain
    human = [matrix(rng, 3, 8, LENGTH) for _ in range(2)]
    lengths = np.full((3, 8), LENGTH)
    curve = precision_recall_curve(predicted, human, lengths, measure)
    assert [point.threshold for point in curve.points[:3]] == [math.inf, 1.0, 0.9]
    assert (curve.points[0].precision, curve.points[0].recall) == (1.0, 0.0)
    for point in curve.points:
        left = [[Annotation(s for s in a if confidence_of(s) >= point.threshold) for a in row] for row in predicted]
        values = evaluate_spans(left, human, lengths, expand_measures([f"{measure}-parts"])).values
        assert point.value == pytest.approx(values[measure], abs=1e-12)
        assert point.precision == pytest.approx(values[f"{measure}-precision"], abs=1e-12)
        assert point.recall == pytest.approx(values[f"{measure}-recall"], abs=1e-12)
    assert curve.best.value == max(point.value for point in curve.points)


def test_area_is_average_precision_where_each_character_is_a_span_of_one_severity() -> None:
    rng = np.random.default_rng(6)
    scores, positive = np.round(rng.random((5, LENGTH)), 1), rng.random((5, LENGTH)) < 0.3
    predicted = [[ErrorSpan(i, i + 1, "major", confidence=float(c)) for i, c in enumerate(row)] for row in scores]
    human = [[ErrorSpan(int(i), int(i) + 1, "major") for i in np.flatnonzero(row)] for row in positive]
    area = recall = 0.0
    for threshold in sorted(set(scores.ravel().tolist()), reverse=True):
        right, now = positive[scores >= threshold].mean(), positive[scores >= threshold].sum() / positive.sum()
        area, recall = area + (now - recall) * right, now
    curve = precision_recall_curve([predicted], [[human]], [[LENGTH] * 5])
    assert curve.area == pytest.approx(area, abs=1e-12)


def test_silence_has_no_area_and_only_measures_of_the_corpus_have_curves() -> None:
    assert precision_recall_curve([[()]], [ONE], [[LENGTH]]).area == 0.0
    with pytest.raises(OptionError, match="corpus"):
        precision_recall_curve([[()]], [ONE], [[LENGTH]], "softf1")


MT, SRC = "Der Hund bellt.", "The big dog barks at night."
NIGHT = Annotation([ErrorSpan(18, 26, "major", "omission", side="source")])
OMISSION = Candidate("omitted major <at night>", format="compact-omissions")
NOTHING = Candidate("none", format="compact-omissions")


def left_out(*places: tuple[int, int], unplaced: int = 0) -> Annotation:
    spans = [ErrorSpan(start, end, "major", side="source") for start, end in places]
    return Annotation([*spans, ErrorSpan(0, 9, "minor")]).with_unplaced(["minor"] * unplaced)


def test_a_span_is_right_if_it_meets_one_of_the_other_side() -> None:
    human = [[left_out((0, 5), (10, 15)), left_out((3, 4)), left_out(), None]]
    predicted = [[left_out((4, 11)), left_out((4, 8), (20, 25)), left_out((1, 2)), left_out((1, 2))]]
    scores = evaluate_omissions(predicted, [human])
    assert scores == OmissionScores(predicted=4, right=1, gold=3, recalled=2, unplaced=0, rated=3)
    assert (scores.precision, scores.recall) == (1 / 4, 2 / 3)
    assert scores.f1 == pytest.approx(2 * (1 / 4) * (2 / 3) / (1 / 4 + 2 / 3))
    # Several raters count as several translations, and omissions without a place are counted alone.
    scores = evaluate_omissions([[left_out((0, 5))]], [[[left_out((3, 9))]], [[left_out()]], [[None]]])
    assert (scores.precision, scores.recall, scores.rated) == (1 / 2, 1.0, 2)
    scores = evaluate_omissions([[left_out(unplaced=2)]], [[[left_out(unplaced=1)]]])
    assert (scores.unplaced, *map(math.isnan, (scores.precision, scores.recall, scores.f1))) == (2, True, True, True)


@pytest.mark.parametrize("human", [NIGHT, Annotation()])
def test_the_oracle_chooses_over_both_sides(human: Annotation) -> None:
    cell = Sampled(MT, [OMISSION, OMISSION, NOTHING], source=SRC)
    assert choose_all([[cell]], DecisionOptions("oracle"), human=[[[human]]]) == [[human]]
    one_sided = Sampled(MT, [Candidate("none", format="compact")])
    assert choose_all([[cell, one_sided]], DecisionOptions("mbr-corpus")) == [[NIGHT, Annotation()]]


def test_score_counts_both_sides_and_span_measures_the_translation() -> None:
    clean, metric = [[[Annotation()], [Annotation()]]], MetricEntry.of_spans("m", [[NIGHT], [Annotation()]])
    data = MetricSet("en-de", np.array([[-5.0], [0.0]]), np.full((2, 1), len(MT)), clean, [metric])
    values = evaluate_metrics(data)["m", False].values
    assert (values["acc_eq"], values["softf1"]) == (1.0, 1.0)
