"""Parsing: exact on answers, never raising on anything, and never taking what is malformed for "no error"."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.json import render_answer
from mbr_esd_metric.prompting.parse import KEYS, MOST_ERRORS, Invalid, JsonParser, Parsed
from tests.helpers.annotations import parse_candidate
from tests.helpers.candidates import answer

TEXT = 'Der Hund und der Hund, "sagte" er {x}, {y} \\ 😀 e\u0301.'
settings.register_profile("untimed", deadline=None, max_examples=150)
settings.load_profile("untimed")


def error(
    span: str, severity: str = "major", category: str = "accuracy", sub: str = "mistranslation"
) -> dict[str, str]:
    return dict(zip(KEYS, (span, category, sub, severity), strict=True))


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
    st.builds(
        error,
        st.one_of(st.sampled_from(["Hund", "Hund, ", "}, {", '"sagte"', "\\", "😀", "", "Katze"]), st.text()),
        st.sampled_from(["critical", "major", "minor", "Minor", "MAJOR ", "\tminor", "neutral", " Neutral"]),
        st.one_of(st.sampled_from(["accuracy", "style"]), st.text(max_size=3)),
    ),
    max_size=4,
)


@given(ERRORS)
@example([error('x", "category": "a", "sub_category": "b", "severity": "minor"}, {"error_span": "Hund')])
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


@pytest.mark.parametrize("severity", ["serious", "", "high", "majorr", "no-error", "0"])
def test_an_unknown_severity_is_never_a_silent_no_error(severity: str) -> None:
    for text in (
        render_answer([error("Hund"), error("Hund", severity)]),
        json.dumps({"errors": [error("Hund", severity)]}, indent=1),
    ):
        assert JsonParser(TEXT).parse(text) == Invalid("an error of unknown severity")


def test_location() -> None:
    text = render_answer([error("Hund"), error("Hund", "minor"), error("Hund"), error("er"), error("er")])
    assert parse_candidate(text, TEXT) == Annotation(
        [ErrorSpan(4, 8, "major"), ErrorSpan(4, 8, "minor"), ErrorSpan(1, 3, "major")]
    )
    successive = JsonParser(TEXT, "successive").parse(text)
    places = [(1, 3, "major"), (4, 8, "major"), (14, 16, "major"), (17, 21, "minor")]
    assert successive == Parsed(Annotation([ErrorSpan(*place) for place in places]), 1)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="successive"):
        JsonParser(TEXT, "last")


#: Besides what no format takes; see `test_formats.py`.
MALFORMED = ["0", '"errors"', '{"errors": null}', '{"errors": {}}', '{"errors": ""}', '{"errors": []']
MALFORMED += ['{"errors": [{}]}', '{"errors": [null]}', '{"errors": [[]]}', '{"errors": ["Hund"]}', '{"error": []}']
MALFORMED += ['```json\n{"errors": []}', '```json\n{"errors": []}\n```\n{"errors": [1]}', "\ufeff{}", "{'errors': []}"]
MALFORMED += ['{"errors": []}\n```json\n{"errors": []}\n```', '```\n{"errors": []}\n```\n```\n{"errors": []}\n```']
MALFORMED += ['{"errors": [], "errors": [1]}', '{"errors": [{"error_span": "Hund"}], "errors": []}', '{"errors": [],}']
MALFORMED += [f'{{"errors": [], "x": {value}}}' for value in ("NaN", "Infinity", "9" * 5000)]
MALFORMED += ['{"errors": ' + "[" * 100_000 + "]" * 100_000 + "}", "[" * 200_000, '{"errors": [' * 50_000]
MALFORMED += [
    '{"errors": []}}',
    *(render_answer([error("Hund")])[:-1], render_answer([error("Hund")])[:40], render_answer([error("Hund")]) + "}"),
    json.dumps({"errors": [error("Hund") | {"severity": None}]}),
    json.dumps({"errors": [error("Hund") | {"error_span": 3}]}),
    json.dumps({"errors": [error("Hund"), {"error_span": "Hund", "severity": "major"}]}),
    render_answer([error("Hund")]).replace('"severity"', '"error_span": "er", "severity"'),
    render_answer([error("Hund")]).replace("Hund", "Hu\nnd"),
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_is_never_no_error(text: str) -> None:
    parsed = parse_candidate(text, TEXT)
    assert isinstance(parsed, Invalid)
    assert parsed.reason
    assert isinstance(JsonParser(TEXT, "successive").parse(text), Invalid)


def test_what_is_no_text() -> None:
    assert {parse_candidate(value, TEXT) for value in (None, 3, b"{}", ["x"], {})} == {Invalid("not a text")}


def test_other_spacing_keys_and_fences_are_read() -> None:
    text = (
        '\n{"explanation": "\\ud800", "errors":[ {"severity":"minor","sub_category":"","category":"x",'
        '"error_span":"Hund","n":1} ] }'
    )
    assert parse_candidate(text, TEXT) == Annotation([ErrorSpan(4, 8, "minor")])
    assert parse_candidate('{"errors":[]}', TEXT) == Annotation()
    lone = render_answer([error("\ud800", "minor")])
    assert parse_candidate(lone, "a\ud800b") == Annotation([ErrorSpan(1, 2, "minor")])
    whole = render_answer([error("Hund")])
    for text in (f"```json\n{whole}\n```", f"Here is my analysis:\n\n```\n{whole}\n```\n\nThat is all."):
        assert parse_candidate(text, TEXT) == Annotation([ErrorSpan(4, 8, "major")])


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_an_empty_omission_is_dropped_however_it_is_spaced(separators: tuple[str, str]) -> None:
    empty = {"omitted_span": "", "category": "accuracy", "sub_category": "omission", "severity": "minor"}
    text = json.dumps({"errors": [empty]}, separators=separators)
    parsed = get_format("json-omissions").parser(TEXT, source="The dog").parse(text)
    assert parsed == Parsed(Annotation(), 1, unplaced=1)
    assert isinstance(JsonParser(TEXT).parse(text), Invalid)  # answers of one side have no such key


def test_a_long_answer_is_read_and_a_cut_one_is_not() -> None:
    many = render_answer([error("Hund", "minor", "style", f"s{i}") for i in range(8_000)])
    assert parse_candidate(many, TEXT) == Annotation([ErrorSpan(4, 8, "minor")])
    assert isinstance(parse_candidate(many[:-2], TEXT), Invalid)


def test_of_an_answer_with_thousands_of_errors_the_first_are_read_and_the_others_counted() -> None:
    words = [f"w{number}" for number in range(3 * MOST_ERRORS)]
    answers = {"json": answer(*words), "compact": " ".join(f"minor <{word}>" for word in words)}
    for name, written in answers.items():
        parsed = get_format(name).parser(" ".join(words)).parse(written)
        assert isinstance(parsed, Parsed)
        assert (len(parsed.annotation), parsed.dropped) == (MOST_ERRORS, 2 * MOST_ERRORS)
