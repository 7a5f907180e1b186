"""`mbr-esd score`: like ``comet-score``; our models without COMET, and COMET's own checkpoints by COMET."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.cli.model_options import (
    DEFAULT_MODEL,
    add_dry_run,
    add_gate,
    check_gate,
    print_estimates,
)
from mbr_esd_metric.cli.score_inputs import Texts, read_translations
from mbr_esd_metric.errors import OptionError, logger, no_effect_error, printable
from mbr_esd_metric.files.paths import short_names
from mbr_esd_metric.files.streams import json_text, write_whole
from mbr_esd_metric.metric.card import with_pair
from mbr_esd_metric.metric.cards import is_ours, load_card
from mbr_esd_metric.metric.data_warnings import joined, warnings
from mbr_esd_metric.metric.sources import Segment
from mbr_esd_metric.prompting.formats import get_format

if TYPE_CHECKING:
    from mbr_esd_metric.metric.metric import Prediction

_LINE_ENDS = re.compile(r"\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments named as those of ``comet-score``, and a translator's file in place of plain ones."""
    parser.add_argument("document", nargs="?", metavar="FILE", help="XLIFF, TMX, PO, CSV or TSV, instead of -s and -t")
    parser.add_argument("--all", action="store_true", help="of FILE, also units that are new, fuzzy or locked")
    parser.add_argument(
        "--changed-from", metavar="OLD", help="of FILE, only units whose texts OLD has not, which may be empty"
    )
    parser.add_argument("-s", "--sources", metavar="SRC", help="source file, one segment a line")
    parser.add_argument(
        "-t", "--translations", nargs="+", default=[], metavar="MT", help="one file of translations a system"
    )
    parser.add_argument(
        "--documents",
        metavar="FILE",
        help="the document of each source, for ?context=document: one id a line, or WMT's file (.docs, JSON lines)",
    )
    parser.add_argument("--lp", metavar="LP", help="language pair, such as en-de; short for ?lp=...")
    parser.add_argument("--model", help=f"model name with options (default: {DEFAULT_MODEL})")
    parser.add_argument(
        "-r", "--references", metavar="REF", help="reference file, for models of COMET's own; xCOMET needs none"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="FILE again, with its errors marked")
    parser.add_argument("--to_json", default="", metavar="OUT", help="write scores and error spans to this file")
    parser.add_argument("--corrected", metavar="OUT", help="write the corrected translations of one system, one a line")
    parser.add_argument("--to_csv", metavar="OUT", help="write one error a row to this file")
    parser.add_argument("--only_system", action="store_true", help="print the system scores only")
    parser.add_argument("--fail-under", type=float, metavar="X", help="exit status 3 if a system scores less")
    parser.add_argument("--error-free", metavar="FILE", help="say which segments are without error, as it was learnt")
    parser.add_argument(
        "--fail-share", type=float, metavar="X", help="exit status 3 if a smaller share of segments is without error"
    )
    add_gate(parser)
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no signature")
    parser.add_argument("--verbose", action="store_true", help="the whole signature, all that can change a score")
    parser.epilog = (
        "examples:\n  mbr-esd score -s src.txt -t mt.txt --lp en-de --model 'mbr-esd-llama?n=64' --to_json out.json\n"
        "  mbr-esd score -s src.txt -t mt.txt --model 'Unbabel/XCOMET-XL?dtype=float32&batch_size=8&gpus=2'\n"
        "  mbr-esd score project.xlf -o checked.xlf"
    )


