"""A verb: `mbr-esd example-count FILE` counts the error spans of a scored file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mbr_esd_metric.cli.verbs import Verb

VERB = Verb("example-count", "count the error spans of a scored file", __name__)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="written by mbr-esd score --to_json")
    parser.epilog = "example:\n  mbr-esd example-count out.json"


def run(args: argparse.Namespace) -> int:
    for system, rows in json.loads(args.file.read_text(encoding="utf-8")).items():
        print(system, sum(len(row["errors"]) for row in rows))
    return 0
