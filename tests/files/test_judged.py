"""Judged segments: what is written is read again, whatever a model says of a translation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.files.judged import JudgedSegment, Place, read_judged, write_judged

SOURCE, TRANSLATION = "Er kommt am Montag.", "He comes on \ud83d Tuesday."
SETTINGS = Settings("mbr-esd-small", Signature.parse("mbr-esd|model:small|n:16|v:1"))


@st.composite
def spans(draw: st.DrawFn) -> ErrorSpan:
    side = draw(st.sampled_from(("translation", "source")))
    length = len(TRANSLATION if side == "translation" else SOURCE)
    start = draw(st.integers(0, length - 1))
    share = st.none() | st.floats(0, 1)
    return ErrorSpan(
        start,
        draw(st.integers(start + 1, length)),
        draw(st.sampled_from(("minor", "major"))),
        draw(st.none() | st.sampled_from(("accuracy", "check/number"))),
        draw(share),
        side,
        draw(st.none() | st.just("Monday")),
        ambiguous=draw(st.booleans()),
    )


@st.composite
def judged_segments(draw: st.DrawFn) -> JudgedSegment:
    """What a model of ours may say: a score and error spans, or neither."""
    left_out, score = draw(st.booleans()), draw(st.floats(0, 1))
    part = ScoredPart(0, 5, score)
    return JudgedSegment(
        Segment(SOURCE, TRANSLATION, "7", "mt"),
        None if left_out else Annotation(draw(st.lists(spans(), max_size=4))),
        None if left_out else score,
        None if left_out else 25 * score - 25,
        Place("mt.txt", "7", draw(st.none() | st.integers(1, 9))),
        SETTINGS,
        draw(st.none() | st.just("with other numbers")),
        draw(st.sampled_from(((), (part, part)))),
        draw(st.none() | st.just("He comes on Monday.")),
        True,
        draw(st.booleans()),
        "filtered" if left_out else None,
        draw(st.none() | st.just("He comes on Monday.")),
        draw(st.none() | st.booleans()),
    )


@given(judged_segments())
def test_what_is_written_is_read_again(judged: JudgedSegment) -> None:
    row = json.loads(json.dumps(judged.to_json()))
    assert list(row)[:1] == ["id"]
    again = JudgedSegment.from_json(row, 1, "mt.txt", "mt", Path())
    assert again.settings.model == judged.settings.model
    assert again.to_json() == judged.to_json()
    assert (again.annotation, again.place, again.parts) == (judged.annotation, judged.place, judged.parts)


def test_a_file(workdir: Path) -> None:
    """The system is named by its file; a metric without error spans writes no list of them, and COMET's own spans are
    written as they are."""
    text = Segment("a", "b")
    raw = [{"text": "b", "confidence": 0.5, "severity": "critical", "start": 0, "end": 1}]
    rows = [
        JudgedSegment(text, None, 0.5, reference="c"),
        JudgedSegment(text, Annotation(raw), 0.25, raw_errors=raw),
        JudgedSegment(text, Annotation(), 1.0, 0.0),
    ]
    write_judged("out.json", {"x/mt.txt": rows})
    [written] = json.loads(Path("out.json").read_text(encoding="utf-8")).values()
    assert written == [
        {"src": "a", "mt": "b", "ref": "c", "COMET": 0.5},
        {"src": "a", "mt": "b", "COMET": 0.25, "errors": raw},
        {"src": "a", "mt": "b", "COMET": 1.0, "mqm": 0.0, "errors": []},
    ]
    read = read_judged(Path("out.json"))
    assert [one.segment.system for one in read] == ["mt"] * 3
    assert [one.annotation for one in read] == [None, Annotation([ErrorSpan(0, 1, "major")]), Annotation()]
    assert [one.place for one in read] == [Place("x/mt.txt", str(number)) for number in (1, 2, 3)]


@pytest.mark.parametrize("content", ['{"a": [{"src": "x"}]}', '{"a": [1]}', '{"a": 1}', "[]"])
def test_another_file_is_refused(workdir: Path, content: str) -> None:
    from mbr_esd_metric.errors import InputError

    Path("out.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="out.json"):
        read_judged(Path("out.json"))
