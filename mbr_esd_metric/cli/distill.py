"""`mbr-esd distill`: preference pairs, the supervised start, DPO, and the plot of a run."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path

from mbr_esd_metric.cli.shared_options import add_decision_options, decision_options
from mbr_esd_metric.elicit.formats import FORMATS
from mbr_esd_metric.errors import InputError, OptionError

#: An example of each step, in order.
_EXAMPLES = {
    "sft": "mbr-esd distill sft mqm_ted_ende.tsv --lp en-de --model HuggingFaceTB/SmolLM2-135M-Instruct -o sft",
    "pairs": "mbr-esd distill pairs candidates.jsonl -o pairs",
    "train": "mbr-esd distill train pairs -o distilled --set model=meta-llama/Llama-3.3-70B-Instruct per_device=2",
    "configs": "mbr-esd distill configs -o configs\n"
    "  accelerate launch --config_file configs/accelerate_8gpu.yml -m mbr_esd_metric distill train pairs -o distilled",
    "plot": "mbr-esd distill plot run/checkpoint-100 -o loss.png",
}

#: Fields of `DecisionOptions` that `distill pairs` takes.
_DECISION = ("rule", "utility", "weights", "location", "format")


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb's own verbs and their arguments."""
    parser.epilog = "examples:" + "".join(f"\n  {example}" for example in _EXAMPLES.values())
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    pairs = steps.add_parser("pairs", help="stored candidates -> preference pairs, chosen and rejected by MBR")
    pairs.add_argument("candidates", nargs="+", help="files of candidates, JSON lines or .gen.json")
    pairs.add_argument("-o", "--output", required=True, metavar="FOLDER", help="gets train and validation")
    add_decision_options(pairs, _DECISION)
    pairs.add_argument("--prompt", default="v1", help="prompt that the candidates were sampled with")
    pairs.add_argument("--lp", help="language pair such as en-de, if the prompt named the languages")
    pairs.add_argument("--validation", type=float, default=0.1, help="share held out, by source (default: %(default)s)")
    pairs.add_argument("--seed", type=int, default=0, help="of the split")
    pairs.set_defaults(run_step=_pairs)

    sft = steps.add_parser("sft", help="human MQM annotations -> a model that writes answers")
    sft.add_argument(
        "annotations", nargs="*", help="Google's MQM TSV, a table of WMT's QE task, or ratings as JSON lines"
    )
    sft.add_argument(
        "--choices", nargs="+", default=[], metavar="CANDIDATES", help="learn what MBR chooses of these, too"
    )
    add_decision_options(sft, _DECISION)
    sft.add_argument("-o", "--output", required=True, metavar="FOLDER", help="of the trained model")
    sft.add_argument("--model", default="HuggingFaceTB/SmolLM2-135M-Instruct", help="hub id or folder")
    sft.add_argument("--lp", help="language pair such as en-de, where the annotations do not say it")
    sft.add_argument("--prompt", default="v1", help="version or template file")
    sft.add_argument("--examples", type=int, help="at most so many annotations a file")
    sft.add_argument("--clean-share", type=float, default=0.1, help="of examples without errors (default: %(default)s)")
    sft.add_argument("--max-characters", type=int, default=350, help="longest translation (default: %(default)s)")
    sft.add_argument("--validation", type=float, default=0.05, help="share held out, by source (default: %(default)s)")
    sft.add_argument(
        "--answer-format",
        default="json",
        choices=FORMATS.names(),
        help="of the answers to learn (default: %(default)s)",
    )
    sft.add_argument("--planted", type=float, default=0.0, help="share of errors planted in clean translations")
    sft.add_argument(
        "--share",
        nargs="+",
        default=[],
        metavar="LP=WEIGHT",
        help="mix language pairs, such as en-de=2 zh-en=1 (default: all)",
    )
    _options(sft, "adapter, learning_rate, decay, epochs, updates, batch_size, per_device, lora_rank, ...")
    sft.set_defaults(run_step=_sft)

    train = steps.add_parser("train", help="preference pairs -> a model whose greedy answer is MBR's choice (DPO)")
    train.add_argument("pairs", help="folder of `distill pairs`")
    train.add_argument("-o", "--output", required=True, metavar="FOLDER", help="result; resumes what is in it")
    train.add_argument("--recipe", default="paper", help="recipe of the package or YAML file (default: %(default)s)")
    _options(train, "model, adapter, lora_rank, learning_rate, beta, epochs, per_device, max_length, ...")
    train.add_argument("--show", action="store_true", help="print the options and stop")
    train.set_defaults(run_step=_train)

    configs = steps.add_parser("configs", help="write the accelerate and DeepSpeed ZeRO-3 configurations for 8 GPUs")
    configs.add_argument("-o", "--output", required=True, metavar="FOLDER", help="gets both files")
    configs.set_defaults(run_step=_configs)

    plot = steps.add_parser("plot", help="loss and rewards of a training run, as PNG and SVG")
    plot.add_argument("run", metavar="FOLDER", help="of a result or a checkpoint, or its trainer_state.json")
    plot.add_argument("-o", "--output", required=True, metavar="OUT.png", help="OUT.png and OUT.svg are written")
    plot.set_defaults(run_step=_plot)

    for step, example in _EXAMPLES.items():
        steps.choices[step].formatter_class = argparse.RawDescriptionHelpFormatter
        steps.choices[step].epilog = f"example:\n  {example}"


