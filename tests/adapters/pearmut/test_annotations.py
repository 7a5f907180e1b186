"""Attention checks, offsets, and the fate of each span, without the server; `tests/cli/test_annotate.py` has it all."""

from __future__ import annotations

import json
import random
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mbr_esd_metric.adapters.pearmut.annotations as pearmut
from mbr_esd_metric.adapters.esa_files import read_esa
from mbr_esd_metric.adapters.pearmut.annotations import Campaign, read_campaign, read_log
from mbr_esd_metric.adapters.pearmut.campaign import (
    Item,
    Output,
    Screen,
    attention_checks,
    campaign,
    character,
    showable_spans,
    utf16_units,
)
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import MqmError, Rating, check_comparable, read_rating_lines, write_rating_lines
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.errors import OptionError
from tests.helpers.refused import refused

FILES = Path(__file__).parents[2] / "data" / "ratings" / "pearmut"
SOURCE, TEXT = "He did not go home.", "Er 😀 ging heim."
SPANS = Annotation([ErrorSpan(3, 4, "minor", None, 0.4), ErrorSpan(7, 10, "major", "source", 0.9, "source")])


def _made(protocol: str = "ESA", output: Output = Output(TEXT, SPANS)) -> dict[str, Any]:  # noqa: B008
    document = Screen("d", (Item("1", SOURCE, {"X": output}),))
    return campaign([document], [], "c", "en-de", ["anna"], protocol=protocol)  # type: ignore[arg-type]


def answers_of(made: dict[str, Any], *log: dict[str, Any]) -> pearmut.Answers:
    return pearmut.answers_of(Campaign.of(made, "en-de"), log)


def ratings_of(made: dict[str, Any], *log: dict[str, Any]) -> list[Rating]:
    return pearmut.ratings_of(Campaign.of(made, "en-de"), answers_of(made, *log))


def _log(made: dict[str, Any], spans: list[dict[str, Any]], *times: float, score: Any = 70) -> dict[str, Any]:
    actions = [{"time": time, "action": "score", "index": 0, "model": "system1"} for time in times]
    answer = {"system1": {"score": score, "error_spans": spans}}
    log = {"user_id": "anna", "item_i": 0, "item": made["data"][0][0], "annotation": [answer]}
    return {**log, "actions": [{"time": 0.0, "action": "load"}, *actions]}


def test_fates(tmp_path: Path) -> None:
    """An omission is shown as missing and keeps its place in the source."""
    made = _made()
    before = first, missing = made["data"][0][0][0]["error_spans"]["system1"]
    behind = utf16_units(TEXT, len(TEXT))
    assert [(s["start_i"], s["end_i"]) for s in before] == [(3, 4), (behind, behind)]
    longer = {**first, "end_i": first["end_i"] + 3}
    del longer["confidence"]
    new = {"start_i": 0, "end_i": 1, "severity": "major", "category": None}
    for spans, fates, added in (
        ([longer, {**missing, "severity": "minor"}, new], ["changed", "changed"], 1),
        ([new], ["deleted", "deleted"], 1),
        ([], ["deleted", "deleted"], 0),
        (before, ["kept", "kept"], 0),
    ):
        (rating,) = ratings_of(made, _log(made, spans, 1.0))
        assert [one.fate for one in rating.suggested or ()] == fates
        assert rating.added == added
    omission = MqmError("major", "Accuracy/Omission", "source", 7, 10)
    assert rating.errors == (MqmError("minor", "", "translation", 3, 4), omission)
    write_rating_lines(tmp_path / "r.jsonl", [rating])
    assert read_rating_lines(tmp_path / "r.jsonl").ratings == (rating,)


def test_times_of_all_visits_since_a_reset_count_and_a_pause_at_most_a_minute() -> None:
    made = _made()
    (rating,) = ratings_of(made, _log(made, [], 2.0, 1000.0), _log(made, [], 5.0, score=30))
    assert (rating.seconds, rating.score) == (2.0 + 61.0 + 5.0, 30)
    reset = {"user_id": "anna", "annotation": "__RESET__"}
    assert ratings_of(made, _log(made, [], 2.0), reset) == []
    (rating,) = ratings_of(made, _log(made, [], 2.0), reset, _log(made, [], 3.0))
    assert rating.seconds == 3.0


