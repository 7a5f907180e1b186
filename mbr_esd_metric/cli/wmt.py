"""`mbr-esd wmt`: human annotations into mt-metrics-eval's data layout, metric scores, and submissions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mbr_esd_metric.adapters.wmt.layout import SystemChoice
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.cli.model_options import add_dry_run, print_estimates, trial_of
from mbr_esd_metric.cli.shared_options import add_systems, add_test_set, add_verbs, load_test_sets, run_verb
from mbr_esd_metric.errors import EngineError, InputError, OptionError, no_effect_error, number_of, printable
from mbr_esd_metric.files.untrusted import finite

if TYPE_CHECKING:
    from mbr_esd_metric.metaeval.error_free import ErrorFreeModel

run = run_verb


def configure(parser: argparse.ArgumentParser) -> None:
    """Add its verbs."""
    add_verbs(
        parser,
        {
            "import": ("wmt_import", "make a test set of what WMT publishes, or a metric of a submission"),
            "score": ("wmt:score", "score every system of a test set, with error spans, into the data folder"),
            "submit": ("wmt:submit", "write a metric, or people's gold, in the format of one of WMT's tasks"),
        },
    )
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt import mqm_ted_ende.tsv --test-set data/wmt21.tedtalks --lp en-de\n"
        "  mbr-esd wmt score --test-set data/wmt21.tedtalks --lp en-de --model BLEU empty"
    )


def configure_score(parser: argparse.ArgumentParser) -> None:
    """A test set and models."""
    add_test_set(parser)
    add_systems(parser)
    parser.add_argument(
        "--model",
        required=True,
        nargs="+",
        metavar="NAME",
        help="BLEU, chrF, empty, models of this package, and COMET checkpoints (.ckpt files, folders or names on the "
        "hub; xCOMET in all its variants), with options: NAME?n=16, NAME?batch_size=8&gpus=2&reference=no",
    )
    parser.add_argument("--name", help="base name of the metric, where the model's is not wanted (with one --model)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="models of this package also score translations without gold, as mt-metrics-eval needs it",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace scores that are there")
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no notes")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt score --test-set data/wmt21.tedtalks --lp en-de --model BLEU chrF empty\n"
        "  mbr-esd wmt score --test-set wmt24 --lp en-de en-es --model Unbabel/XCOMET-XXL\n"
        "  mbr-esd wmt score --test-set wmt24 --lp ja-zh --model 'mbr-esd-llama?n=256'\n\n"
        "Models of this package score what has gold (--all: everything), others all systems, references and outliers\n"
        "as well; --systems and --exclude leave some out.\n"
        "Systems that the folder has such scores of stay in it."
    )


def run_score(args: argparse.Namespace) -> int:
    """Score every system of a test set, and write scores and error spans into the data folder."""
    from mbr_esd_metric.scoring.scorers import make_scorer
    from mbr_esd_metric.scoring.wmt import score_test_set

    # Whatever is evaluated later, references and outliers are scored as well.
    choice = SystemChoice(tuple(args.systems), tuple(args.exclude), True, "all")
    if args.name and len(args.model) > 1:
        raise OptionError("--name names one metric; give one --model with it")
    trial = None if args.dry_run is None else trial_of(args.dry_run)
    failed: list[str] = []
    for test_set in load_test_sets(args, blind=True, choice=SystemChoice()):
        for model in args.model:
            if trial is not None:
                _dry_run(args, test_set, model, choice, trial)
                continue
            try:
                scorer = make_scorer(model, name=args.name, reference=test_set.info.standard_reference, lp=test_set.lp)
            except EngineError as error:
                failed.append(f"{model} in {test_set.lp}: {error}")
                continue
            for done in score_test_set(
                test_set, scorer, overwrite=args.overwrite, progress=not args.quiet, choice=choice, every=args.all
            ):
                how = f"scored for {number_of(done.systems, 'system')}" if done.scored else "is there already"
                total = done.translations + done.without
                part = f", on the {done.translations} of {total} translations with gold" if done.without else ""
                print(f"{test_set.name} {test_set.lp}: {done.name} {how}{part}")
    if failed:
        raise EngineError("not scored: " + "; ".join(failed))
    return 0


def _dry_run(args: argparse.Namespace, test_set: TestSet, model: str, choice: SystemChoice, trial: int) -> None:
    """Say what scoring a test set with a model would sample."""
    from mbr_esd_metric.metric.card import with_pair
    from mbr_esd_metric.metric.cards import is_ours, load_card
    from mbr_esd_metric.scoring.wmt import only_rated, texts_to_score

    rated = only_rated(test_set, args.all) and is_ours(model)
    texts = texts_to_score(test_set, f"{args.name or model}-src", choice, rated)
    systems = number_of(len({text.system for text in texts}), "system")
    print(f"{test_set.name} {test_set.lp}: {model}, {number_of(len(texts), 'translation')} of {systems}")
    if is_ours(model):
        card = load_card(model)
        card = with_pair(card, None if card.lp else test_set.lp)
        print_estimates(card, [one for one in texts if one.supplied], trial)
    elif args.dry_run:
        raise no_effect_error(f"--dry-run {args.dry_run}", f"--model {model}, of which nothing is sampled")


def configure_submit(parser: argparse.ArgumentParser) -> None:
    """Which metric of which test sets, in which format."""
    add_test_set(parser)
    described = "; ".join(f"{name}: {form.description}" for name, form in SUBMISSION_FORMATS.items())
    parser.add_argument("--task", required=True, choices=list(SUBMISSION_FORMATS), help=described)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--metric", metavar="NAME", help="a metric stored in the folder")
    what.add_argument(
        "--people", nargs="?", const="", metavar="RATERS", help="people's annotations (the gold), or a set of them"
    )
    parser.add_argument(
        "--range",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="with wmt26: lowest and highest score, which become 0 and 100 (default: -25 0 for a metric with spans)",
    )
    parser.add_argument(
        "--error-free",
        metavar="SCORE|FILE",
        help="with wmt26: without error from this score on, of 0 to 100, or as `mbr-esd calibrate --error-free` learnt "
        "it (default: without error spans)",
    )
    parser.add_argument("-o", "--output", required=True, metavar="PATH", help="file; for wmt25-task1 a folder")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt submit --task wmt25-task2 --test-set wmt25 --lp cs-de_DE --metric M -o out.tsv\n"
        "  mbr-esd wmt submit --task wmt25-task2 --test-set wmt25 --lp en-cs_CZ --people -o task2_refs.tsv\n\n"
        "All systems but the standard reference are written."
    )


def run_submit(args: argparse.Namespace) -> int:
    """Write the file."""
    from mbr_esd_metric.adapters.wmt.submissions import write_submission

    for option in ("range", "error_free"):
        if getattr(args, option) is not None and args.task != "wmt26":
            raise no_effect_error(f"--{option.replace('_', '-')}", f"--task {args.task}")
    written = write_submission(
        args.output,
        args.task,
        list(load_test_sets(args, blind=True)),
        args.metric,
        raters=args.people or None,
        score_range=args.range and tuple(args.range),
        error_free=_error_free(args.error_free),
    )
    print(f"{printable(args.output)}: {number_of(written, 'translation')} in the format {args.task}")
    return 0


def _error_free(text: str | None) -> ErrorFreeModel | float | None:
    """A score, or the model in a file."""
    from mbr_esd_metric.metaeval.error_free import read_error_free

    if text is None:
        return None
    try:
        return finite(text)
    except InputError:
        return read_error_free(text)
