"""The tables of `mbr-esd annotate report`, against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

from mbr_esd_metric.adapters.ratings import Fate, MqmError, Rating, Suggestion, write_rating_lines
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.report.people import people_tables

TEXT = "one two three"


def _rating(
    system: str, segment: int, score: float, rater: str = "x", *, fate: Fate | None = None, errors: int = 0
) -> Rating:
    made = tuple(MqmError("minor", "", "translation", 4 * n, 4 * n + 3) for n in range(errors))
    suggested = None if fate is None else (Suggestion(MqmError("minor", None, "translation", 0, 3, 0.9), fate),)
    seconds, rated = 10.0 * (1 + (fate is None)), Segment(f"source {segment}", TEXT, str(segment), system, "d")
    return Rating(rated, rater, made, "en-de", 0, score, True, seconds, suggested, 0, (1, 2))


RATINGS = [
    *(_rating("A", n, 80.0 + n % 2, fate="kept", errors=1) for n in range(6)),
    *(_rating("B", n, 60.0 + n % 3, fate="deleted" if n else "changed") for n in range(6)),
    _rating("A", 0, 90.0, "y", errors=1),
    _rating("A", 0, 90.0, "z", errors=1),
]


def test_tables_of_a_campaign(tmp_path: Path) -> None:
    write_rating_lines(tmp_path / "r.jsonl", RATINGS)
    systems, pairs, spans, beforehand, people = people_tables(RATINGS, [tmp_path / "r.jsonl"])
    values = {table.title: [[cell.value for cell in row] for row in table.rows] for table in (systems, spans, people)}
    first, second = values["systems by human score"]
    # A's first segment has 80, 90 and 90; the others 81, 80, 81, 80, 81.
    assert (first[:4], second[:3]) == (["A", 6, 8, (260 / 3 + 81 + 80 + 81 + 80 + 81) / 6], ["B", 6, 6])
    (pair,) = pairs.rows
    assert (pair[2].value, pair[-1].value) == (6, "A is better")
    assert pairs.notes[0].startswith("signature: mbr-esd-metric ")
    assert "r.jsonl sha256:" in pairs.notes[0]
    assert values["pre-filled spans"] == [[12, 6 / 12, 1 / 12, 5 / 12]]
    before, nothing = beforehand.rows
    assert [cell.value for cell in (*before[:3], *before[4:])] == ["pre-filled", 12, 10.0, 0.5, 0, None]
    assert [cell.value for cell in (*nothing[:3], *nothing[4:])] == ["not pre-filled", 2, 20.0, 1.0, 1, 1.0]
    rows = [("x", 12, "1/2"), ("y", 1, "1/2"), ("z", 1, "1/2")]
    assert [(row[0], row[1], row[-1]) for row in values["annotators"]] == rows


def test_ratings_without_times_claim_none(tmp_path: Path) -> None:
    write_rating_lines(tmp_path / "r.jsonl", RATINGS)
    ratings = [Rating(Segment("source", TEXT, "1", "A", "d"), "x", (), "en-de")]
    systems, people = people_tables(ratings, [tmp_path / "r.jsonl"])
    assert [systems.rows[0][-1].value, people.rows[0][2].value] == [None, None]