def test_mqm_has_the_categories_that_scores_weigh() -> None:
    ours = (
        ("fluency/punctuation", "minor"),
        ("Non-translation", "major"),
        ("accuracy/other", "major"),
        ("beauty", "minor"),
    )
    spans = Annotation(ErrorSpan(at, at + 1, severity, kind) for at, (kind, severity) in enumerate(ours))
    made = _made("MQM", Output(TEXT, spans))
    before = made["data"][0][0][0]["error_spans"]["system1"]
    categories = ["Fluency/Punctuation", "Non-translation/Non-translation", "Accuracy", None]
    assert [s["category"] for s in before] == categories
    (rating,) = ratings_of(made, _log(made, before[:2], 1.0, score=None))
    assert (rating.score, rating.mqm()) == (None, -0.1 - 25)


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    """Nothing is read outside of a campaign's folder."""
    made, campaigns = _made(), tmp_path / "campaigns"

    def write(name: str, content: object) -> Path:
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return tmp_path / name

    refused("line 2: not JSON.*remove the line", read_log, write("log.jsonl", '{"user_id": "a"}\n{"user'), "c")
    for log in (5, None, "abc", {}):
        refused("no annotations of a campaign", read_log, write("a.json", {"c": log}), "c")
    refused("annotation 1 of c: no 'annotation'", ratings_of, made, {"user_id": "anna"})
    refused("campaign c: no 'data'", Campaign.of, {"campaign_id": "c"})
    refused("no campaign there", read_campaign, tmp_path)
    campaigns.mkdir()
    write("campaigns/c.json", {**made, "campaign_id": "../elsewhere"})
    refused(r"campaign '../elsewhere' is used as a file name", read_campaign, tmp_path)
    write("campaigns/c.json", made)
    assert read_campaign(tmp_path) == (made, [])
    write("campaigns/b.json", {**made, "campaign_id": "b"})
    refused("several campaigns; give the file of one: .*b.json, .*c.json", read_campaign, tmp_path)
    refused(r"all.json has several campaigns \(c, c\)", read_campaign, write("all.json", [made, made]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "NaN"}, "is not a finite number"),
        ({"score": None}, "screen 0 of anna in c: no score, but the campaign requires one"),
        ({"score": 1e9}, "score 1e+09; people's scores go from 0 to 100"),
        *(
            ({"spans": [{"start_i": start, "end_i": end, "severity": "major"}]}, "not a place in the text")
            for start, end in ((-1, 4), (3, 1.5), ("3", 4), (3, None), (True, 4))
        ),
        ({"spans": [{"start_i": 3, "end_i": 10**9, "severity": "major"}]}, "ends at unit 1000000000"),
        ({"user_id": "eve"}, "annotation 1 of c: annotator 'eve' is not in the campaign"),
        ({"src": "Another source"}, "a source that is not in the campaign"),
        ({"tgt": {"system1": "Another text"}}, "another translation that is not in the campaign"),
    ],
)
def test_what_is_read_is_checked_against_the_campaign(change: dict[str, Any], message: str) -> None:
    made = _made()
    entry = deepcopy(_log(made, change.get("spans", []), 1.0, score=change.get("score", 70)))
    entry["user_id"] = change.get("user_id", "anna")
    entry["item"][0].update({key: value for key, value in change.items() if key in ("src", "tgt")})
    refused(re.escape(message), ratings_of, made, entry)


def _theirs(**info: Any) -> dict[str, Any]:
    """A campaign that was not made here: dynamic, with names, a tutorial, a check that comes at random."""
    made, _ = read_campaign(FILES / "campaigns.json")
    return {**made, "info": made["info"] | info}


def test_campaigns_of_others() -> None:
    made, log = _theirs(), read_log(FILES / "annotations.json", "theirs")
    with pytest.raises(OptionError, match="has no language pair; set it with --lp"):
        Campaign.of(made)
    answers, ratings = answers_of(made, *log), ratings_of(made, *log)
    assert (answers.left_out, answers.checks) == ({"tutorial": 1}, {"u": {"random_0": False}})
    assert [(r.segment.system, r.segment.document, r.segment.label, r.score) for r in ratings] == [
        ("X", "news_###_doc", "1", 80),
        ("X", "news_###_doc", "2", 90),
        ("Y 2", "news_###_doc", "1", 70),
        ("Y 2", "news_###_doc", "2", 75),
        ("X", "document 1", "1", 10),
        ("Y 2", "document 1", "1", 20),
        ("X", "document 1", "2", 30),
        ("Y 2", "document 1", "2", 40),
    ]
    omission = MqmError("minor", "Accuracy/Omission", "source")
    assert ratings[0].errors == (MqmError("minor", "", "translation", 0, 4), omission)
    assert ratings[1].errors == (MqmError("minor", "instructions fault"),)


