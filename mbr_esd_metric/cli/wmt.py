"""`mbr-esd wmt`: import human annotations into mt-metrics-eval's layout, score metrics, and write submissions."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mbr_esd_metric.adapters.esa_files import read_esa
from mbr_esd_metric.adapters.file_kinds import SUBMISSIONS, kind_of_import
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.importing import (
    Imported,
    Target,
    import_mqm,
    import_texts,
    read_task,
)
from mbr_esd_metric.adapters.wmt.layout import SystemChoice
from mbr_esd_metric.adapters.wmt.metric_files import import_file
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS, import_submission, write_submission
from mbr_esd_metric.cli.shared_options import (
    add_dry_run,
    add_systems,
    add_test_set,
    folder_and_name,
    load_test_sets,
    print_estimates,
)
from mbr_esd_metric.cli.verbs import Verb, add_verbs
from mbr_esd_metric.errors import EngineError, InputError, OptionError, no_effect_error
from mbr_esd_metric.files.paths import check_folder
from mbr_esd_metric.files.untrusted import finite
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import number_of, printable
from mbr_esd_metric.metaeval.error_free import ErrorFreeModel, read_error_free


def configure(parser: argparse.ArgumentParser) -> None:
    """Add its subcommands."""
    verbs = (
        Verb(
            "import", "convert WMT's published ratings to a test set, or a submission to a metric", f"{__name__}:import"
        ),
        Verb(
            "score",
            "score every system of a test set, and store scores and error spans in its folder",
            f"{__name__}:score",
        ),
        Verb("submit", "write a metric's output or the human gold in the format of a WMT task", f"{__name__}:submit"),
    )
    add_verbs(parser, verbs)


def configure_import(parser: argparse.ArgumentParser) -> None:
    """Add the files, the test set, and metadata that files may lack."""
    parser.usage = "mbr-esd wmt import [NAME=]FILE [FILE ...] --test-set T [options]"
    parser.add_argument(
        "files",
        nargs="+",
        metavar="[NAME=]FILE",
        help="human MQM, ESA (several files) or tables of the quality estimation task; a task's test set; or the "
        "output of metric NAME: a submission, or a file from comet-score --to_json (GemSpanEval-refA=FILE if it used "
        "the reference refA). Plain or compressed",
    )
    parser.add_argument(
        "--test-set",
        required=True,
        metavar="T",
        help="test set folder, such as data/wmt24; a bare name is written to ~/.mt-metrics-eval/mt-metrics-eval-v2",
    )
    parser.add_argument("--lp", nargs="+", default=[], metavar="LP", help="language pairs (default: all in the files)")
    parser.add_argument("--overwrite", action="store_true", help="replace the texts and human scores, or the metric")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME",
        help="system that is a reference; repeatable (default: ref, refA, refB, ...); for a submission, the standard "
        "reference",
    )
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW", help="rename a system; repeatable")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt import mqm_ted_ende.tsv --test-set data/wmt21.tedtalks --lp en-de\n"
        "  mbr-esd wmt import annotations.json wmt26-general-mt/data --test-set data/wmt26\n"
        "  mbr-esd wmt import GemSpanEval=predictions.tsv --test-set data/wmt25 --lp en-cs_CZ\n\n"
        "WMT25's error span tables do not identify the annotator: use people=FILE for human annotations."
    )


def run_import(args: argparse.Namespace) -> int:
    """Detect the kind of the files, and import each language pair."""
    from mbr_esd_metric.files.paths import NamedPath

    _say_place(args.test_set)
    sources = [NamedPath.parse(text) for text in args.files]
    (path, name), others = (sources[0].path, sources[0].name), [source.path for source in sources[1:]]
    kind = kind_of_import(path, name)
    if others and kind != "cesa":
        kinds = {one: kind_of_import(one, name) for one in (path, *others)}
        if set(kinds.values()) != {"esa"}:
            each = ", ".join(f"{one} is {kind}" for one, kind in kinds.items())
            raise InputError(f"import one file at a time; only esa accepts several files: {each}")
    if kind in SUBMISSIONS:
        if name is None:
            read = f"a folder, read as {SUBMISSIONS[kind]}" if path.is_dir() else SUBMISSIONS[kind]
            raise OptionError(f"{path} is {read}; name its metric (NAME={path}), or specify another file")
        if args.rename:
            raise no_effect_error("--rename", f"{path}, which is {SUBMISSIONS[kind]}")
        _import_metric(args, path, kind, name)
        return 0
    if name is not None and name != "people":
        raise no_effect_error(f"{name}=", f"{path}, which is {kind}")
    for done, lines in _imported(args, kind, [path, *others]):
        print(*lines, *(f"  {note}" for note in done.notes), done.summary, sep="\n")
        if not done.references:
            print(
                "no system is a reference: metrics that need one cannot be scored, and mt-metrics-eval cannot read "
                "the test set; specify it with --reference",
                file=sys.stderr,
            )
    return 0


def _say_place(test_set: str) -> None:
    """Check the output folder early, and print it if only a name is given."""
    data, name = folder_and_name(test_set)
    check_folder(data)
    if name == test_set:
        logger.info(f"{name} is written to {data / name}; to write elsewhere, specify a folder, such as ./{name}")


def _imported(args: argparse.Namespace, kind: str, paths: Sequence[Path]) -> Iterator[tuple[Imported, list[str]]]:
    """Each imported language pair, with the report of the reader."""
    from mbr_esd_metric.adapters.wmt26_esa import read_wmt26_esa

    for pair in args.rename:
        if not all(pair.partition("=")):
            raise OptionError(f"--rename {pair}: write OLD=NEW")
    rename = dict(pair.split("=", 1) for pair in args.rename)

    def target(lp: str) -> Target:
        weights = "paper" if kind == "qe" else "google"
        return Target(*folder_and_name(args.test_set), lp, args.reference, rename, weights, args.overwrite)

    path = paths[0]
    if kind in ("mqm", "qe"):
        human = read_mqm(path)
        for lp in _pairs(args, path, [rating.lp for rating in human]):
            yield import_mqm(human, target(lp)), [human.report()]
    else:
        if kind == "cesa" and len(paths) != 2:
            raise OptionError(f"{path} lacks the full texts; add the folder that contains wmt26-genmt.jsonl after it")
        if kind == "cesa":
            texts = read_wmt26_esa(path, paths[1], args.lp)
        else:
            texts = read_task(path) if kind == "task" else read_esa(paths)
        for lp in args.lp or texts.lps:
            yield import_texts(texts, target(lp)), []


def _pairs(args: argparse.Namespace, path: Path, in_file: Sequence[str | None]) -> list[str]:
    """The language pairs to import: those of ``--lp``, or all in the file."""
    pairs = args.lp or sorted({lp for lp in in_file if lp})
    if not pairs or (not args.lp and None in in_file):
        raise OptionError(f"{path} has no language pair; set it with --lp, for instance --lp en-de")
    return list(pairs)


def _import_metric(args: argparse.Namespace, path: Path, kind: str, name: str) -> None:
    """Import a submission, or an output of comet-score, as a metric."""
    form = SUBMISSION_FORMATS.get(kind)
    reference = args.reference[-1] if args.reference else None
    for lp in _pairs(args, path, [row.lp for row in form.read(path)] if form else [None]):
        test_set = load_test_set(*folder_and_name(args.test_set), lp, reference=reference, blind=True)
        if form:
            full = name if name.rpartition("-")[2] in test_set.references else f"{name}-src"
            done = import_submission(path, kind, test_set, full, overwrite=args.overwrite)
        else:
            done = import_file(path, test_set, name, overwrite=args.overwrite)
        print(f"{test_set.name} {lp}: {done}")


def configure_score(parser: argparse.ArgumentParser) -> None:
    """Add the test set and the models."""
    add_test_set(parser)
    add_systems(parser)
    parser.add_argument(
        "--model",
        required=True,
        nargs="+",
        metavar="[NAME=]MODEL",
        help="BLEU, chrF, empty, models of this package, and COMET checkpoints (.ckpt files, folders or names on the "
        "hub; xCOMET in all its variants), with options: MODEL?n=16, MODEL?batch_size=8&gpus=2&reference=no; NAME "
        "overrides the metric's base name",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="for models of this package: also score translations without gold (mt-metrics-eval requires this)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing scores")
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="print neither progress bar nor notes")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt score --test-set data/wmt21.tedtalks --lp en-de --model BLEU chrF empty\n"
        "  mbr-esd wmt score --test-set wmt24 --lp en-de en-es --model Unbabel/XCOMET-XXL\n"
        "  mbr-esd wmt score --test-set wmt24 --lp ja-zh --model 'ours=mbr-esd-llama?n=256'\n\n"
        "Models of this package score translations with gold (--all: every translation); other metrics score all "
        "systems,\n"
        "including references and outliers. Restrict the systems with --systems and --exclude.\n"
        "Existing scores of other systems are kept."
    )


def run_score(args: argparse.Namespace) -> int:
    """Score every system of a test set, and write scores and error spans into the data folder."""
    from mbr_esd_metric.scoring.wmt import make_scorer, score_test_set

    # References and outliers are scored too, whichever systems are evaluated later.
    choice = SystemChoice(tuple(args.systems), tuple(args.exclude), outliers=True, standard=True)
    failed: list[str] = []
    if args.dry_run is None:
        _say_place(args.test_set)
    for test_set in load_test_sets(args, blind=True, choice=SystemChoice()):
        for text in args.model:
            name, model = _named_model(text)
            if args.dry_run is not None:
                _dry_run(args, test_set, name, model, choice)
                continue
            try:
                scorer = make_scorer(model, name=name, reference=test_set.info.standard_reference, lp=test_set.lp)
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


def _named_model(text: str) -> tuple[str | None, str]:
    """The metric name and model of ``[NAME=]MODEL``; an "=" in options or paths does not separate a name."""
    name, equals, model = text.partition("=")
    return (name, model) if equals and not re.search("[?/]", name) else (None, text)


def _dry_run(args: argparse.Namespace, test_set: TestSet, name: str | None, model: str, choice: SystemChoice) -> None:
    """Print what scoring a test set with a model would sample."""
    from mbr_esd_metric.metric.card import with_pair
    from mbr_esd_metric.metric.cards import is_ours, load_card
    from mbr_esd_metric.scoring.wmt import texts_to_score

    texts = texts_to_score(test_set, f"{name or model}-src", choice, rated=is_ours(model) and not args.all)
    systems = number_of(len({text.system for text in texts}), "system")
    print(f"{test_set.name} {test_set.lp}: {model}, {number_of(len(texts), 'translation')} of {systems}")
    if is_ours(model):
        card = with_pair(load_card(model), test_set.lp, of_test_set=True)
        print_estimates(card, [one for one in texts if one.supplied], args.dry_run)
    elif args.dry_run:
        raise no_effect_error(f"--dry-run {args.dry_run}", f"--model {model}, which does not sample")


def configure_submit(parser: argparse.ArgumentParser) -> None:
    """Add the metric, the test sets and the format."""
    add_test_set(parser)
    described = "; ".join(f"{name}: {form.description}" for name, form in SUBMISSION_FORMATS.items())
    parser.add_argument("--task", required=True, choices=list(SUBMISSION_FORMATS), help=described)
    parser.add_argument(
        "--metric",
        required=True,
        metavar="NAME",
        help="metric stored in the folder; gold: human scores and annotations; a set of human ratings, such as "
        "mqm.rater1: gold with these annotations",
    )
    parser.add_argument(
        "--range",
        type=float,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="with wmt26: the scores that map to 0 and 100 (default: -25 0)",
    )
    parser.add_argument(
        "--error-free",
        metavar="SCORE|FILE",
        help="with wmt26: classify as error-free from this score (0 to 100) up, or with a model from `mbr-esd "
        "calibrate --error-free` (default: if there are no error spans)",
    )
    parser.add_argument("-o", "--output", required=True, metavar="PATH", help="output file (for wmt25-task1 a folder)")
    parser.epilog = (
        "examples:\n"
        "  mbr-esd wmt submit --task wmt25-task2 --test-set wmt25 --lp cs-de_DE --metric M -o out.tsv\n"
        "  mbr-esd wmt submit --task wmt25-task2 --test-set wmt25 --lp en-cs_CZ --metric gold -o task2_refs.tsv\n\n"
        "All systems except the standard reference are written."
    )


def run_submit(args: argparse.Namespace) -> int:
    """Write the file."""
    for option in ("range", "error_free"):
        if getattr(args, option) is not None and args.task != "wmt26":
            raise no_effect_error(f"--{option.replace('_', '-')}", f"--task {args.task}")
    error_free: ErrorFreeModel | float | None
    try:
        error_free = None if args.error_free is None else finite(args.error_free)
    except InputError:
        error_free = read_error_free(args.error_free)
    written = write_submission(
        args.output,
        args.task,
        list(load_test_sets(args, blind=True)),
        args.metric,
        score_range=args.range and tuple(args.range),
        error_free=error_free,
    )
    print(f"{printable(args.output)}: {number_of(written, 'translation')} in the format {args.task}")
    return 0
