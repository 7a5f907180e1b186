"""What people marked in the source: omissions are spans of the source's side, errors of the source are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.adapters.comet_json import read_comet_json
from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.adapters.ratings import MqmError, MqmRating
from mbr_esd_metric.adapters.wmt.rating_files import fitted, read_ratings, write_ratings
from mbr_esd_metric.adapters.wmt.submissions import read_spans, write_spans

HEADER = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
ROWS = [
    "A big dog <v>barks at night</v>.\tEin Hund.\tAccuracy/Omission\tMajor",
    "A <v>big</v> dog barks at night.\tEin Hund.\tOmission\tMinor",
    "A big <v>dog</v> barks at night.\tEin Hund.\tSource issue\tMajor",
    "A big dog barks at night.\tEin <v>Hund</v>.\tAccuracy/Omission\tMinor",
    "A <v>big</v> dog barks at night.\tEin Hund.\tOmission\tNeutral",
]


@pytest.fixture
def rating(tmp_path: Path) -> MqmRating:
    path = tmp_path / "mqm.tsv"
    path.write_text(HEADER + "".join(f"sys\td\t1\t1\tr\t{row}\n" for row in ROWS), encoding="utf-8")
    (rating,) = read_mqm_tsv(path)
    return rating


def test_omissions_in_the_source_are_spans_of_its_side(rating: MqmRating) -> None:
    assert [(s.side, s.start, s.end, s.severity) for s in rating.omissions] == [
        ("source", 2, 5, "minor"),
        ("source", 10, 24, "major"),
    ]
    assert [(s.side, s.start, s.end) for s in rating.annotation] == [("translation", 4, 8)]
    assert rating.score() == -12.0  # of all rows, the source issue among them, as ever


def test_they_are_stored_beside_the_spans_of_the_translation(rating: MqmRating, tmp_path: Path) -> None:
    path = tmp_path / "ratings"
    write_ratings(path, {"sys": [rating.errors]}, {"sys": ["r"]})
    ((_, stored),) = read_ratings(path)["sys"]
    assert stored is not None
    assert stored.annotation == rating.both
    assert list(stored.annotation) == [*rating.annotation, *rating.omissions]


def test_what_a_metric_says_is_left_out_is_stored_and_read(tmp_path: Path) -> None:
    path = tmp_path / "ratings"
    said = Annotation(
        [ErrorSpan(0, 3, "minor"), ErrorSpan(50, 60, "major", "accuracy/omission", 0.25, "source")]
    ).missing(["minor"])
    write_ratings(path, {"sys": [said, None]}, {"sys": [None, None]})
    (_, stored), (_, none) = read_ratings(path)["sys"]
    assert stored is not None
    assert none is None
    assert (stored.annotation, list(stored.annotation)) == (said, list(said))
    # The translation has ten characters; the source may have more.
    assert fitted(stored.annotation, 10) == said


def test_wmt25_has_no_place_for_an_omission() -> None:
    said = Annotation([ErrorSpan(0, 3, "minor"), ErrorSpan(5, 9, "major", side="source")]).missing(["minor"])
    columns = write_spans(said)
    assert columns == ("0 missing missing", "3 missing missing", "minor major minor")
    assert read_spans(*columns) == Annotation([ErrorSpan(0, 3, "minor")]).missing(["major", "minor"])


def test_an_omission_without_a_place_is_stored() -> None:
    rating = MqmRating("s", "d", "1", "1", "r", "src", "mt", (MqmError("major", "omission", "source"),))
    assert rating.omissions.unplaced == ("major",)
    assert not rating.omissions.spans


def test_the_three_raters_of_wmt23(mqm_folder: Path) -> None:
    ratings = read_mqm_tsv(mqm_folder / "sxs_mqm_generalMT2023_ende.3raters.tsv")
    assert sum(len(rating.omissions) for rating in ratings) == 206


def test_omissions_of_comets_json_are_of_the_source(tmp_path: Path) -> None:
    span = {"text": "x", "confidence": 0.5, "severity": "major", "start": 1, "end": 4, "category": "omission"}
    row = {
        "src": "the source",
        "mt": "0123",
        "COMET": 0.8,
        "errors": [span],
        "omissions": [span | {"start": 4, "end": 10}],
    }
    (tmp_path / "scores.json").write_text(json.dumps({"mt.txt": [row]}), encoding="utf-8")
    ((_, annotation),) = [(one.place, one.annotation) for one in read_comet_json(tmp_path / "scores.json")]
    assert annotation is not None
    assert [(s.side, s.start, s.end) for s in annotation] == [("translation", 1, 4), ("source", 4, 10)]
