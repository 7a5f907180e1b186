"""`mbr-esd score`: like ``comet-score``. Runs our models without COMET, and COMET checkpoints with COMET."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.gates import add_gate
from mbr_esd_metric.cli.score_gates import (
    add_score_gates,
    check_score_gates,
    close_score_gate,
    findings_of,
    has_gate,
)
from mbr_esd_metric.cli.score_inputs import Texts, is_folder, read_beside, read_texts
from mbr_esd_metric.cli.shared_options import DEFAULT_MODEL, add_dry_run, print_estimates
from mbr_esd_metric.core.decision import mostly_lost
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.errors import OptionError, no_effect_error
from mbr_esd_metric.files.judged import JudgedSegment, write_judged
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.generation.engine import NO_MODEL
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import first_of, number_of, printable
from mbr_esd_metric.metric.card import with_pair
from mbr_esd_metric.metric.cards import is_ours, load_card
from mbr_esd_metric.metric.data_warnings import is_marked, warnings
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.text import is_blank

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.error_free import ErrorFreeModel
    from mbr_esd_metric.metric.card import ModelCard

_LINE_ENDS = re.compile(r"\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``comet-score``, and translators' files as an alternative to plain text files."""
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="XLIFF, TMX, PO, CSV, TSV or .xcstrings, instead of -s and -t"
    )
    parser.add_argument("--all", action="store_true", help="also score units marked new, fuzzy or locked in FILE")
    parser.add_argument(
        "--changed-from",
        metavar="OLD",
        help="score only the units added or changed since OLD: an older file (may be empty), a folder of older files, "
        "or git:REF",
    )
    parser.add_argument(
        "--columns",
        metavar="SOURCE,TARGET",
        help="column names of a CSV or TSV (default: source and target, or the languages of --lp)",
    )
    parser.add_argument("-s", "--sources", metavar="SRC", help="source file: one segment per line, or a key-value file")
    parser.add_argument(
        "-t",
        "--translations",
        nargs="+",
        default=[],
        metavar="MT",
        help="translation files: one per system; for key-value files (JSON, YAML, strings.xml, .strings) one per "
        "language",
    )
    parser.add_argument(
        "--documents",
        metavar="FILE",
        help="document of each source, for ?context=document: one id per line, or WMT's file (.docs, JSON lines)",
    )
    parser.add_argument("--lp", metavar="LP", help="language pair, such as en-de; short for ?lp=...")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model name with options (default: %(default)s)")
    parser.add_argument(
        "-r",
        "--references",
        metavar="REF",
        help="reference file, for COMET checkpoints that need one (xCOMET does not)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="write a copy of FILE with the errors marked (a folder if there are several files)",
    )
    parser.add_argument("--to_json", default="", metavar="OUT", help="write scores and error spans to this file")
    parser.add_argument(
        "--corrected", metavar="OUT", help="write the corrected translations of one system, one per line"
    )
    parser.add_argument("--to_csv", metavar="OUT", help="write the errors to this file as CSV, one per row")
    parser.add_argument("--sarif", metavar="OUT", help="write the errors with file, line and column, for code review")
    parser.add_argument("--only_system", action="store_true", help="print only the system scores")
    parser.add_argument(
        "--error-free",
        metavar="FILE",
        help="classify segments as error-free, with a model from `calibrate --error-free --save`",
    )
    add_score_gates(parser)
    add_gate(parser)
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="print neither progress bar nor signature")
    parser.add_argument(
        "--verbose", action="store_true", help="print the full signature: every setting that can change a score"
    )
    parser.epilog = (
        "examples:\n  mbr-esd score -s src.txt -t mt.txt --lp en-de --model 'mbr-esd-llama?n=64' --to_json out.json\n"
        "  mbr-esd score -s src.txt -t mt.txt --model 'Unbabel/XCOMET-XL?dtype=float32&batch_size=8&gpus=2'\n"
        "  mbr-esd score project.xlf -o checked.xlf"
    )


def run(args: argparse.Namespace) -> int:
    """Score every system; the output has the format of ``comet-score``."""
    from mbr_esd_metric.metric.metric import Metric
    from mbr_esd_metric.metric.run import candidate_source

    check_score_gates(args)
    if not is_ours(args.model):
        from mbr_esd_metric.adapters.comet.checkpoints import looks_like_checkpoint

        if looks_like_checkpoint(args.model):
            return _score_by_comet(args)
    if args.references:
        raise no_effect_error("--references", "a model of this package")
    card = with_pair(load_card(args.model), args.lp)
    if args.corrected:
        form = (card if card.candidates is None else candidate_source(card).card).decision.format
        if not get_format(form).corrections:
            raise OptionError(
                f"--corrected {args.corrected}: this model writes no corrections; use format=json-corrections"
            )
        if len(args.translations) > 1 or len(args.files) > 1:
            raise OptionError(f"--corrected {args.corrected} takes one system; specify one file with -t")
    texts = read_texts(args, card.lp, card.candidates)
    if not texts.segments:
        return _show(args, texts, dict.fromkeys(texts.systems, ()))
    if texts.documents and card.lp is None and card.names_languages:
        texts = texts.with_languages()
    if args.lp and not card.names_languages and card.engine != NO_MODEL:
        logger.info(
            f"note: {card.name} does not use the language pair; --lp {args.lp} only affects checks and sentence "
            "splitting"
        )
    segments = texts.segments
    if args.dry_run is not None:
        return print_estimates(card, segments, args.dry_run)
    with Metric(card) as metric:
        run = metric.judge(segments, progress=not args.quiet)
    warning = warnings([one.data_warning for one in run.judged], [one.label for one in segments], card.decision.blank)
    [lp] = texts.pairs if card.lp is None and len(texts.pairs) == 1 else [card.lp]
    candidates = sum(one.valid + one.invalid for one in run.decisions)
    located, dropped = sum(one.located for one in run.decisions), sum(one.dropped for one in run.decisions)
    lost = mostly_lost(candidates, located, dropped)  # also in the advice of the run
    advice = [*run.advice]
    if has_gate(args) and (unseen := _unseen(card, run.judged)):
        logger.warning(unseen)
        advice.append(unseen)
    return _show(args, texts, texts.by_file(run.judged), run.signature, lp, warning, advice) or int(lost)


