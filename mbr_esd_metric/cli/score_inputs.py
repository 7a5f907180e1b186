"""Input texts of verbs: plain text files with one segment per line, or translators' files."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError, OptionError, no_effect_error
from mbr_esd_metric.files.judged import JudgedSegment, Place
from mbr_esd_metric.files.paths import check_distinct, check_folder, check_output, short_names
from mbr_esd_metric.files.streams import read_segments
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import first_of, number_of, printable
from mbr_esd_metric.prompting.languages import language_code, language_of_texts, lp_of

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.documents.document import Document, Selection

#: Message for a file without a translation.
UNTRANSLATED = "no unit has a translation"


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts to judge.

    Attributes:
        systems: file -> its segments.
        places: file -> the place of each segment, by its number from 1 or its id in the file.
        documents: file -> the translator's file, if the texts are from such files.
        changed: file -> a line with the number of units that differ from an older version.
        whole: the translations of all units of the first document by their ids.
    """

    systems: Mapping[str, Sequence[Segment]]
    places: Mapping[str, Sequence[Place]]
    documents: Mapping[str, Document] = field(default_factory=dict)
    changed: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, str] = field(default_factory=dict)

    @property
    def segments(self) -> list[Segment]:
        """The segments of all systems, system by system."""
        return [segment for segments in self.systems.values() for segment in segments]

    def by_file(self, judged: Iterable[JudgedSegment]) -> dict[str, list[JudgedSegment]]:
        """File -> its judged segments with their places; `judged` has the order of `segments`."""
        rest = iter(judged)
        return {path: [replace(next(rest), place=place) for place in places] for path, places in self.places.items()}

    @property
    def pairs(self) -> set[str]:
        """The language pairs that the documents specify."""
        return {*filter(None, map(lp_of, self.segments))}

    def with_languages(self) -> Texts:
        """The texts with the source language of each document, for prompts that name it. If a document does not specify
        it, it is identified from the sources, or else assumed to be English. Raises `InputError` if a document does not
        specify its target language."""
        return replace(self, systems={path: _with_languages(path, one) for path, one in self.systems.items()})


def _with_languages(path: str, segments: Sequence[Segment]) -> Sequence[Segment]:
    unnamed = [one for one in segments if lp_of(one) is None]
    if not unnamed:
        return segments
    targets = {one.known.target_language for one in unnamed}
    source = language_of_texts(one.source for one in unnamed) or "en"
    if None in targets or source in {language_code(one or "") for one in targets}:
        raise InputError(
            f"{path} does not specify the languages of all units; specify them with --lp, such as --lp en-de"
        )
    logger.info(f"note: {path} does not specify its source language; assuming {source} (override with --lp)")
    return [
        one
        if lp_of(one)
        else replace(one, known=replace(one.known, source_language=one.known.source_language or source))
        for one in segments
    ]


def read_texts(args: argparse.Namespace, lp: str | None, *inputs: str | Path | None) -> Texts:
    """The texts of `mbr-esd score`; for files with several languages, those of the pair `lp`. Checks that no output is
    an input. A note on standard error counts the skipped units."""
    for output in filter(None, (args.to_json, args.to_csv, args.sarif, args.output, args.corrected)):
        if output == args.output and is_folder(output):
            check_folder(output)
        else:
            check_output(output, [*args.files, args.sources, args.changed_from, *args.translations, *inputs])
    documents = _documents(args, lp)
    if documents:
        return _of_documents(args, documents, lp)
    of_files = {"-o": args.output, "--all": args.all, "--changed-from": args.changed_from, "--columns": args.columns}
    for option, value in of_files.items():
        if value:
            raise no_effect_error(option, "plain text files")
    return read_plain(args.sources, args.translations, args.documents)


