"""What became of each span, without the server; `tests/cli/test_annotate.py` has it all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.mqm_tsv import MqmError
from mbr_esd_metric.adapters.pearmut.campaign import CampaignPlan, Item, Output, Screen, campaign, utf16_units
from mbr_esd_metric.adapters.pearmut.returned import ratings_of, read_campaign, read_log
from mbr_esd_metric.adapters.ratings import read_person_ratings, write_person_ratings
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import InputError

SOURCE, TEXT = "He did not go home.", "Er 😀 ging heim."
SPANS = Annotation([ErrorSpan(3, 4, "minor", None, 0.4), ErrorSpan(7, 10, "major", "source", 0.9, "source")])


def _made(protocol: str = "ESA", **outputs: Output) -> dict[str, Any]:
    document = Screen("d", (Item("1", SOURCE, outputs or {"X": Output(TEXT, SPANS)}),))
    made = campaign([document], [], CampaignPlan("c", "en-de", ("anna",), protocol=protocol))  # type: ignore[arg-type]
    return made


def _log(made: dict[str, Any], spans: list[dict[str, Any]], *times: float, score: int | None = 70) -> dict[str, Any]:
    items = made["data"][0][0]
    (code,) = items[0]["tgt"]
    actions = [{"time": 0.0, "action": "load"}]
    actions += [{"time": time, "action": "score", "index": 0, "model": code} for time in times]
    return {
        "user_id": "anna",
        "item_i": 0,
        "item": items,
        "annotation": [{code: {"score": score, "error_spans": spans}}],
        "actions": actions,
    }


def test_what_is_left_out_is_shown_as_missing_and_keeps_its_place_in_the_source(tmp_path: Path) -> None:
    made = _made()
    before = made["data"][0][0][0]["error_spans"]["system1"]
    behind = utf16_units(TEXT, len(TEXT))
    assert [(s["start_i"], s["end_i"]) for s in before] == [(3, 4), (behind, behind)]
    (rating,) = ratings_of(made, [_log(made, before, 2.0)]).ratings
    assert rating.rating.errors == (
        MqmError("minor", "", "target", 3, 4),
        MqmError("major", "Accuracy/Omission", "source", 7, 10),
    )
    assert [one.fate for one in rating.suggested or ()] == ["kept", "kept"]
    assert rating.added == 0
    write_person_ratings(tmp_path / "r.jsonl", [rating])
    assert read_person_ratings(tmp_path / "r.jsonl") == (rating,)


def test_fates() -> None:
    made = _made()
    first, missing = made["data"][0][0][0]["error_spans"]["system1"]
    longer = {**first, "end_i": first["end_i"] + 3}
    del longer["confidence"]
    new = {"start_i": 0, "end_i": 1, "severity": "major", "category": None}
    for spans, fates, added in (
        ([longer, {**missing, "severity": "minor"}, new], ["changed", "changed"], 1),
        ([new], ["deleted", "deleted"], 1),
        ([], ["deleted", "deleted"], 0),
    ):
        (rating,) = ratings_of(made, [_log(made, spans, 1.0)]).ratings
        assert [one.fate for one in rating.suggested or ()] == fates
        assert rating.added == added


def test_times_of_all_visits_count_and_a_pause_at_most_a_minute() -> None:
    made = _made()
    again = ratings_of(made, [_log(made, [], 2.0, 1000.0), _log(made, [], 5.0, score=30)])
    (rating,) = again.ratings
    assert rating.seconds == 2.0 + 61.0 + 5.0
    assert rating.score == 30
    assert again.left_out == {"answer that the same person gave anew: the last one counts": 1}


def test_a_reset_forgets() -> None:
    made = _made()
    reset = {"user_id": "anna", "annotation": "__RESET__"}
    assert ratings_of(made, [_log(made, [], 2.0), reset]).ratings == ()
    (rating,) = ratings_of(made, [_log(made, [], 2.0), reset, _log(made, [], 3.0)]).ratings
    assert rating.seconds == 3.0


def test_mqm_has_the_categories_that_scores_weigh() -> None:
    spans = Annotation(
        [
            ErrorSpan(0, 2, "minor", "fluency/punctuation"),
            ErrorSpan(3, 4, "major", "Non-translation"),
            ErrorSpan(5, 9, "major", "accuracy/of another kind"),
            ErrorSpan(10, 14, "minor", "beauty"),
        ]
    )
    made = _made("MQM", X=Output(TEXT, spans))
    before = made["data"][0][0][0]["error_spans"]["system1"]
    assert [s["category"] for s in before] == [
        "Fluency/Punctuation",
        "Non-translation/Non-translation",
        "Accuracy",
        None,
    ]
    (rating,) = ratings_of(made, [_log(made, before[:2], 1.0, score=None)]).ratings
    assert rating.score is None
    assert rating.rating.score() == -0.1 - 25


def test_texts_and_files_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which Pearmut plays"):
        _made(X=Output("<img src=x> is HTML"))
    (tmp_path / "log.jsonl").write_text('{"user_id": "a"}\n{"user', encoding="utf-8")
    with pytest.raises(InputError, match="line 2: not JSON.*remove the line"):
        read_log(tmp_path / "log.jsonl", "c")
    with pytest.raises(InputError, match="annotation 1 of c: no 'annotation'"):
        ratings_of(_made(), [{"user_id": "a"}])
    (tmp_path / "c.json").write_text(json.dumps({"campaign_id": "c"}), encoding="utf-8")
    with pytest.raises(InputError, match="was not made by `mbr-esd annotate export`"):
        read_campaign(tmp_path / "c.json")
    with pytest.raises(InputError, match="no campaign there"):
        read_campaign(tmp_path)


def test_a_campaign_reads_nothing_outside_of_its_folder(tmp_path: Path) -> None:
    made = _made()
    (tmp_path / "elsewhere.jsonl").write_text(json.dumps(_log(made, [], 1.0)), encoding="utf-8")
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "annotations").mkdir()
    (tmp_path / "campaigns" / "c.json").write_text(json.dumps({**made, "campaign_id": "../elsewhere"}))
    with pytest.raises(InputError, match=r"campaign '../elsewhere' becomes a file's name"):
        read_campaign(tmp_path)
    # A pipe, which nobody writes to, is not waited for.
    (tmp_path / "campaigns" / "c.json").write_text(json.dumps(made))
    os.mkfifo(tmp_path / "campaigns" / "d.json")
    os.mkfifo(tmp_path / "annotations" / "c.jsonl")
    assert read_campaign(tmp_path) == (made, [])


@pytest.mark.parametrize("score", ["NaN", "1_000", "٣", 10**400, True])
def test_a_score_is_a_number(score: Any) -> None:
    made = _made()
    with pytest.raises(InputError, match="is no finite number"):
        ratings_of(made, [_log(made, [], 1.0, score=score)])


@pytest.mark.parametrize("place", [-1, 1.5, "3", None, True])
def test_a_place_is_a_unit_of_the_text(place: Any) -> None:
    made = _made()
    for span in ({"start_i": place, "end_i": 4}, {"start_i": 3, "end_i": place}):
        with pytest.raises(InputError, match="not a place in the text"):
            ratings_of(made, [_log(made, [{**span, "severity": "major"}], 1.0)])


@pytest.mark.parametrize("log", [5, None, "abc", {}])
def test_annotations_are_a_list(tmp_path: Path, log: object) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"c": log}), encoding="utf-8")
    with pytest.raises(InputError, match="no annotations of the campaign c"):
        read_log(tmp_path / "a.json", "c")
