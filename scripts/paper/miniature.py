#!/usr/bin/env python3
"""The whole paper in miniature, with real human annotations and a model with 135M parameters on a CPU.

    python scripts/paper/miniature.py --size full --data FOLDER --work FOLDER      (about FOLDER: --help)

Stages: data, sft, sample, decide, pairs, dpo, distilled, table. Stages with results in the work
folder are skipped, and sampling and training can be resumed, so the same command continues after an interruption.
Training uses the command of TRL. Requires the extras transformers and train.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from miniature_data import BIO, CARD, COLUMNS, LP, SIZES, TED, TRAINED, WMT, Corpus, Size, TestSet, load_corpus

from mbr_esd_metric.cli.sample import sample
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.decision import Candidate, CandidateColumns
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.distill.training_folder import Method, held_out, write_training_folder
from mbr_esd_metric.distill.training_rows import TrainingRow, examples_signature, make_pairs, pairs_signature
from mbr_esd_metric.errors import InputError, MbrEsdError
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, write_records
from mbr_esd_metric.generation.engine import Refused
from mbr_esd_metric.metaeval.choosing import Sampled, choose_all
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, compute_leaderboard
from mbr_esd_metric.metaeval.metric_set import MetricEntry, MetricSet
from mbr_esd_metric.metric.card import ModelCard, with_options
from mbr_esd_metric.metric.cards import get_card, load_card
from mbr_esd_metric.report.leaderboard_table import leaderboard_table
from mbr_esd_metric.report.tables import render_all

#: The base model.
DEMO_MODEL = get_card("mbr-esd-demo").model
#: The rules in the tables; `mbr` is followed by its utility.
RULES = ("map", "majority", "mbr scoresim", "mbr f1", "mbr softf1", "mbr softdice", "mbr-corpus")


@dataclass(frozen=True)
class Run:
    """A work folder and its stages."""

    size: Size
    data: Path
    work: Path

    @cached_property
    def corpus(self) -> Corpus:
        """The annotations, cached."""
        return load_corpus(self.data, self.size, self.base)

    @property
    def base(self) -> ModelCard:
        """The base model for supervised fine-tuning."""
        return with_options(load_card("mbr-esd-llama"), {"model": DEMO_MODEL, **CARD})

    def path(self, name: str) -> Path:
        """A file in the work folder."""
        return self.work / name

    def card(self, model: str, **options: object) -> ModelCard:
        """The model in a subfolder of the work folder."""
        fixed = {"engine": "transformers", "lp": LP, "dtype": "bfloat16", **CARD, "max_tokens": self.size.max_tokens}
        return with_options(load_card(str(self.path(model))), {**fixed, **options})


def run_data(run: Run) -> None:
    """data.json: the sizes of the splits; for the test sets, the systems, sources and raters."""
    corpus = run.corpus
    learnt = {row.source for part in corpus.examples for row in part.rows}
    learnt |= {segment.source for segment in corpus.paired}
    shared = learnt & {segment.source for test in corpus.tests for segment in test.flat}
    if shared:
        raise InputError(f"{len(shared)} sources are on both sides, such as {min(shared)[:60]!r}")
    summary = {
        "learnt": sum(len(part.rows) for part in corpus.examples),
        "without_error": sum(part.clean for part in corpus.examples),
        "inexpressible_errors": sum(part.inexpressible for part in corpus.examples),
        "paired_translations": len(corpus.paired),
        "tests": {t.name: [len(t.systems), len(t.segments[0]), len(t.raters)] for t in corpus.tests},
    }
    _write(run.path("data.json"), summary)


def _trained(
    run: Run,
    method: Method,
    folder: str,
    rows: Sequence[TrainingRow],
    card: ModelCard,
    signature: Signature,
    changes: Mapping[str, object],
    *,
    greedy: bool = True,
) -> dict[str, float]:
    """Write a training folder, train its adapter with TRL, and return statistics of the run; can be resumed."""
    place = run.path(folder)
    write_training_folder(place, method, rows, held_out([row.source for row in rows]), card, signature, greedy=greedy)
    settings = {**TRAINED, **changes}
    command = [str(Path(sys.executable).with_name("trl")), method, "--config", str(place / f"{method}-lora.yaml")]
    command += [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    before = sorted(place.glob("lora/checkpoint-*/trainer_state.json"), key=_step)
    if before:
        command += ["--resume_from_checkpoint", str(before[-1].parent)]
    subprocess.run(command, check=True, env={**os.environ, "HF_DATASETS_CACHE": str(run.path("datasets"))})
    last = max(place.glob("lora/checkpoint-*/trainer_state.json"), key=_step)
    log = json.loads(last.read_text("utf-8"))["log_history"]
    losses = [entry["loss"] for entry in log if "loss" in entry]
    checked = [entry["eval_loss"] for entry in log if "eval_loss" in entry]
    margins = [entry["rewards/margins"] for entry in log if "rewards/margins" in entry]
    figures = {"rows": len(rows), "updates": log[-1]["step"], "first_loss": losses[0], "last_loss": losses[-1]}
    return figures | {"validation_loss": min(checked)} | ({"last_margin": margins[-1]} if margins else {})


def _step(state: Path) -> int:
    return int(state.parent.name.rpartition("-")[2])


def run_sft(run: Run) -> None:
    """sft/lora: the model for sampling."""
    rows = [row for part in run.corpus.examples for row in part.rows]
    figures = _trained(run, "sft", "sft", rows, run.base, examples_signature(run.base), run.size.sft, greedy=False)
    _write(run.path("sft.json"), figures)


def run_sample(run: Run) -> None:
    """NAME.candidates.jsonl and NAME.greedy.candidates.jsonl for each test set.

    Smaller sizes are sampled and written first, so that an interrupted run can be evaluated. Sizes that the engine
    decodes in one group are sampled together.
    """
    wmt, ted = run.corpus.tests
    sizes = [size for size in run.size.n if size >= 16] or [run.size.n[-1]]
    _candidates(run, "wmt23", run.card("sft/lora", n=sizes[0]), wmt.flat)
    _candidates(run, "wmt23.greedy", run.card("sft/lora", rule="greedy", n=1), wmt.flat)
    _candidates(run, "ted", run.card("sft/lora", n=run.size.ted_n), ted.flat)
    _candidates(run, "ted.greedy", run.card("sft/lora", rule="greedy", n=1), ted.flat)
    for size in sizes[1:]:
        _candidates(run, "wmt23", run.card("sft/lora", n=size), wmt.flat)


def _candidates(run: Run, name: str, card: ModelCard, segments: Sequence[Segment]) -> None:
    """Sample and write the candidates of all translations."""
    _sample(card, segments)
    records = [
        CandidateRecord(replace(segment, label=str(number)), CandidateColumns.of(row), lp=LP)
        for number, (segment, row) in enumerate(zip(segments, _stored(card, segments), strict=True))
    ]
    write_records(run.path(f"{name}.candidates.jsonl"), records)


def _sample(card: ModelCard, segments: Sequence[Segment]) -> None:
    """Fill the store."""
    for _ in sample(card, segments, progress=True):
        pass


def _stored(card: ModelCard, segments: Sequence[Segment]) -> list[list[Candidate]]:
    return [row for _, row in sample(card, segments) if not isinstance(row, Refused)]


def _records(run: Run, name: str) -> Iterator[CandidateRecord]:
    return read_candidates(run.path(f"{name}.candidates.jsonl"))


def _read(run: Run, name: str) -> list[tuple[Candidate, ...]]:
    return [record.candidates for record in _records(run, name)]


def _sizes(run: Run, test: TestSet) -> tuple[int, ...]:
    have = min(len(row) for row in _read(run, test.name))
    return tuple(size for size in (run.size.n if test.name == "wmt23" else (run.size.ted_n,)) if size <= have)


def _options(rule: str, utility: str = "softf1") -> DecisionOptions:
    """Those of a row; spans are placed as in the paper."""
    return DecisionOptions(rule, utility, location="first")


def run_decide(run: Run) -> None:
    """decisions.json: test set -> row of the table -> spans, by system."""
    result: dict[str, Any] = {}
    for test in run.corpus.tests:
        candidates = _read(run, test.name)
        greedy = _sampled(test, _read(run, f"{test.name}.greedy"))
        rows: dict[str, Any] = {"empty": choose_all(greedy, _options("empty"))}
        rows["greedy"] = choose_all(greedy, _options("map"))
        for size in _sizes(run, test):
            sampled = _sampled(test, [row[:size] for row in candidates])
            for rule in RULES:
                kind, _, utility = rule.partition(" ")
                rows[f"{rule} {size}"] = choose_all(sampled, _options(kind, utility or "softf1"))
            for utility in ("softf1", "softdice"):
                rows[f"oracle {utility} {size}"] = choose_all(sampled, _options("oracle", utility), None, test.raters)
        result[test.name] = {name: _as_json(matrix) for name, matrix in rows.items()}
    _write(run.path("decisions.json"), result)


def _as_json(matrix: Sequence[Sequence[Annotation | None]]) -> list[list[list[dict[str, Any]]]]:
    return [[[dataclasses.asdict(span) for span in annotation or ()] for annotation in row] for row in matrix]


def _sampled(test: TestSet, candidates: Sequence[Sequence[Candidate]]) -> list[list[Sampled]]:
    return test.matrix([Sampled(s.translation, _usable(c)) for s, c in zip(test.flat, candidates, strict=True)])


def _usable(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """The candidates; if none is valid, one with "no error", as with `invalid=empty`."""
    if all(c.truncated for c in candidates):
        return [dataclasses.replace(c, text=None, annotation=(), truncated=False) for c in candidates]
    return candidates


def run_distilled(run: Run) -> None:
    """distilled.json: the decisions, and the distilled model's greedy answers."""
    decisions = json.loads(run.path("decisions.json").read_text("utf-8"))
    card = run.card("dpo/lora")
    for test in run.corpus.tests:
        _sample(card, test.flat)
        rows = _sampled(test, _stored(card, test.flat))
        decisions[test.name]["distilled greedy"] = _as_json(choose_all(rows, _options("map")))
    _write(run.path("distilled.json"), decisions)


