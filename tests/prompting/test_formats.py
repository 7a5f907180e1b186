"""Every answer format: prompt, grammar and parser agree, and nothing malformed is ever "no error"."""

from __future__ import annotations

import itertools
import json
import random
import re
from dataclasses import replace

import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.prompting.formats import FORMATS, get_format
from mbr_esd_metric.prompting.formats.compact import MOST
from mbr_esd_metric.prompting.formats.json import answer_category
from mbr_esd_metric.prompting.formats.tags import words_of
from mbr_esd_metric.prompting.parse import Invalid, Parsed
from tests.helpers.candidates import answer

TEXTS = [
    "Der Hund, der Hund bellt = laut+leise - oder?",
    ' <b>Die "Katze"</b> \\ saß\nauf  der\tMatte ',
    "我喜欢喝 tea。",
    "none",
    "a",
    "major <x> minor <y>",
    "e\u0301te\u0301 ✓ 🐉",
]
MT = "Der Hund, der Hund bellt 🐉."
EVERY = FORMATS.builtin
#: Characters that a format may have no way to write inside an error.
MARKS = re.compile(r'[-"\\<>=+\n\t]')
TAGS = get_format("tags")


def whole_words(text: str, rng: random.Random, most: int = 3) -> Annotation:
    """Some errors that every format can say: runs of words that stand at their first place, none beside another."""
    words, spans, at = words_of(text), [], 0
    while at < len(words) and len(spans) < most:
        first = rng.randrange(at, len(words))
        last = min(len(words) - 1, first + rng.randrange(3))
        start, end = words[first].start, words[last].end
        if text.find(text[start:end]) == start:
            spans.append(ErrorSpan(start, end, rng.choice(["major", "minor"])))
        at = last + 2
    return Annotation(spans)


def plain(answer: str) -> str:
    """An answer without its blanks and the score that it may state."""
    return re.sub(r"score(100|[1-9]?[0-9])$", "", "".join(answer.split()))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("text", TEXTS)
def test_answers_are_in_the_grammar_and_read_back(name: str, text: str) -> None:
    """With omissions where the format has them."""
    answers, rng = get_format(name), random.Random(len(text))
    for source, grounded in itertools.product(TEXTS, (False, True)):
        parser, grammar = answers.parser(text, source=source), re.compile(answers.grammar(text, grounded, source))
        for _ in range(20):
            omitted = whole_words(source, rng) if answers.both_sides else ()
            omissions = [replace(span, side="source", category="omission") for span in omitted]
            annotation = Annotation([*whole_words(text, rng), *omissions])
            written, lost = answers.answer(annotation, text, source)
            if lost:
                sides = {"translation": text, "source": source}
                assert lost <= sum(MARKS.search(sides[s.side], s.start, s.end) is not None for s in annotation)
                continue
            assert grammar.fullmatch(written), (written, grounded)
            assert parser.parse(written) == Parsed(annotation)
            said = parser.ranges(written)
            assert set(said) == set(annotation.key)
            assert all(0 <= start < end <= len(written) for ranges in said.values() for start, end in ranges)
        assert grammar.fullmatch(answers.answer(Annotation(), text, source)[0])


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_an_empty_omission_is_dropped_however_it_is_spaced(separators: tuple[str, str]) -> None:
    empty = {"omitted_span": "", "category": "accuracy", "sub_category": "omission", "severity": "minor"}
    text = json.dumps({"errors": [empty]}, separators=separators)
    assert get_format("json-omissions").parser("The dog", source="Der Hund").parse(text) == Parsed(
        Annotation(), 1, unplaced=1
    )


def test_an_omission_of_the_old_prompt_has_no_place() -> None:
    """GEMBA's way: the words of the source as an error of the translation."""
    answer = (
        '{"errors": [{"error_span": "Hund", "category": "accuracy", "sub_category": "omission", "severity": "major"}, '
        '{"error_span": "Katze", "category": "accuracy", "sub_category": "addition", "severity": "major"}]}'
    )
    parsed = get_format("json").parser("The dog", source="Der Hund").parse(answer)
    assert parsed == Parsed(Annotation(), 2, unplaced=1)
    # Where the model is asked for words of the source, that is what these are.
    both = get_format("json-omissions").parser("The dog", source="Der Hund")
    assert both.parse(answer).annotation == Annotation([ErrorSpan(4, 8, "major", side="source")])
    wrong = answer.replace('"error_span": "Hund"', '"error_span": "dog", "omitted_span": "Hund"')
    assert both.parse(wrong) == Invalid("an error with error_span and omitted_span")


