"""Key-value files in one language, and pairs of a source file and its translation."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

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


def is_key_file(path: str | Path) -> bool:
    """Whether a file is a key-value file, by its extension."""
    return Path(path).suffix.lower() in KEY_READERS


def reader_of(ending: str) -> Reader:
    """The reader for this file extension."""
    module, _, function = KEY_READERS[ending].partition(".")
    reader: Reader = getattr(import_module(f"{__name__}.{module}"), function)
    return reader
