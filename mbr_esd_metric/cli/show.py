"""`mbr-esd show` and `mbr-esd report`: segments with their error spans, in the terminal and as one HTML file.

In the terminal, major errors are bold red and minor ones yellow, all underlined. Without colour, a marked piece is
``[piece](major)``, and what a correction changes ``[-old-]{+new+}``. Control characters in the data are shown as
symbols, so that no text can control the terminal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from mbr_esd_metric.cli.shared_options import add_inputs, input_paths, read_inputs
from mbr_esd_metric.core.annotation import Annotation, Severity
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import check_output, chosen_system
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.messages import number_of, printable

if TYPE_CHECKING:
    from mbr_esd_metric.files.judged import JudgedSegment
    from mbr_esd_metric.report.inputs import JudgedTable

_STYLE: dict[Severity, str] = {"major": "\x1b[1;4;31m", "minor": "\x1b[4;33m"}
#: Colour or not -> formats of unchanged, deleted and inserted words.
_CHANGES = {
    True: {"=": "{}", "-": "\x1b[9;31m{}\x1b[0m", "+": "\x1b[32m{}\x1b[0m"},
    False: {"=": "{}", "-": "[-{}-]", "+": "{{+{}+}}"},
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the inputs, and the choice of segments to show."""
    add_inputs(parser)
    parser.add_argument("--id", action="append", default=[], metavar="ID", help="show only segments with this id")
    parser.add_argument("--system", metavar="NAME", help="show only this system")
    parser.add_argument("--worst", metavar="COLUMN", help="sort by the score of this metric or rater, lowest first")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="show at most N segments")
    parser.epilog = (
        "Spans are coloured on a terminal; set NO_COLOR=1 or FORCE_COLOR=1 to override this.\n\n"
        "examples:\n  mbr-esd show out.json --id 12\n  mbr-esd show out.json --worst out -n 5"
    )


def run(args: argparse.Namespace) -> int:
    """Print the chosen segments."""
    from mbr_esd_metric.report.inputs import column_named

    if args.limit is not None and args.limit < 1:
        raise OptionError(f"-n must be at least 1, got {args.limit}")
    table = read_inputs(args)
    rows = list(range(len(table.rows)))
    systems = {text.system for text in table.rows}
    if args.system is not None:
        system = chosen_system(args.system, systems)
        rows = [row for row in rows if table.rows[row].system == system]
    if args.id:
        rows = [row for row in rows if table.rows[row].label in args.id]
        if not rows:
            first, last = table.rows[0].label, table.rows[-1].label
            raise InputError(f"no segment has the id {' or '.join(args.id)}; ids range from {first} to {last}")
    if args.worst is not None:
        ratings = column_named(table.columns, args.worst).judged
        scores = [(rating.score, row) for row in rows if (rating := ratings[row]) is not None]
        rows = [row for _, row in sorted((score, row) for score, row in scores if score is not None)]
    color = wants_color(sys.stdout)
    print("\n".join(show(table, row, color=color) for row in rows[: args.limit]), end="")
    return 0


def configure_report(parser: argparse.ArgumentParser) -> None:
    """Add the inputs and the HTML file to write."""
    add_inputs(parser)
    parser.add_argument("-o", "--output", required=True, metavar="OUT.html", help="HTML file to write (self-contained)")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd report out.json -o report.html                        output of comet-score --to_json\n"
        "  mbr-esd report MBR=decisions.jsonl candidates.jsonl xcomet.json -o report.html\n"
        "  mbr-esd report --test-set data/wmt24 --lp en-de -o report.html"
    )


def run_report(args: argparse.Namespace) -> int:
    """Write the report, with the test set and the columns as its title."""
    from mbr_esd_metric.report.viewer import render_page

    check_output(args.output, input_paths(args))
    table = read_inputs(args)
    names = ", ".join(column.name for column in table.columns)
    of = f"{args.test_set.rstrip('/').rpartition('/')[2]} {args.lp[0]}" if args.test_set else "Error spans"
    page = render_page(table, f"{of}: {names}")
    write_whole(args.output, page)
    rows, columns = number_of(len(table.rows), "segment"), number_of(len(table.columns), "column")
    print(f"{printable(args.output)}: {rows}, {columns}, {len(page) / 1e6:.1f} MB")
    return 0


