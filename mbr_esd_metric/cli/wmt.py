"""`mbr-esd wmt`: imports human annotations into mt-metrics-eval's data layout, adds metric scores, reads and writes
submissions."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import TYPE_CHECKING

from mbr_esd_metric.cli.data import (
    add_data_arguments,
    add_import_arguments,
    add_name_arguments,
    every_system,
    import_target,
    load_test_sets,
)
from mbr_esd_metric.cli.options import add_dry_run, add_mqm_option, print_estimates, trial_of
from mbr_esd_metric.errors import OptionError, number_of, useless

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.mqm_tsv import MqmData
    from mbr_esd_metric.adapters.wmt.importing import Imported
    from mbr_esd_metric.adapters.wmt.system_choice import SystemChoice
    from mbr_esd_metric.adapters.wmt.target import Target
    from mbr_esd_metric.adapters.wmt.test_set import TestSet

#: Verb -> (module in this package, one line of help); each has ``configure`` and ``run``, as in `main`.
_VERBS = {
    "import-qe": ("wmt_import_qe", "error spans of WMT's quality estimation task into a test set"),
    "import-esa": ("wmt_import_esa", "ESA annotations of WMT24 and WMT25 into test sets"),
    "import-task": ("wmt_import_task", "a task's test set, before there is gold, to score and submit"),
    "import-submission": ("wmt_import_submission", "a submission to one of WMT's tasks as a metric of a test set"),
    "submit": ("wmt_submit", "a metric, or people's gold, in the format of one of WMT's tasks"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Verbs of their own: import-mqm, score and those of `_VERBS`."""
    names = " | ".join(["import-mqm", *_VERBS, "score"])
    verbs = parser.add_subparsers(dest="wmt_verb", metavar=names, required=True)
    _configure_import(
        verbs.add_parser(
            "import-mqm",
            help="human MQM annotations into a test set",
            description="Write human MQM annotations (Google's TSV, or bio-MQM's JSON lines) as a test set.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    for verb, (name, text) in _VERBS.items():
        module = importlib.import_module(f"mbr_esd_metric.cli.{name}")
        one = verbs.add_parser(verb, help=text, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        module.configure(one)
        one.set_defaults(wmt_run=module.run)
    _configure_score(
        verbs.add_parser(
            "score",
            help="metric scores and error spans for a test set",
            description="Score every system of a test set, and write scores and error spans into the data folder.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    )
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt import-mqm mqm_ted_ende.tsv --test-set wmt21.tedtalks --direction en-de --data data\n"
        "  mbr-esd wmt score --data data --test-set wmt21.tedtalks --direction en-de --model BLEU empty"
    )


def _configure_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tsv", metavar="TSV", help="Google's MQM TSV, or bio-MQM's .jsonl; plain, .gz or .zst")
    parser.add_argument("--direction", required=True, metavar="D", help="such as en-de")
    add_import_arguments(parser, "such as wmt21.tedtalks", "the texts and human scores")
    add_name_arguments(parser)
    add_mqm_option(parser, "of MQM", "google")
    parser.add_argument("--domain", default="all", help="domain of every segment (%(default)s)")
    parser.add_argument("--quoted", action="store_true", help="fields of the TSV are quoted as in CSV")
    parser.epilog = (
        "example:\n  mbr-esd wmt import-mqm mqm_ted_ende.tsv --test-set wmt21.tedtalks --direction en-de --data data"
    )
    parser.set_defaults(wmt_run=_run_import)


def _configure_score(parser: argparse.ArgumentParser) -> None:
    add_data_arguments(parser)
    parser.add_argument(
        "--model",
        required=True,
        nargs="+",
        metavar="NAME",
        help="models of this package (with options, like a URL), COMET checkpoints (.ckpt files, folders or names on "
        "the hub; xCOMET in all its variants), BLEU, chrF, empty",
    )
    parser.add_argument("--name", help="base name of the metric, where the model's is not wanted (with one --model)")
    parser.add_argument("--no-reference", action="store_true", help="of COMET's models, only what needs no reference")
    parser.add_argument("--batch-size", type=int, default=8, help="of COMET's models (%(default)s)")
    parser.add_argument("--gpus", type=int, help="of COMET's models (default: one where there is one)")
    parser.add_argument("--overwrite", action="store_true", help="replace scores that are there")
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt score --data data --test-set wmt21.tedtalks --direction en-de --model BLEU chrF empty\n"
        "  mbr-esd wmt score --test-set wmt24 --direction en-de en-es --model Unbabel/XCOMET-XXL\n"
        "  mbr-esd wmt score --test-set wmt24 --direction ja-zh --model 'mbr-esd-llama?n=256&lp=ja-zh'\n\n"
        "All systems are scored, references and outliers as well; --systems, --exclude and --human leave some out.\n"
        "Systems that the folder has such scores of stay in it."
    )
    parser.set_defaults(wmt_run=_run_score)


def run(args: argparse.Namespace) -> int:
    """Run the named verb."""
    return int(args.wmt_run(args))


def _run_import(args: argparse.Namespace) -> int:
    from mbr_esd_metric.adapters.human import read_mqm
    from mbr_esd_metric.files.paths import check_folder

    check_folder(args.data)
    target = import_target(args, args.direction)
    done = import_ratings(read_mqm(args.tsv, quoted=args.quoted), target, args.domain)
    if not done.references:
        print(
            "no system is a reference: metrics that need one cannot be scored, and mt-metrics-eval reads no "
            "test set without one; name it with --reference",
            file=sys.stderr,
        )
    return 0


def import_ratings(human: MqmData, target: Target, domain: str = "all") -> Imported:
    """Write a test set of human ratings, and say what was read, changed and written."""
    from mbr_esd_metric.adapters.wmt.importing import import_mqm

    done = import_mqm(human, target, domain=domain)
    print(human.report())
    for note in done.notes:
        print(f"  {note}")
    print(done)
    return done


def _run_score(args: argparse.Namespace) -> int:
    from mbr_esd_metric.adapters.wmt.scorers import CometOptions, make_scorer
    from mbr_esd_metric.adapters.wmt.scoring import score_test_set
    from mbr_esd_metric.adapters.wmt.system_choice import SystemChoice

    wanted = every_system(args)
    if args.name and len(args.model) > 1:
        raise OptionError("--name names one metric; give one --model with it")
    trial = trial_of(args)
    for test_set in load_test_sets(args, blind=True, choice=SystemChoice()):
        for model in args.model:
            if trial is not None:
                _dry_run(args, test_set, model, wanted, trial)
                continue
            scorer = make_scorer(
                model,
                name=args.name,
                reference=None if args.no_reference else test_set.info.standard_reference,
                target=test_set.direction.split("-")[1].split("_")[0],
                comet=CometOptions(args.batch_size, args.gpus),
            )
            for done in score_test_set(
                test_set, scorer, overwrite=args.overwrite, progress=not args.quiet, choice=wanted
            ):
                how = "is there already" if done.found else f"scored for {number_of(done.systems, 'system')}"
                print(f"{test_set.name} {test_set.direction}: {done.name} {how}")
            if scorer.note:
                print(f"{test_set.name} {test_set.direction}, {model}: {scorer.note}", file=sys.stderr)
    return 0


def _dry_run(args: argparse.Namespace, test_set: TestSet, model: str, choice: SystemChoice, trial: int) -> None:
    """Say what scoring a test set with a model would sample."""
    from mbr_esd_metric.adapters.wmt.scorers import is_ours
    from mbr_esd_metric.adapters.wmt.scoring import texts_to_score
    from mbr_esd_metric.metric.cards import load_card
    from mbr_esd_metric.metric.pipeline import Segment

    texts = texts_to_score(test_set, f"{args.name or model}-src", choice)
    systems = number_of(len({text.system for text in texts}), "system")
    print(f"{test_set.name} {test_set.direction}: {model}, {number_of(len(texts), 'translation')} of {systems}")
    if is_ours(model):
        supplied = [Segment(one.source, one.translation, one.label, one.system) for one in texts if one.supplied]
        print_estimates(load_card(model), supplied, trial)
    elif trial:
        raise useless(f"--try {trial}", f"--model {model}, of which nothing is sampled")
