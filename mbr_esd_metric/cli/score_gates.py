"""The gates of `mbr-esd score`: mean scores, segment scores, severities, and the share of error-free segments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.gates import Check, FailedSegment, check_gate, close_gate
from mbr_esd_metric.cli.score_inputs import UNTRANSLATED, Texts
from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.files.judged import JudgedSegment
from mbr_esd_metric.messages import first_of, printable

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.documents.document import Document
    from mbr_esd_metric.report.findings import Finding

#: Tolerance for rounded scores: a score at the limit passes, as equal scores do in `compare`.
_TOLERANCE = 1e-6
#: Maximum number of errors named per segment in a gate's message, and characters shown of each.
_NAMED, _CHARACTERS = 2, 40


def add_score_gates(parser: argparse.ArgumentParser) -> None:
    """Add the limits; the output files are added by `gates.add_gate`."""
    parser.add_argument(
        "--fail-under", type=float, metavar="X", help="exit with status 3 if a system's score is below X"
    )
    parser.add_argument(
        "--min-segment", type=float, metavar="X", help="exit with status 3 if a segment's score is below X"
    )
    parser.add_argument(
        "--fail-on",
        choices=("major", "minor"),
        help="exit with status 3 if a segment has an error of this severity or worse",
    )
    parser.add_argument(
        "--fail-share",
        type=float,
        metavar="X",
        help="exit with status 3 if the share of error-free segments is below X",
    )


def has_gate(args: argparse.Namespace) -> bool:
    """Whether an option of `add_score_gates` is set."""
    return (args.fail_under, args.min_segment, args.fail_on, args.fail_share) != (None,) * 4


def check_score_gates(args: argparse.Namespace) -> None:
    """Raise `OptionError` for a limit outside the range of scores, and the exceptions of `gates.check_gate`."""
    for option, limit in (("--fail-under", args.fail_under), ("--min-segment", args.min_segment)):
        if limit is not None and not 0 <= limit <= 1:
            raise OptionError(f"{option} {limit:g}: must be a score in [0, 1], where 1 is error-free")
    check_gate(args, has_gate(args), args.to_json, args.to_csv, args.sarif, args.output, args.corrected)
    if args.fail_share is not None and not (args.error_free and 0 <= args.fail_share <= 1):
        raise OptionError(f"--fail-share {args.fail_share:g}: must be between 0 and 1, and requires --error-free FILE")


def close_score_gate(
    args: argparse.Namespace,
    texts: Texts,
    judged: Mapping[str, Sequence[JudgedSegment]],
    scores: Mapping[str, float],
    shares: Mapping[str, float],
    warning: str | None,
    limits: Sequence[str],
) -> int:
    """Write summary and JUnit XML of the systems' scores, and return the exit status. `limits` say what the model can
    decide."""
    from mbr_esd_metric.cli.score_tables import score_tables

    checks = [check for path, rows in judged.items() for check in _checks(args, path, rows, scores[path], shares)]
    several = len(texts.systems) > 1
    notes = [f"{path}: {one}" if several else one for path, one in texts.changed.items()]
    if checks:
        notes += limits
    if has_gate(args):
        failed = [f"{path}: {UNTRANSLATED}" for path, one in texts.documents.items() if one.is_untranslated]
        checks += [Check(one, False, one) for one in failed]
        if not checks:
            nothing = [f"{path}: {one}" for path, one in texts.changed.items()]
            checks = [Check(one, True, one) for one in nothing]
    shown = score_tables(texts.documents, judged, scores, notes, bool(args.changed_from))
    return close_gate(args, "score", shown, checks, warning)


def _checks(
    args: argparse.Namespace,
    path: str,
    rows: Sequence[JudgedSegment],
    score: float,
    shares: Mapping[str, float],
) -> Iterator[Check]:
    """The gates of one system."""
    unjudged = _failed(rows, _no_verdict)
    if args.fail_under is not None:
        found = check("--fail-under", path, score, args.fail_under, " scores {:.4f}")
        yield found.and_judged(unjudged, path)
    if args.fail_share is not None:
        wording = ": {:.4f} of the segments are error-free"
        found = check("--fail-share", path, shares[path], args.fail_share, wording)
        yield found.and_judged(unjudged, path)
    if args.min_segment is not None:
        scored = [one for one in rows if one.input_score is not None]
        lowest = min(scored, default=None, key=lambda one: one.score_or_nan)
        passed = f"no segment of {path} has a score"
        if lowest is not None:
            given = f"{lowest.score_or_nan:.4f} ({lowest.place})"
            passed = f"the lowest score of {path} is {given}, at least {args.min_segment:g}"
        failed = _failed(rows, lambda one: _too_low(one, args.min_segment))
        what = f"of {path} scored less than {args.min_segment:g}"
        found = Check.of_segments(f"{path} --min-segment {args.min_segment:g}", failed, what, passed)
        yield found.and_judged(unjudged, path)
    if args.fail_on is not None:
        kind = "a major error" if args.fail_on == "major" else "an error"
        failed = _failed(rows, lambda one: _marked(one, args.fail_on))
        what, passed = f"of {path} with {kind}", f"no segment of {path} has {kind}"
        found = Check.of_segments(f"{path} --fail-on {args.fail_on}", failed, what, passed)
        yield found.and_judged(unjudged, path)


def _failed(rows: Sequence[JudgedSegment], reason: Callable[[JudgedSegment], str | None]) -> list[FailedSegment]:
    """The failed segments, for which `reason` returns a text."""
    return [FailedSegment(one.place, why) for one in rows if (why := reason(one))]


def _no_verdict(one: JudgedSegment) -> str | None:
    """Why this segment fails every gate: a server rejected it, or it is unsure."""
    if one.refused:
        return "no score"
    return UNSURE if one.unsure else None


def _too_low(one: JudgedSegment, least: float) -> str | None:
    return f"{one.score_or_nan:.4f}" if one.score_or_nan < least - _TOLERANCE else None


def _marked(one: JudgedSegment, severity: str) -> str | None:
    """The errors of this severity or worse; a blank translation is an error without a span."""
    errors = [span for span in one.errors if severity == "minor" or span.severity == "major"]
    if not errors and one.input_score == 0 and one.blank:
        return "major: a blank translation"
    ordered = sorted(errors, key=lambda span: span.severity)
    return first_of([f"{span.severity} {_named(span, one.words(span))}" for span in ordered], _NAMED) or None


def _named(span: ErrorSpan, words: str) -> str:
    """The text of an error, and its category."""
    words = words if len(words) <= _CHARACTERS else f"{words[:_CHARACTERS]}…"
    return f'{span.lost}"{words}"' + (f", {printable(span.category)}" if span.category else "")


def check(option: str, name: str, value: float, least: float, wording: str) -> Check:
    """The check that a value is at least a limit; `wording` formats the value after the name. NaN fails."""
    title = f"{name} {option} {least:g}"
    passed = value >= least - _TOLERANCE
    return Check(title, passed, f"{name}{wording.format(value)}, {'at least' if passed else 'less than'} {least:g}")


def findings_of(documents: Mapping[str, Document], data: Mapping[str, Sequence[JudgedSegment]]) -> list[Finding]:
    """The errors and the missing keys, sorted by file and line."""
    from mbr_esd_metric.report.findings import MISSING_KEY, Finding, Places, Region, error_finding

    found = []
    for path, rows in data.items():
        lines = Places(path) if any(one.errors for one in rows) else None
        for one in rows:
            line, source, translation = one.place.line, one.segment.source, one.segment.translation
            for span in one.errors:
                region = Region(line or 1)
                if lines is not None and line is not None:
                    at = (span.start, span.end) if span.side == "translation" else (0, len(translation))
                    region = lines.region(line, source, translation, *at)
                found.append(error_finding(path, one.name, region, span, one.words(span)))
        document = documents.get(path)
        for lost in document.missing if document is not None else ():
            where = f"line {lost.source_line} of {document.source_path}" if document and lost.source_line else "empty"
            message = f"{MISSING_KEY}: {lost.key} ({where}) has no translation"
            found.append(Finding(path, lost.key, "minor", MISSING_KEY, printable(message), Region(lost.line)))
    return sorted(found, key=lambda one: (one.file, one.region.line))
