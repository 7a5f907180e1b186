"""Files of one language with texts by key, and pairs of them: a source file and its translation, read by key."""

from __future__ import annotations

from pathlib import Path

from mbr_esd_metric.adapters.documents.keys.apple_file import read_strings
from mbr_esd_metric.adapters.documents.keys.entries import Reader
from mbr_esd_metric.adapters.documents.keys.json_file import read_json
from mbr_esd_metric.adapters.documents.keys.pair import read_catalog_pair, read_pair
from mbr_esd_metric.adapters.documents.keys.po_file import read_po_keys
from mbr_esd_metric.adapters.documents.keys.properties_file import read_properties
from mbr_esd_metric.adapters.documents.keys.subtitle_file import read_subtitles
from mbr_esd_metric.adapters.documents.keys.xml_file import read_android, read_resx
from mbr_esd_metric.adapters.documents.keys.yaml_file import read_yaml

__all__ = ["KEY_READERS", "is_key_file", "read_catalog_pair", "read_pair"]

#: Ending of a file name -> its reader.
KEY_READERS: dict[str, Reader] = {
    **dict.fromkeys((".json", ".arb"), read_json),
    **dict.fromkeys((".yml", ".yaml"), read_yaml),
    **dict.fromkeys((".srt", ".vtt"), read_subtitles),
    **{".properties": read_properties, ".xml": read_android, ".resx": read_resx},
    **{".strings": read_strings, ".po": read_po_keys, ".pot": read_po_keys},
}


def is_key_file(path: str | Path) -> bool:
    """Whether a file is read by key, by the ending of its name."""
    return Path(path).suffix.lower() in KEY_READERS
