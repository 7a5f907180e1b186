"""Paragraphs judged sentence by sentence: the requests, the joined decisions, and a single sentence as before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbr_esd_metric.cli.sample import sample
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.cards import CARDS, load_card
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.sources import build_requests
from mbr_esd_metric.metric.units import LONG, join_parts, units_of
from mbr_esd_metric.prompting.pieces import word_count
from mbr_esd_metric.prompting.sentences import Part, parts
from tests.helpers.annotations import annotations
from tests.helpers.candidates import answer
from tests.helpers.stub_engine import StubEngine, run_stub
from tests.prompting.test_sentences import SOURCE, TEXTS, TRANSLATION, pairs

ONE = Segment("The dog barks.", "Der Hund bellt.", "line 1")
TEXT = Segment(SOURCE, TRANSLATION, "line 2")
PAPERS = ("mbr-esd-llama", "mbr-esd-gemma2", "mbr-esd-phi4", "mbr-esd-mistral", "mbr-esd-llama-distill")


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> ModelCard:
    run_stub(monkeypatch, lambda request, sampling: answer(request.translation.split()[0], severity="minor"))
    return load_card("mbr-esd-server?model=m&engine=server&n=2&lp=en-de&unit=sentence")


def test_a_single_sentence_has_the_request_and_the_score_of_a_segment(card: ModelCard) -> None:
    blank = Segment("Source.", " ", "line 3")
    whole = replace(card, unit="segment")
    for unit in ("sentence", "auto"):
        units = units_of(replace(card, unit=unit), [ONE, blank]).units
        assert build_requests(card, {}, units) == build_requests(whole, {}, [ONE, blank])
    # NaN, the utility of a blank one, equals nothing.
    assert repr(annotate(card, [ONE, blank]).decisions) == repr(annotate(whole, [ONE, blank]).decisions)


def test_the_papers_cards_judge_segments_and_others_paragraphs_by_sentences() -> None:
    assert {card.name for card in CARDS.values() if card.unit == "segment"} == {*PAPERS, "mbr-esd-checks"}
    auto, short = load_card("mbr-esd-small"), replace(TEXT, translation="Ja. " * LONG)
    assert len(units_of(auto, [TEXT]).units) == 1
    assert word_count(TEXT.translation) <= LONG
    assert len(units_of(auto, [short]).units) == 1
    assert len(units_of(auto, [Segment(SOURCE * 2, f"{TRANSLATION} {TRANSLATION}", "x")]).units) > 6


def test_the_whole_text_stands_first_and_the_sentence_last(card: ModelCard) -> None:
    annotate(card, [TEXT])
    StubEngine.requests.sort(key=lambda one: one.label)
    assert [one.translation for one in StubEngine.requests] == [
        TRANSLATION[p.start : p.end] for p in parts(SOURCE, TRANSLATION, "en-de")
    ]
    third = StubEngine.requests[2]
    assert "Source in English:\n[1] Good morning, dear friends.\n[2] I came from Paris in 1987.\n[3] It" in third.prompt
    assert third.prompt.index("[6] Niemand") < third.prompt.index("You check translations")
    assert third.prompt.rindex(third.translation) > third.prompt.index("Answer in JSON only")
    assert "This is part 3 of the text above." in third.prompt.rsplit("\n", 1)[1]
    assert third.label == "line 2, sentence 3"


def test_a_tagger_reads_the_sentence_and_its_source_alone() -> None:
    card = load_card("mbr-esd-small?unit=sentence")
    units = units_of(card, [TEXT]).units
    # The very requests of the sentences one by one: cost is that of as many segments.
    alone = [Segment(source, translation, "x") for source, translation in pairs(TRANSLATION)]
    assert [(u.source, u.translation, u.context) for u in units] == [(u.source, u.translation, None) for u in alone]
    assert units_of(card, alone).units == alone
    with pytest.raises(OptionError, match="context=document has no effect"):
        units_of(replace(card, context="document"), [TEXT])


def test_a_document_is_read_up_to_the_sentence(card: ModelCard) -> None:
    card = replace(card, context="document")
    texts = ["The dog barks.", "He is loud. He is big.", "It ends."]
    segments = [Segment(text, text.upper(), f"line {i}", document="d") for i, text in enumerate(texts)]
    other = Segment("Another text.", "EIN ANDERER TEXT.", "line 9", document="e")
    annotate(card, [segments[0], other, *segments[1:]])
    prompts = {one.translation: one.prompt for one in StubEngine.requests}
    assert "Below is" not in prompts["THE DOG BARKS."] + prompts["EIN ANDERER TEXT."]
    assert "[1] THE DOG BARKS." in prompts["HE IS LOUD."]
    assert "[4] IT ENDS." in prompts["IT ENDS."]
    assert "IT ENDS." not in prompts["HE IS BIG."]
    with pytest.raises(OptionError, match="--documents FILE, or 'doc' in each sample"):
        annotate(card, [ONE])


def test_a_file_of_candidates_has_whole_segments(card: ModelCard) -> None:
    stored = replace(card, candidates="some.jsonl")
    assert units_of(stored, [TEXT]).units == [TEXT]
    with pytest.raises(OptionError, match="whole segments"):
        list(sample(card, [TEXT]))
    assert [segment for segment, _ in sample(replace(card, unit="auto"), [TEXT])] == [TEXT]


def test_a_long_document_is_read_in_windows(card: ModelCard) -> None:
    """No prompt grows with the document, and few beginnings differ."""
    text = " ".join(f"Sentence {i} has some words of its own." for i in range(400))
    units = units_of(card, [Segment(text, text, "line 1")]).units
    assert len(units) == 400
    assert max(sum(len(p.sources) for p in u.context.passages) for u in units if u.context) < 130
    assert len({u.context.passages for u in units if u.context}) < 12


def test_lowest_scores_are_counted(card: ModelCard, monkeypatch: pytest.MonkeyPatch) -> None:
    run_stub(monkeypatch, lambda request, sampling: answer("b", "a", "e", "t", "n", "l"))
    segments = [TEXT, Segment("Source.", "", "line 2"), replace(ONE, label="line 3")]
    line = annotate(replace(card, unit="segment"), segments).summary
    assert line.endswith("; 2 of 2 segments reached the lowest score; unit=sentence")
    assert annotate(card, [ONE]).summary.endswith("; 1 of 1 segment reached the lowest score")


def test_penalties_of_sentences_can_be_summed() -> None:
    """`join=sum` adds points, not below the floor; `unit=segment` has nothing to join."""
    source, translation = LONG_PAIR
    lost = translation.replace("{address}", "diese Adresse").replace("{name}", "Maria")
    name = "mbr-esd-checks?lp=en-de&unit=auto"
    for options, mqm in (("", -2.0), ("&join=sum", -10.0)):
        result = annotate(load_card(name + options), [Segment(source, lost, "1")])
        [decision] = result.decisions
        assert decision.mqm == pytest.approx(mqm)
        assert decision.score == pytest.approx(1 + mqm / 25)
        assert len(decision.parts) == 5
    assert annotate(load_card(name + "&join=sum"), [Segment(source, source, "1")]).decisions[0].mqm == -25.0
    with pytest.raises(OptionError, match="unit=auto"):
        load_card("mbr-esd-checks?unit=segment&join=sum")


def test_the_deviation_of_a_sum_is_of_independent_scores() -> None:
    decision = Decision(0, Annotation([]), 0.9, -2.5, (), 0.5, 1, 1, 0, mqm_sd=3.0)
    places = [Part(0, 1, 0, 1), Part(1, 2, 1, 2), Part(2, 3, 2, 3), Part(3, 4, 3, 4)]
    mean, total = (join_parts([decision] * 4, places, summed=summed) for summed in (False, True))
    assert (mean.mqm, mean.mqm_sd) == (-2.5, 1.5)
    assert (total.mqm, total.mqm_sd) == (-10.0, 6.0)


@st.composite
def judged(draw: st.DrawFn) -> tuple[str, str, list[Decision]]:
    """A text, its source, and a decision with some spans for each part."""
    source, translation = draw(TEXTS), draw(TEXTS)
    decisions = []
    for part in parts(source, translation):
        spans = draw(annotations(part.end - part.start))
        omitted = draw(annotations(part.source_end - part.source_start))
        both = Annotation([*spans, *(ErrorSpan(s.start, s.end, s.severity, side="source") for s in omitted)])
        decisions.append(Decision(0, both, 0.96, -1.0, (), 0.5, 1, 1, 0))
    return source, translation, decisions


@given(judged())
@settings(max_examples=200, deadline=None)
def test_joined_spans_are_those_of_a_plain_loop(case: tuple[str, str, list[Decision]]) -> None:
    source, translation, decisions = case
    places = parts(source, translation)
    expected = []
    for part, decision in zip(places, decisions, strict=True):
        mt, src = translation[part.start : part.end], source[part.source_start : part.source_end]
        for span in decision.annotation:
            text = mt if span.side == "translation" else src
            expected.append((span.side, span.severity, text[span.start : span.end]))
    joined = join_parts(decisions, places).annotation
    texts = {"translation": translation, "source": source}
    assert sorted((s.side, s.severity, texts[s.side][s.start : s.end]) for s in joined) == sorted(expected)
    assert joined.spans == Annotation(joined.spans).spans


LONG_PAIR = (
    "Dear {name}, we thank you for your patience in the last weeks, in which few things went as they should. "
    "On 14 March you ordered 3 chairs, <b>as our partner says. They left</b> on 27 March with one of our drivers. "
    "It will be a while until all of them are there, because the roads are bad and there is much snow in the south. "
    "Please write to us at {address} if nothing has arrived by the end of the next week, and we will look for them.",
    "wir danken Ihnen für Ihre Geduld in den letzten Wochen, in denen vieles anders lief als geplant. "
    "Sie haben 3 Stühle bestellt, <b>wie unser Partner sagt. Die Bestellung vom 14. März ging</b> am 27. März hinaus. "
    "Es dauert etwas, bis alles da ist, {name}, da die Straßen schlecht sind und im Süden viel Schnee liegt. "
    "Schreiben Sie uns an {address}, wenn bis Ende der nächsten Woche nichts angekommen ist, und wir suchen danach.",
)


def checked(source: str, translation: str, unit: str, **more: object) -> list[tuple[str, str]]:
    """Score, categories and words of what the checks find in a pair."""
    [decision] = annotate(
        load_card(f"mbr-esd-checks?lp=en-de&unit={unit}"), [Segment(source, translation, "1")]
    ).decisions
    texts = {"translation": translation, "source": source}
    words = [(one.category or "", texts[one.side][one.start : one.end]) for one in decision.annotation]
    return [*words, (f"{decision.mqm:.2f}", str(len(decision.parts)))]


def test_checks_read_the_whole_text_and_mark_its_sentences() -> None:
    """What moved to another sentence is not an error; what is lost costs its sentence, and so a share of the mean."""
    source, translation = LONG_PAIR
    assert checked(source, translation, "auto") == [("0.00", "5")]
    lost = translation.replace("{address}", "diese Adresse")
    assert checked(source, lost, "auto") == [("check/placeholder", "{address}"), ("-1.00", "5")]
    assert checked(source, lost, "segment") == [("check/placeholder", "{address}"), ("-5.00", "0")]


def test_what_is_wrong_as_a_whole_is_wrong_in_each_sentence() -> None:
    source, translation = LONG_PAIR
    errors = checked(source, source, "auto")
    assert [category for category, _ in errors[:-1]] == ["check/copy"] * 5
    assert errors[-1] == ("-5.00", "5")
    sentence = f"Please{source.rpartition('Please')[2]}"
    one_copied = translation.partition("Schreiben")[0] + sentence
    assert checked(source, one_copied, "auto") == [("check/copy", sentence), ("-1.00", "5")]