def _unseen(card: ModelCard, judged: Iterable[JudgedSegment]) -> str | None:
    """A warning about rule-based errors that are not marked and so not gated, with the option that marks them."""
    labels = [
        one.segment.label for one in judged if not is_marked(one.data_warning, [span.category for span in one.errors])
    ]
    if not labels:
        return None
    fix = "checks=true marks them"
    if card.decision.checks == "true":
        fix = f"format={card.decision.format} does not mark the source; use a format that marks omissions"
    count = number_of(len(labels), "segment")
    return f"{count} with rule-based errors that the gates ignore ({first_of(labels)}): {fix}"


def _score_by_comet(args: argparse.Namespace) -> int:
    """Score every system with a COMET checkpoint. Segments have an annotation if the checkpoint marks error spans."""
    from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions

    for option in ("documents", "dry_run", "corrected"):
        if getattr(args, option) is not None:
            raise no_effect_error(f"--{option.replace('_', '-')}", f"--model {args.model}, which COMET runs")
    if args.changed_from and args.references:
        raise OptionError("-r requires a line for every unit, so it cannot be combined with --changed-from")
    texts = read_texts(args, args.lp, args.references)
    if not texts.segments:
        return _show(args, texts, dict.fromkeys(texts.systems, ()))
    if args.lp and not texts.documents:
        raise no_effect_error(f"--lp {args.lp}", f"--model {args.model}, which does not use the languages")
    counts = {path: len(segments) for path, segments in texts.systems.items()}
    references: dict[str, Sequence[str | None]] = {path: [None] * count for path, count in counts.items()}
    if args.references is not None:
        if len(texts.documents) > 1:
            raise OptionError(f"-r {args.references} applies to one file; score one file at a time")
        for path, count in counts.items():
            references[path] = read_beside(args.references, args.sources or args.files[0], count)
    checkpoint = CometCheckpoint(*CometOptions.parse(args.model))
    if checkpoint.needs_references and args.references is None:
        raise OptionError(f"{args.model} needs references; specify them with -r FILE")
    if args.fail_on and not checkpoint.has_spans:
        raise OptionError(f"--fail-on {args.fail_on}: {args.model} marks no error spans; use --min-segment")
    signature = checkpoint.signature.with_words("src" if args.references is None else "ref")
    judged: list[JudgedSegment] = []
    for path, segments in texts.systems.items():
        judged += checkpoint.judge(segments, references[path], Settings(args.model, signature), not args.quiet)
    return _show(args, texts, texts.by_file(judged), checkpoint.signature)


def _show(
    args: argparse.Namespace,
    texts: Texts,
    data: Mapping[str, Sequence[JudgedSegment]],
    signature: Signature | None = None,
    lp: str | None = None,
    warning: str | None = None,
    advice: Sequence[str] = (),
) -> int:
    """Write and print the scores, evaluate the gates, and return the exit status; the advice is already printed."""
    from mbr_esd_metric.metric.cards import limits
    from mbr_esd_metric.metric.metric import mean

    judged: Mapping[str, Sequence[JudgedSegment]] = {path: rows for path, rows in data.items() if rows}
    shares: Mapping[str, float] = {}
    learnt = ""
    if args.error_free:
        from mbr_esd_metric.metaeval.error_free import read_error_free

        error_free = read_error_free(args.error_free)
        judged = with_error_free(error_free, judged, lp)
        data = {**data, **judged}
        shares = {path: sum(one.error_free is True for one in rows) / len(rows) for path, rows in judged.items()}
        learnt = f"|error-free:{error_free.digest}"
    if signature is not None:
        logger.info(f"{signature if args.verbose else signature.short}{learnt}")
    if warning:
        logger.warning(warning)
    decides = limits(one.settings.model for rows in judged.values() for one in rows)
    for limit in decides:
        (logger.warning if has_gate(args) else logger.info)(limit)
    scores = {path: mean([one.score_or_nan for one in rows]) for path, rows in judged.items()}
    note = _write(args, texts, data)
    status = 0
    if args.summary or has_gate(args):
        every = "; ".join(filter(None, (*advice, warning)))
        status = close_score_gate(args, texts, judged, scores, shares, every, decides)
    if not args.only_system:
        for path, one in _in_order(texts, data):
            print(f"{printable(path)}\tSegment {printable(one.name)}\tscore: {one.score_or_nan:.4f}")
    _print_systems(texts, scores, shares)
    if args.to_json:
        print(printable(f"Predictions saved in: {args.to_json}."))
    if note:
        print(printable("; ".join([note, *decides])))
    return status or int(any(one.refused for rows in data.values() for one in rows))


