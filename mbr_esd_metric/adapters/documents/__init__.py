"""Files that translators have: what is read from them, and the same files with the errors in them."""

from __future__ import annotations

from pathlib import Path

from mbr_esd_metric.adapters.documents.document import Checked, Document, TranslationUnit
from mbr_esd_metric.adapters.documents.po import read_po
from mbr_esd_metric.adapters.documents.table import read_table
from mbr_esd_metric.adapters.documents.tmx import read_tmx
from mbr_esd_metric.adapters.documents.xliff import read_xliff
from mbr_esd_metric.errors import InputError

__all__ = ["Checked", "Document", "TranslationUnit", "read_document"]

#: Ending of a file name -> its reader.
_READERS = {
    **dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"), read_xliff),
    **{".tmx": read_tmx, ".po": read_po, ".csv": read_table, ".tsv": read_table},
}


def read_document(path: str | Path, *, every: bool = False) -> Document:
    """The texts of a file, by the ending of its name.

    Args:
        every: read units too that the file says are not to be judged: new, fuzzy, not to be translated.

    Raises:
        InputError: another ending, a file that is not what its ending says, or no translated unit in it.
    """
    reader = _READERS.get(Path(path).suffix.lower())
    if reader is None:
        raise InputError(f"{path}: give a file that ends in {', '.join(_READERS)}; plain texts go to -s and -t")
    document = reader(Path(path), every)
    if not document.units:
        why = f" that is ready ({', '.join(sorted(set(document.unready.values())))}; --all)" if document.unready else ""
        raise InputError(f"{path}: no unit in this file has a translation{why}")
    return document