def test_protocols(tmp_path: Path) -> None:
    """Direct assessment has no errors, which is not the same as none; sliders take the place of the score."""
    entry = read_log(FILES / "annotations.json", "theirs")[-1]
    ratings = ratings_of(_theirs(protocol="DA"), entry)
    assert not ratings[0].marked
    write_rating_lines(tmp_path / "r.jsonl", ratings)
    assert list(read_rating_lines(tmp_path / "r.jsonl")) == ratings
    refused("line 1: a score without errors", read_mqm, tmp_path / "r.jsonl")
    assert [list(data) for data in read_esa([tmp_path / "r.jsonl"]).human] == [ratings]
    sliders = [{"name": name, "min": 1, "max": 5, "step": 1} for name in ("fluency", "adequacy")]
    answer = {"X": {"score": None, "sliders": {"fluency": 5, "adequacy": 3}}}
    made = _theirs(protocol="MQM", sliders=sliders)
    assert ratings_of(made, {**entry, "annotation": [answer, answer]})[0].score == 75
    refused(
        "protocol 'ranking' is not supported; supported are ESA, cESA, MQM, DA",
        Campaign.of,
        _theirs(protocol="ranking"),
        "en-de",
    )


def test_ratings_that_cannot_stand_in_one_table_or_are_out_of_range(tmp_path: Path) -> None:
    made = _made()
    (one,) = ratings_of(made, _log(made, [], 1.0))
    for other, message in (
        (replace(one, lp="en-zh"), "ratings of en-de and of en-zh"),
        (replace(one, segment=replace(one.segment, translation="Another")), "two translations of segment 1 of d by X"),
        (replace(one, score=None), "report ESA and MQM separately"),
    ):
        refused(message, check_comparable, [one, other])
    unrelated = replace(one.segment, source="unrelated", translation="Another")
    check_comparable([one, replace(one, segment=unrelated)])
    for key, value in (("score", 1e9), ("score", -1), ("seconds", -0.5)):
        (tmp_path / "r.jsonl").write_text(json.dumps({**one.to_json(), key: value}), encoding="utf-8")
        refused("line 1: ", read_rating_lines, tmp_path / "r.jsonl")


@given(st.text(max_size=30))
def test_units_are_utf_16(text: str) -> None:
    for at in range(len(text)):
        assert utf16_units(text, at) == len(text[:at].encode("utf-16-le", "surrogatepass")) // 2
        assert character(text, utf16_units(text, at)) == character(text, utf16_units(text, at + 1) - 1) == at


def test_spans_that_pearmut_cannot_show_apart_are_not_marked() -> None:
    text = "one two\nthree"
    spans = Annotation([ErrorSpan(0, 7, "minor"), ErrorSpan(4, 7, "major"), ErrorSpan(7, 8, "major")])
    assert [span.key for span in showable_spans(spans, text)] == [(4, 7, "major")]


@pytest.mark.parametrize(
    ("texts", "kept", "length"),
    [
        (["a0 a1 a2 a3 a4 a5 a6", "b0 b1 b2 b3 b4"], 2, 3),
        ([" ".join(f"{name}{n}" for n in range(12)) for name in "ab"], 4, 4),
        (["昨天我们去了北京看朋友。", "明天他和她的三个孩子要来。"], 4, 4),
    ],
)
def test_an_attention_check_has_words_of_another_segment(texts: list[str], kept: int, length: int) -> None:
    """They replace `length` words between those that are `kept`; a system with marked spans is left alone."""
    marked = {"B": Output("not this one", Annotation([ErrorSpan(0, 3, "minor")]))}
    screens = [Screen("d", tuple(Item(str(n), f"s{n}", {"A": Output(text), **marked}) for n, text in enumerate(texts)))]
    checks, again = (attention_checks(screens, 2, random.Random(7)) for _ in range(2))
    assert checks == again
    first, second = sorted((item for check in checks for item in check.items), key=lambda item: item.id)
    assert (first.id, second.id, first.outputs["B"], second.outputs["B"]) == ("0", "1", marked["B"], marked["B"])
    output, separator = first.outputs["A"], " " if " " in texts[0] else ""
    assert output.check is not None
    run = output.text[output.check.start : output.check.end]
    words = texts[0].split() if separator else list(texts[0])
    assert run in texts[1]
    assert len(run.split() if separator else run) == length
    assert output.text == separator.join([*words[:kept], run, *words[-kept:]])


def test_an_attention_check_changes_the_text() -> None:
    items = tuple(Item(str(n), f"s{n}", {"A": Output("ha ha ha ha")}) for n in range(2))
    message = "^0 of 1 attention check can be made"
    refused(message, attention_checks, [Screen("d", items)], 1, random.Random(0))
