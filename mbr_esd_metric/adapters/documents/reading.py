"""Readers of translators' files by file extension."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import READY, Document, Selection, with_key_warnings
from mbr_esd_metric.adapters.documents.keys import XLIFF, is_key_file, reader_of
from mbr_esd_metric.adapters.documents.keys.pair import read_catalog_pair, read_pair
from mbr_esd_metric.adapters.documents.po import read_po
from mbr_esd_metric.adapters.documents.table import read_table
from mbr_esd_metric.adapters.documents.xml_files import read_tmx, read_xliff
from mbr_esd_metric.errors import InputError, no_effect_error
from mbr_esd_metric.prompting.languages import language_code, language_pair

#: File extension -> reader.
_READERS: Mapping[str, Callable[[Path, Selection], Document]] = {
    **dict.fromkeys(XLIFF, read_xliff),
    **{".po": read_po, ".csv": read_table, ".tsv": read_table, ".tmx": read_tmx, ".xcstrings": read_catalog_pair},
}


def read_document(
    path: str | Path, selection: Selection = READY, *, source: str | Path | None = None, may_be_empty: bool = False
) -> Document:
    """Read the texts of a file, by extension.

    Args:
        path: the file.
        selection: the units to read; units in other languages than `selection.lp` are ignored.
        source: for a key-value file, the file with the same keys in the source language.
        may_be_empty: whether to accept a file without translated units.

    Raises:
        InputError: an unsupported extension, content that does not match it, no translated unit, or none in the
            language pair.
    """
    ending = Path(path).suffix.lower()
    document = read_as(ending, Path(path), source, selection)
    if source is None:
        document = with_key_warnings(document)
    if not document.units:
        if document.missing or may_be_empty:
            return document
        why = f" that is ready ({', '.join(sorted(set(document.unready.values())))}; --all)" if document.unready else ""
        raise InputError(f"{path}: no unit in this file has a translation{why}")
    lp = selection.lp
    if lp is None:
        return document
    named = [(unit.segment.known.source_language, unit.segment.known.target_language) for unit in document.units]
    codes = [tuple(one and language_code(one) for one in languages) for languages in named]
    pair = tuple(map(language_code, language_pair(lp)))
    fits = [all(one in (None, other) for one, other in zip(unit, pair, strict=True)) for unit in codes]
    if not any(fits):
        advice = "leave the language pair out" if all(codes[0]) else "give one that fits"
        unit = f"{document.units[0].segment.label} is {'-'.join(one or '?' for one in codes[0])}"
        raise InputError(f"{path}: unit {unit}, not {lp}; {advice}")
    return document.only(fits, f"not {lp}")


def read_as(ending: str, path: Path, source: str | Path | None, selection: Selection) -> Document:
    """Read a file as if it had this extension, in all languages that the format allows at once; it may have no units.
    For `source`, see `read_document`."""
    if selection.columns is not None and ending not in (".csv", ".tsv"):
        raise no_effect_error("--columns", f"{path}, which is not a table")
    if source is not None and ending != ".xcstrings":
        return read_pair(Path(source), path, reader_of(ending), selection)
    if ending in _READERS:
        return _READERS[ending](path, selection)
    if is_key_file(path):
        raise InputError(f"{path} has texts in one language; give its source file too: -s SOURCE{ending} -t {path}")
    raise InputError(f"{path}: give a file that ends in {', '.join(_READERS)}; plain texts go to -s and -t")
