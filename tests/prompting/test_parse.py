"""Parsing: exact on answers, never raising on anything, and never taking what is malformed for "no error"."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mbr_esd_metric import Annotation
from mbr_esd_metric.core.annotation import SpanKey
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.json import render_answer
from mbr_esd_metric.prompting.parse import LONGEST_ANSWER, MOST_ERRORS, TOO_LONG, Invalid, JsonParser, Parsed
from tests.helpers.candidates import answer

TEXT = 'Der Hund und der Hund, "sagte" er {x}, {y} \\ 😀 e\u0301.'


def plain(text: str, translation: str) -> Annotation:
    """First verbatim occurrence of each span."""
    spans = []
    for item in json.loads(text)["errors"]:
        words, severity = item["error_span"], item["severity"].strip().lower().replace("critical", "major")
        start = translation.find(words)
        if words and start >= 0 and severity in ("major", "minor"):
            spans.append({"start": start, "end": start + len(words), "severity": severity})
    return Annotation(spans)


ERRORS = st.lists(
    st.fixed_dictionaries(
        {
            "error_span": st.sampled_from(["Hund", "Hund, ", "}, {", '"sagte"', "\\", "😀", "", "Katze"]) | st.text(),
            "category": st.sampled_from(["accuracy", "style"]) | st.text(max_size=3),
            "sub_category": st.just("mistranslation"),
            "severity": st.sampled_from(["critical", "major", "minor", "Minor", "\tMAJOR ", "neutral", " Neutral"]),
        }
    ),
    max_size=4,
)
#: Words that look like the end of an error.
TRICK = 'x", "category": "a", "sub_category": "b", "severity": "minor"}, {"error_span": "Hund'


@settings(max_examples=150)
@given(ERRORS)
@example(json.loads(answer(TRICK))["errors"])
def test_well_formed_answers(errors: list[dict[str, str]]) -> None:
    for text in (render_answer(errors), json.dumps({"errors": errors}, indent=1)):
        parsed = JsonParser(TEXT).parse(text)
        assert isinstance(parsed, Parsed)
        if parsed.inexact:
            continue
        assert parsed.annotation == plain(text, TEXT)
        located = [e for e in errors if e["severity"].strip().lower() in ("critical", "major", "minor")]
        assert parsed.no_penalty == len(errors) - len(located)
        assert parsed.dropped == sum(not e["error_span"] or e["error_span"] not in TEXT for e in located)


def read(text: object, translation: str = TEXT, location: str = "first") -> Invalid | list[SpanKey]:
    """The spans that a text spells, or why it spells none."""
    parsed = JsonParser(translation, location).parse(text)
    return parsed if isinstance(parsed, Invalid) else [*parsed.annotation.key]


def test_location() -> None:
    text = answer("Hund", ("Hund", "minor"), "Hund", "er", "er")
    assert read(text) == [(1, 3, "major"), (4, 8, "major"), (4, 8, "minor")]
    places = [(1, 3, "major"), (4, 8, "major"), (14, 16, "major"), (17, 21, "minor")]
    assert read(text, location="successive") == places  # one more has no place
    with pytest.raises(OptionError, match="successive"):
        JsonParser(TEXT, "last")


def test_whole_words_come_before_places_inside_words() -> None:
    """Exact or folded; in scripts without spaces each character is a word. `first` is the paper's."""
    for words, text, start in (
        ("an", "Ein Mann ruft an.", 14),
        ("er", TEXT, TEXT.index(" er ") + 1),
        ("an", "Ein Mann.", 5),  # a part of a word is better than none
        ("3", "13 und 3", 7),
        ("’s", "Karl's geht's", 4),
        ("homme", "l'homme", 2),
        ("门", "开门。门", 1),
        ("क", "कि क", 3),
        ("e", "e\u0301 e", 3),
        ("zu\xa0an", "zu anderen, zu  an", 12),
    ):
        assert [key[0] for key in read(answer(words), text, "word")] == [start], words
    assert read(answer("er"), TEXT) == [(1, 3, "major")]
    omitted = get_format("json-omissions").parser("Er kam in Berlin", "word", "A man came in.")
    parsed = omitted.parse(answer("in").replace("error_span", "omitted_span"))
    assert isinstance(parsed, Parsed)
    assert [(span.side, span.start) for span in parsed.annotation] == [("source", 11)]