def run(args: argparse.Namespace) -> int:
    """Score every system; the output has the form of ``comet-score``'s."""
    from mbr_esd_metric.metric.metric import Metric
    from mbr_esd_metric.metric.signature import model_title
    from mbr_esd_metric.metric.sources import candidate_source

    if args.fail_under is not None and not 0 <= args.fail_under <= 1:
        raise OptionError(f"--fail-under {args.fail_under:g}: give a score in [0, 1], on which 1 is without an error")
    outputs = args.to_json, args.to_csv, args.output, args.corrected
    gate = None if args.fail_under is None and args.fail_share is None else "a gate"
    if args.summary or args.junit or gate or any(outputs):
        check_gate(args, gate, *outputs)
    if args.fail_share is not None and not (args.error_free and 0 <= args.fail_share <= 1):
        raise OptionError(f"--fail-share {args.fail_share:g}: give a share from 0 to 1, and --error-free FILE")
    if args.model is not None and not is_ours(args.model):
        from mbr_esd_metric.adapters.comet.checkpoints import looks_like_checkpoint

        if looks_like_checkpoint(args.model):
            return _score_by_comet(args)
    if args.references:
        raise no_effect_error("--references", "a model of this package")
    card = with_pair(load_card(args.model or DEFAULT_MODEL), args.lp)
    answers = (card if card.candidates is None else candidate_source(card).card).decision.format
    if args.corrected and not get_format(answers).corrections:
        raise OptionError(
            f"--corrected {args.corrected}: this model corrects nothing; ask it with format=json-corrections"
        )
    if args.corrected and len(args.translations) > 1:
        raise OptionError(f"--corrected {args.corrected} is for one system; give one file with -t")
    texts = Texts.read(args, card.lp, card.candidates)
    if not texts.sources:
        return _show(args, texts, {args.document: []})
    metric = Metric(card if texts.document is None else texts.card(card))
    if args.lp and not get_format(card.decision.format).prompt(card.prompt).names_languages:
        note = f"{card.name} is not told the languages; --lp {args.lp} serves data warnings and sentences alone"
        logger.info(f"note: {note}")
    sources, systems = texts.sources, texts.systems
    names, kind = short_names(systems), "line" if texts.document is None else "unit"
    segments = [
        Segment(source, translation, f"{kind} {number} of {path}", name, document)
        for name, (path, translations) in zip(names, systems.items(), strict=True)
        for source, translation, number, document in zip(sources, translations, texts.ids, texts.documents, strict=True)
    ]
    if args.dry_run is not None:
        return print_estimates(metric.card, segments, args.dry_run)
    prediction = metric.predict(segments, progress_bar=not args.quiet)
    units = [unit.data_warning for unit in texts.document.units] if texts.document else [None] * len(segments)
    data_warnings = list(map(joined, prediction.metadata.data_warning, units))
    logger.info(_signature(args, prediction.metadata.signature))
    if warning := warnings(data_warnings, [one.label for one in segments], metric.card.decision.blank):
        logger.warning(warning)
    model = model_title(metric.card, prediction.metadata.signature)
    rows = _rows(segments, prediction, data_warnings, model)
    data = {path: rows[at * len(sources) : (at + 1) * len(sources)] for at, path in enumerate(systems)}
    return _show(args, texts, data, metric.card.lp, warning)


def _score_by_comet(args: argparse.Namespace) -> int:
    """Score every system with a checkpoint of COMET's own. Rows have "errors" if the model finds error spans."""
    from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions

    for option in ("documents", "dry_run", "corrected"):
        if getattr(args, option) is not None:
            raise no_effect_error(f"--{option.replace('_', '-')}", f"--model {args.model}, which COMET runs")
    if args.changed_from and args.references:
        raise OptionError("-r has a line for every unit; with --changed-from give none")
    texts = Texts.read(args, args.lp, args.references)
    if not texts.sources:
        return _show(args, texts, {args.document: []})
    if args.lp and args.document is None:
        raise no_effect_error(f"--lp {args.lp}", f"--model {args.model}, which names no languages")
    references = None
    if args.references is not None:
        references = read_translations(args.references, args.sources or args.document, texts.sources)
    checkpoint = CometCheckpoint(*CometOptions.parse(args.model))
    if checkpoint.needs_references and references is None:
        raise OptionError(f"{args.model} needs references; give them with -r FILE")
    data = {}
    for path, translations in texts.systems.items():
        rows = [{"src": source, "mt": mt} for source, mt in zip(texts.sources, translations, strict=True)]
        if references is not None:
            rows = [{**row, "ref": reference} for row, reference in zip(rows, references, strict=True)]
        prediction = checkpoint.predict(rows, progress=not args.quiet)
        if note := checkpoint.cut_note(rows):
            logger.warning(note)
        scores = map(float, prediction.scores)
        data[path] = [{**row, "COMET": one, "model": args.model} for row, one in zip(rows, scores, strict=True)]
        if checkpoint.has_spans:
            for row, spans in zip(data[path], prediction.metadata.error_spans, strict=True):
                row["errors"] = spans
    logger.info(_signature(args, checkpoint.signature))
    return _show(args, texts, data)


