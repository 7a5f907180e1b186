"""Templates are read by their grammars and compared by their arguments."""

from __future__ import annotations

import pytest

from mbr_esd_metric.checks.check import Context
from tests.helpers.checks import found


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        # A letter of another script may follow, and 100% is a number.
        ("%d files were deleted.", "已删除%d个文件。"),
        ("Save up to %s%% for the %s.", "为%2$s最多节省%1$s%%。"),
        ("%(count)d new messages", "%(count)d件の新しいメッセージ"),
        ("%@ sent you a photo.", "%@さんが写真を送信しました。"),
        ("Open %1 now", "现在打开%1吧"),
        ("%n file(s) in %L2", "%2中有%n个文件"),
        ("50% discount", "50 % d’escompte"),
        ("5% and 6%", "5 % i 6 %"),
        ("Keep {n}% in stock.", "Gardez {n}%d'articles en stock."),
        ("more than %d", "%d'den fazla"),
        ("%dx%d pixels", "%d x %d Pixel"),
        ("%sAuthor: %s", "%s作者：%s"),
        ("Fetched %sB in %s", "%2$s'de %1$sB alındı"),
        ("%ld of %lu%%", "%d von %lu %%"),
        ("%d%% loaded", "%d Prozent geladen"),
        ("Hello %name%", "Hallo, %name%"),
        ('<p title="100%">%s: <a href="%s">help</a></p>', '<p title="100 %">%s: <a href="%s">Hilfe</a></p>'),
        # Arguments are a set, and may have another order where they have positions.
        ("{name} likes {name}", "{name} gefällt sich selbst"),
        ("%1$s of %2$d", "%2$d von %1$s"),
        ("{} of {}", "{1} von {0}"),
        ("{0!r} in {path:>10}", "{path} enthält {0}"),
        ("on {d, date, short}", "am {d, date, long}"),
        ("Hello {{ name }} of #{place}", "{{name}} in #{place}, hallo"),
        ("{ $count ->\n [one] { $count } file\n *[other] { $count } files\n}", "{ $count } ファイル"),
        # Branches are each language's own.
        ("{n, plural, one {item} other {items}}", "{n, plural, one {Eintrag} other {Einträge}}"),
        ("{n, plural, one {{n} day left} other {{n} days left}}", "{n, plural, other {還剩 {n} 天}}"),
        (
            "{n, plural, one {{name} has 1 file} other {{name} has {n} files}}",
            "{n, plural, one {{name} ma 1 plik} few {{name} ma {n} pliki} other {{name} ma {n} pliku}}",
        ),
        ("{n, plural, one {<b>#</b> file} other {<b>#</b> files}}", "{n, plural, other {<b>#</b>个文件}}"),
        (
            "{g, select, male {{n, plural, one {his file} other {his # files}}} other {{n, plural, other {# files}}}}",
            "{g, select, other {{n, plural, one {seine Datei} other {seine # Dateien}}}}",
        ),
        ("{n, plural, one {# file}}", "{n, plural, one {# Datei}}"),
        ("{n, plural, one {%s: # file} other {%s: # files}}", "{n, plural, other {%s：#}}"),
        ("{n, plural, one {1 file: {u}} other {# files: {u}}}", "{u}: {n, plural, one {eine Datei} other {# Dateien}}"),
        ("{u} has {n, plural, =1 {it} other {#}}", "{n, plural, =1 {{u} hat es} few {{u}: 2} other {{u} hat #}}"),
        # Dates have each language's own order.
        ("%m/%d/%Y", "%Y年%m月%d日"),
        ("%B %d, %Y at %I:%M %p", "%d. %B %Y um %Hh%M"),
        ("%F", "%d.%m.%Y"),
        # No placeholders.
        (r"\textbf{word} is bold", r"\textbf{Wort} ist fett"),
        ("body { color: red }", "body { color: blue }"),
    ],
)
def test_good_templates(source: str, translation: str) -> None:
    assert found(source, translation) == []


