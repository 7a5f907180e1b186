"""Options of verbs that run a model: its name, a dry run, and a gate with a status, a summary and JUnit XML."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mbr_esd_metric.errors import OptionError, no_effect_error, printable
from mbr_esd_metric.files.paths import check_distinct, check_output
from mbr_esd_metric.files.streams import write_whole

if TYPE_CHECKING:
    from mbr_esd_metric.metric.card import ModelCard
    from mbr_esd_metric.metric.sources import Segment
    from mbr_esd_metric.report.tables import Table

#: The best one that any machine can run.
DEFAULT_MODEL = "mbr-esd-small"
#: The exit status of a gate that has failed; 1 is a failed run, and 2 wrong usage.
FAILED_GATE = 3


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``, which is 0 where it is given alone."""
    parser.add_argument(
        "--dry-run",
        type=int,
        nargs="?",
        const=0,
        metavar="N",
        help="say what would be sampled, and sample nothing; with N, sample N segments first, which are kept, and say "
        "how long the rest takes",
    )


def print_estimates(card: ModelCard, segments: Sequence[Segment], trial: int) -> int:
    """Print what a run would sample, after `trial` segments of it. Returns the exit code."""
    from mbr_esd_metric.metric.estimate import estimate

    if trial < 0 or trial == 1:
        raise OptionError(
            f"--dry-run {trial}: give a number of segments from 2; the first waits until the model is loaded"
        )
    for name, text in estimate(card, segments, trial).items():
        print(f"{name:<21}{text}")
    return 0


class Check(NamedTuple):
    """The name of what a gate checked, such as a system, and why it does not pass, or None."""

    name: str
    problem: str | None


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Add ``--summary`` and ``--junit``."""
    parser.add_argument("--summary", metavar="FILE.md", help="the result as Markdown, for $GITHUB_STEP_SUMMARY")
    parser.add_argument("--junit", metavar="FILE.xml", help="the gate as JUnit XML")


def check_gate(args: argparse.Namespace, option: str | None, *outputs: str | None) -> None:
    """Check, before any work, that the files of `add_gate` and other outputs can be written, each to a path of its
    own, and that there is a gate, whose option is named.
    """
    check_distinct([path for path in (args.summary, args.junit, *outputs) if path], "output")
    for path in (args.summary, args.junit):
        if path:
            check_output(path)
    if args.junit and option is None:
        raise no_effect_error(f"--junit {args.junit}", "a run without a gate")


def close_gate(
    args: argparse.Namespace, verb: str, tables: Sequence[Table], checks: Sequence[Check], warning: str | None = None
) -> int:
    """Write summary and JUnit XML with the warning, say in one line what did not pass, and return the exit status."""
    problems = [printable(check.problem) for check in checks if check.problem is not None]
    if args.summary:
        verdict = "".join(f"- ❌ {problem}\n" for problem in problems)
        if checks and not problems:
            verdict = f"- ✅ {', '.join(printable(check.name) for check in checks)}\n"
        verdict += f"- ⚠️ {printable(warning)}\n" if warning else ""
        from mbr_esd_metric.report.tables import render_all

        write_whole(args.summary, f"## mbr-esd {verb}\n\n{render_all(tables, 'markdown')}\n{verdict}")
    if args.junit:
        write_whole(args.junit, junit(verb, checks, warning))
    if problems:
        print(f"mbr-esd {verb}: gate: {'; '.join(problems)}", file=sys.stderr)
        return FAILED_GATE
    return 0


def junit(verb: str, checks: Sequence[Check], warning: str | None = None) -> str:
    """JUnit XML with one test case a check, and the warning as the output of the suite."""
    from xml.etree import ElementTree

    title = f"mbr-esd {verb}"
    failures = str(sum(check.problem is not None for check in checks))
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", {"name": title, "tests": str(len(checks)), "failures": failures})
    for check in checks:
        name = printable(check.name)
        case = ElementTree.SubElement(suite, "testcase", {"classname": title, "name": name})
        if check.problem is not None:
            ElementTree.SubElement(case, "failure", {"message": printable(check.problem)})
    if warning:
        ElementTree.SubElement(suite, "system-out").text = printable(warning)
    ElementTree.indent(root)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(root, encoding='unicode')}\n"
