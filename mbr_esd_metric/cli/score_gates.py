"""The gates of `mbr-esd score`: mean scores, single segments, severities, and shares without an error."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mbr_esd_metric.cli.gates import Check, FailedSegment, Place, check_gate, close_gate
from mbr_esd_metric.cli.score_inputs import Texts
from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.errors import OptionError, first_of, number_of, printable
from mbr_esd_metric.prompting.text import is_untranslated

if TYPE_CHECKING:
    from mbr_esd_metric.report.findings import Finding
    from mbr_esd_metric.report.tables import Table, TableRow

#: A segment as it is written: src, mt, COMET, and errors and omissions where there are any.
WrittenSegment: TypeAlias = Mapping[str, Any]

#: Scores are rounded; one at the limit passes, as equal ones do in `compare`.
_TOLERANCE = 1e-6
#: What a summary shows of errors, and of how many; without the name of the only system, and lines that are ids.
_SHOWN = ("system", "id", "line", "text", "severity", "category", "correction", "reason")
_MOST = 50
#: How many errors of a segment a gate names, and how many characters of each.
_NAMED, _CHARACTERS = 2, 40


def add_score_gates(parser: argparse.ArgumentParser) -> None:
    """Add the limits; `gates.add_gate` adds the files."""
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
    """Whether one of `add_score_gates` is set."""
    return (args.fail_under, args.min_segment, args.fail_on, args.fail_share) != (None,) * 4


def check_score_gates(args: argparse.Namespace) -> None:
    """Raise `OptionError` for a limit that no score can have, and what `gates.check_gate` does."""
    for option, limit in (("--fail-under", args.fail_under), ("--min-segment", args.min_segment)):
        if limit is not None and not 0 <= limit <= 1:
            raise OptionError(f"{option} {limit:g}: must be a score in [0, 1], where 1 is error-free")
    check_gate(args, has_gate(args), args.to_json, args.to_csv, args.sarif, args.output, args.corrected)
    if args.fail_share is not None and not (args.error_free and 0 <= args.fail_share <= 1):
        raise OptionError(f"--fail-share {args.fail_share:g}: must be between 0 and 1, and requires --error-free FILE")


def close_score_gate(
    args: argparse.Namespace,
    texts: Texts,
    judged: Mapping[str, Sequence[WrittenSegment]],
    scores: Mapping[str, float],
    shares: Mapping[str, float],
    warning: str | None,
    limits: Sequence[str],
) -> int:
    """Write summary and JUnit XML of the systems' scores, and return the exit status. `limits` say what the model can
    decide."""
    from mbr_esd_metric.report.tables import table_of

    checks = [
        check for path, rows in judged.items() for check in _checks(args, texts, path, rows, scores[path], shares)
    ]
    several = len(texts.systems) > 1
    notes = [f"{path}: {one}" if several else one for path, one in texts.changed.items()]
    if checks:
        notes += limits
    elif not judged and has_gate(args):
        nothing = [f"{path}: {one}" for path, one in texts.changed.items()]
        checks = [Check(one, True, one) for one in nothing]
    rows = [_system_row(path, segments, scores[path]) for path, segments in judged.items()]
    tables = [error_table(texts, judged), *([changed_table(texts, judged)] if args.changed_from else [])]
    shown = [table_of("scores", rows, notes), *(table for table in tables if table.rows)]
    return close_gate(args, "score", shown, checks, warning)


def _checks(
    args: argparse.Namespace,
    texts: Texts,
    path: str,
    rows: Sequence[WrittenSegment],
    score: float,
    shares: Mapping[str, float],
) -> Iterator[Check]:
    """The gates of one system."""
    segments = list(zip(texts.places[path], rows, strict=True))
    unjudged = _failed(segments, _no_verdict)
    if args.fail_under is not None:
        found = check("--fail-under", path, score, args.fail_under, " scores {:.4f}")
        yield found.and_judged(unjudged, path)
    if args.fail_share is not None:
        wording = ": {:.4f} of the segments are without error"
        found = check("--fail-share", path, shares[path], args.fail_share, wording)
        yield found.and_judged(unjudged, path)
    if args.min_segment is not None:
        lowest = min(
            ((row["COMET"], place) for place, row in segments if row["COMET"] == row["COMET"]),
            default=None,
            key=lambda one: one[0],
        )
        passed = (
            f"no segment of {path} has a score"
            if lowest is None
            else f"the lowest score of {path} is {lowest[0]:.4f} ({lowest[1]}), at least {args.min_segment:g}"
        )
        failed = _failed(segments, lambda row: _too_low(row, args.min_segment))
        what = f"of {path} scored less than {args.min_segment:g}"
        found = Check.of_segments(f"{path} --min-segment {args.min_segment:g}", failed, what, passed)
        yield found.and_judged(unjudged, path)
    if args.fail_on is not None:
        kind = "a major error" if args.fail_on == "major" else "an error"
        failed = _failed(segments, lambda row: _marked(row, args.fail_on))
        what, passed = f"of {path} with {kind}", f"no segment of {path} has {kind}"
        found = Check.of_segments(f"{path} --fail-on {args.fail_on}", failed, what, passed)
        yield found.and_judged(unjudged, path)


def _failed(
    segments: Sequence[tuple[Place, WrittenSegment]], reason: Callable[[WrittenSegment], str | None]
) -> list[FailedSegment]:
    """The segments with a reason to fail."""
    return [FailedSegment(place, one) for place, row in segments if (one := reason(row))]


def _no_verdict(row: WrittenSegment) -> str | None:
    """Why no gate can pass with this segment: a server refused it, or it is unsure."""
    if "refused" in row:
        return "no score"
    return UNSURE if row.get("unsure") else None


def _too_low(row: WrittenSegment, least: float) -> str | None:
    return f"{row['COMET']:.4f}" if row["COMET"] < least - _TOLERANCE else None


def _marked(row: WrittenSegment, severity: str) -> str | None:
    """The errors of that severity, or worse ones; a blank translation is one that no span can mark."""
    errors = [one for one in errors_of(row) if severity == "minor" or one["severity"] == "major"]
    if not errors and row["COMET"] == 0 and is_untranslated(row["src"], row["mt"]):
        return "major: a blank translation"
    named = [f"{one['severity']} {_named(one)}" for one in sorted(errors, key=lambda one: one["severity"])]
    return first_of(named, _NAMED) or None


def _named(error: Mapping[str, Any]) -> str:
    """The words of an error, and its category."""
    words = error["text"] if len(error["text"]) <= _CHARACTERS else f"{error['text'][:_CHARACTERS]}…"
    return f'"{words}"' + (f", {error['category']}" if error.get("category") else "")


def check(option: str, name: str, value: float, least: float, wording: str) -> Check:
    """Whether a value is at least so high; the `wording` of the value follows the name. NaN does not pass."""
    title = f"{name} {option} {least:g}"
    passed = value >= least - _TOLERANCE
    return Check(title, passed, f"{name}{wording.format(value)}, {'at least' if passed else 'less than'} {least:g}")


def errors_of(row: WrittenSegment) -> list[dict[str, Any]]:
    """The errors of both sides."""
    omissions = ({**error, "side": "source"} for error in row.get("omissions") or ())
    return [*({"side": "translation", **error} for error in row.get("errors") or ()), *omissions]


def listed_errors(texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]) -> list[dict[str, Any]]:
    """Each error, with its system, the name and line of its segment, and both texts."""
    return [
        {
            **{"system": printable(path), "id": place.id, "line": place.line},
            **{"source": row["src"], "translation": row["mt"], **error},
        }
        for path, rows in data.items()
        for place, row in zip(texts.places[path], rows, strict=True)
        for error in errors_of(row)
    ]


def findings_of(texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]) -> list[Finding]:
    """The errors at their places, and the keys that translations lack, by file and line."""
    from mbr_esd_metric.report.findings import MISSING_KEY, Finding, Places, Region, error_finding

    found = []
    for path, rows in data.items():
        lines = Places(path) if any(map(errors_of, rows)) else None
        for place, row in zip(texts.places[path], rows, strict=True):
            for error in errors_of(row):
                line, region = place.line, Region(place.line or 1)
                if lines is not None and line is not None:
                    span = (error["start"], error["end"]) if error["side"] == "translation" else (0, len(row["mt"]))
                    region = lines.region(line, row["src"], row["mt"], *span)
                found.append(error_finding(path, place.id, region, error))
        document = texts.documents.get(path)
        for one in document.missing if document is not None else ():
            where = f"line {one.source_line} of {document.source_path}" if document and one.source_line else "empty"
            message = f"{MISSING_KEY}: {one.key} ({where}) has no translation"
            found.append(Finding(path, one.key, "minor", MISSING_KEY, printable(message), Region(one.line)))
    return sorted(found, key=lambda one: (one.file, one.region.line))


def error_table(texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]) -> Table:
    """The first errors for people; texts stand as code, as nobody vouches for them."""
    from mbr_esd_metric.report.tables import Column, table_of

    errors = listed_errors(texts, data)
    usual = {"system"} if len(data) < 2 else set()
    usual |= {"line"} if all(one.id == str(one.line) for places in texts.places.values() for one in places) else set()
    columns = {title: Column(title, title) for title in _SHOWN if title not in usual}
    rows = [
        {column: _as_code(error[key]) for key, column in columns.items() if error.get(key) is not None}
        for error in errors[:_MOST]
    ]
    notes = [f"and {number_of(len(errors) - _MOST, 'error')} more"] if len(errors) > _MOST else []
    return table_of("errors", rows, notes)


def changed_table(texts: Texts, data: Mapping[str, Sequence[WrittenSegment]]) -> Table:
    """The first strings that changed, and the keys that they leave without a translation; texts stand as code."""
    from mbr_esd_metric.report.tables import Column, table_of

    def row(path: str, name: str, line: int | None, *others: Any) -> TableRow:
        titles = ("system", "id", "line", "source", "translation", "score")
        values = (_as_code(path), _as_code(name), line, *others)
        usual = {"system"} if len(data) + len(texts.documents) < 3 else set[str]()
        columns = (Column(title, title, digits=4) for title in titles)
        return {one: value for one, value in zip(columns, values, strict=True) if one.title not in usual}

    rows = [
        row(path, place.id, place.line, _as_code(one["src"]), _as_code(one["mt"]), one["COMET"])
        for path, segments in data.items()
        for place, one in zip(texts.places[path], segments, strict=True)
    ]
    missing = [(path, one) for path, document in texts.documents.items() for one in document.missing]
    rows += [row(path, one.key, one.line, None, f"({one.problem})", None) for path, one in missing]
    notes = [f"and {number_of(len(rows) - _MOST, 'string')} more"] if len(rows) > _MOST else []
    return table_of("changed strings", rows[:_MOST], notes)


def _as_code(value: str | int) -> str | int:
    """A text as Markdown shows it letter by letter; an empty one, which deletes what it corrects, as a dash."""
    if isinstance(value, int):
        return value
    return f"`{printable(value).replace('`', chr(39))}`" if value else "\N{EM DASH}"


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