MALFORMED = ["", " ", "no error", "none none", "none major <Hund>", "minor <>", "major <Hund", "major Hund", "{}"]
MALFORMED += ["major <Hund>minor <der>", "major <Hund>  minor <der>", "critical <Hund>", "major <a<b>", "major <\\x>"]
MALFORMED += ["=", "==", "NONE", "none.", "[]", "null", '{"errors": []}x', "errors: none", "Der= Hund="]
MALFORMED += ["\x00", "\ud800"]
MALFORMED += ["0", '"errors"', '{"errors": null}', '{"errors": {}}', '{"errors": ""}', '{"errors": []']
MALFORMED += ['{"errors": [{}]}', '{"errors": [null]}', '{"errors": [[]]}', '{"errors": ["Hund"]}', '{"error": []}']
MALFORMED += ['```json\n{"errors": []}', '```json\n{"errors": []}\n```\n{"errors": [1]}', "\ufeff{}", "{'errors': []}"]
MALFORMED += ['{"errors": []}\n```json\n{"errors": []}\n```', '```\n{"errors": []}\n```\n```\n{"errors": []}\n```']
MALFORMED += ['{"errors": [], "errors": [1]}', '{"errors": [{"error_span": "Hund"}], "errors": []}', '{"errors": [],}']
MALFORMED += [f'{{"errors": [], "x": {value}}}' for value in ("NaN", "Infinity", "9" * 5000)]
MALFORMED += ['{"errors": ' + "[" * 100_000 + "]" * 100_000 + "}", "[" * 200_000, '{"errors": [' * 50_000]
WHOLE = answer("Hund")
MALFORMED += ['{"errors": []}}', WHOLE[:-1], WHOLE[:40], WHOLE + "}", WHOLE.replace("Hund", "Hu\nnd")]
MALFORMED += [WHOLE.replace('"major"', "null"), WHOLE.replace('"Hund"', "3")]
MALFORMED += [WHOLE.replace('"severity"', '"error_span": "er", "severity"')]
UNKNOWN = [json.loads(answer(("Hund", severity))) for severity in ("serious", "", "majorr", "no-error")]
MALFORMED += [json.dumps(errors, indent=indent) for errors in UNKNOWN for indent in (None, 1)]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_malformed_answers_are_never_no_error(name: str, text: str) -> None:
    answers = get_format(name)
    if re.fullmatch(answers.grammar(TEXTS[0]), text.strip()):
        return  # well-formed in this format
    read = answers.parser(TEXTS[0]).parse(text)
    assert isinstance(read, Invalid)
    assert read.reason


@pytest.mark.parametrize("name", EVERY)
def test_damaged_answers_say_no_error_only_where_that_is_what_they_spell(name: str) -> None:
    answers, rng = get_format(name), random.Random(1)
    for text in TEXTS:
        parser, nothing = answers.parser(text), answers.answer(Annotation(), text)[0]
        for _ in range(400):
            whole = answers.answer(whole_words(text, rng), text)[0]
            at, end = sorted(rng.choices(range(len(whole) + 1), k=2))
            inserted = whole[:at] + rng.choice("<>=+-\\ {") + whole[at:]
            cut = rng.choice([whole[:at] + whole[end:], whole[:end] + whole[at:], inserted])
            read = parser.parse(cut)
            counted = isinstance(read, Invalid) or read.annotation or read.dropped or read.no_penalty
            assert counted or plain(cut) == plain(nothing), cut


@pytest.mark.parametrize("name", EVERY)
def test_a_translation_without_words_has_one_answer(name: str) -> None:
    answers = get_format(name)
    nothing = answers.answer(Annotation(), " \n")[0]
    assert re.fullmatch(answers.grammar(" \n", grounded=True), nothing)
    assert answers.parser(" \n").parse(nothing) == Parsed(Annotation())
    omission = Annotation([ErrorSpan(0, 3, "major", side="source")])
    assert answers.answer(omission, " \n", "Der")[1] == (name == "tags")


@pytest.mark.parametrize(("name", "before"), [("compact", ""), ("compact-omissions", "omitted ")])
@pytest.mark.parametrize("grounded", [False, True])
def test_a_compact_answer_cannot_go_on_for_ever(name: str, before: str, grounded: bool) -> None:
    """A model that repeats a span would go on until its answer is cut."""
    text, answers = "Der Hund bellt.", get_format(name)
    grammar, errors = answers.grammar(text, grounded, text), [f"{before}minor <Hund>"] * (MOST + 1)
    assert re.fullmatch(grammar, " ".join(errors[:MOST]))
    assert not re.fullmatch(grammar, " ".join(errors))
    words = " ".join(f"w{number}." for number in range(40))
    answer, lost = answers.answer(Annotation(ErrorSpan(at, at + 3, "minor") for at in range(0, 60, 4)), words)
    assert re.fullmatch(answers.grammar(words, False, ""), answer)
    assert (answer.count("<"), lost) == (MOST, 15 - MOST)


