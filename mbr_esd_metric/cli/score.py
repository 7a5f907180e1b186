"""`mbr-esd score`: like ``comet-score``; our models without COMET, and COMET's own checkpoints by COMET."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.cli.gates import Check, add_gate, check_gate, close_gate
from mbr_esd_metric.cli.score_inputs import Texts, read_beside, read_texts
from mbr_esd_metric.cli.shared_options import DEFAULT_MODEL, add_dry_run, limits, print_estimates
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import OptionError, logger, no_effect_error, number_of, printable
from mbr_esd_metric.files.streams import json_text, write_whole
from mbr_esd_metric.metric.card import with_pair
from mbr_esd_metric.metric.cards import is_ours, load_card
from mbr_esd_metric.metric.data_warnings import warnings
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.text import is_blank

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.error_free import ErrorFreeModel
    from mbr_esd_metric.metric.sources import Segment
    from mbr_esd_metric.report.tables import Table, TableRow

#: A segment as it is written: src, mt, COMET, and errors and omissions where there are any.
WrittenSegment = Mapping[str, Any]

#: Scores are rounded; one at the limit passes, as equal ones do in `compare`.
_TOLERANCE = 1e-6
#: What a summary shows of errors, and of how many; of one system without its name.
_SHOWN = ("system", "id", "text", "severity", "category", "correction", "reason")
_MOST = 50
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
    parser.add_argument("--model", default=DEFAULT_MODEL, help="model name with options (default: %(default)s)")
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
    from mbr_esd_metric.metric.run import candidate_source
    from mbr_esd_metric.metric.signature import model_title

    if args.fail_under is not None and not 0 <= args.fail_under <= 1:
        raise OptionError(f"--fail-under {args.fail_under:g}: give a score in [0, 1], on which 1 is without an error")
    gate = args.fail_under is not None or args.fail_share is not None
    check_gate(args, gate, args.to_json, args.to_csv, args.output, args.corrected)
    if args.fail_share is not None and not (args.error_free and 0 <= args.fail_share <= 1):
        raise OptionError(f"--fail-share {args.fail_share:g}: give a share from 0 to 1, and --error-free FILE")
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
                f"--corrected {args.corrected}: this model corrects nothing; ask it with format=json-corrections"
            )
        if len(args.translations) > 1:
            raise OptionError(f"--corrected {args.corrected} is for one system; give one file with -t")
    texts = read_texts(args, card.lp, card.candidates)
    if not texts.ids:
        return _show(args, texts, {args.document: []})
    card = texts.card(card)
    if args.lp and not get_format(card.decision.format).prompt(card.prompt).names_languages:
        logger.info(
            f"note: {card.name} is not told the languages; --lp {args.lp} serves data warnings and sentences alone"
        )
    segments = texts.segments
    if args.dry_run is not None:
        return print_estimates(card, segments, args.dry_run)
    prediction = Metric(card).predict(segments, progress_bar=not args.quiet)
    metadata = prediction.metadata
    if texts.document is not None:  # and codes that were lost in it
        of_units = [unit.data_warning for unit in texts.document.units]
        metadata["data_warning"] = list(map(_joined, metadata.data_warning, of_units))
    warning = warnings(metadata.data_warning, [one.label for one in segments], card.decision.blank)
    signature = Signature.parse(metadata.signature)
    model = model_title(card, signature)
    rows = iter([_row(segment, row, model) for segment, row in zip(segments, prediction.rows(), strict=True)])
    data = {path: list(islice(rows, len(texts.ids))) for path in texts.systems}
    return _show(args, texts, data, signature, card.lp, warning)


def _joined(*data_warnings: str | None) -> str | None:
    """The data warnings of one pair as one; None where there are none."""
    kinds = {kind: None for one in data_warnings if one for kind in one.split(", ")}
    return ", ".join(kinds) or None


#: Keys in the JSON, in their order, and those that only some segments have.
_KEYS = ("corrected", "mqm", "errors", "refused", "data_warning", "omissions", "sentences")
_OF_SOME = ("refused", "data_warning", "sentences")


def _row(segment: Segment, row: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The object of a segment in the JSON."""
    values = {**row, "errors": row["error_spans"]} if "error_spans" in row else row
    found = {key: values[key] for key in _KEYS if key in values and (values[key] or key not in _OF_SOME)}
    return {"src": segment.source, "mt": segment.translation, "COMET": row["score"], "model": model, **found}


