"""`mbr-esd decide`: one decision per segment, from stored candidates."""

from __future__ import annotations

import argparse
import os
import sys

from mbr_esd_metric.decoding.options import FIELDS
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import first_of, number_of

_EXAMPLE = """\
The defaults are the decision options stored in the candidates file; options given here override them.

example:
  mbr-esd decide candidates.jsonl.gz -o decisions.jsonl --utility softf1

CANDIDATES is JSON lines, one segment per line,
  {"id": "1", "system": "A", "src": "...", "mt": "...", "candidates": [{"text": "...", "logprob": -9.1}, ...]}
or the released code's *.gen.json; both may be compressed (.gz, .zst). The output is JSON lines in the same order.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the candidates, the output, and the decision options."""
    # A segment's matrices are small, so BLAS threads would slow it down. Must be set before numpy is imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    parser.epilog = _EXAMPLE
    parser.add_argument("candidates", metavar="CANDIDATES", help="candidates file")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="decisions file to write")
    for name, option in FIELDS.items():
        parser.add_argument(flag(name), metavar=name.upper(), help=f"{option_help(name)} (default {option.default})")
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="skip and count malformed lines and lines without a valid candidate, instead of stopping at the first",
    )
    parser.add_argument("--quiet", action="store_true", help="print neither progress nor summary")


def option_help(name: str) -> str:
    """Help text of an option: its meaning and its valid values."""
    metadata = FIELDS[name].metadata
    takes = metadata["takes"]() if callable(metadata["takes"]) else metadata["takes"]
    return f"{metadata['help']}: {takes or ', '.join(metadata['valid']())}"


def flag(name: str) -> str:
    """Command-line option for a field."""
    return f"--{name.replace('_', '-')}"


def run(args: argparse.Namespace) -> int:
    """Decide, and print the number of decided and skipped segments."""
    from mbr_esd_metric.core.corrections import NOT_APPLIED
    from mbr_esd_metric.core.decision import UNSURE
    from mbr_esd_metric.decoding.file import decide_file, file_options, workers_for
    from mbr_esd_metric.decoding.segment import FOUND_INEXACTLY

    check_output(args.output, [args.candidates])
    changes = {name: value for name in FIELDS if (value := getattr(args, name)) is not None}
    options = file_options(args.candidates, changes, lambda name, value: f"{flag(name)} {value}")
    summary = decide_file(
        args.candidates,
        args.output,
        options,
        workers=workers_for(args.candidates),
        skip_invalid=args.skip_invalid,
        progress=not args.quiet,
    )
    if not args.quiet:
        counts, said = summary.counts, [f"{number_of(summary.segments, 'segment')} decided"]
        if summary.skipped:
            said[0] += f", {number_of(len(summary.skipped), 'line')} skipped"
        if counts["invalid"]:
            candidates = number_of(counts["valid"] + counts["invalid"], "candidate")
            why = first_of([f"{count} {reason}" for reason, count in summary.reasons.most_common()], 3)
            said.append(f"{counts['invalid']} of {candidates} are invalid ({why})")
        spans = {"dropped: not found in the translation": counts["dropped"], FOUND_INEXACTLY: counts["inexact"]}
        spans |= {"dropped: malformed": counts["malformed"]}
        said += [f"{number_of(count, 'error span')} {what}" for what, count in spans.items() if count]
        if counts["not_applied"]:
            said.append(f"{number_of(counts['not_applied'], 'correction')} {NOT_APPLIED}")
        lines = ["; ".join(said)]
        if summary.score is not None:
            advice = "; --score expected takes the mean over the candidates" if options.score == "chosen" else ""
            lines.append(f"all {summary.segments} segments have the score {summary.score:g}{advice}")
        if summary.ratios:
            lines.append(
                f"expected corpus {options.effective_utility} {summary.ratios[-1]:.4f}, "
                f"{number_of(len(summary.ratios), 'iteration')}"
            )
        if counts["blank"]:
            lines.append(f"blank translations: {counts['blank']} (--blank {options.blank})")
        if changes:
            lines.append(str(summary.signature))
        print(*lines, sep="\n", file=sys.stderr)
    if count := summary.counts["unsure"]:
        logger.warning(f'{number_of(count, "segment")} {UNSURE} ({args.output} has "unsure" for each)')
    if summary.mostly_lost:
        logger.warning(
            f"{summary.counts['dropped']} of the candidates' error spans do not occur in the texts and were dropped; "
            f"the scores are unreliable, because only {summary.counts['located']} remain"
        )
    if summary.skipped:
        lead = "\nskipped: "
        print(lead.strip(), first_of(summary.skipped, 10, between=lead), file=sys.stderr)
    return int(summary.mostly_lost)
