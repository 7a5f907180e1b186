"""Files that translators have: what is read from them, and the same files with the errors in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Checked, Document, MissingKey, TranslationUnit
from mbr_esd_metric.adapters.documents.keys import KEY_READERS, is_key_file, read_catalog_pair, read_pair
from mbr_esd_metric.adapters.documents.po import read_po
from mbr_esd_metric.adapters.documents.table import read_table
from mbr_esd_metric.adapters.documents.xml_files import read_tmx, read_xliff
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import open_binary
from mbr_esd_metric.prompting.languages import language_code, language_pair

__all__ = ["Checked", "Document", "MissingKey", "TranslationUnit", "changed_from", "is_key_file", "read_document"]

#: Ending of a file name -> its reader; of TMX it is `read_tmx`, of Apple's catalogues `read_catalog_pair`.
_READERS = {
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff", ".txlf"), read_xliff),
    **{".po": read_po, ".csv": read_table, ".tsv": read_table},
}


def read_document(
    path: str | Path, *, source: str | Path | None = None, every: bool = False, lp: str | None = None
) -> Document:
    """The texts of a file, by the ending of its name.

    Args:
        path: the file.
        source: of a file with keys, the file with the same keys in the source language.
        every: read units too that the file says are not to be judged: new, fuzzy, not to be translated.
        lp: the language pair to read; units in others are left as they are.

    Raises:
        InputError: another ending, a file that is not what its ending says, no translated unit, or none in `lp`.
    """
    document = _read(Path(path), Path(path).suffix.lower(), every, lp, source)
    if not document.units:
        if document.missing:
            return document
        why = f" that is ready ({', '.join(sorted(set(document.unready.values())))}; --all)" if document.unready else ""
        raise InputError(f"{path}: no unit in this file has a translation{why}")
    if lp is None:
        return document
    codes = [tuple(one and language_code(one) for one in unit.languages) for unit in document.units]
    pair = tuple(map(language_code, language_pair(lp)))
    fits = [all(one in ("", other) for one, other in zip(unit, pair, strict=True)) for unit in codes]
    if not any(fits):
        advice = "leave the language pair out" if all(codes[0]) else "give one that fits"
        unit = f"{document.units[0].id} is {'-'.join(one or '?' for one in codes[0])}"
        raise InputError(f"{path}: unit {unit}, not {lp}; {advice}")
    return document.only(fits, f"not {lp}")


def changed_from(document: Document, old: str | Path, lp: str | None, old_source: str | Path | None = None) -> Document:
    """A document with the units alone whose texts or inline codes an older file has not under their names; the file may
    be empty. Keys that the older translation already lacked are not missing anew. `old_source` is the older source of a
    file with keys, by default the present one. Raises `InputError` where the older file cannot be read as a file that
    ends as the document's does."""
    source = old_source or document.source_path
    with open_binary(old) as file:
        is_empty = not file.read(1)
    if old_source is not None:
        with open_binary(old_source) as file:
            is_empty = is_empty or not file.read(1)
    ending, other = (Path(path).suffix.lower() for path in (document.path, old))
    known_missing: set[tuple[str, str]] = set()
    try:
        before: tuple[TranslationUnit, ...] = ()
        if not is_empty:
            older = _read(Path(old), ending, True, lp, source)
            before, known_missing = older.units, {(one.key, one.problem) for one in older.missing}
            document = replace(document, obsolete=tuple(one for one in document.obsolete if one not in older.obsolete))
    except InputError as error:
        if other == ending:
            raise
        kind = f"a {other} file, and {document.path} is a" if other else f"not a file like {document.path}, a"
        message = f"{old} is {kind} {ending} file; give an older version of {document.path} ({error})"
        raise InputError(message) from None
    known = {(unit.key, unit.source, unit.translation, unit.data_warning) for unit in before}
    texts = ((unit.key, unit.source, unit.translation, unit.data_warning) for unit in document.units)
    missing = tuple(one for one in document.missing if (one.key, one.problem) not in known_missing)
    return replace(document.only([unit not in known for unit in texts], f"as in {old}"), missing=missing)


def _read(path: Path, ending: str, every: bool, lp: str | None, source: str | Path | None = None) -> Document:
    if ending == ".xcstrings":
        return read_catalog_pair(path, every=every, lp=lp)
    if source is not None:
        return read_pair(Path(source), path, KEY_READERS[ending], every=every)
    if ending in KEY_READERS and ending not in _READERS:
        raise InputError(f"{path} has texts in one language; give its source file too: -s SOURCE{ending} -t {path}")
    if ending == ".tmx":
        return read_tmx(path, None if lp is None else language_pair(lp))
    if ending not in _READERS:
        raise InputError(
            f"{path}: give a file that ends in {', '.join(_READERS)}, .tmx or .xcstrings; plain texts go to -s and -t"
        )
    return _READERS[ending](path, every)
