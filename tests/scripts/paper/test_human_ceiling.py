"""How the annotations of Appraise are read."""

from __future__ import annotations

from human_ceiling import annotation


def test_spans_end_with_their_last_character_and_have_no_blanks_around_them() -> None:
    spans = [
        {"start_i": 4, "end_i": 7, "severity": "major"},
        {"start_i": 8, "end_i": 14, "severity": "undecided"},
        {"start_i": "missing", "end_i": "missing", "severity": "major"},
        {"start_i": 8, "end_i": 8, "severity": "minor"},
    ]
    keys = [(one.start, one.end, one.severity) for one in annotation("Der Hund bellt.", spans, 1)]
    assert keys == [(4, 8, "major"), (9, 15, "minor")]
    keys = [(one.start, one.end, one.severity) for one in annotation("Der Hund bellt.", spans, 0)]
    assert keys == [(4, 7, "major"), (9, 14, "minor")]