@pytest.mark.parametrize(
    ("source", "translation", "errors"),
    [
        ("%zu bytes free", "Bytes frei", ["[%zu]"]),
        ("Open %1 now", "Jetzt öffnen", ["[%1]"]),
        ("File %1% is missing", "Datei fehlt", ["[%1%]"]),
        ("Cannot open {0!r}", "Kann nicht öffnen", ["[{0!r}]"]),
        ("{size:>10} free", "frei", ["[{size:>10}]"]),
        ("Hello { $user }", "Hallo", ["[{ $user }]"]),
        ("Hello {name}", "Hallo {Name}", ["{Name}"]),
        ("Hello %s", "Hallo %d", ["%d"]),
        ("%s of %d", "%d von %s", ["%d"]),
        ("%1$s to %2$s", "%1$s an %1$s", ["[%2$s]"]),
        ("%1$s to %2$d", "%2$s an %1$d", ["%2$s"]),
        ("{0} of {1}", "{1}", ["[{0}]"]),
        # Another one of the same text does not stand in for it.
        ("%d of %d files", "%d Dateien", ["[%d]"]),
        ('Move "%@" to "%@"?', "„%@“ verschieben?", ["[%@]"]),
        ("{} of {}", "{} von", ["[{}]"]),
        ("%d items from %s to %s", "%d Artikel von %s", ["[%s]"]),
        ("Hello %s", "Hallo %s %s", ["%s"]),
        ("Hello {}", "Hallo {} {}", ["{}"]),
        # Attributes of tags may have placeholders.
        ('See <a href="%s">help</a>.', 'Siehe <a href="">Hilfe</a>.', ["[%s]"]),
        ("Go <a href='{url}'>on</a>", "<a href='{lien}'>Continuer</a>", ["{lien}"]),
        ('See <a href="%1$s">help</a>.', 'Siehe <a href="%s1$">Hilfe</a>.', ["[%1$s]"]),
        # A format writes %% for a percent sign.
        ("Loading %d%%", "Lade %d%", ["%"]),
        ("${user} left", "$ {user} ging", ["{user}"]),
        ("{n, plural, one {# file} other {# files}}", "{n, plural, other {Dateien}}", ["[#]"]),
        ("{n, plural, one {# file} other {# files}}", "{n, plural, one {# Datei} other {Dateien}}", ["[#]"]),
        ("{n, plural, one {{u}: #} other {{u}: #}}", "{n, plural, one {{u}: #} other {#}}", ["[{u}]"]),
        ("{n, plural, other {{name}: #}}", "{n, plural, other {#}}", ["[{name}]"]),
        ("{n, plural, one {# file} other {# files}}", "{n, plural, one {# Datei}}", ["{n, plural, one {# Datei}}"]),
        ("{n, plural, other {#}}", "{n, plural, andere {#}}", ["{n, plural, andere {#}}"]),
        ("{n, plural, other {#}}", "{n, plural, other {#}", ["{n, plural, other {#}"]),
        ("{g, select, male {a} other {b}}", "{g, select, mann {a} other {b}}", ["{g, select, mann {a} other {b}}"]),
        ("%d.%m.%Y", "%d.%m.", ["[%Y]"]),
    ],
)
def test_arguments_that_differ(source: str, translation: str, errors: list[str]) -> None:
    assert found(source, translation) == [("placeholder", words) for words in errors]


def test_the_plural_form_of_one_number_may_drop_it() -> None:
    one, several = Context(numbers=frozenset({1})), Context(numbers=frozenset({1, 21, 31}))
    pair = "%(who)s deleted %(count)d files", "%(who)s hat eine Datei gelöscht"
    assert found(*pair, one) == []
    assert found(*pair, several) == found(*pair) == [("placeholder", "[%(count)d]")]
    assert found("%s: %d files", "%d Datei", one) == [("placeholder", "[%s]")], "but no other argument"