def _signature(args: argparse.Namespace, signature: str) -> str:
    """The line that names the run; all of the signature with ``--verbose``."""
    from mbr_esd_metric.metric.signature import short

    line = signature if args.verbose else short(signature)
    if not args.error_free:
        return line
    from mbr_esd_metric.metaeval.error_free import read_error_free

    return f"{line}|error-free:{read_error_free(args.error_free).digest}"


def _show(
    args: argparse.Namespace,
    texts: Texts,
    data: Mapping[str, Sequence[dict[str, Any]]],
    lp: str | None = None,
    warning: str | None = None,
) -> int:
    """Write the files, and print the scores as ``comet-score`` does."""
    from mbr_esd_metric.metric.metric import mean

    judged = {path: rows for path, rows in data.items() if rows}
    shares: Mapping[str, float] = {}
    if args.error_free:
        from mbr_esd_metric.cli.score_outputs import error_free_shares

        shares = error_free_shares(args.error_free, judged, lp)
    scores = {path: mean([row["COMET"] for row in rows]) for path, rows in judged.items()}
    if args.to_json:
        content = {path: list(map(_without_nan, rows)) for path, rows in data.items()}
        if texts.document is not None:
            content = {
                path: [{"id": name, **row} for name, row in zip(texts.ids, rows, strict=True)]
                for path, rows in content.items()
            }
        write_whole(args.to_json, json_text(content, indent=4))
    if args.corrected:
        [rows] = data.values()
        corrected = {name: row["corrected"] for name, row in zip(texts.ids, rows, strict=True)}
        lines = ({**texts.whole, **corrected}).values()  # with --changed-from, the others as they are
        write_whole(args.corrected, "".join(f"{_LINE_ENDS.sub(' ', line)}\n" for line in lines))
    note = ""
    if args.to_csv or args.output:
        from mbr_esd_metric.cli.score_outputs import write_errors_of

        note = write_errors_of(texts, data, args.to_csv, args.output)
    refused = any("refused" in row for rows in data.values() for row in rows)
    status = 0
    if args.summary or args.fail_under is not None or args.fail_share is not None:
        from mbr_esd_metric.cli.score_outputs import close_score_gate

        status = close_score_gate(args, texts, judged, scores, shares, warning)
    if not args.only_system:
        for at, name in enumerate(texts.ids):
            for path, rows in data.items():
                print(f"{printable(path)}\tSegment {printable(name)}\tscore: {rows[at]['COMET']:.4f}")
    if not judged:
        print(printable(f"{args.document}: {texts.changed}"))
    for path, score in scores.items():
        print(f"{printable(path)}\tscore: {score:.4f}")
        if shares:
            print(f"{printable(path)}\twithout error: {shares[path]:.4f}")
    if args.to_json:
        print(printable(f"Predictions saved in: {args.to_json}."))
    if note:
        print(printable(note))
    return status or int(refused)


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON has it, which knows no NaN: the scores of a pair that was left out are null."""
    missing = dict.fromkeys(("COMET", "mqm") if "mqm" in row else ("COMET",))
    return row | missing if math.isnan(row["COMET"]) else row


def _rows(
    segments: Sequence[Segment], prediction: Prediction, data_warnings: Sequence[str | None], model: str
) -> list[dict[str, Any]]:
    """The object of each segment in the JSON."""
    metadata = prediction.metadata
    rows: list[dict[str, Any]] = []
    for at, segment in enumerate(segments):
        row = {"src": segment.source, "mt": segment.translation, "COMET": prediction.scores[at], "model": model}
        if corrected := metadata.get("corrected"):
            row["corrected"] = corrected[at]
        row |= {"mqm": metadata.mqm[at], "errors": metadata.error_spans[at]}
        if (refused := metadata.get("refused")) and refused[at] is not None:
            row["refused"] = refused[at]
        if data_warnings[at] is not None:
            row["data_warning"] = data_warnings[at]
        if omissions := metadata.get("omissions"):
            row["omissions"] = omissions[at]
        if (sentences := metadata.get("sentences")) and sentences[at]:
            row["sentences"] = sentences[at]
        rows.append(row)
    return rows
