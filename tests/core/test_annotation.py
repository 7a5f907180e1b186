"""Annotations are equal whatever the order in which their spans came."""

from __future__ import annotations

import itertools

from mbr_esd_metric import Annotation, ErrorSpan

SPANS = (ErrorSpan(0, 2, "major"), ErrorSpan(3, 5, "minor"), ErrorSpan(4, 6, "major"))


def test_the_order_of_spans_makes_no_difference() -> None:
    for count in range(4):
        sound = Annotation(SPANS[:count])
        assert sound.spans == SPANS[:count]
        for order in itertools.permutations(SPANS[:count]):
            for other in (Annotation(order), Annotation.of_rater(order), Annotation.of_keys({s.key: s for s in order})):
                assert (other, other.spans, hash(other)) == (sound, sound.spans, hash(sound))
