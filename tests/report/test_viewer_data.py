"""What the page gets to show, without a browser."""

from __future__ import annotations

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.report.inputs import JudgedColumn, JudgedSegment, join
from mbr_esd_metric.report.viewer import payload


def test_systems_of_different_settings_have_no_intervals() -> None:
    """The page says why, and shows the scores."""
    one, other = (Signature.parse(f"mbr-esd|model:m|{fields}v:1") for fields in ("", "score:expected|"))
    problem = "metric: scores of different settings (score: unset and expected) cannot be compared"
    for second, notes in ((one, []), (other, [problem])):
        ratings = [
            JudgedSegment(
                Segment("source", "mt", str(n), f"s{at}"), None, 0.5 + n / 10, settings=Settings("m", signature)
            )
            for at, signature in enumerate((one, second))
            for n in range(3)
        ]
        data = payload(join([JudgedColumn("metric", ratings)]))
        assert [interval is None for interval in data["columns"][0]["intervals"]] == [bool(notes)] * 2
        assert data["notes"] == notes


def test_the_page_says_what_the_model_can_decide() -> None:
    rating = JudgedSegment(Segment("source", "mt", "1", "s"), None, 0.5, settings=Settings("mbr-esd-small?n=4"))
    (note,) = payload(join([JudgedColumn("metric", [rating])]))["notes"]
    assert note.startswith("mbr-esd-small detects gross errors")


def test_a_segment_that_is_unsure_says_so() -> None:
    ratings = [JudgedSegment(Segment("s", "mt", str(n)), Annotation(), 1.0, unsure=n == 1) for n in range(3)]
    [column] = payload(join([JudgedColumn("metric", ratings)]))["columns"]
    assert column["unsure"] == {1: UNSURE}


def test_an_estimated_score_and_a_data_warning_are_in_the_page() -> None:
    major = Annotation([ErrorSpan(0, 2, "major")])
    values = [(Annotation(), 1.0, 0.0), (major, 0.8, -5.0), (major, 0.69, -7.75)]
    ratings = [JudgedSegment(Segment("s", "mt", str(n)), *of) for n, of in enumerate(values)]
    ratings.append(JudgedSegment(Segment("s", "mt", "3"), Annotation(), 1.0, data_warning="equal to its source"))
    [column] = payload(join([JudgedColumn("metric", ratings)]))["columns"]
    assert (column["estimated"], column["warning"]) == ({2: 1}, {3: "equal to its source"})