def run(args: argparse.Namespace) -> int:
    """Run one step."""
    step: Callable[[argparse.Namespace], int] = args.run_step
    return step(args)


def _options(parser: argparse.ArgumentParser, names: str) -> None:
    parser.add_argument("--set", nargs="+", default=[], metavar="OPTION=VALUE", help=f"change an option: {names}")


def _changes(items: list[str]) -> dict[str, str]:
    changes = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals:
            raise OptionError(f"--set takes OPTION=VALUE, not {item!r}")
        changes[name] = value
    return changes


def _pairs(args: argparse.Namespace) -> int:
    from mbr_esd_metric.distill.preferences import PairOptions, make_pairs, write_pairs
    from mbr_esd_metric.files.lock import locked_folder
    from mbr_esd_metric.files.paths import check_folder, check_given_once, check_output
    from mbr_esd_metric.files.records import read_candidates

    options = PairOptions(decision_options(args, _DECISION), args.prompt, args.lp, args.validation, args.seed)
    check_given_once(args.candidates, "candidates")
    folder = Path(args.output)
    check_folder(folder)
    if folder.exists():
        for part in ("train", "validation"):
            check_output(folder / f"{part}.jsonl", args.candidates)
    for record in islice(read_candidates(args.candidates[0]), 1):
        answers = record.columns.format or options.decision.format
        options = replace(options, decision=replace(options.decision, format=answers))
    pairs = make_pairs((record for path in args.candidates for record in read_candidates(path)), options)
    print(pairs.report())
    with locked_folder(folder):
        for path in write_pairs(pairs, folder, options):
            print(f"written: {path}")
    print(f"signature: {options.signature}")
    return 0


def _sft(args: argparse.Namespace) -> int:
    from mbr_esd_metric.adapters.human import read_mqm
    from mbr_esd_metric.distill.choices import choices
    from mbr_esd_metric.distill.planted import planted
    from mbr_esd_metric.distill.settings import SftOptions
    from mbr_esd_metric.distill.sft import train_sft
    from mbr_esd_metric.distill.supervision import HumanAnnotation, Selection, merged, mixed, select
    from mbr_esd_metric.distill.training_options import with_changes
    from mbr_esd_metric.elicit.formats import get_format
    from mbr_esd_metric.files.records import read_candidates

    options = with_changes(SftOptions(), _changes(args.set))
    _check_result(args.output, args.model, options.adapter)
    limits = Selection(args.examples, args.clean_share, args.max_characters, validation=args.validation)
    answers = get_format(args.answer_format)
    prompt = answers.prompt(args.prompt)
    shares = with_weights(args.share)
    decision = decision_options(args, _DECISION)
    if not 0 <= args.planted < 1:
        raise OptionError(f"--planted is a share in [0, 1), not {args.planted:g}")
    parts = []
    for path in args.annotations:
        ratings = read_mqm(path)
        if args.lp is None and any(rating.lp is None for rating in ratings):
            raise InputError(f"{path} does not say its language pair; give it with --lp, for instance --lp en-de")
        annotations = [
            HumanAnnotation(r.source, r.target, r.lp or args.lp, r.annotation)
            for r in ratings
            if r.annotation or not r.errors  # errors without a place are none to be taught as "no error"
        ]
        parts.append(select(planted(annotations, args.planted), prompt, limits, answers))
    for path in args.choices:
        chosen = choices(read_candidates(path), decision, args.lp or "")
        parts.append(select(chosen, prompt, replace(limits, clean_share=None), answers))
    if not parts:
        raise InputError("there is nothing to learn from; give files of annotations, or of candidates with --choices")
    supervision = mixed(merged(parts), shares) if shares else merged(parts)
    print(supervision.report())
    with _alone(args.output):
        figures = train_sft(
            supervision,
            Path(args.output),
            args.model,
            options,
            {"prompt": args.prompt, **_asked(args.answer_format, distilled=not args.annotations)},
        )
        _finish(figures, args.output)
    return 0


