"""Changes in translators' files: older versions from a file, a folder or git, and the units that differ."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mbr_esd_metric.adapters.documents.document import READY, Document, Selection, TranslationUnit
from mbr_esd_metric.adapters.documents.reading import read_as
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.streams import read_bytes

#: Prefix of a git revision.
GIT = "git:"


@contextmanager
def older_files(old: str, documents: Iterable[Document]) -> Iterator[Mapping[Path, Path | None]]:
    """Each path -> its older version, None for a new file.

    Args:
        old: the older version of a single translation; a folder with older translations, and optionally sources, under
            the same paths or the same paths without common parent folders; or ``git:REF``, a revision.
        documents: the translations, with the source files of key-value files. A source without older version in `old`
            counts as unchanged.

    Raises:
        InputError: an older folder with none of the translations, or a revision that git does not have.
        OptionError: one older file for several translations.
    """
    documents = list(documents)
    translations = [one.path for one in documents]
    sources = [one.source_path for one in documents if one.source_path is not None]
    if old.startswith(GIT):
        with tempfile.TemporaryDirectory() as folder:
            try:
                yield _from_git(old.removeprefix(GIT), {*translations, *sources}, Path(folder))
            except InputError as error:
                raise InputError(str(error).replace(f"{folder}{os.sep}", f"{old}:")) from None
    elif Path(old).is_dir():
        found = _in_folder(Path(old), translations)
        if not any(found.values()):
            names = "no older version of " + str(translations[0])
            raise InputError(f"{old} has {names}; give its files the same names as the new ones")
        yield {source: older or source for source, older in _in_folder(Path(old), sources).items()} | found
    elif len(documents) > 1:
        raise OptionError(f"--changed-from {old} is one file for {len(documents)} documents; give a folder, or git:REF")
    else:
        yield {source: source for source in sources} | dict.fromkeys(translations, Path(old))


def _in_folder(folder: Path, paths: Iterable[Path]) -> dict[Path, Path | None]:
    files = {path: path.absolute() for path in paths}
    if not files:
        return {}
    common = Path(os.path.commonpath([file.parent for file in files.values()]))
    places = {path: (path, file.relative_to(common)) for path, file in files.items()}
    return {
        path: next((folder / one for one in names if not one.is_absolute() and (folder / one).is_file()), None)
        for path, names in places.items()
    }


def _from_git(revision: str, paths: Iterable[Path], folder: Path) -> dict[Path, Path | None]:
    """Write the files of a revision below the folder, including the folders that specify their languages."""
    found: dict[Path, Path | None] = {}
    places = {path: path.absolute() for path in paths}
    for parent in {place.parent for place in places.values()}:
        _git(parent, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    for path, place in places.items():
        found[path] = None
        if _git(place.parent, "ls-tree", "--name-only", revision, place.name):
            found[path] = older = folder / place.relative_to(place.anchor)
            older.parent.mkdir(parents=True, exist_ok=True)
            older.write_bytes(_git(place.parent, "show", f"{revision}:./{place.name}"))
    return found


def _git(folder: Path, *words: str) -> bytes:
    """The output of a git command in this folder; raises `InputError` with git's message if it fails."""
    try:
        done = subprocess.run(["git", "-C", folder, *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise InputError("--changed-from git:REF needs git; install it, or give an older file") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        why = said or f"unknown revision {words[-1].partition('^')[0]}"
        raise InputError(f"git {words[0]} in {folder}: {why}; give a revision that `git rev-parse` knows there")
    return done.stdout


def changed_from(
    document: Document, older: Mapping[Path, Path | None], selection: Selection = READY, name: str = ""
) -> Document:
    """The document with only the units whose texts or inline codes differ from the units of the same names in its older
    version, or that were not ready there. Translations that were already missing are not reported again.

    Args:
        older: result of `older_files`; an older file may be empty.
        selection: the selection used to read the document.
        name: the name of the older version in messages.

    Raises:
        InputError: an older file that cannot be read in the document's format.
    """
    old, source = older[document.path], document.source_path
    pairs = {document.path: old} if source is None else {document.path: old, source: older[source]}
    contents = [(read_bytes(path), b"" if before is None else read_bytes(before)) for path, before in pairs.items()]
    known: set[tuple[object, ...]] = set()
    missing, obsolete, was_untranslated = document.missing, document.obsolete, False
    if all(new == before for new, before in contents):  # the usual case in a repository with many languages
        known, missing, obsolete = {_compared(unit) for unit in document.units}, (), ()
    elif old is not None and all(before for _, before in contents):
        earlier = _read(document, old, None if source is None else older[source], selection)
        known, was_untranslated = {_compared(unit) for unit in earlier.units}, earlier.is_untranslated
        known_missing = {one.identity for one in earlier.missing}
        missing = tuple(one for one in missing if one.identity not in known_missing)
        obsolete = tuple(one for one in obsolete if one not in earlier.obsolete)
    chosen = document.only([_compared(unit) not in known for unit in document.units], f"unchanged since {name or old}")
    return replace(chosen, missing=missing, obsolete=obsolete, was_untranslated=was_untranslated)


def _compared(unit: TranslationUnit) -> tuple[object, ...]:
    segment, known = unit.segment, unit.segment.known
    return unit.key, segment.source, segment.translation, known.source_codes, known.translation_codes


def _read(document: Document, old: Path, source: Path | None, selection: Selection) -> Document:
    ending, other = (path.suffix.lower() for path in (document.path, old))
    try:
        return read_as(ending, old, source, selection)
    except InputError as error:
        if other == ending:
            raise
        kind = f"a {other} file, and {document.path} is a" if other else f"not a file like {document.path}, a"
        message = f"{old} is {kind} {ending} file; give an older version of {document.path} ({error})"
        raise InputError(message) from None
