"""Gates of `score` and `compare`: checks that end a run with exit status 3, and the files with their results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mbr_esd_metric.errors import no_effect_error
from mbr_esd_metric.files.judged import Place
from mbr_esd_metric.files.paths import check_distinct, check_output
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.messages import first_of, number_of, printable

if TYPE_CHECKING:
    from mbr_esd_metric.report.tables import Table

#: Exit status of a failed gate; 1 is an error, and 2 wrong usage.
FAILED_GATE = 3
#: Maximum number of failed segments named in the message of a gate.
_NAMED = 5


@dataclass(frozen=True, slots=True)
class FailedSegment:
    """A segment that fails a gate, with a short reason."""

    place: Place
    reason: str

    def __str__(self) -> str:
        return f"{self.place} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a gate for a system, or for two.

    Attributes:
        name: the system and the option, for JUnit.
        passed: whether the gate passed.
        reason: the reason for the result, as a sentence.
        segments: the failed segments, for gates on single segments.
    """

    name: str
    passed: bool
    reason: str
    segments: tuple[FailedSegment, ...] = ()

    @classmethod
    def of_segments(cls, name: str, failed: Sequence[FailedSegment], what: str, otherwise: str) -> Check:
        """A check that passes if no segment failed. `what` describes failed segments, `otherwise` is the reason to
        pass."""
        if not failed:
            return cls(name, True, otherwise)
        reason = f"{number_of(len(failed), 'segment')} {what}: {first_of([str(one) for one in failed], _NAMED, '; ')}"
        return cls(name, False, reason, tuple(failed))

    def and_judged(self, unjudged: Sequence[FailedSegment], system: str) -> Check:
        """This check, which also fails if there are unjudged segments that it does not already contain."""
        closed = {one.place for one in self.segments}
        others = [one for one in unjudged if one.place not in closed]
        if not others:
            return self
        places: dict[str, list[str]] = {}
        for one in others:
            places.setdefault(one.reason, []).append(str(one.place))
        reasons = [] if self.passed else [self.reason]
        for reason, of in places.items():
            count = number_of(len(of), "segment")
            reasons.append(f"{count} of {system} cannot be judged ({reason}): {first_of(of, _NAMED, '; ')}")
        return Check(self.name, False, "; ".join(reasons), (*self.segments, *others))


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Add the files that report a gate."""
    parser.add_argument("--summary", metavar="FILE.md", help="write the result as Markdown, for $GITHUB_STEP_SUMMARY")
    parser.add_argument(
        "--junit", metavar="FILE.xml", help="write the gates as JUnit XML, with one test case per failed segment"
    )


def check_gate(args: argparse.Namespace, gate: bool, *outputs: str | None) -> None:
    """Check that the files of `add_gate` and other outputs can be written to different paths, and that ``--junit`` is
    only used with a gate."""
    check_distinct([path for path in (args.summary, args.junit, *outputs) if path])
    for path in filter(None, (args.summary, args.junit)):
        check_output(path)
    if args.junit and not gate:
        raise no_effect_error(f"--junit {args.junit}", "a run without a gate")


def close_gate(
    args: argparse.Namespace, verb: str, tables: Sequence[Table], checks: Sequence[Check], warning: str | None = None
) -> int:
    """Write summary and JUnit XML with the warning, print a line for each check, and return the exit status."""
    if args.summary:
        from mbr_esd_metric.report.tables import render_all

        lines = [f"{'✅' if check.passed else '❌'} {printable(check.reason)}" for check in checks]
        lines += [f"⚠️ {printable(warning)}"] if warning else []
        verdict = "".join(f"- {line}\n" for line in lines)
        write_whole(args.summary, f"## mbr-esd {verb}\n\n{render_all(tables, 'markdown')}\n{verdict}")
    if args.junit:
        write_whole(args.junit, junit(verb, checks, warning))
    for check in checks:
        result = "passed" if check.passed else "failed"
        print(f"mbr-esd {verb}: gate {result}: {printable(check.reason)}", file=sys.stderr)
    return 0 if all(check.passed for check in checks) else FAILED_GATE


def junit(verb: str, checks: Sequence[Check], warning: str | None = None) -> str:
    """JUnit XML with one test case per check and per failed segment, and the warning as the suite's output."""
    from xml.etree import ElementTree

    title = f"mbr-esd {verb}"
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {"name": title})

    def add(name: str, failure: str | None, **more: str) -> None:
        case = ElementTree.SubElement(suite, "testcase", {"classname": title, "name": printable(name), **more})
        if failure is not None:
            ElementTree.SubElement(case, "failure", {"message": printable(failure)})

    for check in checks:
        add(check.name, None if check.passed else check.reason)
        for segment in check.segments:
            line = {} if segment.place.line is None else {"line": str(segment.place.line)}
            add(f"{check.name}: {segment.place}", segment.reason, file=printable(segment.place.file), **line)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    if warning:
        ElementTree.SubElement(suite, "system-out").text = printable(warning)
    ElementTree.indent(root)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(root, encoding='unicode')}\n"