def _write(args: argparse.Namespace, texts: Texts, data: Mapping[str, Sequence[JudgedSegment]]) -> str:
    """Write the requested files; returns the messages about marked files."""
    if args.to_json:
        write_judged(args.to_json, data)
    if args.corrected:
        [rows] = data.values()
        corrected = {one.name: one.corrected or "" for one in rows}
        lines = ({**texts.whole, **corrected}).values()  # with --changed-from, other units are unchanged
        write_whole(args.corrected, "".join(f"{_LINE_ENDS.sub(' ', line)}\n" for line in lines))
    note = write_errors_of(texts, data, args.to_csv, args.output) if args.to_csv or args.output else ""
    if args.sarif or "GITHUB_ACTIONS" in os.environ:
        _review(texts, data, args.sarif)
    return note


def _print_systems(texts: Texts, scores: Mapping[str, float], shares: Mapping[str, float]) -> None:
    """The mean score of each system, as ``comet-score`` prints it."""
    for path, changed in texts.changed.items():
        if path not in scores:
            print(printable(f"{path}: {changed}"))
    for path, score in scores.items():
        print(f"{printable(path)}\tscore: {score:.4f}")
        if shares:
            print(f"{printable(path)}\twithout error: {shares[path]:.4f}")


def write_errors_of(
    texts: Texts, data: Mapping[str, Sequence[JudgedSegment]], table: str | None, output: str | None
) -> str:
    """Write the CSV of errors, and copies of translators' files with the errors marked; returns messages about them."""
    if table:
        from mbr_esd_metric.adapters.documents.table import write_errors
        from mbr_esd_metric.cli.score_tables import listed_errors

        write_errors(table, listed_errors(data))
    if not texts.documents or not output:
        return ""
    from mbr_esd_metric.adapters.documents.document import Checked

    count = 0
    for path, target in marked_files(output, texts.documents).items():
        checked = [None if one.refused else Checked(one.errors, one.score_or_nan) for one in data[path]]
        target.parent.mkdir(parents=True, exist_ok=True)
        texts.documents[path].mark(checked, target)
        count += sum(len(one.annotation) for one in checked if one)
    return f"{output}: {number_of(count, 'error')} marked"


def _review(texts: Texts, data: Mapping[str, Sequence[JudgedSegment]], output: str | None) -> None:
    """Write the errors as SARIF, and, in a GitHub workflow, as annotations on standard error."""
    from mbr_esd_metric.report.findings import annotation, sarif

    findings = findings_of(texts.documents, data)
    if output:
        write_whole(output, sarif(findings, data))
    if "GITHUB_ACTIONS" in os.environ:
        for finding in findings:
            print(annotation(finding), file=sys.stderr)


def marked_files(output: str, paths: Iterable[str]) -> dict[str, Path]:
    """Input file -> output file: `output`, or, if that is a folder, a file of the same name in it, with as many parent
    folders as needed to keep names distinct."""
    if not is_folder(output):
        return dict.fromkeys(paths, Path(output))
    files = {path: Path(path).absolute() for path in paths}
    common = Path(os.path.commonpath([file.parent for file in files.values()]))
    return {path: Path(output) / file.relative_to(common) for path, file in files.items()}


def _in_order(texts: Texts, data: Mapping[str, Sequence[JudgedSegment]]) -> Iterator[tuple[str, JudgedSegment]]:
    """Files and segments: of systems with the same segments by segment, as ``comet-score`` has them; of translators'
    files by file."""
    of_files = [[(path, one) for one in rows] for path, rows in data.items()]
    by_segment = of_files if texts.documents else zip(*of_files, strict=True)
    return (one for group in by_segment for one in group)


def with_error_free(
    model: ErrorFreeModel, data: Mapping[str, Sequence[JudgedSegment]], lp: str | None
) -> dict[str, list[JudgedSegment]]:
    """The segments, classified as error-free or not; blank translations and those without a score are not."""
    from mbr_esd_metric.metaeval.error_free import ScoredTranslation

    classified = {}
    for system, rows in data.items():
        scored = [not is_blank(one.segment.translation) and one.input_score is not None for one in rows]
        translations = [
            ScoredTranslation(one.score_or_nan, one.annotation, len(one.segment.translation), lp or "")
            for one in compress(rows, scored)
        ]
        clean = iter(model.clean(translations).tolist() if translations else ())
        classified[system] = [
            replace(one, error_free=bool(next(clean)) if has_score else False)
            for one, has_score in zip(rows, scored, strict=True)
        ]
    return classified