def _score_by_comet(args: argparse.Namespace) -> int:
    """Score every system with a checkpoint of COMET's own. Rows have "errors" if the model finds error spans."""
    from mbr_esd_metric.adapters.comet.checkpoints import CometCheckpoint, CometOptions

    for option in ("documents", "dry_run", "corrected"):
        if getattr(args, option) is not None:
            raise no_effect_error(f"--{option.replace('_', '-')}", f"--model {args.model}, which COMET runs")
    if args.changed_from and args.references:
        raise OptionError("-r has a line for every unit; with --changed-from give none")
    texts = read_texts(args, args.lp, args.references)
    if not texts.ids:
        return _show(args, texts, {args.document: []})
    if args.lp and args.document is None:
        raise no_effect_error(f"--lp {args.lp}", f"--model {args.model}, which names no languages")
    references: Sequence[Mapping[str, str]] = [{}] * len(texts.ids)
    if args.references is not None:
        beside = args.sources or args.document
        references = [{"ref": line} for line in read_beside(args.references, beside, len(texts.ids))]
    checkpoint = CometCheckpoint(*CometOptions.parse(args.model))
    if checkpoint.needs_references and args.references is None:
        raise OptionError(f"{args.model} needs references; give them with -r FILE")
    data = {}
    for path, segments in texts.systems.items():
        pairs = zip(segments, references, strict=True)
        rows = [{"src": one.source, "mt": one.translation, **reference} for one, reference in pairs]
        prediction = checkpoint.predict(rows, progress=not args.quiet)
        scores = map(float, prediction.scores)
        data[path] = [{**row, "COMET": one, "model": args.model} for row, one in zip(rows, scores, strict=True)]
        if checkpoint.has_spans:
            for row, spans in zip(data[path], prediction.metadata.error_spans, strict=True):
                row["errors"] = spans
    return _show(args, texts, data, checkpoint.signature)


def _show(
    args: argparse.Namespace,
    texts: Texts,
    data: Mapping[str, Sequence[dict[str, Any]]],
    signature: Signature | None = None,
    lp: str | None = None,
    warning: str | None = None,
) -> int:
    """Write the files, and print the scores as ``comet-score`` does."""
    from mbr_esd_metric.metric.metric import mean

    judged = {path: rows for path, rows in data.items() if rows}
    shares: Mapping[str, float] = {}
    learnt = ""
    if args.error_free:
        from mbr_esd_metric.metaeval.error_free import read_error_free

        error_free = read_error_free(args.error_free)
        shares, learnt = error_free_shares(error_free, judged, lp), f"|error-free:{error_free.digest}"
    if signature is not None:
        logger.info(f"{signature if args.verbose else signature.short}{learnt}")
    if warning:
        logger.warning(warning)
    scores = {path: mean([row["COMET"] for row in rows]) for path, rows in judged.items()}
    if args.to_json:
        names = [{} if texts.document is None else {"id": name} for name in texts.ids]
        content = {
            path: [
                name | {key: None if value != value else value for key, value in row.items()}  # JSON has no NaN
                for name, row in zip(names, rows, strict=True)
            ]
            for path, rows in data.items()
        }
        write_whole(args.to_json, json_text(content, indent=4))
    if args.corrected:
        [rows] = data.values()
        corrected = {name: row["corrected"] for name, row in zip(texts.ids, rows, strict=True)}
        lines = ({**texts.whole, **corrected}).values()  # with --changed-from, the others as they are
        write_whole(args.corrected, "".join(f"{_LINE_ENDS.sub(' ', line)}\n" for line in lines))
    note = write_errors_of(texts, data, args.to_csv, args.output) if args.to_csv or args.output else ""
    status = 0
    if args.summary or args.fail_under is not None or args.fail_share is not None:
        status = close_score_gate(args, texts, judged, scores, shares, warning)
    if not args.only_system:
        for name, *of_systems in zip(texts.ids, *data.values(), strict=True):
            for path, row in zip(data, of_systems, strict=True):
                print(f"{printable(path)}\tSegment {printable(name)}\tscore: {row['COMET']:.4f}")
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
    return status or int(any("refused" in row for rows in data.values() for row in rows))


def write_errors_of(
    texts: Texts, data: Mapping[str, Sequence[WrittenSegment]], table: str | None, output: str | None
) -> str:
    """Write one error a row, and the translator's file with its errors; returns what there is to say of it."""
    if table:
        from mbr_esd_metric.adapters.documents.table import write_errors

        write_errors(table, _errors(texts, data))
    if texts.document is None or not output:
        return ""
    from mbr_esd_metric.adapters.documents import Checked

    [segments] = data.values()
    checked = [None if "refused" in row else Checked(Annotation(errors_of(row)), row["COMET"]) for row in segments]
    texts.document.mark(checked, Path(output))
    return f"{output}: {number_of(sum(len(one.annotation) for one in checked if one), 'error')} marked"


def _errors(texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]) -> list[dict[str, Any]]:
    """Each error, with its system, the name of its segment, and both texts."""
    return [
        {"system": printable(path), "id": name, "source": row["src"], "translation": row["mt"], **error}
        for path, rows in data.items()
        for name, row in zip(texts.ids, rows, strict=True)
        for error in errors_of(row)
    ]


