"""Names of weekdays, months and territories that became another one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, Context
from mbr_esd_metric.checks.names import Names

WRONG = [
    ("en-de", "The meeting is on Monday.", "Das Treffen findet dienstags statt.", "weekday", "dienstags"),
    ("en-fr", "I will see you on Thursday.", "Je te verrai vendredi.", "weekday", "vendredi"),
    ("en-ru", "We leave on Wednesday.", "Мы уезжаем в субботу.", "weekday", "субботу"),
    ("en-ko", "See you on Monday.", "화요일에 만나요.", "weekday", "화요일"),
    ("en-nl", "The festival is in March.", "Het festival is in mei.", "month", "mei"),
    ("zh-en", "星期三下午开会。", "The meeting is on Thursday afternoon.", "weekday", "Thursday"),
    ("en-ja", "The shop is closed on Friday.", "その店は木曜日に休みです。", "weekday", "木曜日"),
    ("en-de", "She arrived in October.", "Sie kam im November an.", "month", "November"),
    ("en-pl", "It was in September.", "To było w październiku.", "month", "październiku"),
    ("en-de", "I live in Poland.", "Ich lebe in Portugal.", "territory", "Portugal"),
    ("en-es", "The Italian team won.", "El equipo francés ganó.", "territory", "francés"),
    ("en-ru", "We live in Germany.", "Мы живём во Франции.", "territory", "Франции"),
    ("en-zh", "He comes from Spain.", "他来自葡萄牙。", "territory", "葡萄牙"),
    ("fr-en", "Il parle japonais.", "He speaks Chinese.", "territory", "Chinese"),
    ("en-he", "We live in Canada.", "אנחנו גרים בצרפת.", "territory", "בצרפת"),
    # Abbreviations.
    ("en-de", "Mon, Jan 5", "Dienstag, 5. Januar", "weekday", "Dienstag"),
    ("en-de", "We meet on Mon, Jan 5.", "Wir treffen uns am Di., 5. Jan.", "weekday", "Di"),
    ("en-de", "The course starts on Jun 15.", "Der Kurs beginnt am 15. Jul.", "month", "Jul"),
    ("en-ja", "Dec 25", "11月25日", "month", "11月"),
    ("en-de", "Delivery to the UK", "Lieferung in die USA", "territory", "USA"),
    ("en-de", "in the United Kingdom", "in den Vereinigten Staaten", "territory", "Vereinigten Staaten"),
]
RIGHT = [
    ("en-de", "The meeting is on Monday.", "Das Treffen findet montags statt."),
    ("en-de", "on Easter Monday and on Tuesday", "am Ostermontag und am Dienstag"),
    ("en-de", "We met on Saturday night.", "Wir trafen uns in der Nacht zum Sonntag."),
    ("en-de", "Mon, Tue and Friday", "Mo., Di. und Freitag"),
    ("en-zh", "on Sunday", "星期天"),
    ("en-de", "Sat, Dec 25; Jun 15", "Samstag, 25. Dez.; 15.6."),
    ("en-es", "Tue, 5 Mar 2024", "mar, 5 mar 2024"),
    ("en-de", "the UK-SA Tech Hub", "das Zentrum Großbritanniens und Südafrikas"),
    ("en-fr", "Call us in the UK, CONTACT US in Canada", "En Grande-Bretagne ou au Canada, CONTACTEZ-NOUS"),
    ("uk-en", "США ввели санкції проти РФ", "US imposes sanctions on Russia"),
    ("en-de", "Jan, 5, and his brother met in May.", "Jan (5) und sein Bruder trafen sich im Mai."),
    ("en-pt", "on Monday and on Friday", "na segunda e na sexta-feira"),
    ("en-de", "She arrived in March, not in April.", "Sie kam im März an, nicht im April."),
    ("en-de", "You may march on August 5.", "Du darfst am 5.8. marschieren."),
    ("en-ja", "from October to December", "10月から12月まで"),
    ("en-fr", "Turkey is served in November in the United States.", "Aux USA, la dinde se mange en novembre."),
    ("en-de", "The Polish government and China", "Die Regierung Polens und die Volksrepublik China"),
    ("en-de", "Michael Jordan left Georgia for Germany.", "Michael Jordan zog von Georgia nach Deutschland."),
    ("zh-en", "中方和美方", "China and the United States"),
    ("en-ru", "It was one of them; France and Spain know it.", "Того же мнения Франция и Испания; среди них он."),
    ("en-de", "Britain, Holland and the US", "Großbritannien, die Niederlande und Amerika"),
    ("en-de", "", "Montag"),
]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("lp", "source", "translation", "kind", "word"), WRONG)
def test_a_name_for_another_of_its_class_is_an_error(
    lp: str, source: str, translation: str, kind: str, word: str, known: bool
) -> None:
    context = Context(*lp.split("-")) if known else UNKNOWN
    found = [(one.category, translation[one.start : one.end]) for one in Names().errors(source, translation, context)]
    assert found == [(f"check/{kind}", word)]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("lp", "source", "translation"), RIGHT)
def test_what_translators_do_is_none(lp: str, source: str, translation: str, known: bool) -> None:
    context = Context(*lp.split("-")) if known else UNKNOWN
    assert list(Names().errors(source, translation, context)) == []
    assert list(Names().errors(translation, source, UNKNOWN)) == []


def test_a_language_that_cldr_does_not_know_is_no_failure() -> None:
    assert list(Names().errors("Monday", "Dienstag", Context("en", "tlh"))) == []


def test_names_of_one_language_do_not_depend_on_those_looked_up_before() -> None:
    """Babel writes what it resolves for one locale into the data that all inherit."""
    code = (
        "from mbr_esd_metric.checks.lexicons import lexicon; lexicon('zh'); lexicon('ar')\n"
        "print(sorted(lexicon('nl').characters))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
