"""Texts that verbs judge: plain ones, one segment a line, or a file that translators have."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.cli.gates import Place
from mbr_esd_metric.errors import InputError, OptionError, no_effect_error, number_of, printable
from mbr_esd_metric.files.paths import check_distinct, check_output, name_of, short_names
from mbr_esd_metric.files.streams import read_segments
from mbr_esd_metric.metric.card import ModelCard, with_pair
from mbr_esd_metric.metric.sources import Segment
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import language_code

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.documents import Document


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts to judge.

    Attributes:
        systems: file -> its segments.
        ids: of each segment its number from 1, or what its file calls it.
        document: the translator's file, if the texts are from one.
        changed: how many units of it differ from an older one.
        whole: the translations of all its units by their ids.
        lines: of each segment its line in the file of its translation, where it is known.
    """

    systems: Mapping[str, Sequence[Segment]]
    ids: Sequence[str]
    document: Document | None = None
    changed: str = ""
    whole: Mapping[str, str] = field(default_factory=dict)
    lines: Sequence[int | None] = ()

    def places(self, file: str) -> list[Place]:
        """Where each segment of a system stands."""
        return [Place(file, name, line) for name, line in zip(self.ids, self.lines, strict=True)]

    @property
    def segments(self) -> list[Segment]:
        """Those of the first system, then those of the next."""
        return [segment for segments in self.systems.values() for segment in segments]

    def card(self, card: ModelCard) -> ModelCard:
        """The card with the language pair of the file, where its prompt names languages and it has no pair yet."""
        names_languages = get_format(card.decision.format).prompt(card.prompt).names_languages
        if self.document is None or card.lp is not None or not names_languages:
            return card
        pairs: dict[str, str] = {}
        for unit in self.document.units:
            if all(unit.languages):
                pairs.setdefault("-".join(map(language_code, unit.languages)), unit.id)
        if len(pairs) != 1:
            units = ", ".join(f"{pair} (unit {unit})" for pair, unit in pairs.items()) or "none"
            raise InputError(
                f"{self.document.path} names no one language pair ({units}); name it with --lp, such as --lp en-de"
            )
        return with_pair(card, next(iter(pairs)))


def read_texts(args: argparse.Namespace, lp: str | None, *inputs: str | Path | None) -> Texts:
    """The texts of `mbr-esd score`, of a file with several languages those of the pair `lp`; no output is one of them
    or of the other `inputs`. A note on standard error says which units are left out."""
    for output in filter(None, (args.to_json, args.to_csv, args.output, args.corrected)):
        check_output(output, [args.document, args.sources, args.changed_from, *args.translations, *inputs])
    if args.document is not None:
        return _read_document(args, lp)
    for option, value in (("-o", args.output), ("--all", args.all), ("--changed-from", args.changed_from)):
        if value:
            raise no_effect_error(option, "plain texts")
    return read_plain(args.sources, args.translations, args.documents)


def read_plain(sources_path: str | None, paths: Sequence[str], documents_path: str | None = None) -> Texts:
    """The texts of plain files."""
    if not sources_path or not paths:
        raise OptionError("give a source file with -s and translations with -t, or a file such as project.xlf")
    check_distinct(paths, "-t ")
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
    lines = range(1, len(sources) + 1)
    return Texts(segments, list(map(str, lines)), lines=lines)


def _read_document(args: argparse.Namespace, lp: str | None) -> Texts:
    from mbr_esd_metric.adapters.documents import changed_from, read_document

    path = args.document
    if args.sources or args.translations:
        raise OptionError(f"{path} has both texts; leave -s and -t out")
    if args.documents:
        raise no_effect_error(f"--documents {args.documents}", f"{path}, which says it itself")
    if args.output and Path(args.output).suffix != Path(path).suffix:
        raise OptionError(f"-o {args.output}: it is {path} again, so let it end alike; --to_csv writes a table")
    document = read_document(path, every=args.all, lp=lp)
    changed, whole = "", {unit.id: unit.translation for unit in document.units}
    if args.changed_from:
        document = changed_from(document, args.changed_from, lp)
        count = f"{len(document.units)} of {number_of(len(whole), 'unit')}" if document.units else "no unit"
        verb = "differ" if len(document.units) > 1 else "differs"
        changed = f"{count} {verb} from {args.changed_from}{'' if document.units else ', so nothing is judged'}"
    for note in (_left_out(document), *document.notes):
        if note:
            print(printable(f"note: {path}: {note}"), file=sys.stderr)
    system = name_of(path)
    segments = [
        Segment(unit.source, unit.translation, f"unit {unit.id} of {path}", system, unit.document or path)
        for unit in document.units
    ]
    ids, lines = [unit.id for unit in document.units], [unit.line for unit in document.units]
    return Texts({path: segments}, ids, document, changed, whole, lines)


def _left_out(document: Document) -> str:
    """The number of units that are left out, and why; "" if none is."""
    left_out = {**dict.fromkeys(document.empty, "without source or translation"), **document.unready, **document.others}
    if not left_out:
        return ""
    each = ", ".join(f"{count} {reason}" for reason, count in Counter(left_out.values()).items())
    take = "; --all takes unready ones with a translation" if document.unready else ""
    return f"{number_of(len(left_out), 'unit')} left out ({each}), such as {next(iter(left_out))}{take}"


def read_beside(path: str, source_path: str, count: int) -> list[str]:
    """The lines of a file, one for each source."""
    if path == source_path == "-":
        raise OptionError("standard input is named twice (-s - -t -); give sources or translations as a file")
    lines = read_segments(path)
    if len(lines) != count:
        raise InputError(
            f"{path} has {number_of(len(lines), 'line')} and {source_path} has {count}; line i of both is segment i"
        )
    return lines


def document_names(path: str, source_path: str, count: int) -> list[str]:
    """The document of each source: a line has an id, mt-metrics-eval's domain and document, or the item_id, doc_id or
    document_id (WMT24++) of WMT's JSON lines. A document is in one piece."""
    from mbr_esd_metric.files.untrusted import parse_strict_json, reading

    names: list[str] = []
    seen: set[str] = set()
    for number, line in enumerate(read_beside(path, source_path, count), 1):
        with reading(f"{path}, line {number}"):
            if not line:
                raise InputError("no id of a document")
            name = _document_of(parse_strict_json(line)) if line.startswith("{") else line.split("\t")[:2][-1].strip()
            if name in seen and names[-1] != name:
                raise InputError(f"document {name} is not in one piece; each segment follows the one before it")
        seen.add(name)
        names.append(name)
    return names


def _document_of(item: Mapping[str, Any]) -> str:
    from mbr_esd_metric.adapters.wmt.submissions import SEPARATOR

    if "item_id" in item:  # WMT26: its last part is the place in the document
        return str(item["item_id"]).rpartition(SEPARATOR)[0] or str(item["item_id"])
    return str(item["document_id" if "document_id" in item else "doc_id"])
