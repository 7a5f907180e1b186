"""Errors with their locations in files, for code review: SARIF 2.1.0 (OASIS) and GitHub workflow annotations."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.files.streams import json_text
from mbr_esd_metric.messages import printable

#: The rule id of a key without a translation.
MISSING_KEY = "missing-key"
#: The number of lines, from the first one of a unit, in which its translation is searched.
_WINDOW = 12


class Region(NamedTuple):
    """A region of a file: lines and columns in characters, from 1; the end column is exclusive. Columns are None if
    only the line is known."""

    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """An error, or a key without a translation, and its location.

    Attributes:
        key: the id of the unit in the file.
        severity: "major" or "minor".
        rule: the category of the error, or `MISSING_KEY`.
    """

    file: str
    key: str
    severity: str
    rule: str
    message: str
    region: Region

    @property
    def level(self) -> str:
        """The level in SARIF and in workflow annotations."""
        return "error" if self.severity == "major" else "warning"


def error_finding(file: str, key: str, region: Region, span: ErrorSpan, words: str) -> Finding:
    """The finding for an error with its words: severity, category, and its correction and reason if it has them."""
    category = (span.category and printable(span.category)) or "error"
    correction = "" if span.correction is None else f' -> "{span.correction}"'
    reason = f" ({span.reason})" if span.reason else ""
    message = f'{span.severity}, {category}: {span.lost}"{words}"{correction}{reason} [{key}]'
    return Finding(file, key, span.severity, category, printable(message), region)


class Places:
    """Locates translations in the lines of a file."""

    def __init__(self, path: str | Path) -> None:
        from mbr_esd_metric.adapters.documents.keys.entries import decoded

        self._is_po = Path(path).suffix.lower() == ".po"
        self._lines = decoded(Path(path), "iso-8859-1")[0].split("\n")

    def region(self, line: int, source: str, translation: str, start: int, end: int) -> Region:
        """The region of the characters [start, end) of a translation.

        Args:
            line: the first line of the unit, returned without columns if the text is not found, for example because
                the file escapes characters.
        """
        first = line - 1
        if self._is_po:  # a message begins with its source
            while first + 1 < len(self._lines) and not self._lines[first].startswith("msgstr"):
                first += 1
        window = "\n".join(self._lines[first : first + _WINDOW + translation.count("\n")])
        line_end = window.find("\n") if "\n" in window else len(window)
        behind = window.find(source) + len(source) if source and source in window else 0
        for since, until in ((behind, line_end), (0, line_end), (behind, len(window)), (0, len(window))):
            if (at := window.find(translation, since, until)) >= 0:
                return _region(window, first, at + start, at + end)
        words = translation[start:end]
        if words and window[:line_end].count(words) == 1:
            at = window.index(words)
            return _region(window, first, at, at + len(words))
        return Region(line)


def _region(window: str, first: int, start: int, end: int) -> Region:
    places = [(window.count("\n", 0, at), at - window.rfind("\n", 0, at)) for at in (start, end)]
    (row, column), (end_row, end_column) = places
    return Region(first + row + 1, column, first + end_row + 1, end_column)


def sarif(findings: Sequence[Finding], files: Iterable[str]) -> str:
    """The findings as SARIF. The id of the run is a hash of the names of the scored `files`, so that several runs on
    one repository can be distinguished."""
    rules = sorted({one.rule for one in findings})
    driver = {
        "name": "mbr-esd",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": rule}} for rule in rules],
    }
    judged = hashlib.sha256("\n".join(sorted(map(_uri, files))).encode()).hexdigest()[:8]
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"mbr-esd/{judged}/"},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, rules.index(one.rule)) for one in findings],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json_text({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    names = ("startLine", "startColumn", "endLine", "endColumn")
    region = {name: value for name, value in zip(names, finding.region, strict=True) if value is not None}
    place = {"artifactLocation": {"uri": _uri(finding.file), "uriBaseId": "%SRCROOT%"}, "region": region}
    text = "\n".join((_uri(finding.file), finding.key, finding.message))
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place, "logicalLocations": [{"fullyQualifiedName": finding.key}]}],
        "partialFingerprints": {"mbrEsd/v1": hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]},
        "properties": {"key": finding.key, "severity": finding.severity},
    }


def _uri(file: str) -> str:
    """The path as a URI reference, relative to the working directory if the file is inside it."""
    path = Path(os.path.relpath(file))
    return quote((Path(file) if ".." in path.parts else path).as_posix())


def annotation(finding: Finding) -> str:
    """The GitHub workflow command that displays a finding at its line."""
    region = finding.region
    values = {"file": os.path.relpath(finding.file), "line": region.line, "col": region.column}
    if region.end_line == region.line:
        values["endColumn"] = region.end_column
    properties = (f"{name}={_escaped(str(value), ':,')}" for name, value in values.items() if value is not None)
    return f"::{finding.level} {','.join(properties)}::{_escaped(finding.message)}"


def _escaped(text: str, more: str = "") -> str:
    """The text with the characters that would end it in a workflow command percent-encoded."""
    return "".join(f"%{ord(one):02X}" if one in f"%\r\n{more}" else one for one in text)
