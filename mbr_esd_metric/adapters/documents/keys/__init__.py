"""Key-value files in one language, and pairs of a source file and its translation; file extensions of all formats."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.documents.keys.entries import Reader

#: File extension -> module and name of its reader. Modules are imported on demand.
KEY_READERS = {
    **dict.fromkeys((".json", ".arb"), "json_file.read_json"),
    **dict.fromkeys((".yml", ".yaml"), "yaml_file.read_yaml"),
    **dict.fromkeys((".srt", ".vtt"), "subtitle_file.read_subtitles"),
    **dict.fromkeys((".po", ".pot"), "po_file.read_po_keys"),
    **{".properties": "properties_file.read_properties", ".strings": "apple_file.read_strings"},
    **{".xml": "xml_file.read_android", ".resx": "xml_file.read_resx"},
}

#: File extensions of XLIFF, of all formats with sources and translations, and of formats that are not supported.
XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff", ".txlf")
BILINGUAL = (*XLIFF, ".po", ".csv", ".tsv", ".tmx", ".xcstrings")
_UNSUPPORTED = (".stringsdict", ".plist", ".resw", ".ftl", ".toml", ".docx", ".xlsx", ".ods")


def check_plain(path: str | Path) -> None:
    """Raise `InputError` if a file is not plain text with one segment per line, by its extension or first line."""
    ending = Path(path).suffix.lower()
    if ending in BILINGUAL:
        raise InputError(f"{path}: {ending} files contain sources and translations; use mbr-esd score {path}")
    if ending in KEY_READERS:
        raise InputError(f"{path}: {ending} files have keys, not one segment per line; only mbr-esd score reads them")
    if ending in _UNSUPPORTED or next(numbered_lines(path), (1, ""))[1].startswith("<?xml"):
        raise InputError(f"{path}: this format is not supported; convert the file to XLIFF, PO, JSON or plain text")


def is_key_file(path: str | Path) -> bool:
    """Whether a file is a key-value file, by its extension."""
    return Path(path).suffix.lower() in KEY_READERS


def reader_of(ending: str) -> Reader:
    """The reader for this file extension."""
    module, _, function = KEY_READERS[ending].partition(".")
    reader: Reader = getattr(import_module(f"{__name__}.{module}"), function)
    return reader
