"""A segment with its error spans, in the terminal.

With colour, major errors are bold red and minor ones yellow, all underlined. Without colour, a marked piece is
``[piece](major)``, and what a correction changes ``[-old-]{+new+}``. Control characters in the data are shown as
symbols, so that no text can control the terminal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TextIO

from mbr_esd_metric.core.annotation import Annotation, Severity
from mbr_esd_metric.core.decision import ScoredPart
from mbr_esd_metric.errors import number_of, printable
from mbr_esd_metric.report.rating_table import RatingTable, SegmentRating, Text

_STYLE: dict[Severity, str] = {"major": "\x1b[1;4;31m", "minor": "\x1b[4;33m"}
#: By whether there is colour: words that stay, that go and that come.
_CHANGES = {
    True: {"=": "{}", "-": "\x1b[9;31m{}\x1b[0m", "+": "\x1b[32m{}\x1b[0m"},
    False: {"=": "{}", "-": "[-{}-]", "+": "{{+{}+}}"},
}
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def wants_color(stream: TextIO) -> bool:
    """Whether to use colour: on a terminal that is not dumb, unless NO_COLOR is set; everywhere with FORCE_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("FORCE_COLOR"):
        return not os.environ.get("NO_COLOR")
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show(table: RatingTable, row: int, *, color: bool) -> str:
    """One row of the table: source, then for each column its score, the marked translation and its errors."""
    text = table.rows[row]
    bold, dim, reset = (_BOLD, _DIM, _RESET) if color else ("", "", "")
    name = f"{text.id} · {text.system}" if text.system else text.id
    lines = [f"{bold}{visible(name)}{reset}"]
    if text.source:
        lines.append(f"{dim}source{reset}  {visible(text.source)}")
    for column in table.columns:
        rating = column.ratings[row]
        if rating is None:
            continue
        lines.append(f"{bold}{visible(column.name)}{reset}" + "".join(f"  {part}" for part in _facts(rating)))
        if rating.annotation is None:
            continue
        marks = rating.annotation.on("translation")
        if not rating.parts:
            lines.append("  " + mark(text.translation, marks, color=color))
        for part in rating.parts:
            sentence = mark(text.translation[part.start : part.end], _within(marks, part), color=color)
            lines.append(f"  {dim}{part.score:.4f}{reset}  {sentence}")
        if missing := rating.annotation.on("source"):
            lines.append(f"  {dim}left out of{reset}  {mark(text.source, missing, color=color)}")
        lines += [f"  {dim}{line}{reset}" for line in _errors(text, rating.annotation)]
        if runs := rating.corrections:
            words = "".join(_CHANGES[color][sign].format(visible(run)) for sign, run in runs)
            lines.append(f"  {dim}corrected{reset}  {words}")
    for sampled in table.candidates:
        summary = sampled.distributions[row]
        if summary is not None:
            lines.append(
                f"{bold}{visible(sampled.name)}{reset}  {number_of(summary.valid, 'candidate')}, {summary.distinct} "
                f"distinct, {summary.invalid} invalid"
            )
            for one in summary.annotations:
                probability = "" if one.logprob is None else f"  log-prob. {one.logprob:.1f}"
                shown = mark(text.translation, one.annotation.on("translation"), color=color)
                if missing := one.annotation.on("source"):
                    shown += f"  left out of  {mark(text.source, missing, color=color)}"
                lines.append(f"  {one.count:>5} x{probability}  {shown}")
    return "\n".join(lines) + "\n"


def _facts(rating: SegmentRating) -> Iterator[str]:
    """The score, the MQM score beside it, and what the pair was warned of."""
    yield "no score" if rating.score is None else f"score {rating.score:.4f}"
    if rating.mqm is not None:
        # A model that states its score has an MQM score beside no span.
        estimate = rating.annotation is not None and not rating.annotation and rating.mqm < 0 and not rating.blank
        yield f"MQM {rating.mqm:.4g}" + (", an estimate: no span is marked" if estimate else "")
    if rating.data_warning is not None or rating.blank:
        yield visible(rating.data_warning or "blank translation")


def mark(translation: str, annotation: Annotation, *, color: bool) -> str:
    """The translation with its error spans marked; where spans overlap, the worse severity shows."""
    parts = []
    for piece, severity in severity_runs(translation, annotation):
        shown = visible(piece)
        if severity is not None:
            shown = f"{_STYLE[severity]}{shown}{_RESET}" if color else f"[{shown}]({severity})"
        parts.append(shown)
    return "".join(parts)


def _within(annotation: Annotation, part: ScoredPart) -> Annotation:
    """The spans in a part, with offsets into it."""
    return Annotation(
        replace(span, start=max(span.start, part.start) - part.start, end=min(span.end, part.end) - part.start)
        for span in annotation
        if span.start < part.end and part.start < span.end
    )


def severity_runs(translation: str, annotation: Annotation) -> Iterator[tuple[str, Severity | None]]:
    """The translation cut where its worst severity changes, with that severity; None if there is no error."""
    worst: list[Severity | None] = [None] * len(translation)
    for span in sorted(annotation, key=lambda span: span.severity == "major"):
        worst[span.start : span.end] = [span.severity] * (span.end - span.start)
    start = 0
    for end in range(1, len(translation) + 1):
        if end == len(translation) or worst[end] != worst[start]:
            yield translation[start:end], worst[start]
            start = end


def visible(text: str) -> str:
    """Control characters as pictures, line ends as a return sign."""
    return printable(text.replace("\r\n", "\n").replace("\n", "⏎"))


def _errors(text: Text, annotation: Annotation) -> Iterator[str]:
    for span in annotation:
        whole, where = (text.translation, "") if span.side == "translation" else (text.source, "source ")
        place = f"{where}[{span.start}, {span.end})"
        details = [visible(span.category)] if span.category else []
        details += [f"confidence {span.confidence:.2f}"] if span.confidence is not None else []
        yield "  ".join([span.severity, place, *details, visible(whole[span.start : span.end])])
        if span.correction is not None:
            details = [visible(span.reason)] if span.reason else []
            details += [f"agreement {span.agreement:.2f}"] if span.agreement is not None else []
            yield "  ".join(["  instead", visible(span.correction) or "nothing", *details])
    for at, severity in annotation.points:
        yield f"{severity}  [{at}, {at})  error without characters"
    for severity in annotation.unplaced:
        yield f"{severity}  omission without a place"
