"""Numbers that became others, and what translators do with numbers."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, Context
from mbr_esd_metric.checks.numbers import Numbers

WRONG = [
    # Scales.
    ("en-de", "It cost 2.5 million euros.", "Es kostete 2,5 Milliarden Euro.", "2,5"),
    ("en-de", "It cost $450 billion.", "Es kostete 450 Billionen Dollar.", "450"),
    ("en-zh", "There are 1.2 billion people.", "有120亿人。", "120"),
    ("ko-en", "3만 명이 참석했다.", "3,000 people attended.", "3,000"),
    ("zh-en", "拨款2030万元", "203 million yuan were allocated", "203"),
    ("en-ru", "3 million people", "3 миллиарда человек", "3"),
    ("en-de", "Pay 1,500 euros.", "Zahlen Sie 1,5 Euro.", "1,5"),
    # Parts of decimals and versions.
    ("en-de", "The dose is 0.5 mg.", "Die Dosis beträgt 5 mg.", "5"),
    ("en-de", "Install version 2.1.3.", "Installieren Sie Version 2.3.1.", "2.3.1"),
    # Signs, results, ordinals.
    ("en-de", "It is -5 degrees outside.", "Draußen sind es 5 Grad.", "5"),
    ("en-fr", "It is 5 degrees outside.", "Il fait -5 degrés dehors.", "5"),
    ("en-de", "Score: 3-2", "Ergebnis: 2:3", "2:3"),
    ("en-de", "See Chapter IV.", "Siehe Kapitel 6.", "6"),
    ("en-de", "on the 3rd floor", "im 5. Stock", "5"),
    ("en-de", "pages 12-15", "Seiten 12–16", "16"),
    ("en-de", "Due 12/25/2024", "Fällig am 24.12.2024", "24.12.2024"),
    # Hours that are none of a clock, and those of the morning.
    ("en-de", "It took 9 hours.", "Es dauerte 21 Stunden.", "21"),
    ("en-de", "Room 8", "Raum 20", "20"),
    ("en-de", "at 3 a.m. on Monday", "am Montag um 15 Uhr", "15"),
    # Temperatures that are not conversions.
    ("en-de", "It is 20 degrees.", "Es sind 30 Grad.", "30"),
    # Words.
    ("en-de", "There are three dogs.", "Da sind vier Hunde.", "vier"),
    ("en-fr", "Twenty-five people came.", "Vingt-six personnes sont venues.", "Vingt-six"),
    ("en-ja", "Nine passengers were rescued.", "乗客7人が救助されました。", "7"),
    ("en-es", "7 houses were destroyed.", "Nueve casas fueron destruidas.", "Nueve"),
    ("zh-en", "他有三个女儿。", "He has two daughters.", "two"),
    ("ru-en", "У него пять детей.", "He has four children.", "four"),
]
RIGHT = [
    ("en-de", "3 to 5 million people", "3 bis 5 Millionen Menschen"),
    ("en-de", "3 to 5 million people", "3.000.000 bis 5.000.000 Menschen"),
    ("en-zh", "between 3 and 5 million people", "300万到500万人"),
    ("en-es", "2.5 billion dollars", "2500 millones de dólares"),
    ("en-pt", "2.5 billion dollars", "2,5 mil milhões de dólares"),
    ("en-de", "8 thousand million euros", "8 Milliarden Euro"),
    ("en-de", "44 thousand flats", "44 Tsd. Wohnungen"),
    ("en-hi", "25 million people", "2.5 करोड़ लोग"),
    ("en-th", "5 million people", "5 ล้านคน"),
    ("en-ko", "35 million won for 2", "2명에 3천5백만 원"),
    ("en-de", 'a 60" TV', "ein 152-cm-Fernseher"),
    ("en-de", "He is 6'2\" tall.", "Er ist 1,88 m groß."),
    ("en-de", "at 30 psi", "mit 2,1 bar"),
    ("en-fr", "He weighs 150 pounds.", "Il pèse 68 kilos."),
    ("en-de", "a size 8 dress", "ein Kleid in Größe 38"),
    ("en-de", "Bake at 350 degrees.", "Bei 175 Grad backen."),
    ("en-de", "temperatures above 90 degrees", "Temperaturen von über 30 Grad Celsius"),
    ("en-de", "at half past five", "um halb sechs"),
    ("en-de", "a quarter to five", "Viertel vor fünf"),
    ("en-de", "at half past 5", "um halb 6"),
    ("en-de", "for 90 minutes", "anderthalb Stunden lang"),
    ("en-de", "It lasted 90 minutes.", "Es dauerte 1,5 Stunden."),
    ("en-de", "1 1/2 cups of flour", "1,5 Tassen Mehl"),
    ("en-de", "2½ hours and 3 minutes", "2,5 Stunden und 3 Minuten"),
    ("en-de", "Call +49 30 1234-567.", "Rufen Sie +49 30 1234567 an."),
    ("en-th", "in 2021", "ในปี 2564"),
    ("ja-en", "令和3年5月1日", "May 1, 2021"),
    ("en-fr", "within two weeks", "dans les quinze jours"),
    ("en-fr", "in fourteen days", "dans deux semaines"),
    ("en-pl", "She bought 24 eggs.", "Kupiła dwa tuziny jajek."),
    ("en-de", "both of the two brothers", "die beiden Brüder"),
    ("en-de", "the twenty-first century", "das 21. Jahrhundert"),
    ("en-uk", "I am 25 years old.", "Мені двадцять п'ять років."),
    ("de-ru", "Ich bin 1,70 m groß.", "Мой рост - метр семьдесят."),
    ("fr-en", "depuis le 11 septembre 2001", "since 9/11"),
    ("en-de", "by 2030 demand is 550 million tons", "2030 550 Millionen Tonnen"),
    ("en-es", "They won 2-0 away.", "Ganaron 0-2 fuera."),
    ("en-de", "The temperature was -5 degrees.", "Die Temperatur betrug minus 5 Grad."),
    ("en-ru", "It was -20 degrees.", "Было 20 градусов мороза."),
    ("en-de", "Version 2.10.3 fixes 5 bugs.", "Version 2.10.3 behebt fünf Fehler."),
    ("en-de", "World War II ended in 1945.", "Der 2. Weltkrieg endete 1945."),
    ("en-de", "from 5 until 6:30 PM", "von 17 bis 18:30 Uhr"),
    ("zh-en", "6成是男性，2成是女性", "60% are men and 20% are women"),
    ("en-hu", "We tried to convince him of it twice.", "Kétszer próbáltuk meggyőzni őt."),
    ("en-de", "1,500 people in 0.5 hours", "1500 Menschen in 0,5 Stunden"),
    ("en-fr", "55 mph", "90 km/h"),
    ("en-de", "The limit is 62 mph.", "Das Limit liegt bei 100 km/h."),
    ("en-de", "It raised $2B of $3T.", "Es sammelte 2 Mrd. von 3 Billionen Dollar ein."),
    ("en-ja", "20% off", "2割引"),
    ("en-ja", "About 30% of users", "ユーザーの約3割"),
    ("en-de", "Due 12/25/24", "Fällig am 25.12.2024"),
]


@pytest.mark.parametrize(("lp", "source", "translation", "number"), WRONG)
def test_a_number_for_another_is_an_error(lp: str, source: str, translation: str, number: str) -> None:
    found = Numbers().errors(source, translation, Context(*lp.split("-")))
    assert [(one.category, translation[one.start : one.end]) for one in found] == [("check/number", number)]


@pytest.mark.parametrize(("lp", "source", "translation"), RIGHT)
def test_what_translators_do_is_none(lp: str, source: str, translation: str) -> None:
    source_language, target_language = lp.split("-")
    assert list(Numbers().errors(source, translation, Context(source_language, target_language))) == []
    assert list(Numbers().errors(translation, source, Context(target_language, source_language))) == []
    assert list(Numbers().errors(source, translation, UNKNOWN)) == []
