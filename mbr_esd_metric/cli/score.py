"""`mbr-esd score`: like ``comet-score`` with our models, without COMET."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mbr_esd_metric.cli.options import add_dry_run, add_model, card_of, print_estimates, trial_of
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import check_given_once, check_output, short_names
from mbr_esd_metric.files.streams import json_text, read_segments, write_whole


def configure(parser: argparse.ArgumentParser) -> None:
    """Arguments named as those of ``comet-score``."""
    parser.add_argument("-s", "--sources", required=True, metavar="SRC", help="source file, one segment a line")
    parser.add_argument(
        "-t", "--translations", required=True, nargs="+", metavar="MT", help="one file of translations a system"
    )
    add_model(parser)
    parser.add_argument("--to_json", default="", metavar="OUT", help="write scores and error spans to this file")
    parser.add_argument("--only_system", action="store_true", help="print the system scores only")
    add_dry_run(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no signature")
    parser.epilog = (
        "example:\n  mbr-esd score -s src.txt -t mt.txt --model 'mbr-esd-llama?n=64&lp=en-de' --to_json out.json"
    )


def run(args: argparse.Namespace) -> int:
    """Score every system; the output has the form of ``comet-score``'s."""
    from mbr_esd_metric.metric.metric import Metric, losses, mean, warnings
    from mbr_esd_metric.metric.pipeline import Segment

    metric = Metric(card_of(args))
    if args.to_json:
        check_output(args.to_json, [args.sources, *args.translations, metric.card.candidates])
    check_given_once(args.translations, "translations", "-t ")
    sources = read_segments(args.sources)
    systems = {path: read_translations(path, args.sources, sources) for path in args.translations}
    names = short_names(args.translations, lambda file: Path(file).stem)
    segments = [
        Segment(source, translation, f"segment {number} of {path}", name)
        for name, (path, translations) in zip(names, systems.items(), strict=True)
        for number, (source, translation) in enumerate(zip(sources, translations, strict=True), 1)
    ]
    trial = trial_of(args)
    if trial is not None:
        return print_estimates(metric.card, segments, trial)
    prediction = metric.predict_segments(segments, progress=not args.quiet)
    if not args.quiet:
        print(f"{prediction.metadata.signature}\n{losses(prediction.metadata)}", file=sys.stderr)
        if suspects := warnings(prediction.metadata, metric.card.decision.blank):
            print(suspects, file=sys.stderr)

    samples = [{"src": segment.source, "mt": segment.translation} for segment in segments]
    spans, suspects, data = prediction.metadata.error_spans, prediction.metadata.suspects, {}
    for number, path in enumerate(systems):
        part = slice(number * len(sources), (number + 1) * len(sources))
        data[path] = _rows(samples[part], prediction.scores[part], spans[part], suspects[part])
    if not args.only_system:
        for index in range(len(sources)):
            for path, rows in data.items():
                print(f"{path}\tSegment {index}\tscore: {rows[index]['COMET']:.4f}")
    for path, rows in data.items():
        print(f"{path}\tscore: {mean([row['COMET'] for row in rows]):.4f}")
    if args.to_json:
        content = {path: [_without_nan(row) for row in rows] for path, rows in data.items()}
        write_whole(args.to_json, json_text(content, indent=4))
        print(f"Predictions saved in: {args.to_json}.")
    return 0


def read_translations(path: str, source_path: str, sources: Sequence[str]) -> list[str]:
    """The translations in a file, one for each source.

    Raises:
        InputError: more or fewer lines than the source file.
    """
    translations = read_segments(path)
    if len(translations) != len(sources):
        raise InputError(
            f"{path} has {len(translations)} lines and {source_path} has {len(sources)}; "
            "give one translation a source line"
        )
    return translations


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON has it, which knows no NaN: the score of a pair that was left out is null."""
    return row | {"COMET": None} if math.isnan(row["COMET"]) else row


def _rows(
    samples: Sequence[dict[str, str]],
    scores: Sequence[float],
    spans: Sequence[list[Any]],
    suspects: Sequence[str | None],
) -> list[dict[str, Any]]:
    rows = []
    for sample, score, errors, suspect in zip(samples, scores, spans, suspects, strict=True):
        row: dict[str, Any] = {**sample, "COMET": score}
        if errors:
            row["errors"] = errors
        if suspect is not None:
            row["suspect"] = suspect
        rows.append(row)
    return rows
