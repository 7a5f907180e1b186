"""Columns of tables by their header: common names, languages, or names given by the user."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.prompting.languages import language_code, language_pair

#: Our name of a column -> names in files.
_NAMES = {
    "source": ("source", "src"),
    "target": ("target", "translation", "mt", "tgt"),
    "id": ("id", "key"),
    "lp": ("lp", "language_pair"),
}
#: Column with the state of a translation -> values, without spaces and hyphens, of translations that are not ready.
_UNREADY = {
    "fuzzy": {"true", "yes", "y", "1", "x", "fuzzy"},
    "approved": {"false", "no", "n", "0", "unapproved", "notapproved"},
    "state": {
        *("new", "initial", "fuzzy", "draft", "untranslated", "nottranslated", "notstarted", "unfinished", "rejected"),
        *("needstranslation", "needsediting", "needswork", "needsadaptation", "needsl10n", "unapproved"),
    },
}


@dataclass(frozen=True, slots=True)
class Columns:
    """The index of each column in the header, and the languages of source and target, if they are column names."""

    source: int
    target: int
    id: int | None = None
    lp: int | None = None
    states: tuple[tuple[str, int], ...] = ()
    languages: tuple[str, str] = ("", "")

    def unready(self, cells: Sequence[str]) -> str | None:
        """The reason why a row's translation is not ready; None if it is ready."""
        for name, place in self.states:
            if re.sub(r"[\s_-]", "", cells[place].lower()) in _UNREADY[name]:
                return "fuzzy" if name == "fuzzy" else f'{name}="{cells[place].strip()}"'
        return None


def parse_columns(text: str) -> tuple[str, str]:
    """Parse `--columns`: the names of the source and target columns, as two CSV cells."""
    names = [name.strip() for name in next(csv.reader([text]), [])]
    if len(names) != 2 or not all(names):
        raise OptionError(f"--columns {text}: give the columns of source and target, such as English,German")
    return names[0], names[1]


def find_columns(header: Sequence[str], lp: str | None = None, chosen: tuple[str, str] | None = None) -> Columns | None:
    """The columns of a header; None if it lacks a source or a target.

    Args:
        header: the names, in lower case.
        lp: if given, columns may be named after the languages of the pair, as codes or words.
        chosen: the names of the source and target columns, which replace the common names.
    """
    places = {name: next((header.index(one) for one in names if one in header), None) for name, names in _NAMES.items()}
    source, target, languages = places["source"], places["target"], ("", "")
    if chosen is not None:
        source, target = (header.index(one.lower()) if one.lower() in header else None for one in chosen)
    elif lp is not None and None in (source, target):
        pair = language_pair(lp)
        source = _of_language(header, pair[0]) if source is None else source
        target = _of_language(header, pair[1]) if target is None else target
        languages = pair
    if source is None or target is None:
        return None
    if chosen is not None:
        languages = (_language(header[source]), _language(header[target]))
    states = tuple((name, header.index(name)) for name in _UNREADY if name in header)
    name, lp_place = (None if place in (source, target) else place for place in (places["id"], places["lp"]))
    return Columns(source, target, name, lp_place, states, languages if all(languages) else ("", ""))


def missing_columns(path: str | Path, line: int, header: Sequence[str], chosen: tuple[str, str] | None) -> InputError:
    """The error of a table without a column for source or target."""
    where, shown = f"{path}, line {line}", ", ".join(name or "(nameless)" for name in header)
    if chosen is not None:
        name = next(one for one in chosen if one.lower() not in header)
        return InputError(f"{where}: no column {name} in the header ({shown})")
    codes = [code for name in header if (code := _language(name)) and re.fullmatch("[a-z]{2}", code)]
    pair = f" or --lp {codes[0]}-{codes[1]}" if len(set(codes)) == 2 == len(codes) else ""
    name = "source" if not set(_NAMES["source"]) & set(header) else "target"
    return InputError(
        f"{where}: no column {' or '.join(_NAMES[name])} in the header ({shown}); name both with --columns "
        f"SOURCE,TARGET{pair}"
    )


def _of_language(header: Sequence[str], code: str) -> int | None:
    """The column of a language, preferably of the same region; None if there is none."""
    near = [at for at, name in enumerate(header) if _language(name) == language_code(code)]
    wanted = code.lower().replace("_", "-")
    return next((at for at in near if header[at].replace("_", "-") == wanted), next(iter(near), None))


@lru_cache(maxsize=1024)
def _language(name: str) -> str:
    """The code of the language that a column is named after; "" if there is none."""
    import langcodes

    if re.fullmatch(r"[a-z]{2,3}([-_][0-9a-z]+)*", name):
        return language_code(name) if langcodes.tag_is_valid(name.replace("_", "-")) else ""
    try:
        return language_code(str(langcodes.find(name))) if name else ""
    except LookupError:
        return ""
