"""Apple's ``.strings``, and ``.xcstrings``, which contains all languages in one file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from mbr_esd_metric.adapters.documents.keys.entries import SLASHES, Entry, Lines, StringFile, decoded
from mbr_esd_metric.adapters.documents.keys.json_file import items
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.prompting.languages import language_code, language_pair

_QUOTED = r'"[^"\\]*(?:\\.[^"\\]*)*"'
#: White space and comments, or a key and its text.
_PART = re.compile(
    rf"\s+|/\*.*?\*/|//[^\n]*|(?P<key>{_QUOTED}|[\w.$/:-]+)\s*=\s*(?P<text>{_QUOTED}|[\w.$/:-]+)\s*;", re.DOTALL
)
_ESCAPE = re.compile(r"\\(?:[Uu]([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def read_strings(path: Path) -> StringFile:
    """The texts of a ``.strings`` file. Raises `InputError` with the line for a malformed entry."""
    content, encoding = decoded(path)
    lines, entries, at = Lines(content), [], 0
    while at < len(content):
        match = _PART.match(content, at)
        if match is None:
            line = lines.place(at)[0]
            raise InputError(
                f'{path}, line {line}: not an entry such as "key" = "text"; is a quotation mark or semicolon missing?'
            )
        if match["key"] is not None:
            entries.append(Entry(_text(match["key"]), _text(match["text"]), *lines.place(at)))
        at = match.end()
    return StringFile(path, tuple(entries), "", SLASHES, encoding)


def _text(token: str) -> str:
    def resolved(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])

    return _ESCAPE.sub(resolved, token[1:-1] if token.startswith('"') else token)


def read_catalog(path: Path, lp: str | None) -> tuple[StringFile, StringFile]:
    """The source and translation in a string catalogue, for a language pair or the only translation. The key is the
    source of texts without one.

    Raises:
        InputError: invalid JSON, several languages without `lp`, or none in `lp` (with the languages).
    """
    content, encoding = decoded(path)
    lines, source_language = Lines(content), ""
    texts: dict[str, dict[str, Entry]] = {}
    keys: dict[str, int] = {}
    unready: dict[str, str] = {}
    states: dict[tuple[str, str], str] = {}
    for item in items(path, content):
        names = [str(one) for one in item.path]
        if names == ["sourceLanguage"]:
            source_language = item.text or ""
        if len(names) < 2 or names[0] != "strings":
            continue
        key = names[1]
        keys.setdefault(key, lines.place(item.at)[0])
        if names[2:] == ["shouldTranslate"] and item.token == "false":
            unready[key] = "shouldTranslate=false"
        elif names[2:] == ["extractionState"] and item.text == "stale":
            unready[key] = 'extractionState="stale"'
        elif names[2:3] == ["localizations"] and names[-2:-1] == ["stringUnit"] and item.text is not None:
            language, way = names[3], [one for one in names[4:-2] if one not in ("variations", "plural", "device")]
            name = f"{key}[{'.'.join(way)}]" if way else key
            if names[-1] == "value":
                place = lines.place(item.at)
                texts.setdefault(language, {})[name] = Entry(name, item.text, *place, unready=unready.get(key))
            elif names[-1] == "state" and item.text == "new":
                states[language, name] = 'state="new"'
    target_language = _language(path, [one for one in texts if one != source_language], source_language, lp)
    for (language, name), why in states.items():
        if name in texts.get(language, {}):
            one = texts[language][name]
            texts[language][name] = replace(one, unready=one.unready or why)
    sources = texts.get(source_language, {})
    for key, line in keys.items():
        if key and not any(name == key or name.startswith(f"{key}[") for name in sources):
            sources[key] = Entry(key, key, line, unready=unready.get(key))
    source, target = (tuple(one.values()) for one in (sources, texts.get(target_language, {})))
    return (
        StringFile(path, source, source_language, None, encoding),
        StringFile(path, target, target_language, None, encoding),
    )


def _language(path: Path, languages: list[str], source: str, lp: str | None) -> str:
    """The language of the translation to read."""
    listed = ", ".join(languages) or "none"
    if lp is not None:
        before, after = language_pair(lp)
        if language_code(before) != language_code(source):
            raise InputError(f"{path}: the source language is {source}, not {before}; fix --lp {lp}")
        exact = [one for one in languages if one.replace("_", "-").lower() == after.replace("_", "-").lower()]
        near = exact or [one for one in languages if language_code(one) == language_code(after)]
        if not near:
            raise InputError(f"{path}: no translation into {after}; the file's languages are {listed}")
        return near[0]
    if len(languages) != 1:
        example = f", such as --lp {source or 'en'}-{languages[0]}" if languages else ""
        raise InputError(f"{path}: translations into {listed}; choose a language{example}")
    return languages[0]
