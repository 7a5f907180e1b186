"""ESA into the layout: gold of each annotation and their mean, error spans, and boards that find them by themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.adapters.esa_files import EsaData, RatedSegment, SegmentRating
from mbr_esd_metric.adapters.ratings import MqmError
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.importing import Target, import_esa
from mbr_esd_metric.adapters.wmt.layout import read_scores
from mbr_esd_metric.adapters.wmt.test_set import choose_ratings
from mbr_esd_metric.errors import InputError
from tests.helpers.command import Command

MAJOR = MqmError("major", "Accuracy/Mistranslation", "target", 0, 3)
MISSING = MqmError("minor", "")


def esa(*scores: tuple[float | None, ...], lp: str = "en-cs") -> EsaData:
    """Three segments in two documents; system "A B" has these annotations, "C" one of 50, "refA" none."""
    segments = []
    for number, (document, domain) in enumerate([("d1", "news"), ("d2", "social"), ("d1", "news")]):
        texts = {"A B": f"alpha {number}", "C": f"gamma {number}", "refA": f"reference {number}"}
        segment = RatedSegment(lp, domain, document, str(number), f"source {number}", texts)
        segment.ratings["C"] = [SegmentRating((), 50.0 if scores[0][0] is not None else None, "x")]
        if number < len(scores):
            segment.ratings["A B"] = [
                SegmentRating((MAJOR, MISSING), score, f"r{i}") for i, score in enumerate(scores[number])
            ]
        segments.append(segment)
    return EsaData(tuple(segments), {"en-cs": {"tutorial": 2}, "en-de": {"another": 1}})


def test_one_annotation_a_translation(tmp_path: Path) -> None:
    done = import_esa(esa((90.0,), (70.0,)), Target(tmp_path, "made", "en-cs"))
    assert (done.systems, done.references, done.raters) == (("A_B", "C", "refA"), ("refA",), ("r0", "x"))
    assert (done.segments, done.documents, done.ratings, done.notes) == (3, 2, 5, ("2 times: tutorial",))
    test_set = load_test_set(tmp_path, "made", "en-cs")
    assert test_set.info.gold == "esa"
    assert "esa take their place" in test_set.notes[0]
    assert test_set.documents == (("news", "d1"), ("news", "d1"), ("social", "d2"))
    assert np.array_equal(test_set.gold, [[90.0, np.nan, 70.0], [50.0, 50.0, 50.0]], equal_nan=True)
    (ratings,) = test_set.human_ratings()
    assert ratings.name == "esa.merged"
    assert [None if a is None else len(a) for a in ratings.annotations["A_B"]] == [1, None, 1]
    assert ratings.raters["A_B"] == ("r0", None, "r0")
    assert read_scores(done.layout.human_scores("esa", "sys"))["A_B"][0][1] == 80.0
    domains = done.layout.human_scores("esa", "domain").read_text(encoding="utf-8")
    assert domains == "news\tA_B\t90.0\nsocial\tA_B\t70.0\nnews\tC\t50.0\nsocial\tC\t50.0\n"


def test_several_annotations_count_their_mean_and_each_by_itself(tmp_path: Path) -> None:
    done = import_esa(esa((90.0, 70.0), (60.0,)), Target(tmp_path, "wmt24", "en-cs"))
    assert "up to 2 annotations a translation" in done.notes
    mean = load_test_set(tmp_path, "wmt24", "en-cs")
    assert mean.gold[0, 0] == 80.0
    assert [ratings.name for ratings in mean.human_ratings()] == ["esa-human1.merged", "esa-human2.merged"]
    second = load_test_set(tmp_path, "wmt24", "en-cs", gold="esa-human2")
    assert second.systems == ("A_B",)
    assert np.array_equal(second.gold, [[70.0, np.nan, np.nan]], equal_nan=True)
    import_esa(esa((90.0,), (70.0,), lp="cs-uk_UA"), Target(tmp_path, "wmt25", "cs-uk_UA"))
    first = load_test_set(tmp_path, "wmt25", "cs-uk_UA")  # the standard gold of WMT25 is the first annotation
    assert (first.info.gold, first.notes) == ("esa-human1", ())
    assert [ratings.name for ratings in first.human_ratings()] == ["esa-human1.merged"]
    for gold, name in (("mqm", "mqm.rater1.merged"), ("esa", "esa.merged")):
        assert choose_ratings(["esa.merged", "mqm.rater1.merged"], gold) == [name]


def test_annotations_without_a_score_are_mqm(tmp_path: Path) -> None:
    import_esa(esa((None,)), Target(tmp_path, "wmt25", "en-cs"))
    test_set = load_test_set(tmp_path, "wmt25", "en-cs")
    assert test_set.info.gold == "mqm"
    assert test_set.gold[0, 0] == -6.0
    with pytest.raises(InputError, match="some have none"):
        import_esa(esa((90.0, None)), Target(tmp_path, "mixed", "en-cs"))
    with pytest.raises(InputError, match="there are: en-cs"):
        import_esa(esa((90.0,)), Target(tmp_path, "made", "en-de"))


def test_from_a_file_to_a_board(tmp_path: Path, mbr_esd: Command) -> None:
    lines: list[dict[str, Any]] = []
    for lp in ("en-cs", "cs-uk_UA"):
        for number in range(6):
            texts = {system: f"{system} says {number} things" for system in ("A", "B", "C", "refA")}
            scores = {}
            for i, system in enumerate("ABC"):
                errors = [{"start_i": 0, "end_i": 3, "severity": "major"}] * ((i + number) % 3 == 0)
                scores[system] = [{"score": 90 - 7 * i - number, "annotator": "z", "errors": errors}]
            item = {"doc_id": f"{lp}_#_news_#_d_#_{number}", "src_text": f"s{number}"}
            lines.append({**item, "tgt_text": texts, "scores": scores})
    path = tmp_path / "humeval.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert "wmt25 cs-uk_UA" in mbr_esd("wmt import", path, f"--test-set {tmp_path}/wmt25").out
    where = f"--test-set {tmp_path}/wmt25 --lp en-cs cs-uk_UA"
    mbr_esd("wmt score", where, "--model empty chrF --quiet")
    rows = {row["metric"]: row for row in json.loads(mbr_esd("leaderboard", where, "--k 0 --table json").out)["rows"]}
    assert rows["empty"]["cs-uk_UA"]["f1-corpus"] == 0.0
    assert rows["human"]["cs-uk_UA"]["major"] == 6
    assert "gold score of at least 85" in mbr_esd("leaderboard --tasks error-free", where).out