def test_tags_say_places_not_texts() -> None:
    parser = TAGS.parser("Der Hund, der Hund bellt.")
    assert parser.parse("Der= Hund=,= der= Hund+ bellt+.=") == Parsed(Annotation([ErrorSpan(14, 24, "major")]))
    two = Annotation([ErrorSpan(0, 8, "minor"), ErrorSpan(8, 9, "major")])
    assert parser.parse("Der- Hund-,+ der= Hund= bellt=.=") == Parsed(two)


def test_part_of_a_word_tags_the_word() -> None:
    # Half a word or more is tagged; less of it only where nothing else would be.
    for spans, tagged, lost in (
        ([ErrorSpan(7, 9, "minor")], "Sie= gehte- nach= Hause=\nScore: -1", 0),
        ([ErrorSpan(4, 11, "major")], "Sie= gehte+ nach= Hause=\nScore: -5", 0),
        ([ErrorSpan(3, 4, "major")], "Sie= gehte= nach= Hause=\nScore: -5", 1),
        ([ErrorSpan(0, 3, "minor"), ErrorSpan(0, 3, "major")], "Sie+ gehte= nach= Hause=\nScore: -6", 0),
    ):
        assert TAGS.answer(Annotation(spans), "Sie gehte nach Hause") == (tagged, lost)


def test_the_tags_of_the_source_follow_those_of_the_translation() -> None:
    source, translation = "It rains, again.", "Es regnet."
    errors = Annotation([ErrorSpan(3, 9, "minor"), ErrorSpan(8, 15, "major", side="source")])
    tagged = "Es= regnet-.=\nSource: It= rains=,+ again+.="
    answer, lost = TAGS.answer(errors, translation, source)
    assert (answer, lost) == (f"{tagged}\nScore: -6", 0)
    parser = TAGS.parser(translation, source=source)
    for score, stated in (("", None), ("\nScore: -6", -6.0), ("\nScore: -2.5000", -2.5), ("\nScore: -99", -25.0)):
        text = tagged + score
        assert re.fullmatch(TAGS.grammar(translation, source=source), text)
        parsed = parser.parse(text)
        assert isinstance(parsed, Parsed)
        assert (parsed.annotation, parsed.self_reported_score) == (errors, stated)
        assert set(parsed.ranges or ()) == {span.key for span in errors}


@pytest.mark.parametrize("more", ["\nSource:", "\nSource: It= rains=.= now=", "=", "*", " x=", "\nSource: It= rains="])
def test_tags_of_other_texts_are_invalid(more: str) -> None:
    assert isinstance(TAGS.parser("Es regnet.", source="It rains.").parse(f"Es= regnet=.={more}"), Invalid)


def test_categories_are_put_in_the_prompts_words() -> None:
    words = {
        "Accuracy/Omission (Translation 2)": ("accuracy", "omission"),
        "Style/Unnatural or awkward": ("style", "unnatural or awkward"),
        "Locale convention/Date format": ("other", "date format"),
        "Non-translation!": ("non-translation", "non-translation"),
        "Linguistic_conventions": ("fluency", "linguistic conventions"),
        "Wrong term": ("terminology", "wrong term"),
        None: ("other", "other"),
        "123": ("other", "other"),
    }
    assert {published: answer_category(published) for published in words} == words


def answer_with(words: str = "Hund", **more: object) -> str:
    error = {"error_span": words, "category": "style", "sub_category": "style", "severity": "minor", **more}
    return json.dumps({"errors": [error]}, ensure_ascii=False)


@pytest.mark.parametrize(
    "more",
    [
        {"correction": "Rüde", "reason": ""},
        {"correction": 'a "b" }, { \\ bellt', "reason": "[]}"},
        {"reason": "first", "correction": ""},
        {"correction": None},
        {},
    ],
)
def test_an_error_has_its_correction_and_its_reason(more: dict[str, object]) -> None:
    answers, text = get_format("json-corrections"), answer_with(**more)
    parser, plain = answers.parser(MT), get_format("json").parser(MT).parse(text)
    parsed = parser.parse(text)
    assert parsed == plain == Parsed(Annotation([ErrorSpan(4, 8, "minor")]))
    (span,) = parsed.annotation
    assert (span.correction, span.reason) == (more.get("correction"), more.get("reason"))
    assert plain.annotation.spans[0].correction is None
    if [*more] == ["correction", "reason"]:
        assert all(re.fullmatch(answers.grammar(MT, grounded), text) for grounded in (False, True))
        assert answers.answer(parsed.annotation, MT)[0] == text
        said = [text[start:end] for start, end in parser.ranges(text)[span.key]]
        assert said == ['{"error_span": "Hund"', "minor"]


def test_a_correction_is_a_text_that_is_never_located() -> None:
    parser = get_format("json-corrections").parser(MT)
    [span] = parser.parse(answer_with(correction=["Rüde"])).annotation  # type: ignore[union-attr]
    assert span.correction is None
    assert parser.parse(answer_with("Katze", correction="Hund", reason="Hund")) == Parsed(Annotation(), 1)
