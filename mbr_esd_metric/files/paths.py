"""Paths that a user names: checked before any work, and shortened for people."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mbr_esd_metric.errors import InputError, OptionError

#: Longest file name in bytes on usual file systems, less the ending of an unfinished file (".part").
_LONGEST_NAME = 240


def plain_name(path: str | Path) -> str:
    """The file's name without the ending of a compression that `open_binary` reads."""
    return Path(path).name.removesuffix(".gz").removesuffix(".zst")


def file_name(name: str, what: str, ending: str = "") -> str:
    """A safe file name, made from a name in data or from a user (of `what`, as messages say) and an ending. The file
    stays in its folder. Every name that becomes part of a path goes through here.

    Raises:
        InputError: a name that leads to another folder, that no file can have, or that is hidden in lists of files.
    """
    whole = name + ending
    try:
        size = len(whole.encode())
    except UnicodeEncodeError:
        size = 0
    controls = any(unicodedata.category(character) == "Cc" for character in name)
    if not 0 < size <= _LONGEST_NAME or not name or name.startswith(".") or set(name) & set("/\\") or controls:
        raise InputError(
            f"{what} {name!r} becomes a file's name: it takes no slash, backslash, control character or leading dot, "
            f"and at most {_LONGEST_NAME} bytes with its ending; give it another name"
        )
    return whole


def check_output(path: str | Path, inputs: Iterable[str | Path | None] = ()) -> None:
    """Check, before any work, that a file can be written there and is no input.

    Args:
        path: the file to write.
        inputs: files, and folders whose files must not be replaced; None is ignored.

    Raises:
        InputError: the folder does not exist, the path is a folder, or it is an input.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file to write")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{path} cannot be written: the folder does not exist; make it first")
    if not target.exists():
        return
    for source in inputs:
        if source is None or not Path(source).exists():
            continue
        if target.samefile(source) or Path(source).resolve() in target.resolve().parents:
            raise InputError(f"{path} is an input, which the output would replace; write to another file")


def check_folder(path: str | Path) -> None:
    """Raise `InputError` where a path, or one above it, is a file and so no folder can be made."""
    target = Path(path)
    existing = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise InputError(f"{path} cannot be a folder: {existing} is a file; give another name")


def check_distinct(paths: Sequence[str], what: str, option: str = "") -> None:
    """Check that no file is named twice. It would count twice.

    Raises:
        OptionError: names the second one.
    """
    files = [Path(path).resolve() for path in paths]
    for at, path in enumerate(paths):
        if files[at] in files[:at]:
            raise OptionError(f"{option}{path} is given twice; name each file of {what} once")


def short_names(paths: Iterable[str | Path], shorten: Callable[[str], str]) -> list[str]:
    """A name for each file, different for different paths: the shortened file name if no other file has it.

    Otherwise the whole file name, or as many folders in front as needed to tell files apart.
    """
    forms = [_endings(Path(path), shorten) for path in paths]
    return [
        next((form for form in names if not any(form in other for other in forms if other is not names)), names[-1])
        for names in forms
    ]


def _endings(path: Path, shorten: Callable[[str], str]) -> list[str]:
    """The names of a path, from its shortened file name to the whole path."""
    *folders, file = path.parts or (str(path),)
    return [
        "/".join((*folders[at:], last)) for at in range(len(folders), -1, -1) for last in (shorten(file) or file, file)
    ]