def with_weights(items: list[str]) -> dict[str, float]:
    """The weights of ``--share``.

    Raises:
        OptionError: one that is not LP=WEIGHT with a weight above 0.
    """
    shares = {}
    for item in items:
        lp, _, weight = item.partition("=")
        try:
            shares[lp] = float(weight)
        except ValueError:
            shares[lp] = 0.0
        if not shares[lp] > 0:
            raise OptionError(f"--share takes LP=WEIGHT with a weight above 0, such as en-de=2, not {item!r}")
    return shares


def _asked(answers: str, distilled: bool) -> dict[str, object]:
    """How a model that was trained in this format is asked: one that has learnt choices alone, for one answer."""
    form = {} if answers == "json" else {"format": answers}
    if distilled:
        return {"rule": "greedy", "n": 1, **form}
    return {**form, "temperature": 1.0, "top_k": 0} if form else {}


def _train(args: argparse.Namespace) -> int:
    from mbr_esd_metric.distill.dpo import train_dpo
    from mbr_esd_metric.distill.settings import load_recipe
    from mbr_esd_metric.distill.training_options import as_yaml

    options = load_recipe(args.recipe, _changes(args.set))
    if args.show:
        print(as_yaml(options), end="")
        return 0
    _check_result(args.output, args.pairs, options.model, options.adapter)
    with _alone(args.output):
        figures = train_dpo(args.pairs, Path(args.output), options)
        _finish(figures, args.output)
    return 0


def _configs(args: argparse.Namespace) -> int:
    from mbr_esd_metric.distill.dpo import write_launch_configurations
    from mbr_esd_metric.files.paths import check_folder

    check_folder(args.output)
    for path in write_launch_configurations(Path(args.output)):
        print(f"written: {path}")
    return 0


def _plot(args: argparse.Namespace) -> int:
    from mbr_esd_metric.report.curves import loss_curves
    from mbr_esd_metric.report.plots import check_plot, plot_curves, save

    check_plot(args.output, [Path(args.run)])
    paths = save(plot_curves(loss_curves(Path(args.run)), "step"), Path(args.output))
    print("written: " + ", ".join(str(path) for path in paths))
    return 0


def _alone(folder: str) -> AbstractContextManager[None]:
    """Keep other runs out of the folder of a trained model. In a run of several processes, the first one does
    this."""
    from mbr_esd_metric.files.lock import locked_folder

    return locked_folder(folder) if os.environ.get("RANK", "0") == "0" else nullcontext()


def _check_result(folder: str, *inputs: str | None) -> None:
    """Check the folder of a trained model and the adapter folder in it, before any work."""
    from mbr_esd_metric.files.paths import check_folder

    for place in (folder, Path(folder, "adapter")):
        check_folder(place, inputs)


def _finish(figures: dict[str, float], folder: str) -> None:
    """Print the figures and plot the losses, in the process that has them."""
    if not figures:
        return
    print(", ".join(f"{name.replace('_', ' ')} {value:.6g}" for name, value in figures.items()))
    print(f"written: {folder} (score with: comet-score -s SRC -t MT --model {folder})")
    # A run of very few updates has logged no loss.
    if "first_loss" in figures and importlib.util.find_spec("matplotlib") is not None:
        from mbr_esd_metric.report.curves import loss_curves
        from mbr_esd_metric.report.plots import plot_curves, save

        save(plot_curves(loss_curves(Path(folder)), "step"), Path(folder, "loss.png"))
