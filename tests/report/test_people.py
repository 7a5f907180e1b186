"""The tables of `mbr-esd annotate report`, against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

from mbr_esd_metric.adapters.ratings import Fate, MqmError, MqmRating, PersonRating, Suggestion, write_person_ratings
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.report.people import agreement, compared, people_tables
from mbr_esd_metric.report.tables import Table

TEXT = "one two three"


def _rating(
    system: str, segment: int, score: float, rater: str = "x", *, fate: Fate | None = None, errors: int = 0
) -> PersonRating:
    made = tuple(MqmError("minor", "", "target", 4 * n, 4 * n + 3) for n in range(errors))
    one = MqmRating(system, "d", str(segment), str(segment), rater, f"source {segment}", TEXT, made, "en-de")
    suggested = None if fate is None else (Suggestion(ErrorSpan(0, 3, "minor", None, 0.9), fate),)
    return PersonRating(one, score, 10.0 * (1 + (fate is None)), suggested, 0, (1, 2))


RATINGS = [
    *(_rating("A", n, 80.0 + n % 2, fate="kept", errors=1) for n in range(6)),
    *(_rating("B", n, 60.0 + n % 3, fate="deleted" if n else "changed") for n in range(6)),
    _rating("A", 0, 90.0, "y"),
    _rating("A", 0, 90.0, "z", errors=1),
]


def _tables(tmp_path: Path) -> dict[str, Table]:
    write_person_ratings(tmp_path / "r.jsonl", RATINGS)
    return {table.title: table for table in people_tables(RATINGS, [tmp_path / "r.jsonl"])}


def test_systems_are_compared_on_the_mean_of_their_raters(tmp_path: Path) -> None:
    rows = _tables(tmp_path)["what people say"].rows
    # A's first segment has 80, 90 and 90; the others 81, 80, 81, 80, 81.
    assert [[cell.value for cell in row[:3]] for row in rows] == [["A", 6, 8], ["B", 6, 6]]
    assert rows[0][3].value == (260 / 3 + 81 + 80 + 81 + 80 + 81) / 6
    pair = compared(RATINGS)["A", "B"]
    assert pair.segments == 6
    assert pair.other_segments[1] < 0
    pairs = _tables(tmp_path)["systems compared by people"]
    assert pairs.rows[0][-1].value == "A is better"
    assert pairs.notes[0].startswith("signed: mbr-esd-metric ")
    assert "r.jsonl sha256:" in pairs.notes[0]


def test_what_became_of_spans(tmp_path: Path) -> None:
    every, sure = _tables(tmp_path)["spans marked beforehand"].rows
    assert [cell.value for cell in every] == ["all", 12, 6 / 12, 1 / 12, 5 / 12]
    assert [cell.value for cell in sure] == ["confidence 0.8 to 1.0", 12, 6 / 12, 1 / 12, 5 / 12]


def test_ratings_with_spans_and_without(tmp_path: Path) -> None:
    before, nothing = _tables(tmp_path)["with spans marked beforehand, and without"].rows
    assert [cell.value for cell in (*before[:3], *before[4:])] == ["marked beforehand", 12, 10.0, 0.5, 0, None]
    assert [nothing[at].value for at in (0, 1, 2, 4, 5)] == ["from nothing", 2, 20.0, 0.5, 1]
    (same,) = agreement([_rating("A", 0, 1, "x", errors=1), _rating("A", 0, 2, "y", errors=1)])
    assert same == 1.0


def test_annotators_with_their_checks(tmp_path: Path) -> None:
    rows = _tables(tmp_path)["annotators"].rows
    expected = [("x", 12, "1/2"), ("y", 1, "1/2"), ("z", 1, "1/2")]
    assert [(row[0].value, row[1].value, row[-1].value) for row in rows] == expected