def run_pairs(run: Run) -> None:
    """pairs.txt: preference pairs from the candidates of translations outside the test sets."""
    _candidates(run, "paired", run.card("sft/lora", n=run.size.pair_n), run.corpus.paired)
    pairs = make_pairs(_records(run, "paired"), run.card("sft/lora"))
    run.path("pairs.txt").write_text(pairs.report + "\n", encoding="utf-8")
    print(pairs.report)


def run_dpo(run: Run) -> None:
    """dpo/lora: the fine-tuned model, trained with DPO on the pairs."""
    card = run.card("sft/lora")
    pairs = make_pairs(_records(run, "paired"), card)
    _write(run.path("dpo.json"), _trained(run, "dpo", "dpo", pairs.rows, card, pairs_signature(card), run.size.dpo))


def run_table(run: Run) -> None:
    """table.json and table.md: leaderboards of the test sets; daggers mark gains over MAP and majority at the same
    N."""
    settings = LeaderboardSettings(measures=COLUMNS, against=("map", "majority"))
    tables = []
    for test in run.corpus.tests:
        decisions = json.loads(run.path("distilled.json").read_text("utf-8"))[test.name]
        entries = []
        for name, rows in decisions.items():
            rule, _, size = name.rpartition(" ")
            spans = [[Annotation(cell) for cell in row] for row in rows]
            signature = Signature("mbr-esd", (("d", rule.split()[0]), ("n", size))) if size.isdigit() else None
            entries.append(MetricEntry.of_spans(name, spans, signature))
        lengths = np.array([[len(segment.translation) for segment in row] for row in test.segments])
        data = MetricSet(LP, np.array(test.gold), lengths, test.raters, entries)
        tables.append(leaderboard_table(compute_leaderboard(test.name, [data], settings), "column"))
    for form, ending in (("json", "json"), ("markdown", "md")):
        run.path(f"table.{ending}").write_text(render_all(tables, form), encoding="utf-8")
    print(render_all(tables))


