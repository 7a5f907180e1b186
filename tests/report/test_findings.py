"""Errors at their places in files: regions, SARIF and annotations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.report.findings import MISSING_KEY, Finding, Places, Region, annotation, error_finding, sarif

COPY = "Delete all files now"


@pytest.mark.parametrize(
    ("name", "content", "line", "translation", "region"),
    [
        ("de.json", '{\n  "day": "Am Dienstag",\n  "b": "Am Dienstag"\n}', 2, "Am Dienstag", (2, 14, 2, 22)),
        ("de.strings", f'"{COPY}" = "{COPY}";\n"b" = "{COPY}";', 1, COPY, (1, 34, 1, 42)),
        ("de.json", f'{{\n "a": "{COPY}",\n "b": "{COPY}"\n}}', 2, COPY, (2, 15, 2, 23)),
        ("de.po", f'#: a.c\nmsgid "{COPY}"\nmsgstr "{COPY}"\n', 2, COPY, (3, 16, 3, 24)),
        ("de.po", 'msgid ""\n"Now"\nmsgstr ""\n"Am Dienstag"\n', 1, "Am Dienstag", (4, 5, 4, 13)),
        ("strings.xml", '<r>\n <string name="a">\n  Am Dienstag</string>', 2, "Am Dienstag", (3, 6, 3, 14)),
        ("strings.xml", "<string>Tom\\'s Dienstag</string>", 1, "Tom's Dienstag", (1,)),
        ("mt.txt", "Montag\n  Am Dienstag\n", 2, "Am Dienstag", (2, 6, 2, 14)),
        ("de.json", '{"a": "x\\ny Dienstag"}', 1, "x\ny Dienstag", (1, 13, 1, 21)),
        ("de.json", '{"a": "\\u00e4", "Dienstag": "Dienstag"}', 1, "ä Dienstag", (1,)),
    ],
)
def test_where_words_stand(
    tmp_path: Path, name: str, content: str, line: int, translation: str, region: tuple[int, ...]
) -> None:
    """In the translation and not in its copy; the line alone where the words are not to be found for sure."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    word = "Dienstag" if "Dienstag" in translation else "all file"
    if translation == "Tom's Dienstag":
        word = "Tom's"
    start = translation.index(word)
    found = Places(tmp_path / name).region(line, COPY, translation, start, start + len(word))
    assert found == Region(*region)


def test_encodings(tmp_path: Path) -> None:
    for encoding in ("utf-8-sig", "utf-16", "iso-8859-1"):
        (tmp_path / "a").write_bytes("Über alles\n".encode(encoding))
        assert Places(tmp_path / "a").region(1, "", "Über alles", 5, 10) == Region(1, 6, 1, 11)


ERROR = ErrorSpan(5, 13, "major", "check/weekday")


def test_sarif(workdir: Path) -> None:
    finding = error_finding(
        "a b/de.json", "day", Region(3, 5, 3, 13), replace(ERROR, correction="Montag"), "Diens\ntag"
    )
    lost = error_finding("de.json", "n", Region(4), replace(ERROR, side="source", severity="minor"), "%d")
    missing = Finding(str(workdir / "de.json"), "x", "minor", MISSING_KEY, "x has no translation", Region(9))
    log = json.loads(sarif([finding, lost, missing], ["a b/de.json", "de.json"]))
    [run] = log["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert log["version"] == "2.1.0"
    assert run["columnKind"] == "unicodeCodePoints"
    assert [rules[one["ruleIndex"]] for one in run["results"]] == [one["ruleId"] for one in run["results"]]
    assert [one["level"] for one in run["results"]] == ["error", "warning", "warning"]
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    assert [one["artifactLocation"]["uri"] for one in places] == ["a%20b/de.json", "de.json", "de.json"]
    assert places[0]["region"] == {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 13}
    assert places[1]["region"] == {"startLine": 4}
    assert run["results"][0]["message"]["text"] == 'major, check/weekday: "Diens tag" -> "Montag" [day]'
    assert run["results"][1]["message"]["text"] == 'minor, check/weekday: missing from the translation: "%d" [n]'
    assert run["results"][0]["properties"] == {"key": "day", "severity": "major"}
    other = json.loads(sarif([], ["fr.json"]))["runs"][0]
    assert other["results"] == []
    assert other["automationDetails"] != run["automationDetails"]


def test_annotations(workdir: Path) -> None:
    """What would end a command or a property is escaped."""
    finding = Finding(str(workdir / "a,b:c.json"), "k", "major", "check/x", "100%: a\nb", Region(3, 5, 3, 13))
    assert annotation(finding) == "::error file=a%2Cb%3Ac.json,line=3,col=5,endColumn=13::100%25: a%0Ab"
    assert annotation(Finding("a", "k", "minor", "x", "m", Region(2))) == "::warning file=a,line=2::m"
