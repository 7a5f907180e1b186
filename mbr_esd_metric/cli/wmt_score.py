"""`mbr-esd wmt score`: metric scores and error spans for a test set in mt-metrics-eval's data layout."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mbr_esd_metric.adapters.comet.checkpoints import DTYPES
from mbr_esd_metric.cli.data import add_data_arguments, every_system, load_test_sets
from mbr_esd_metric.cli.shared_options import add_dry_run, print_estimates, trial_of
from mbr_esd_metric.errors import EngineError, OptionError, number_of, useless

if TYPE_CHECKING:
    from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice
    from mbr_esd_metric.adapters.wmt.test_set import TestSet


def configure(parser: argparse.ArgumentParser) -> None:
    """A test set and models."""
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
    parser.add_argument("--batch-size", type=int, default=16, help="of COMET's models (%(default)s)")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of COMET's models (%(default)s)")
    parser.add_argument("--gpus", type=int, help="of COMET's models (default: one where there is one)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="models of this package also score translations without gold, as mt-metrics-eval needs it",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace scores that are there")
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt score --data data --test-set wmt21.tedtalks --lp en-de --model BLEU chrF empty\n"
        "  mbr-esd wmt score --test-set wmt24 --lp en-de en-es --model Unbabel/XCOMET-XXL\n"
        "  mbr-esd wmt score --test-set wmt24 --lp ja-zh --model 'mbr-esd-llama?n=256&lp=ja-zh'\n\n"
        "Models of this package score what has gold (--all: everything), others all systems, references and outliers\n"
        "as well; --systems, --exclude and --human leave some out.\n"
        "Systems that the folder has such scores of stay in it."
    )


def run(args: argparse.Namespace) -> int:
    """Score every system of a test set, and write scores and error spans into the data folder."""
    from mbr_esd_metric.adapters.comet.checkpoints import CometOptions
    from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice
    from mbr_esd_metric.adapters.wmt.scorers import make_scorer
    from mbr_esd_metric.adapters.wmt.scoring import score_test_set

    wanted = every_system(args)
    if args.name and len(args.model) > 1:
        raise OptionError("--name names one metric; give one --model with it")
    trial = trial_of(args)
    failed: list[str] = []
    for test_set in load_test_sets(args, blind=True, choice=SystemChoice()):
        for model in args.model:
            if trial is not None:
                _dry_run(args, test_set, model, wanted, trial)
                continue
            try:
                scorer = make_scorer(
                    model,
                    name=args.name,
                    reference=None if args.no_reference else test_set.info.standard_reference,
                    target=test_set.lp.split("-")[1].split("_")[0],
                    comet=CometOptions(args.batch_size, args.gpus, args.dtype),
                )
            except EngineError as error:
                failed.append(f"{model} in {test_set.lp}: {error}")
                continue
            for done in score_test_set(
                test_set,
                scorer,
                overwrite=args.overwrite,
                progress=not args.quiet,
                choice=wanted,
                every=args.all,
            ):
                how = f"scored for {number_of(done.systems, 'system')}" if done.scored else "is there already"
                part = f", on the {done.translations} of {done.of} translations with gold"
                print(f"{test_set.name} {test_set.lp}: {done.name} {how}{part if done.translations < done.of else ''}")
            if scorer.note:
                print(f"{test_set.name} {test_set.lp}, {model}: {scorer.note}", file=sys.stderr)
    if failed:
        raise EngineError("not scored: " + "; ".join(failed))
    return 0


def _dry_run(args: argparse.Namespace, test_set: TestSet, model: str, choice: SystemChoice, trial: int) -> None:
    """Say what scoring a test set with a model would sample."""
    from mbr_esd_metric.adapters.wmt.scoring import only_rated, texts_to_score
    from mbr_esd_metric.metric.cards import is_ours, load_card

    rated = only_rated(test_set, args.all) and is_ours(model)
    texts = texts_to_score(test_set, f"{args.name or model}-src", choice, rated)
    systems = number_of(len({text.system for text in texts}), "system")
    print(f"{test_set.name} {test_set.lp}: {model}, {number_of(len(texts), 'translation')} of {systems}")
    if is_ours(model):
        print_estimates(load_card(model), [one.segment for one in texts if one.supplied], trial, args.machine)
    elif trial:
        raise useless(f"--try {trial}", f"--model {model}, of which nothing is sampled")
