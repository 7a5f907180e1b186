"""Units and currencies that became another one."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import UNKNOWN, Context
from mbr_esd_metric.checks.number_words import numbers_in_words
from mbr_esd_metric.checks.units import Units

WRONG = [
    ("en-de", "Bake it for ten minutes.", "Backen Sie es zehn Stunden.", "unit", "Stunden"),
    ("en-de", "The disc is 80 feet down.", "Die Scheibe ist 80 Meter tief.", "unit", "Meter"),
    ("en-de", "It burned 30000 acres of land.", "Es verbrannte 30.000 Hektar Land.", "unit", "Hektar"),
    (
        "en-de",
        "His clause is worth £101 million.",
        "Seine Klausel ist 101 Millionen Dollar wert.",
        "currency",
        "Dollar",
    ),
    ("en-de", "It cost twenty-five dollars.", "Es kostete fünfundzwanzig Euro.", "currency", "Euro"),
    ("en-fr", "He weighs 5 kg less than before.", "Il pèse 5 mg de moins qu'avant.", "unit", "mg"),
    ("en-ru", "That's about a 15-foot boat.", "Это примерно 15-метровая лодка.", "unit", "метровая"),
    ("en-zh", "It is 10 miles from here.", "离这里10公里。", "unit", "公里"),
    ("en-ja", "It takes three days.", "三週間かかります。", "unit", "週間"),
    ("en-pl", "It costs 20 dollars.", "To kosztuje 20 złotych.", "currency", "złotych"),
    # Units of one letter, temperatures, and speeds.
    ("en-de", "The dose is 5 mg.", "Die Dosis beträgt 5 g.", "unit", "g"),
    ("en-ru", "It weighs 5 kg.", "Он весит 5 г.", "unit", "г"),
    ("en-ja", "The tunnel is 3 km long.", "トンネルの長さは3mです。", "unit", "m"),
    ("en-de", "Add 2 l of water.", "2 ml Wasser zugeben.", "unit", "ml"),
    ("en-de", "Wait 5 min", "5 h warten", "unit", "h"),
    ("en-de", "a 100 W lamp", "eine Lampe mit 100 kW", "unit", "kW"),
    ("en-de", "Keep below 25 °C.", "Unter 25 °F aufbewahren.", "unit", "F"),
    ("en-de", "below 25 degrees Celsius", "unter 25 Grad Fahrenheit", "unit", "Fahrenheit"),
    ("en-de", "It goes 100 km/h.", "Es fährt 100 mph.", "unit", "mph"),
    ("en-de", "It goes 100 kilometers per hour.", "Es fährt 100 Meilen pro Stunde.", "unit", "Meilen pro Stunde"),
]
RIGHT = [
    ("en-de", "It is 5 miles from here.", "Es ist 8 km von hier."),
    ("en-de", "It is about 5 miles from here.", "Es ist ungefähr zehn Kilometer von hier."),
    ("en-de", "It costs $100.", "Es kostet rund 90 Euro."),
    ("en-de", "aged 7, during the three day siege", "mit 7 Jahren, in der dreitägigen Belagerung"),
    ("en-de", "It took 90 minutes.", "Es dauerte 1,5 Stunden."),
    ("en-de", "48 hours", "2 Tage"),
    ("en-fr", "for two weeks", "pendant quinze jours"),
    ("en-de", "He drove 60 miles an hour.", "Er fuhr 60 Meilen pro Stunde."),
    ("en-ja", "He drove at 60 mph.", "彼は時速60マイルで走った。"),
    ("en-de", "100 yards", "100 Meter"),
    ("en-de", "It weighs ten tons.", "Es wiegt zehn Tonnen."),
    ("en-de", "In 5 minutes, at 5 in the morning", "In fünf Minuten, um 5 Uhr morgens"),
    ("en-es", "The country spent $30 a day.", "El país gastó 30 pesos al día."),
    ("en-zh", "It costs $30.", "要30美元。"),
    ("en-zh", "in two months", "两个月后"),
    ("en-de", "a 40-hour week, 8 h/day", "eine 40-Stunden-Woche, 8 Std./Tag"),
    ("en-de", "He lost 5 pounds.", "Er nahm 5 Pfund ab."),
    ("en-de", "%d minutes", "%d Minuten"),
    ("en-fr", "She is 12 years old.", "Elle a 12 ans."),
    ("zh-en", "他每小时赚五美元。", "He earns five dollars an hour."),
    ("en-de", "3 million dollars (2.7 million euros)", "3 Millionen Dollar (2,7 Millionen Euro)"),
    ("en-de", "2 GB, 1.5 kilometers to go", "2.000 MB, noch 1.500 Meter"),
    ("en-de", "from 5 miles to 8 miles", "von 8 km bis 13 km"),
    ("en-de", "10 °F to 50 °F, but not below -40 °F", "-12 °C bis 10 °C, aber nicht unter -40 °C"),
    ("en-fr", "a concentration of 5 mg/ml", "une concentration de 5 g/l"),
    ("en-de", "a 5-year plan of $5m for 5 km", "ein 5-Jahres-Plan von 5 m USD für 5 km"),
    ("pt-en", "maiores de 60 anos", "those in their 60 s"),
]


@pytest.mark.parametrize(("lp", "source", "translation", "kind", "word"), WRONG)
def test_a_unit_for_another_is_an_error(lp: str, source: str, translation: str, kind: str, word: str) -> None:
    found = Units().errors(source, translation, Context(*lp.split("-")))
    assert [(one.category, translation[one.start : one.end]) for one in found] == [(f"check/{kind}", word)]


@pytest.mark.parametrize(("lp", "source", "translation"), RIGHT)
def test_what_translators_convert_is_none(lp: str, source: str, translation: str) -> None:
    source_language, target_language = lp.split("-")
    assert list(Units().errors(source, translation, Context(source_language, target_language))) == []
    assert list(Units().errors(translation, source, Context(target_language, source_language))) == []
    assert list(Units().errors(source, translation, UNKNOWN)) == []


@pytest.mark.parametrize(
    ("language", "text", "numbers"),
    [
        ("en", "Twenty-five men, two dogs and one cat", [25, 2]),
        ("en", "two hundred and three", [None]),
        ("de", "einundzwanzig Hunde, zwei Katzen", [21, 2]),
        ("es", "treinta y dos casas", [32]),
        ("fr", "quatre-vingt-dix, vingt et un", [None, 21]),
        ("pl", "dwadzieścia, dwie", [20, 2]),
        ("it", "ventuno, trentadue, venti", [21, 32, 20]),
        ("sv", "trettiofem, fyra", [35, None]),
        ("uk", "двадцять п'ять", [25]),
        ("sr", "двадесет и два", [22]),
        ("en", "the twenty-first of two-year-olds", [None, 2]),
        ("ru", "трое солдат, двадцать пять", [3, 25]),
        ("zh", "四个人和十二名学生，三四天，第三个", [4, 12, None]),
        ("ja", "猫を三匹、十五年", [3, 15]),
        ("tlh", "wej", []),
    ],
)
def test_numbers_in_words(language: str, text: str, numbers: list[int | None]) -> None:
    assert [one.value for one in numbers_in_words(text, language)] == numbers