def _write(path: Path, value: object) -> None:
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps(value, indent=1), encoding="utf-8")
    part.replace(path)


#: Stage -> its function, and the file that marks it as complete.
_STAGES: dict[str, tuple[Callable[[Run], None], str]] = {
    "data": (run_data, "data.json"),
    "sft": (run_sft, "sft.json"),
    "sample": (run_sample, "sampled"),
    "decide": (run_decide, "decisions.json"),
    "pairs": (run_pairs, "pairs.txt"),
    "dpo": (run_dpo, "dpo.json"),
    "distilled": (run_distilled, "distilled.json"),
    "table": (run_table, "table.md"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the requested stages that are not complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(SIZES), default="ci", help="size of the run (default: %(default)s)")
    parser.add_argument("--data", type=Path, required=True, help=f"folder of {WMT}, {TED} and {BIO}")
    parser.add_argument("--work", type=Path, required=True, help="folder for all results")
    parser.add_argument(
        "--stages", nargs="+", choices=_STAGES, default=list(_STAGES), help="default: all, in this order"
    )
    parser.add_argument("--again", action="store_true", help="run the named stages even if their results exist")
    args = parser.parse_args(argv)
    args.work.mkdir(parents=True, exist_ok=True)
    run = Run(SIZES[args.size], args.data, args.work)
    os.environ["MBR_ESD_STORE"] = str(run.path("candidates.sqlite"))
    clock = run.path("time.json")
    for stage in args.stages:
        work, done = _STAGES[stage]
        if run.path(done).exists() and not args.again:
            continue
        print(f"== {stage}", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            work(run)
        except MbrEsdError as error:
            print(f"miniature: {stage}: {error}", file=sys.stderr)
            return 1
        finally:
            spent = json.loads(clock.read_text("utf-8")) if clock.exists() else {}
            _write(clock, spent | {stage: spent.get(stage, 0.0) + time.monotonic() - began})
        run.path(done).touch()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
