"""`mbr-esd wmt import`: human annotations, a task's test set or a submission, into mt-metrics-eval's data layout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mbr_esd_metric.adapters.qe_tsv import lp_in_name, read_qe
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.importing import Target, import_esa, import_mqm, import_task, read_task
from mbr_esd_metric.adapters.wmt.kind import IMPORT_KINDS, kind_of_import
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS
from mbr_esd_metric.cli.shared_options import folder_and_name, used_option
from mbr_esd_metric.errors import InputError, OptionError, no_effect_error
from mbr_esd_metric.files.paths import check_folder

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.ratings import MqmData

#: Option -> the kinds of files that it belongs to; those of a submission are "submission" here.
_BELONGS = {
    "--name": ("submission",),
    "--rename": ("mqm", "esa", "cesa"),
    "--texts": ("cesa",),
    "--reference": ("mqm", "esa", "cesa", "submission"),
}
#: MQM weights of gold scores: those that the data's publishers use.
_WEIGHTS = {"mqm": "google", "esa": "google", "cesa": "google", "qe": "paper", "task": "google"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Which files, where to, and what they do not say themselves."""
    parser.usage = "mbr-esd wmt import FILE [FILE ...] --test-set T [options]"
    kinds = "; ".join(f"{kind}: {text}" for kind, text in IMPORT_KINDS.items())
    parser.add_argument("files", nargs="+", metavar="FILE", help="plain or compressed; several of esa")
    parser.add_argument("--test-set", required=True, metavar="T", help="its folder, such as data/wmt24")
    parser.add_argument(
        "--lp", nargs="+", default=[], metavar="LP", help="language pairs (default: all that the files say)"
    )
    parser.add_argument(
        "--kind",
        choices=list(IMPORT_KINDS),
        metavar="KIND",
        help=f"what the files are, where they do not say it: {kinds}",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the texts and human scores, or the metric")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME",
        help="a system that is a reference; repeatable (default: ref, refA, refB, ...); of a submission, the standard "
        "reference",
    )
    parser.add_argument(
        "--rename", action="append", default=[], metavar="OLD=NEW", help="change a system's name; repeatable"
    )
    parser.add_argument("--texts", metavar="DIR", help="of cesa: folder with wmt26-genmt.jsonl and systems")
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="of a submission: the metric's, such as GemSpanEval; GemSpanEval-refA where it saw the reference refA",
    )
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt import mqm_ted_ende.tsv --test-set data/wmt21.tedtalks --lp en-de\n"
        "  mbr-esd wmt import wmt24_esa.jsonl --test-set data/wmt24\n"
        "  mbr-esd wmt import annotations.json --texts wmt26-general-mt/data --test-set data/wmt26\n"
        "  mbr-esd wmt import mteval-test26.jsonl --test-set data/wmt26\n"
        "  mbr-esd wmt import predictions.tsv --name GemSpanEval --test-set data/wmt25 --lp en-cs_CZ"
    )


def run(args: argparse.Namespace) -> int:
    """Tell what the files are, and write each language pair of them."""
    check_folder(folder_and_name(args.test_set)[0])
    _renamed(args)
    kinds = {file: args.kind or kind_of_import(file, submission=bool(args.name)) for file in args.files}
    if len(set(kinds.values())) > 1:
        each = ", ".join(f"{file} is {kind}" for file, kind in kinds.items())
        raise InputError(f"one kind of file is imported at a time: {each}")
    kind = next(iter(kinds.values()))
    if len(args.files) > 1 and kind != "esa":
        raise OptionError(f"{args.files[1]}: one file of {kind} is imported at a time; several are read of esa")
    group = kind if kind in _WEIGHTS else "submission"
    for option, groups in _BELONGS.items():
        if group not in groups and used_option(args, option):
            raise no_effect_error(option, f"{args.files[0]}, which is {kind}")
    write = {"mqm": _mqm, "qe": _qe, "esa": _esa, "cesa": _esa, "task": _task, "comet": _comet}.get(kind, _submission)
    write(args, kind)
    return 0


def _renamed(args: argparse.Namespace) -> dict[str, str]:
    rename = {}
    for pair in args.rename:
        old, equals, new = pair.partition("=")
        if not equals or not old or not new:
            raise OptionError(f"--rename {pair}: write OLD=NEW")
        rename[old] = new
    return rename