def wants_color(stream: TextIO) -> bool:
    """Whether to use colour: on a capable terminal unless NO_COLOR is set, and always with FORCE_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("FORCE_COLOR"):
        return not os.environ.get("NO_COLOR")
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show(table: JudgedTable, row: int, *, color: bool) -> str:
    """Print a row of the table: the source, then for each column the score, the marked translation and the errors."""
    text = table.rows[row]
    bold, dim, reset = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if color else ("", "", "")
    name = f"{text.label} · {text.system}" if text.system else text.label
    lines = [f"{bold}{_visible(name)}{reset}"]
    if text.source:
        lines.append(f"{dim}source{reset}  {_visible(text.source)}")
    for column in table.columns:
        rating = column.judged[row]
        if rating is None:
            continue
        lines.append("  ".join([f"{bold}{_visible(column.name)}{reset}", *_facts(rating)]))
        if rating.annotation is None:
            continue
        marks = rating.annotation.on("translation")
        for part in rating.parts:
            sentence = mark(text.translation, marks, color=color, start=part.start, end=part.end)
            lines.append(f"  {dim}{part.score:.4f}{reset}  {sentence}")
        if not rating.parts:
            lines.append(f"  {mark(text.translation, marks, color=color)}")
        if missing := rating.annotation.on("source"):
            lines.append(f"  {dim}left out of{reset}  {mark(text.source, missing, color=color)}")
        lines += [f"  {dim}{line}{reset}" for line in _errors(text, rating.annotation)]
        if runs := rating.corrections:
            words = "".join(_CHANGES[color][sign].format(_visible(run)) for sign, run in runs)
            lines.append(f"  {dim}corrected{reset}  {words}")
    for sampled in table.candidates:
        if (counts := sampled.distributions[row]) is None:
            continue
        valid = number_of(counts.valid, "candidate")
        lines.append(
            f"{bold}{_visible(sampled.name)}{reset}  {valid}, {counts.distinct} distinct, {counts.invalid} invalid"
        )
        for one in counts.annotations:
            probability = "" if one.logprob is None else f"  log-prob. {one.logprob:.1f}"
            missing = one.annotation.on("source")
            left_out = f"  left out of  {mark(text.source, missing, color=color)}" if missing else ""
            marked = mark(text.translation, one.annotation.on("translation"), color=color)
            lines.append(f"  {one.count:>5} x{probability}  {marked}{left_out}")
    return "\n".join(lines) + "\n"


def _facts(rating: JudgedSegment) -> Iterator[str]:
    """The score, the MQM score, whether the segment is unsure, and its data warning."""
    yield "no score" if rating.score is None else f"score {rating.score:.4f}"
    if rating.mqm is not None:
        yield f"MQM {rating.mqm:.4g}" + (" (estimated)" if rating.estimated else "")
    if rating.unsure:
        yield UNSURE
    if rating.data_warning is not None or rating.blank:
        yield _visible(rating.data_warning or "blank translation")


def mark(text: str, annotation: Annotation, *, color: bool, start: int = 0, end: int | None = None) -> str:
    """The text from start to end with error spans marked; if spans overlap, the worse severity is shown."""
    worst: list[Severity | None] = [None] * len(text)
    for span in sorted(annotation, key=lambda span: span.severity == "major"):
        worst[span.start : span.end] = [span.severity] * (span.end - span.start)
    shown = ""
    for severity, places in groupby(range(len(text))[start:end], key=worst.__getitem__):
        piece = _visible("".join(text[at] for at in places))
        if severity is not None:
            piece = f"{_STYLE[severity]}{piece}\x1b[0m" if color else f"[{piece}]({severity})"
        shown += piece
    return shown


def _visible(text: str) -> str:
    """Control characters as pictures, line ends as a return sign."""
    return printable(text.replace("\r\n", "\n").replace("\n", "⏎"))


def _errors(text: Segment, annotation: Annotation) -> Iterator[str]:
    for span in annotation:
        where = "source " if span.side == "source" else ""
        details = [_visible(span.category)] if span.category else []
        details += [f"confidence {span.confidence:.2f}"] if span.confidence is not None else []
        marked = _visible(span.text_in(text.source, text.translation))
        yield "  ".join([span.severity, f"{where}[{span.start}, {span.end})", *details, marked])
        if span.correction is not None:
            details = [_visible(span.reason)] if span.reason else []
            details += [f"agreement {span.agreement:.2f}"] if span.agreement is not None else []
            details += ["not applied: its position is ambiguous"] if span.ambiguous else []
            yield "  ".join(["  instead", _visible(span.correction) or "nothing", *details])
    for at, severity in annotation.points:
        yield f"{severity}  [{at}, {at})  error without characters"
    for severity in annotation.unplaced:
        yield f"{severity}  omission without a place"