WHOLE = answer("Hund")


def test_other_spacing_keys_and_fences_are_read() -> None:
    text = (
        '\n{"explanation": "\\ud800", "errors":[ {"severity":"minor","sub_category":"","category":"x",'
        '"error_span":"Hund","n":1} ] }'
    )
    assert read(text) == [(4, 8, "minor")]
    assert read('{"errors":[]}') == []
    assert read(answer("\ud800"), "a\ud800b") == [(1, 2, "major")]
    for text in (f"```json\n{WHOLE}\n```", f"Here is my analysis:\n\n```\n{WHOLE}\n```\n\nThat is all."):
        assert read(text) == [(4, 8, "major")]


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ({}, None),
        ({"category": None, "sub_category": None}, None),
        ({"category": "accuracy", "sub_category": None}, "accuracy"),
        ({"sub_category": "addition"}, "addition"),
        ({"category": ["accuracy"], "sub_category": 3}, None),
    ],
)
def test_a_category_may_be_absent(category: dict[str, object], name: str | None) -> None:
    parsed = JsonParser(TEXT).parse(json.dumps({"errors": [{"error_span": "Hund", "severity": "major", **category}]}))
    assert isinstance(parsed, Parsed)
    assert [(span.key, span.category) for span in parsed.annotation] == [((4, 8, "major"), name)]


GOOD = {"error_span": "Hund", "severity": "minor"}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (None, "an error that is not an object"),
        ({"error_span": "er", "severity": "serious"}, "an error of unknown severity"),
        ({"error_span": "er", "severity": None}, "an error without error_span and severity"),
        ({"error_span": None, "severity": "major"}, "an error without error_span and severity"),
    ],
)
def test_a_malformed_error_does_not_lose_the_others(bad: object, reason: str) -> None:
    """It is counted; without another one that has a place it must not look like no error."""
    parser = JsonParser(TEXT)
    for errors in ([GOOD, bad], [bad, GOOD, bad]):
        parsed = parser.parse(json.dumps({"errors": errors}))
        assert isinstance(parsed, Parsed)
        assert ([*parsed.annotation.key], parsed.malformed) == ([(4, 8, "minor")], len(errors) - 1)
    for others in ([], [{**GOOD, "severity": "neutral"}], [{**GOOD, "error_span": "Katze"}]):
        assert parser.parse(json.dumps({"errors": [*others, bad]})) == Invalid(reason)


@pytest.mark.parametrize(
    "words",
    ["&Uuml;fer", "&#220;fer", "&amp;Uuml;fer", "&uuml;ber &amp; unter", "\\u00dcfer", '\\"J\\u00e4\\"', "a\\\\nb"],
)
def test_words_with_escapes_are_found(words: str) -> None:
    """Entities of HTML and escapes of JSON, once too often; counted, as they are not the text's own characters."""
    text = 'Das Üfer, über & unter, "Jä" a\\nb.'
    for location in ("first", "successive"):
        parsed = JsonParser(text, location).parse(json.dumps({"errors": [{"error_span": words, "severity": "major"}]}))
        assert isinstance(parsed, Parsed)
        assert (len(parsed.annotation), parsed.inexact, parsed.dropped) == (1, 1, 0)
    text = "Das &Uuml;fer"
    assert read(answer("&Uuml;fer"), text) == read(answer("&amp;Uuml;fer"), text) == [(4, 13, "major")]


def test_escapes_are_replaced_in_bounded_time() -> None:
    parsed = JsonParser(TEXT).parse(answer("&" + "amp;" * 100_000, "\\\\" * 100_000))
    assert isinstance(parsed, Parsed)
    assert parsed.dropped == 2


def test_of_a_very_long_answer_nothing_or_the_first_errors_are_read() -> None:
    words = [f"w{number}" for number in range(3 * MOST_ERRORS)]
    answers = {"json": answer(*words), "compact": " ".join(f"minor <{word}>" for word in words)}
    for name, written in answers.items():
        parser = get_format(name).parser(" ".join(words))
        parsed = parser.parse(written)
        assert (len(parsed.annotation), parsed.dropped) == (MOST_ERRORS, 2 * MOST_ERRORS)
        assert parser.parse(written + " " * LONGEST_ANSWER) == TOO_LONG
