"""Files that translators have: what is read from them, and the same files with the errors in them."""

from __future__ import annotations

from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Checked, Document, TranslationUnit
from mbr_esd_metric.adapters.documents.po import read_po
from mbr_esd_metric.adapters.documents.table import read_table
from mbr_esd_metric.adapters.documents.xml_files import read_tmx, read_xliff
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import open_binary
from mbr_esd_metric.prompting.languages import language_code, language_pair

__all__ = ["Checked", "Document", "TranslationUnit", "changed_from", "read_document"]

#: Ending of a file name -> its reader; of TMX it is `read_tmx`.
_READERS = {
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff", ".txlf"), read_xliff),
    **{".po": read_po, ".csv": read_table, ".tsv": read_table},
}


def read_document(path: str | Path, *, every: bool = False, lp: str | None = None) -> Document:
    """The texts of a file, by the ending of its name.

    Args:
        path: the file.
        every: read units too that the file says are not to be judged: new, fuzzy, not to be translated.
        lp: the language pair to read; units in others are left as they are.

    Raises:
        InputError: another ending, a file that is not what its ending says, no translated unit, or none in `lp`.
    """
    document = _read(Path(path), Path(path).suffix.lower(), every, lp)
    if not document.units:
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


def changed_from(document: Document, old: str | Path, lp: str | None) -> Document:
    """A document with the units alone whose texts or inline codes an older file has not under their names; the file may
    be empty. Raises `InputError` where it cannot be read as a file that ends as the document's does."""
    with open_binary(old) as file:
        is_empty = not file.read(1)
    ending, other = (Path(path).suffix.lower() for path in (document.path, old))
    try:
        before = () if is_empty else _read(Path(old), ending, True, lp).units
    except InputError as error:
        if other == ending:
            raise
        kind = f"a {other} file, and {document.path} is a" if other else f"not a file like {document.path}, a"
        message = f"{old} is {kind} {ending} file; give an older version of {document.path} ({error})"
        raise InputError(message) from None
    known = {(unit.key, unit.source, unit.translation, unit.data_warning) for unit in before}
    texts = ((unit.key, unit.source, unit.translation, unit.data_warning) for unit in document.units)
    return document.only([unit not in known for unit in texts], f"as in {old}")


def _read(path: Path, ending: str, every: bool, lp: str | None) -> Document:
    if ending == ".tmx":
        return read_tmx(path, None if lp is None else language_pair(lp))
    if ending not in _READERS:
        raise InputError(f"{path}: give a file that ends in {', '.join(_READERS)} or .tmx; plain texts go to -s and -t")
    return _READERS[ending](path, every)
