"""Paths given by the user: early checks, and short names for display."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from mbr_esd_metric.errors import InputError, OptionError, unknown

#: Maximum length of a file name in bytes on common file systems, minus the extension of unfinished files (".part").
_LONGEST_NAME = 240


def plain_name(path: str | Path) -> str:
    """The file's name without the extension of a compression that `open_binary` supports."""
    name = Path(path).name
    return name[: -len(ending)] if (ending := compression(path)) else name


def file_name(name: str, what: str, ending: str = "") -> str:
    """A safe file name from a name in data or from the user (described by `what` in messages) and an extension. Raises
    `InputError` for a name that leads to another folder, is not valid for a file, or is hidden.
    """
    whole = name + ending
    try:
        size = len(whole.encode())
    except UnicodeEncodeError:
        size = 0
    controls = any(unicodedata.category(character) == "Cc" for character in name)
    if not 0 < size <= _LONGEST_NAME or not name or name.startswith(".") or set(name) & set("/\\") or controls:
        raise InputError(
            f"{what} {name!r} is used as a file name: it must not contain a slash, backslash, control character or "
            f"leading dot, and may have at most {_LONGEST_NAME} bytes with its extension; choose another name"
        )
    return whole


#: Extensions of unsupported compressions and archives.
_OTHER_COMPRESSIONS = (
    *(".7z", ".br", ".bz2", ".lz", ".lz4", ".lzma", ".rar", ".tar", ".tbz2", ".tgz", ".txz", ".xz", ".z", ".zip"),
    ".zstd",
)


def compression(path: str | Path) -> str:
    """The compression by a file's extension: ".gz", ".zst", or "" for a plain file, for reading and writing all files.
    Raises `InputError` for unsupported compressions, which would be read as plain text."""
    ending = Path(path).suffix.lower()
    if ending in _OTHER_COMPRESSIONS:
        raise InputError(f"{path}: {ending} is not supported; use .gz, .zst or an uncompressed file")
    return ending if ending in (".gz", ".zst") else ""


def check_output(path: str | Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """Check early that an output can be written, and is not an input or inside an input folder. Raises `InputError`
    otherwise, or if its folder does not exist or is not writable, or if the path is a folder."""
    compression(path)
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file to write")
    folder = target.absolute().parent
    if not folder.is_dir():
        raise InputError(f"{path} cannot be written: the folder does not exist; create it first")
    if not os.access(target if target.exists() and not target.is_file() else folder, os.W_OK):
        raise InputError(f"{path} cannot be written: no write permission; choose a file in another folder")
    if not target.exists():
        return
    for source in inputs:
        if source is None or not Path(source).exists():
            continue
        if target.samefile(source) or Path(source).resolve() in target.resolve().parents:
            raise InputError(f"{path} is an input file and would be overwritten; write to another file")


def check_folder(path: str | Path) -> None:
    """Raise `InputError` if a path or a parent of it is a file, so that no folder can be created."""
    target = Path(path)
    existing = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise InputError(f"{path} cannot be a folder: {existing} is a file; give another name")


def check_distinct(paths: Sequence[str], option: str = "") -> None:
    """Raise `OptionError`, with the duplicate, if a file is given twice, because it would count twice."""
    files = [Path(path).resolve() for path in paths]
    for at, path in enumerate(paths):
        if files[at] in files[:at]:
            raise OptionError(f"{option}{path} is given twice; name each file once")


#: File type extensions. Any other extension, such as a language code, is part of the name.
_KINDS = re.compile(
    r"(?<=.)\.(csv|gen|gz|jsonl?|m?xliff|mqxliff|pot?|sdlxliff|seg\.score|tmx|tsv|txt|xlf|zst)$", re.IGNORECASE
)


def name_of(path: str | Path) -> str:
    """A file's name in tables: "out" for out.json.gz, "bad" for bad.txt, and "bad.de" for bad.de."""
    name = Path(path).name
    while (shorter := _KINDS.sub("", name)) != name:
        name = shorter
    return name


def chosen_system(name: str, systems: Collection[str]) -> str:
    """The system of this name, or else of the name of this file. Raises `OptionError` if there is none."""
    found = next((one for one in (name, name_of(name)) if one in systems), None)
    if found is None:
        raise unknown("system", name, systems)
    return found


def short_names(paths: Iterable[str | Path]) -> list[str]:
    """A unique name for each file: its `name_of` if no other file has it, otherwise the full file name, with as many
    parent folders as needed."""
    forms: list[list[str]] = []
    for path in paths:
        *folders, file = Path(path).parts or (str(path),)
        last = (name_of(file) or file, file)
        forms.append(["/".join((*folders[at:], one)) for at in range(len(folders), -1, -1) for one in last])
    return _distinct(forms)


def system_names(systems: Sequence[tuple[str, str]], given: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """A unique name for each (file, system in it): the system's name, if unique; otherwise the file's name if it has
    only this system, or both. A `given` name of a file overrides its name. Raises `InputError` if names cannot be made
    unique."""
    paths = dict.fromkeys(path for path, _ in systems)
    files = dict(zip(paths, short_names(paths), strict=True))
    sizes = Counter(path for path, _ in systems)
    forms = []
    for path, system in systems:
        alone = [files[path]] if sizes[path] == 1 or not system else []
        if path in given:
            forms.append([given[path] if alone else f"{given[path]}/{system}"])
        else:
            forms.append([*([system] if system else []), *alone, f"{files[path]}/{system}", f"{path}/{system}"])
    names = _distinct(forms)
    if (name := Counter(names).most_common(1)[0]) and name[1] > 1:
        raise InputError(f"two systems are called {name[0]}; rename one of them or its file")
    return names


def _distinct(forms: Sequence[Sequence[str]]) -> list[str]:
    """For each name, the first of its forms that no other name has, or else the last."""
    counts = Counter(form for names in forms for form in set(names))
    return [next((form for form in names if counts[form] == 1), names[-1]) for names in forms]


@dataclass(frozen=True, slots=True)
class NamedPath:
    """An input file, and its name in tables, by default `name_of`."""

    path: Path
    name: str | None = None

    @classmethod
    def parse(cls, text: str) -> NamedPath:
        """``PATH`` or ``NAME=PATH``. If the whole text is the path of a file, it is that path."""
        name, equals, path = text.partition("=")
        return cls(Path(path), name) if equals and path and not Path(text).exists() else cls(Path(text))

    @property
    def label(self) -> str:
        """The name in tables."""
        return self.name or name_of(self.path)


def tell_apart(sources: Sequence[NamedPath]) -> list[NamedPath]:
    """The sources, with longer names for files that would otherwise have the same name."""
    names = iter(short_names([source.path for source in sources if source.name is None]))
    named = [source if source.name is not None else replace(source, name=next(names)) for source in sources]
    return [old if old.label == new.label else new for old, new in zip(sources, named, strict=True)]