def _target(args: argparse.Namespace, kind: str, lp: str) -> Target:
    data, name = folder_and_name(args.test_set)
    return Target(data, name, lp, args.reference, _renamed(args), _WEIGHTS[kind], args.overwrite)


def _pairs(args: argparse.Namespace, in_file: Sequence[str | None]) -> list[str]:
    """The language pairs to write: those of ``--lp``, or all that the file says."""
    pairs = args.lp or sorted({lp for lp in in_file if lp})
    if not pairs or (not args.lp and None in in_file):
        raise OptionError(f"{args.files[0]} does not say its language pair; give it with --lp, for instance --lp en-de")
    return list(pairs)


def _mqm(args: argparse.Namespace, kind: str) -> None:
    human = read_mqm(args.files[0])
    for lp in _pairs(args, [rating.lp for rating in human]):
        _write_ratings(human, _target(args, kind, lp))


def _qe(args: argparse.Namespace, kind: str) -> None:
    (path,) = args.files
    for lp in args.lp or _pairs(args, [rating.lp for rating in read_qe(path)]):
        if (named := lp_in_name(path)) and named != lp:
            print(f"{path}: its name says {named}, and it is imported as {lp}", file=sys.stderr)
        _write_ratings(read_qe(path, lp), _target(args, kind, lp))


def _write_ratings(human: MqmData, target: Target) -> None:
    """Write a test set of human ratings, and say what was read, changed and written."""
    done = import_mqm(human, target)
    print(human.report(), *(f"  {note}" for note in done.notes), done, sep="\n")
    if not done.references:
        print(
            "no system is a reference: metrics that need one cannot be scored, and mt-metrics-eval reads no "
            "test set without one; name it with --reference",
            file=sys.stderr,
        )


def _esa(args: argparse.Namespace, kind: str) -> None:
    from mbr_esd_metric.adapters.esa_files import read_esa
    from mbr_esd_metric.adapters.wmt26_esa import read_wmt26_esa

    if kind == "cesa":
        if args.texts is None:
            raise OptionError(f"{args.files[0]} has no whole texts; name the folder with wmt26-genmt.jsonl: --texts")
        human = read_wmt26_esa(args.files[0], args.texts, args.lp)
    else:
        human = read_esa(args.files)
    for lp in args.lp or human.lps:
        done = import_esa(human, _target(args, kind, lp))
        print(done, *(f"  {note}" for note in done.notes), sep="\n")


def _task(args: argparse.Namespace, kind: str) -> None:
    segments = read_task(args.files[0])
    for lp in args.lp or sorted({segment.lp for segment in segments}):
        print(import_task(segments, _target(args, kind, lp)))


def _submission(args: argparse.Namespace, kind: str) -> None:
    from mbr_esd_metric.adapters.wmt.submissions import import_submission

    (path,) = args.files
    _check_name(args, kind)
    for test_set in _to_be_scored(args, [row.lp for row in SUBMISSION_FORMATS[kind].read(Path(path))]):
        with_reference = args.name.rpartition("-")[2] in test_set.references
        name = args.name if with_reference else f"{args.name}-src"
        done = import_submission(path, kind, test_set, name, overwrite=args.overwrite)
        print(f"{test_set.name} {test_set.lp}: {done}")


def _comet(args: argparse.Namespace, kind: str) -> None:
    from mbr_esd_metric.adapters.wmt.metric_files import import_file

    _check_name(args, kind)
    for test_set in _to_be_scored(args, [None]):
        done = import_file(args.files[0], test_set, args.name, overwrite=args.overwrite)
        print(f"{test_set.name} {test_set.lp}: {done}")


def _check_name(args: argparse.Namespace, kind: str) -> None:
    if not args.name:
        read = f"a folder, read as {IMPORT_KINDS[kind]}" if Path(args.files[0]).is_dir() else IMPORT_KINDS[kind]
        raise OptionError(f"{args.files[0]} is {read}; name its metric with --name, or give another file")


def _to_be_scored(args: argparse.Namespace, in_file: Sequence[str | None]) -> Iterator[TestSet]:
    """The test set in each language pair; `in_file` are those that the file names."""
    for lp in _pairs(args, in_file):
        reference = args.reference[-1] if args.reference else None
        yield load_test_set(*folder_and_name(args.test_set), lp, reference=reference, blind=True)