def read_plain(sources_path: str | None, paths: Sequence[str], documents_path: str | None = None) -> Texts:
    """The texts of plain files."""
    if not sources_path or not paths:
        raise OptionError(
            "specify a source file with -s and translations with -t, or a bilingual file such as project.xlf"
        )
    from mbr_esd_metric.adapters.documents.keys import check_plain

    check_distinct(paths, "-t ")
    for path in (*paths, sources_path):
        check_plain(path)
    sources = read_segments(sources_path)
    systems = {path: read_beside(path, sources_path, len(sources)) for path in paths}
    documents = [""] * len(sources)
    if documents_path:
        documents = document_names(documents_path, sources_path, len(sources))
    segments = {
        path: [
            Segment(source, translation, f"line {number} of {path}", system, document)
            for number, (source, translation, document) in enumerate(zip(sources, mt, documents, strict=True), 1)
        ]
        for system, (path, mt) in zip(short_names(systems), systems.items(), strict=True)
    }
    places = {path: [Place(path, str(line), line) for line in range(1, len(sources) + 1)] for path in segments}
    return Texts(segments, places)


def _documents(args: argparse.Namespace, lp: str | None) -> dict[str, Document]:
    """The translators' files of a run: bilingual files, or key-value translations with their source file."""
    from mbr_esd_metric.adapters.documents.keys import is_key_file

    if args.files and (args.sources or args.translations):
        raise OptionError(f"{args.files[0]} contains sources and translations; remove -s and -t")
    pairs = args.translations if args.sources and args.translations else []
    keyed = [path for path in (args.sources, *pairs) if path and is_key_file(path)]
    if not args.files and not keyed:
        return {}
    if args.documents:
        raise no_effect_error(f"--documents {args.documents}", f"{(*args.files, *keyed)[0]}, which defines them")
    if not args.files and len({Path(path).suffix.lower() for path in (args.sources, *pairs)}) > 1:
        raise OptionError(f"{args.sources} and {pairs[0]}: use files of one kind; key-value files are aligned by key")
    check_distinct([*args.files, *pairs], "" if args.files else "-t ")
    from mbr_esd_metric.adapters.documents.reading import read_document

    source = None if args.files else args.sources
    pairs = [path for path in pairs if Path(path).resolve() != Path(args.sources).resolve()]  # wildcards may match it
    if not args.files and not pairs:
        raise OptionError(f"-t {args.sources} is the source file; specify its translations")
    paths = args.files or pairs
    selection, may_be_empty = _selection(args, lp), len(paths) > 1 or args.changed_from is not None
    return {path: read_document(path, selection, source=source, may_be_empty=may_be_empty) for path in paths}


def _of_documents(args: argparse.Namespace, documents: Mapping[str, Document], lp: str | None) -> Texts:
    _check_marked(args.output, documents)
    whole = next({unit.segment.label: unit.segment.translation for unit in one.units} for one in documents.values())
    judged, changed = documents, {}
    if args.changed_from:
        judged = _changed(args, documents, lp)
        changed = {path: _differ(args, len(documents[path].units), len(one.units)) for path, one in judged.items()}
    nothing = f"{UNTRANSLATED}, so there is nothing to score"
    changed |= {path: nothing for path, one in documents.items() if not one.units}
    for path, document in judged.items():
        for note in (_left_out(document), *_unpaired(document), *document.notes):
            if note:
                print(printable(f"note: {path}: {note}"), file=sys.stderr)
    segments = {
        path: [
            replace(one, label=f"unit {one.label} of {path}", system=system, document=one.document or path)
            for one in (unit.segment for unit in document.units)
        ]
        for system, (path, document) in zip(short_names(judged), judged.items(), strict=True)
    }
    places = {path: [Place(path, unit.segment.label, unit.line) for unit in one.units] for path, one in judged.items()}
    return Texts(segments, places, judged, changed, whole)


def _changed(args: argparse.Namespace, documents: Mapping[str, Document], lp: str | None) -> dict[str, Document]:
    """The documents, with only the units changed since their older versions."""
    from mbr_esd_metric.adapters.documents.changes import changed_from, older_files

    with older_files(args.changed_from, documents.values()) as older:
        selection, name = _selection(args, lp), args.changed_from
        return {path: changed_from(document, older, selection, name) for path, document in documents.items()}


def _selection(args: argparse.Namespace, lp: str | None) -> Selection:
    """The units of translators' files that the options select."""
    from mbr_esd_metric.adapters.documents.columns import parse_columns
    from mbr_esd_metric.adapters.documents.document import Selection

    return Selection(args.all, lp, parse_columns(args.columns) if args.columns else None)


