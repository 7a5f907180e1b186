"""Paths that a user names: checked before any work, and shortened for people."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from mbr_esd_metric.errors import InputError, OptionError

#: Longest file name in bytes on usual file systems, less the ending of an unfinished file (".part").
_LONGEST_NAME = 240


def plain_name(path: str | Path) -> str:
    """The file's name without the ending of a compression that `open_binary` reads."""
    name = Path(path).name
    return name[: -len(ending)] if (ending := compression(path)) else name


def file_name(name: str, what: str, ending: str = "") -> str:
    """A safe file name, made from a name in data or from a user (of `what`, as messages say) and an ending.
    `InputError` for a name that leads to another folder, that no file can have, or that is hidden in lists of files.
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


#: Endings of compressions and archives that are neither read nor written.
_OTHER_COMPRESSIONS = (
    *(".7z", ".br", ".bz2", ".lz", ".lz4", ".lzma", ".rar", ".tar", ".tbz2", ".tgz", ".txz", ".xz", ".z", ".zip"),
    ".zstd",
)


def compression(path: str | Path) -> str:
    """The compression given by a file's extension: ".gz", ".zst", or "" of a plain file. `InputError` for another one,
    which would be read as plain text. All files are read and written with it."""
    ending = Path(path).suffix.lower()
    if ending in _OTHER_COMPRESSIONS:
        raise InputError(f"{path}: {ending} is not supported; use .gz, .zst or an uncompressed file")
    return ending if ending in (".gz", ".zst") else ""


def check_output(path: str | Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """Check, before any work, that a file can be written there and is none of the inputs, nor in an input's folder.
    `InputError` if it is, if the folder does not exist or may not be written, or if the path is a folder."""
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
    """Raise `InputError` where a path, or one above it, is a file and so no folder can be made."""
    target = Path(path)
    existing = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise InputError(f"{path} cannot be a folder: {existing} is a file; give another name")


def check_distinct(paths: Sequence[str], option: str = "") -> None:
    """`OptionError`, with the second one, where a file is named twice. It would count twice."""
    files = [Path(path).resolve() for path in paths]
    for at, path in enumerate(paths):
        if files[at] in files[:at]:
            raise OptionError(f"{option}{path} is given twice; name each file once")


#: Endings that say what a file is. Any other one belongs to the name, such as that of a language.
_KINDS = re.compile(
    r"(?<=.)\.(csv|gen|gz|jsonl?|m?xliff|mqxliff|pot?|sdlxliff|seg\.score|tmx|tsv|txt|xlf|zst)$", re.IGNORECASE
)


def name_of(path: str | Path) -> str:
    """What a file is called in tables: "out" of out.json.gz, "bad" of bad.txt, and "bad.de" of bad.de."""
    name = Path(path).name
    while (shorter := _KINDS.sub("", name)) != name:
        name = shorter
    return name


def short_names(paths: Iterable[str | Path]) -> list[str]:
    """A name for each file, different for different paths: its `name_of` if no other file has it, else the whole file
    name, or as many folders in front as needed to tell files apart."""
    forms: list[list[str]] = []
    for path in paths:
        *folders, file = Path(path).parts or (str(path),)
        last = (name_of(file) or file, file)
        forms.append(["/".join((*folders[at:], one)) for at in range(len(folders), -1, -1) for one in last])
    return _distinct(forms)


def system_names(systems: Sequence[tuple[str, str]], given: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """A name for each (file, system in it), different for different ones: the system's own, where nothing else is
    called so; else the file's, if it has only this system, or both. Files with a `given` name have this one.
    `InputError` for two that no file tells apart."""
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
    """Of the forms of each name the first that no other name has, or the last."""
    counts = Counter(form for names in forms for form in set(names))
    return [next((form for form in names if counts[form] == 1), names[-1]) for names in forms]


@dataclass(frozen=True, slots=True)
class NamedPath:
    """An input file, and its name in tables: by default that of `name_of`."""

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
    """The sources, with longer names for files that would get the same name."""
    names = iter(short_names([source.path for source in sources if source.name is None]))
    named = [source if source.name is not None else replace(source, name=next(names)) for source in sources]
    return [old if old.label == new.label else new for old, new in zip(sources, named, strict=True)]
