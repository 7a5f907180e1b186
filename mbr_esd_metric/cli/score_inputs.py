"""Inputs of `mbr-esd score`: plain texts, or a file that translators have; and the errors in that file."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import InputError, OptionError, no_effect_error, number_of, printable
from mbr_esd_metric.files.paths import check_distinct, check_output
from mbr_esd_metric.files.streams import read_segments
from mbr_esd_metric.metric.card import ModelCard, with_pair
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import language_code

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.documents import Document


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts to score.

    Attributes:
        sources, ids, documents: of each segment; its number from 1, or what its file calls it; "" without a document.
        systems: file -> its translations.
        document: the translator's file, if the texts are from one.
        changed: how many units of it differ from an older one.
        whole: the translations of all its units by their ids.
    """

    sources: Sequence[str]
    systems: Mapping[str, Sequence[str]]
    ids: Sequence[str]
    documents: Sequence[str]
    document: Document | None = None
    changed: str = ""
    whole: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, args: argparse.Namespace, lp: str | None, *inputs: str | Path | None) -> Texts:
        """Read what the arguments name, of a file with several languages the pair `lp`. A note on standard error says
        which units are left out."""
        for output in (args.to_json, args.to_csv, args.output, args.corrected):
            if output:
                check_output(output, [args.document, args.sources, args.changed_from, *args.translations, *inputs])
        if args.document is None:
            return cls._plain(args)
        from mbr_esd_metric.adapters.documents import changed_from, read_document

        if args.sources or args.translations:
            raise OptionError(f"{args.document} has both texts; leave -s and -t out")
        if args.documents:
            raise no_effect_error(f"--documents {args.documents}", f"{args.document}, which says it itself")
        if args.output and Path(args.output).suffix != Path(args.document).suffix:
            raise OptionError(
                f"-o {args.output}: it is {args.document} again, so let it end alike; --to_csv writes a table"
            )
        document = read_document(args.document, every=args.all, lp=lp)
        changed, whole = "", document
        if args.changed_from:
            document = changed_from(document, args.changed_from, lp)
            count = f"{len(document.units)} of {number_of(len(whole.units), 'unit')}" if document.units else "no unit"
            verb = "differ" if len(document.units) > 1 else "differs"
            changed = f"{count} {verb} from {args.changed_from}{'' if document.units else ', so nothing is judged'}"
        for note in (_left_out(document), *document.notes):
            if note:
                print(printable(f"note: {args.document}: {note}"), file=sys.stderr)
        return cls(
            [unit.source for unit in document.units],
            {args.document: [unit.translation for unit in document.units]},
            [unit.id for unit in document.units],
            [unit.document or args.document for unit in document.units],
            document,
            changed,
            {unit.id: unit.translation for unit in whole.units},
        )

    @classmethod
    def _plain(cls, args: argparse.Namespace) -> Texts:
        if not args.sources or not args.translations:
            raise OptionError("give a source file with -s and translations with -t, or a file such as project.xlf")
        for option, value in (("-o", args.output), ("--all", args.all), ("--changed-from", args.changed_from)):
            if value:
                raise no_effect_error(option, "plain texts")
        check_distinct(args.translations, "translations", "-t ")
        sources = read_segments(args.sources)
        systems = {path: read_translations(path, args.sources, sources) for path in args.translations}
        documents = [""] * len(sources)
        if args.documents:
            documents = read_document_names(args.documents, args.sources, len(sources))
        return cls(sources, systems, list(map(str, range(1, len(sources) + 1))), documents)

    def card(self, card: ModelCard) -> ModelCard:
        """The card with the language pair for the prompt: its own, or as the file says, which need not where no prompt
        names languages."""
        if self.document is None or card.lp is not None:
            return card
        if not get_format(card.decision.format).prompt(card.prompt).names_languages:
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


def _left_out(document: Document) -> str:
    """The number of units that are left out, and why; "" if none is."""
    empty = dict.fromkeys(document.empty, "without source or translation")
    reasons = Counter([*empty.values(), *document.unready.values(), *document.others.values()])
    if not reasons:
        return ""
    each = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    first = next(iter((*empty, *document.unready, *document.others)))
    take = "; --all takes those that have one" if document.unready else ""
    return f"{number_of(reasons.total(), 'unit')} left out ({each}), such as {first}{take}"


def read_translations(path: str, source_path: str, sources: Sequence[str]) -> list[str]:
    """The translations in a file, one for each source."""
    if path == source_path == "-":
        raise OptionError("standard input is named twice (-s - -t -); give sources or translations as a file")
    translations = read_segments(path)
    if len(translations) != len(sources):
        raise InputError(
            f"{path} has {number_of(len(translations), 'line')} and {source_path} has {len(sources)}; "
            "line i of both is segment i"
        )
    return translations


def read_document_names(path: str, beside: str, count: int) -> list[str]:
    """The document of each line of a file of sources: an id a line, mt-metrics-eval's domain and document, or the
    doc_id or item_id of WMT's JSON lines. A document is in one piece.
    """
    from mbr_esd_metric.files.untrusted import parse_strict_json, reading

    names: list[str] = []
    seen: set[str] = set()
    for number, line in enumerate(read_segments(path), 1):
        where = f"{path}, line {number}"
        with reading(where):
            if not line:
                raise InputError("no id of a document")
            name = _document_of(parse_strict_json(line)) if line.startswith("{") else line.split("\t")[:2][-1].strip()
            if name in seen and names[-1] != name:
                raise InputError(f"document {name} is not in one piece; each segment follows the one before it")
        seen.add(name)
        names.append(name)
    if len(names) != count:
        raise InputError(f"the files differ in their number of lines: {beside} has {count}, {path} has {len(names)}")
    return names


def _document_of(item: Mapping[str, Any]) -> str:
    from mbr_esd_metric.adapters.wmt.submissions import SEPARATOR

    if "item_id" in item:  # WMT26: its last part is the place in the document
        return str(item["item_id"]).rpartition(SEPARATOR)[0] or str(item["item_id"])
    key = next((key for key in ("doc_id", "document_id", "document", "doc") if key in item), "doc_id")
    return str(item[key])