def error_table(texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]) -> Table:
    """The first errors for people; texts stand as code, as nobody vouches for them."""
    from mbr_esd_metric.report.tables import Column, table_of

    errors, titles = _errors(texts, data), _SHOWN if len(data) > 1 else _SHOWN[1:]
    columns = {title: Column(title, title) for title in titles}
    rows = [
        {column: _as_code(error[key]) for key, column in columns.items() if error.get(key) is not None}
        for error in errors[:_MOST]
    ]
    notes = [f"and {number_of(len(errors) - _MOST, 'error')} more"] if len(errors) > _MOST else []
    return table_of("errors", rows, notes)


def _as_code(text: str) -> str:
    """A text as Markdown shows it letter by letter; an empty one, which deletes what it corrects, as a dash."""
    return f"`{printable(text).replace('`', chr(39))}`" if text else "\N{EM DASH}"


def errors_of(row: WrittenSegment) -> list[dict[str, Any]]:
    """The errors of both sides."""
    omissions = ({**error, "side": "source"} for error in row.get("omissions") or ())
    return [*({"side": "translation", **error} for error in row.get("errors") or ()), *omissions]


def error_free_shares(
    model: ErrorFreeModel, data: Mapping[str, Sequence[dict[str, Any]]], lp: str | None
) -> dict[str, float]:
    """The share of segments without error of each system; rows get "error_free". A blank translation is not."""
    from mbr_esd_metric.metaeval.error_free import ScoredTranslation

    shares = {}
    for system, rows in data.items():
        scored, judged = [], []
        for row in rows:
            row["error_free"] = False
            if not is_blank(row["mt"]) and not math.isnan(row["COMET"]):
                annotation = Annotation(errors_of(row)) if "errors" in row else None
                scored.append(row)
                judged.append(ScoredTranslation(row["COMET"], annotation, len(row["mt"]), lp or ""))
        for row, clean in zip(scored, model.clean(judged).tolist() if scored else (), strict=True):
            row["error_free"] = clean
        shares[system] = sum(row["error_free"] for row in rows) / max(1, len(rows))
    return shares


def close_score_gate(
    args: argparse.Namespace,
    texts: Texts,
    judged: Mapping[str, Sequence[dict[str, Any]]],
    scores: Mapping[str, float],
    shares: Mapping[str, float],
    warning: str | None,
) -> int:
    """Write summary and JUnit XML of the systems' scores, and return the exit status."""
    from mbr_esd_metric.report.tables import table_of

    checks = [
        check(option, path, values[path], least, wording, sum("refused" in row for row in rows))
        for option, values, least, wording in (
            ("--fail-under", scores, args.fail_under, " scores {:.4f}"),
            ("--fail-share", shares, args.fail_share, ": {:.4f} of the segments are without error"),
        )
        if least is not None
        for path, rows in judged.items()
    ]
    notes = [texts.changed] if texts.changed else []
    if checks:  # what the model can decide
        decides = limits(row["model"] for rows in judged.values() for row in rows)
        for decided in decides:
            logger.warning(decided)
        notes += decides
    elif not judged and (args.fail_under is not None or args.fail_share is not None):
        checks = [Check(args.document, True, f"{args.document}: {texts.changed}")]
    rows = [_system_row(path, segments, scores[path]) for path, segments in judged.items()]
    errors = error_table(texts, judged)
    return close_gate(
        args, "score", [table_of("scores", rows, notes), *([errors] if errors.rows else [])], checks, warning
    )


def check(option: str, name: str, value: float, least: float, wording: str, refused: int = 0) -> Check:
    """Whether a value is at least so high; the `wording` of the value follows the name. NaN does not pass, nor a system
    with segments that a server refused."""
    title = f"{name} {option} {least:g}"
    if refused:
        return Check(title, False, f"{name}: {number_of(refused, 'segment')} without a score")
    passed = value >= least - _TOLERANCE
    return Check(title, passed, f"{name}{wording.format(value)}, {'at least' if passed else 'less than'} {least:g}")


def _system_row(path: str, segments: Sequence[WrittenSegment], score: float) -> TableRow:
    """A system's score, and its error spans."""
    from mbr_esd_metric.report.tables import Column

    severities = [error["severity"] for row in segments for error in row.get("errors", ())]
    row: dict[Column, Any] = {
        Column("system", "system"): path,
        Column("segments", "segments"): len(segments),
        Column("score", "score", digits=4): score,
        Column("major", "major spans"): severities.count("major"),
        Column("minor", "minor spans"): severities.count("minor"),
    }
    if any("omissions" in one for one in segments):
        row[Column("omissions", "omitted")] = sum(len(one.get("omissions") or ()) for one in segments)
    return row
