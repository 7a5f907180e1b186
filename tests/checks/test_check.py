"""Errors that need no model: what they find, and that good translations have none."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, Context, errors_of

DATA = Path(os.environ.get("MBR_ESD_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.mark.parametrize(
    ("source", "translation", "errors"),
    [
        ("It costs 15 euros.", "Es kostet 51 Euro.", [("number", "51")]),
        ("It costs 1,234.56 euros.", "Es kostet 1.234,65 Euro.", [("number", "1.234,65")]),
        ("It costs 1,234.56 euros.", "Es kostet 1\u202f234,56 Euro.", []),
        ("Take 2.5 ml.", "Nehmen Sie 25 ml.", [("number", "25")]),
        ("In 2008 there were 1400, and 8 more.", "In 2009 waren es 1.400 und 8 mehr.", [("number", "2009")]),
        ("hit .300 and 1/2 more, of 15", "schlug 0,300 und 0,5 mehr, von 16", [("number", "16")]),
        ("12,34,567 people", "1.234.567 Menschen", []),
        ("The letter arrived on 5 May 2021.", "وصلت الرسالة في ٥ مايو ٢٠٢٢.", [("number", "٢٠٢٢")]),
        ("The letter arrived on 5 May 2021.", "手紙は２０２１年５月５日に届いた。", []),
        ("on 03/04/2020", "am 4. März 2020", []),
        ("at 2 p.m. on 4 July", "am 4. Juli um 14 Uhr", []),
        ("in the 1980s and 3 more", "in den 80er Jahren und drei weitere", []),
        ("35 million people", "3500万人", []),
        ("3.5 million euros", "35 Millionen Euro", [("number", "35")]),
        ("3.5 million euros", "3,5 Mio. Euro", []),
        ("3 million people", "5 Millionen Menschen", [("number", "5")]),
        ("84,000 people in 1948", "1948年8万4千人", []),
        ("28 miles away", "45 km entfernt", []),
        ("20 feet high", "25 Fuß hoch", [("number", "25")]),
        ("twelve of 15", "zwölf von fünfzehn", []),
        ("room 12 on the first floor", "Zimmer 21 im 1. Stock", [("number", "21")]),
        ("गते १९३१ साल", "in 1874", []),
        ("See https://example.com/a, now.", "Siehe http://example.com/a/.", []),
        ("See https://example.com/a now.", "Siehe https://example.com/b jetzt.", [("url", "https://example.com/b")]),
        ("Write to info@example.com.", "Schreib uns.", [("email", "[info@example.com]")]),
        ("Press <b>Save</b>.", "<b>Speichern</b><br/> drücken.", [("tag", "<br/>")]),
        ("<a title='Home'>x</a>", "<a title='Startseite'>y</a>", []),
        ("%d files of %s", "%s: Dateien", [("placeholder", "[%d]")]),
        ("%s of %s", "%2$s von %1$s", []),
        ("Hello {name}", "Hallo {Name}", [("placeholder", "{Name}")]),
        ("100% sure, 50 % off", "100%-ig sicher, 50%ige Ermäßigung", []),
        ("%1$s of %2$s", "%2$s of %1$s", []),
        # The general form of a message with branches is a text.
        (
            "{n, plural, one {Delete # file within 5 days?} other {Delete # files within 5 days?}}",
            "{n, plural, one {# Datei in 8 Tagen löschen?} other {# Dateien in 8 Tagen löschen?}}",
            [("number", "8")],
        ),
        (
            "{g, select, he {He has 2} other {They have {n, plural, one {1 mile} other {# of 80 feet}}}}",
            "{g, select, he {Er hat 3} other {Sie haben {n, plural, one {4 km} other {# von 80 Metern}}}}",
            [("unit", "Metern")],
        ),
        (
            "{n, plural, other {You have # new mails.}}",
            "{n, plural, other {You have # new mails.}}",
            [("copy", "{n, plural, other {You have # new mails.}}")],
        ),
        ("Mail 3 to a7@example.com", "3 an a8@example.com", [("email", "a8@example.com")]),
        ("It is the old house.", " It is the old  house. ", [("copy", "It is the old  house.")]),
        ("今天天气很好，我们去公园吧。", "今天天气很好，我们去公园吧。", [("copy", "今天天气很好，我们去公园吧。")]),
        ("Microsoft Office for Windows", "Microsoft Office for Windows", []),
        ("Das ist ein Haus.", "This is a the the house.", [("repetition", "the")]),
        ("No, no, never.", "Nein nein, nie.", []),
        ("Those who stayed", "Die, die die Stadt liebten", []),
    ],
)
def test_what_is_found(source: str, translation: str, errors: list[tuple[str, str]]) -> None:
    """The kind of each error and its words; those of the source in brackets."""
    found = []
    for one in errors_of(source, translation):
        words = (translation if one.side == "translation" else source)[one.start : one.end]
        found.append((one.category, words if one.side == "translation" else f"[{words}]"))
    assert found == [(f"check/{kind}", words) for kind, words in errors]


def test_long_texts_take_a_time_that_grows_with_them() -> None:
    began = time.process_time()
    for text in ("1 2,", "a7" * 4, "{", "-", "<a b='", "word ", "字"):
        errors_of(text * 10_000, text * 9_999)
    assert time.process_time() - began < 5


def rows(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / "judge" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def good_pairs() -> Iterator[tuple[str, str]]:
    """Translations in which no rater marked anything, and those that people wrote or checked."""
    errors: dict[tuple[str, str], bool] = {}
    for row in rows("bio_mqm_other_directions"):
        pair = row["src"], row["mt"]
        errors[pair] = errors.get(pair, False) or bool(row["errors"])
    yield from (pair for pair, wrong in errors.items() if not wrong)
    yield from {(row["src"], row["good"]): None for row in rows("planted_train")}


def test_correct_strings_of_software_in_many_languages() -> None:
    """They were written apart from the code. At most 1% is marked, whether the languages are known or not."""
    lines = (Path(__file__).parents[1] / "data" / "checks" / "correct.tsv").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines[1:]]
    assert len({tuple(one) for one in pairs}) >= 200
    assert len({pair.split("-")[1] for pair, *_ in pairs}) >= 12
    for known in (True, False):
        contexts = [Context(*pair.split("-")) if known else UNKNOWN for pair, *_ in pairs]
        found = [one for one, context in zip(pairs, contexts, strict=True) if errors_of(*one[1:], context)]
        assert len(found) <= len(pairs) / 100, found


@pytest.mark.skipif(not (DATA / "judge").is_dir(), reason=f"no {DATA / 'judge'} (MBR_ESD_DATA)")
def test_one_false_error_in_300_good_translations_at_most() -> None:
    """Eleven languages; most of what is found are mistakes that people made."""
    pairs = list(good_pairs())
    assert len(pairs) > 20_000
    assert sum(len(errors_of(*pair)) for pair in pairs) < len(pairs) / 300