def _differ(args: argparse.Namespace, count: int, changed: int) -> str:
    """A line with the number of changed units of a document."""
    units = f"{changed} of {number_of(count, 'unit')}" if changed else "no unit"
    nothing = "" if changed else ", so there is nothing to score"
    return f"{units} {'differ' if changed > 1 else 'differs'} from {args.changed_from}{nothing}"


def _check_marked(output: str | None, documents: Mapping[str, Document]) -> None:
    """Check that marked files can be written: one file with the same extension, or several into a folder."""
    if not output:
        return
    for path, document in documents.items():
        ending = Path(path).suffix
        if not document.is_markable:
            raise OptionError(f"-o {output}: {ending} files do not support comments; use --to_csv to write a table")
        if len(documents) == 1 and Path(output).suffix != ending and not is_folder(output):
            raise OptionError(f"-o {output}: must end in {ending}, as {path} does; use --to_csv to write a table")
    if len(documents) > 1 and not is_folder(output):
        raise OptionError(f"-o {output}: {len(documents)} files need a folder; write -o {output}/")


def is_folder(output: str) -> bool:
    """Whether an output is an existing folder, or its name ends in a slash."""
    return output.endswith("/") or Path(output).is_dir()


def _unpaired(document: Document) -> Iterator[str]:
    """Notes on units without a translation, and on keys that only one of the two files has."""
    named = [f"{one.key} (line {one.source_line})" for one in document.missing if one.problem == "missing"]
    if named:
        yield f"{number_of(len(named), 'key')} of {document.source_path} missing: {first_of(named)}"
    empty = [f"{one.key} (line {one.line})" for one in document.missing if one.problem == "empty"]
    if empty:
        yield f"{number_of(len(empty), 'unit')} without a translation: {first_of(empty)}"
    if document.obsolete:
        yield f"{number_of(len(document.obsolete), 'key')} obsolete: {first_of(document.obsolete)}"


def _left_out(document: Document) -> str:
    """A line with the number of skipped units and the reasons; "" if there are none."""
    missing = {one.key for one in document.missing}
    empty = [one for one in document.empty if one not in missing]
    left_out = {**dict.fromkeys(empty, "without source or translation"), **document.unready, **document.others}
    if not left_out:
        return ""
    each = ", ".join(f"{count} {reason}" for reason, count in Counter(left_out.values()).items())
    take = "; --all includes those that have a translation" if document.unready else ""
    return f"{number_of(len(left_out), 'unit')} skipped ({each}), such as {next(iter(left_out))}{take}"


def read_beside(path: str, source_path: str, count: int) -> list[str]:
    """The lines of a file, which must have one for each source."""
    if path == source_path == "-":
        raise OptionError("standard input is used twice (-s - -t -); read the sources or the translations from a file")
    lines = read_segments(path)
    if len(lines) != count:
        raise InputError(
            f"{path} has {number_of(len(lines), 'line')} and {source_path} has {count}; line i of both is segment i"
        )
    return lines


def document_names(path: str, source_path: str, count: int) -> list[str]:
    """The document of each source. A line contains an id, mt-metrics-eval's domain and document, or a JSON object of
    WMT with item_id, doc_id or document_id (WMT24++). The segments of a document must be contiguous."""
    from mbr_esd_metric.files.untrusted import parse_strict_json, reading

    names: list[str] = []
    seen: set[str] = set()
    for number, line in enumerate(read_beside(path, source_path, count), 1):
        with reading(f"{path}, line {number}"):
            if not line:
                raise InputError("no document id")
            name = _document_of(parse_strict_json(line)) if line.startswith("{") else line.split("\t")[:2][-1].strip()
            if name in seen and names[-1] != name:
                raise InputError(f"document {name} is not contiguous; put all of its segments together")
        seen.add(name)
        names.append(name)
    return names


def _document_of(item: Mapping[str, Any]) -> str:
    from mbr_esd_metric.adapters.wmt.submissions import SEPARATOR

    if "item_id" in item:  # WMT26: the last part is the position in the document
        return str(item["item_id"]).rpartition(SEPARATOR)[0] or str(item["item_id"])
    return str(item["document_id" if "document_id" in item else "doc_id"])
