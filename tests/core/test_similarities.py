"""Every similarity, held to its equation, to its batched form and to what it promises."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric import Annotation, ErrorSpan, f1, mpp, score_sim, soft_dice, soft_f1
from mbr_esd_metric.core.kernels import AnnotationTable, severity_vector
from mbr_esd_metric.core.similarities import SIMILARITIES, get_similarity
from mbr_esd_metric.core.similarities.mpp import Mpp
from mbr_esd_metric.errors import InputError, OptionError
from tests.helpers.annotations import annotations, drawn, several

EMPTY = Annotation()
NAMES = [*SIMILARITIES.names(), "softf1+scoresim", "0.7*softf1+0.3*mpp"]


def plain_vectors(annotation: Annotation, length: int) -> tuple[list[bool], list[bool], list[float]]:
    major = [any(s.severity == "major" and s.start <= i < s.end for s in annotation) for i in range(length)]
    minor = [any(s.severity == "minor" and s.start <= i < s.end for s in annotation) for i in range(length)]
    return major, minor, [1.0 * m + 0.5 * n for m, n in zip(major, minor, strict=True)]


def plain_soft_f1(c: Annotation, s: Annotation, length: int) -> float:
    v_c, v_s = plain_vectors(c, length)[2], plain_vectors(s, length)[2]
    distance = sum(abs(x - y) for x, y in zip(v_c, v_s, strict=True))
    p = max(0.0, 1 - distance / (length + sum(v_c) + 1))
    r = max(0.0, 1 - distance / (length + sum(v_s) + 1))
    return 2 * p * r / (p + r) if p + r else 0.0


def plain_soft_dice(c: Annotation, s: Annotation, length: int) -> float:
    v_c, v_s = plain_vectors(c, length)[2], plain_vectors(s, length)[2]
    return (2 * sum(map(min, v_c, v_s)) + 1) / (sum(v_c) + sum(v_s) + 1)


def plain_f1(c: Annotation, s: Annotation, length: int) -> float:
    (mc, nc, _), (ms, ns, _) = plain_vectors(c, length), plain_vectors(s, length)
    credit = sum(max(mc[i] * ms[i], nc[i] * ns[i], 0.5 * mc[i] * ns[i], 0.5 * nc[i] * ms[i]) for i in range(length))
    size = sum(mc[i] or nc[i] for i in range(length)) + sum(ms[i] or ns[i] for i in range(length))
    return 2 * credit / size if size else 1.0


def plain_score_sim(c: Annotation, s: Annotation, length: int) -> float:
    def score(annotation: Annotation) -> float:
        return max(-25, sum(-5 if span.severity == "major" else -1 for span in annotation))

    return 1 - abs(score(c) - score(s)) / 25


def plain_mpp(c: Annotation, s: Annotation, length: int) -> float:
    """Every matching is tried."""
    few, many = sorted((list(c), list(s)), key=len)
    if not few:
        return float(not many)
    best = 0.0
    for partners in itertools.permutations(range(len(many)), len(few)):
        p = r = 0.0
        for span, at in zip(few, partners, strict=True):
            overlap = max(0, min(span.end, many[at].end) - max(span.start, many[at].start))
            p += overlap / (span.end - span.start) / len(few)
            r += overlap / (many[at].end - many[at].start) / len(many)
        best = max(best, 2 * p * r / (p + r) if p + r else 0.0)
    return best


PLAIN: dict[str, Callable[[Annotation, Annotation, int], float]] = {
    "softf1": plain_soft_f1,
    "softdice": plain_soft_dice,
    "f1": plain_f1,
    "scoresim": plain_score_sim,
    "mpp": plain_mpp,
}


@pytest.mark.parametrize("name", PLAIN)
@given(case=several(2, 2))
def test_the_scalar_is_the_equation(name: str, case: tuple[int, list[Annotation]]) -> None:
    length, (c, s) = case
    assert get_similarity(name).scalar(c, s, length) == pytest.approx(PLAIN[name](c, s, length), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(case=several(1, 5))
def test_the_batched_form_is_the_scalar(name: str, case: tuple[int, list[Annotation]]) -> None:
    length, items = case
    similarity, table = get_similarity(name), AnnotationTable(items, length)
    rows, columns = slice(0, len(items)), slice(len(items) // 2, len(items))
    matrix = similarity.matrix(table, rows, columns)
    expected = [[similarity.scalar(c, s, length) for s in items[columns]] for c in items]
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(case=several(2, 2))
def test_range_symmetry_identity_precision_and_recall(name: str, case: tuple[int, list[Annotation]]) -> None:
    length, (c, s) = case
    similarity = get_similarity(name)
    value = similarity.scalar(c, s, length)
    assert 0 <= value <= 1
    assert value == pytest.approx(similarity.scalar(s, c, length), abs=1e-15)
    assert similarity.scalar(c, Annotation(reversed(c.spans)), length) == pytest.approx(1)
    assert similarity.scalar(EMPTY, EMPTY, length) == 1
    both = similarity.precision_recall(c, s, length)
    assert (both is not None) == (name in ("f1", "softf1", "softdice", "mpp"))
    if both is not None:  # their harmonic mean is the similarity, and the other way round they change places
        precision, recall = both
        assert 0 <= min(both) <= max(both) <= 1 + 1e-12
        harmonic = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        assert harmonic == pytest.approx(value, abs=1e-12)
        assert similarity.precision_recall(s, c, length) == pytest.approx((recall, precision))


def test_soft_f1_as_printed_leaves_the_unit_interval() -> None:
    both = Annotation([ErrorSpan(0, 80, "major"), ErrorSpan(0, 80, "minor")])
    assert soft_f1(both, EMPTY, 100, clip=False, eps=0) == pytest.approx(-0.714, abs=5e-4)
    assert soft_f1(both, EMPTY, 100) == 0


@pytest.mark.parametrize("edit", ["add", "delete"])
@given(length=st.integers(2, 40), data=st.data())
def test_soft_dice_and_soft_f1_fall_under_every_edit(edit: str, length: int, data: st.DataObject) -> None:
    """Add: a new span where there is none. Delete: a span that is alone on some character. Up to six on each other."""
    start = edited = data.draw(annotations(length))
    before = {"softdice": 1.0, "softf1": 1.0}
    for _ in range(6):
        levels = severity_vector(edited, length)
        if edit == "add":
            severity = data.draw(st.sampled_from(["major", "minor"]))
            free = np.flatnonzero(levels == 0).tolist()
            edits = [Annotation([*edited, ErrorSpan(at, at + 1, severity)]) for at in free]
        else:
            edits = [Annotation(other for other in edited if other != span) for span in edited]
        edits = [one for one in edits if (severity_vector(one, length) != levels).any()]
        if not edits:
            break
        edited = data.draw(st.sampled_from(edits))
        after = {name: get_similarity(name).scalar(edited, start, length) for name in before}
        assert after["softdice"] < before["softdice"]
        assert after["softf1"] < before["softf1"] or (severity_vector(start, length) > 1).any()
        before = after


@pytest.mark.parametrize("options", [(0.0, None), (0.4, None), (1.0, None), (0.0, {"major": 1.0, "minor": 0.2})])
def test_mpp_in_batches_matches_where_enumeration_ends(options: tuple[float, dict[str, float] | None]) -> None:
    """Annotations so dense that some matchings are too large to enumerate, and some with five groups of spans."""
    rng = random.Random(0)
    items = [EMPTY, *(drawn(rng, 12, 9) for _ in range(16))]
    for _ in range(16):
        starts = [rng.randrange(10) + 40 * rng.randrange(5) for _ in range(rng.randint(0, 14))]
        items.append(Annotation([ErrorSpan(a, a + rng.randint(1, 12), rng.choice(["major", "minor"])) for a in starts]))
    similarity, table, some = Mpp(*options), AnnotationTable(items, 200), slice(3, 30)
    assert max(map(len, items[:17])) > 6
    matrix = similarity.matrix(table, some, slice(0, len(items)))
    expected = [[similarity.scalar(c, s, 200) for s in items] for c in items[some]]
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-12)


def test_mpp_of_repeated_spans_and_of_a_tangle() -> None:
    rng = random.Random(3)
    for _ in range(60):
        starts = [rng.randrange(13) for _ in range(3)]
        spans = [ErrorSpan(a, a + rng.randint(1, 12), "minor") for a in starts for _ in range(rng.choice([1, 2]))]
        near = [ErrorSpan(s.start, s.end + rng.randint(0, 3), "minor") for s in spans]
        c, s = Annotation.of_rater(spans), Annotation.of_rater(near)
        assert mpp(c, s) == pytest.approx(plain_mpp(c, s, 30), abs=1e-12)
    # A few spans over many: exact, whichever side has the few.
    for _ in range(10):
        few, many = (
            [ErrorSpan(a, a + rng.randint(5, 50), "minor") for a in rng.choices(range(40), k=count)]
            for count in (4, 25)
        )
        assert mpp(few, many) == pytest.approx(mpp(many, few), abs=1e-12)
    # Dozens of spans that all overlap: by the plain assignment, beside others that are exact.
    crowd = [ErrorSpan(rng.randrange(40), 41 + rng.randrange(40), "minor") for _ in range(18)]
    other = [ErrorSpan(s.start, s.end + 1, "minor") for s in crowd]
    assert 0.9 < mpp(crowd, other) <= 1
    beside = [*crowd, ErrorSpan(90, 95, "minor"), ErrorSpan(92, 97, "minor")], [*other, ErrorSpan(91, 96, "minor")]
    items = [*map(Annotation, beside), Annotation(crowd)]
    matrix = Mpp().matrix(AnnotationTable(items, 100), slice(0, 3), slice(0, 3))
    np.testing.assert_allclose(matrix, [[mpp(c, s) for s in items] for c in items], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("penalty", "weights"),
    [(1.5, None), (-0.1, None), (0.5, {"major": 1, "minor": 1}), (0, {"major": 1}), (0, {"major": 1, "minor": -1})],
)
def test_mpp_rejects_options(penalty: float, weights: dict[str, float] | None) -> None:
    with pytest.raises(OptionError):
        mpp([], [], severity_penalty=penalty, severity_weights=weights)


@pytest.mark.parametrize("function", [f1, soft_f1, soft_dice, lambda c, s, length: AnnotationTable([c, s], length)])
def test_a_span_past_the_end_is_an_error(function: Callable[..., object]) -> None:
    with pytest.raises(InputError, match=r"\[2, 9\).*3 characters"):
        function(Annotation([ErrorSpan(2, 9, "minor")]), EMPTY, 3)


def test_means() -> None:
    c, s, length = Annotation([ErrorSpan(0, 3, "major")]), Annotation([ErrorSpan(1, 6, "minor")]), 10
    mean = get_similarity("softf1+scoresim")
    assert mean.scalar(c, s, length) == pytest.approx((soft_f1(c, s, length) + score_sim(c, s)) / 2)
    assert str(mean) == "softf1+scoresim"
    weighted = get_similarity("3*softf1 + f1")
    assert weighted.scalar(c, s, length) == pytest.approx((3 * soft_f1(c, s, length) + f1(c, s, length)) / 4)
    assert get_similarity(weighted) is weighted
