"""Decisions for a whole file of candidates: streaming, in order, over several processes.

Memory use does not grow with the number of segments, except for the statistics of a rule over the whole file
(`mbr-corpus`). The output file is created when all lines are complete.
"""

from __future__ import annotations

import gc
import json
import math
import multiprocessing
import os
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from mbr_esd_metric.core.corpus_rules import CorpusRule
from mbr_esd_metric.core.corrections import not_applied
from mbr_esd_metric.core.decision import Decision, mostly_lost
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.panel import Panel
from mbr_esd_metric.core.rules import Choice
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.cores import available_cores
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import (
    Case,
    annotator_scores,
    blank_decision,
    decide_cases,
    decision_of,
    decision_problem,
)
from mbr_esd_metric.decoding.signature import signature_of_file
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, labelled
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.files.records import (
    CandidateRecord,
    DecisionRecord,
    candidate_record,
    json_line,
    raw_records,
    read_candidates,
)
from mbr_esd_metric.files.streams import whole_file
from mbr_esd_metric.log import progress_bar
from mbr_esd_metric.prompting.text import is_blank, is_untranslated

#: Records per block of work, and bytes of the file per worker.
_RECORDS, PIECE_BYTES = 16, 1 << 21
#: Seconds until a worker notices that its parent has ended.
_WATCH_SECONDS = 0.5
#: Format of an option in the first line of a file, for messages.
_option_of_line = '"decision": {} {}'.format
#: An item of `raw_records`.
_Item: TypeAlias = "tuple[str, bytes | list[Any]]"
_T = TypeVar("_T")


def file_options(
    path: str | Path,
    changes: Mapping[str, str] = {},
    spell: Callable[[str, str], str] = _option_of_line,
    usual: DecisionOptions = DecisionOptions(),
) -> DecisionOptions:
    """The options for deciding a candidates file: those in its first line (or `usual`), with the user's changes;
    `spell` formats an option and its value for messages. Raises `InputError` for an unknown option or value in the
    file's "decision", and `OptionError` for an invalid value or an option without effect."""
    first = _first_record(path)
    if first is not None and first.decision is not None:
        try:
            usual = DecisionOptions().changed(first.decision, _option_of_line)
        except OptionError as error:
            raise InputError(f"{path}, {first.label}: {error}") from None
    return usual.changed(changes, spell)


def _first_record(path: str | Path) -> CandidateRecord | None:
    """The first valid record; malformed records before it are reported when they are decided."""
    for where, value in raw_records(path):
        with suppress(InputError):
            return candidate_record(where, value)
    return None


def decided_records(path: str | Path, options: DecisionOptions) -> Iterator[tuple[CandidateRecord, Decision | None]]:
    """Each record of a file and its decision; None for a skipped translation or one without a valid candidate. A rule
    for the whole file reads it into memory. Error messages name file and segment."""
    if options.weights == "agreement":
        options = replace(options, weights=file_panel(path, options))
    records: deque[CandidateRecord] = deque()

    def cases() -> Iterator[Case[Decision | NoValidCandidateError]]:
        first: Mapping[str, str] | None = None
        for number, record in enumerate(read_candidates(path)):
            first = record.decision if not number else first
            records.append(record)
            yield _case(f"{path}, {record.label}", record, options, first)

    unread = None if options.whole_set else lambda _, error: error
    for outcome in decide_cases(cases(), options, unread):
        yield records.popleft(), outcome if isinstance(outcome, Decision) else None


def file_panel(path: str | Path, options: DecisionOptions, workers: int = 1) -> Panel:
    """The weights that `weights=agreement` learns from a candidates file, using this number of processes. Invalid
    records are skipped here, and reported when they are decided."""
    return Panel.learnt([*_over_blocks(raw_records(path), partial(_annotator_scores, options=options), workers)])


def _annotator_scores(block: Sequence[_Item], options: DecisionOptions) -> list[dict[str, float]]:
    """The scores by annotator of each record of a block, without blank translations."""
    scores = []
    for where, value in block:
        with suppress(InputError):
            record = candidate_record(where, value)
            segment = record.segment
            if not is_blank(segment.translation):
                scores.append(annotator_scores(record.columns, segment.translation, options, segment.source))
    return scores


@dataclass(slots=True)
class FileSummary:
    """Counts of a run.

    Attributes:
        segments: decisions written.
        skipped: the reason for each skipped record, with file and line.
        counts: sums over the decided segments: "valid", "invalid", "located", "dropped", "inexact" and "malformed" as
            in `Decision`; "unsure" segments; "blank" translations; corrections "not_applied".
        reasons: reason -> number of invalid candidates.
        scores: at most two different scores of segments.
        ratios: for a rule over the whole file, the maximised value after each iteration.
        signature: the signature of the decisions.
    """

    segments: int = 0
    skipped: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    scores: set[float | None] = field(default_factory=set)
    ratios: tuple[float, ...] = ()
    signature: Signature | None = None

    @property
    def mostly_lost(self) -> bool:
        """See `segment.mostly_lost`."""
        candidates = self.counts["valid"] + self.counts["invalid"]
        return mostly_lost(candidates, self.counts["located"], self.counts["dropped"])

    @property
    def score(self) -> float | None:
        """The common score of all segments, if there are several with the same score; otherwise None."""
        return next(iter(self.scores)) if len(self.scores) == 1 < self.segments else None

    def add(self, line: _Line) -> bool:
        """Count a line; returns False for a skipped one."""
        if line.skipped is not None:
            self.skipped.append(line.skipped)
            return False
        self.segments += 1
        self.counts.update(line.counts)
        self.reasons.update(line.reasons)
        if len(self.scores) < 2:
            self.scores.add(line.score)
        return True


def decide_file(
    candidates: str | Path,
    output: str | Path,
    options: DecisionOptions | None = None,
    *,
    workers: int = 1,
    skip_invalid: bool = False,
    progress: bool = False,
) -> FileSummary:
    """Decide every segment of a candidates file (JSON lines or `*.gen.json`), in parallel processes. The suffix of a
    file determines its compression.

    Args:
        options: rule, utility and so on; None for the options in the file.
        skip_invalid: skip records that are malformed or have no valid candidate, instead of raising.

    Raises:
        InputError: a malformed record (with file and line), an empty file, or an output that cannot be written or is
            the input.
        NoValidCandidateError: a segment without a valid candidate (with file, line and segment).
    """
    check_output(output, [candidates])
    first = _first_record(candidates)
    decision = None if first is None else first.decision
    options = file_options(candidates) if options is None else options
    if options.weights == "agreement":
        options = replace(options, weights=file_panel(candidates, options, workers))
    rules = _Rules(options, decision, signature_of_file(candidates, options))
    work = partial(_decide_block, rules=rules, skip_invalid=skip_invalid)
    lines = _over_blocks(raw_records(candidates), work, workers)
    summary = FileSummary(signature=rules.signature)
    with whole_file(output) as file:
        shown = progress_bar("deciding", " segments", iterable=lines, shown=progress)
        if isinstance(options.rule_instance, CorpusRule):
            _choose_together(shown, options.rule_instance, summary, file.write)
        else:
            for line in shown:
                if summary.add(line):
                    file.write(line.content)
        if not summary.segments and not summary.skipped:
            raise InputError(
                f"{candidates} contains no segment; it must have one JSON object per line, as written by mbr-esd sample"
            )
    return summary


def workers_for(candidates: str | Path) -> int:
    """The number of processes for a file, at most the number of available cores."""
    busy = os.path.getsize(candidates) // PIECE_BYTES if os.path.isfile(candidates) else 1
    return max(1, min(available_cores(), busy))


def _choose_together(
    lines: Iterable[_Line], rule: CorpusRule, summary: FileSummary, write: Callable[[bytes], object]
) -> None:
    """Write the decisions of a rule for the whole file; options are kept in a temporary file until the rule has
    chosen."""
    statistics: list[Floats] = []
    with tempfile.TemporaryFile() as waiting:
        for line in lines:
            if summary.add(line):
                waiting.write((b"?" if line.statistics is not None else b"=") + line.content)
                if line.statistics is not None:
                    statistics.append(line.statistics)
        choice = rule.settle(statistics) if statistics else None
        summary.ratios = () if choice is None else choice.ratios
        chosen = iter(() if choice is None else zip(statistics, choice.chosen.tolist(), strict=True))
        waiting.seek(0)
        for content in waiting:
            if content.startswith(b"?") and choice is not None:
                of_segment, at = next(chosen)
                decision = json.loads(content[1:])[at]
                summary.counts["unsure"] += "unsure" in decision
                decision["expected_utility"] = float(rule.values(of_segment, choice)[at])
                write(json_line(decision))
            else:
                write(content[1:])


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the decisions file with its counts, or the reason why its record was skipped. With a rule for the whole
    file, a list of possible decisions with their statistics."""

    content: bytes
    counts: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    score: float | None = None
    skipped: str | None = None
    statistics: Floats | None = None


@dataclass(frozen=True, slots=True)
class _Rules:
    """Settings for each record of a file: the options, the "decision" of its first line, and the signature."""

    options: DecisionOptions
    first: Mapping[str, str] | None
    signature: Signature


def _over_blocks(
    records: Iterable[_Item], work: Callable[[Sequence[_Item]], Sequence[_T]], workers: int
) -> Iterator[_T]:
    """The results of `work` on blocks of records, in order, using this number of processes."""
    left = iter(records)
    blocks = iter(lambda: list(islice(left, _RECORDS)), [])
    if workers <= 1:
        for block in blocks:
            yield from work(block)
        return
    with ProcessPoolExecutor(workers, initializer=_begin_worker) as pool:
        waiting: deque[Future[Sequence[_T]]] = deque()
        try:
            for block in blocks:
                waiting.append(pool.submit(work, block))
                if len(waiting) > 2 * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            # Running tasks must end before the interpreter does.
            pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker() -> None:
    """End this worker when its parent ends, even by kill -9; otherwise it would wait for work forever."""
    # A block creates a million small objects and no cycles; garbage collection would take an eighth of the time.
    gc.set_threshold(1_000_000)
    # Check both: a worker forked later keeps the sentinel of an earlier one open, and the parent may have ended before
    # its id is first read.
    started_by, parent = os.getppid(), multiprocessing.parent_process()

    def watch() -> None:
        while os.getppid() == started_by and parent is not None and parent.is_alive():
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _decide_block(block: Sequence[_Item], rules: _Rules, skip_invalid: bool) -> list[_Line]:
    """The lines of a block; raises for the first record that stops the run."""
    lines: list[_Line] = []
    for where, value in block:
        try:
            lines.append(_line(where, value, rules))
        except (InputError, NoValidCandidateError) as error:
            if not skip_invalid:
                fix = "fix the line, or skip such lines with --skip-invalid (in Python skip_invalid=True)"
                raise type(error)(f"{error}; {fix}") from None
            lines.append(_Line(b"", skipped=str(error)))
    return lines


def _line(where: str, value: bytes | list[Any], rules: _Rules) -> _Line:
    options, signature = rules.options, rules.signature
    record = candidate_record(where, value)
    with labelled(f"{where}, {record.label}"):
        case = _case("", record, options, rules.first)
        if options.blank == "skip" and is_untranslated(record.segment.source, record.segment.translation):
            return _Line(b"", skipped=f"{record.label}: a blank translation (blank=skip)")
        if isinstance(options.rule_instance, CorpusRule) and case.known is None:
            statistics, decisions = _shortlisted(case, options.rule_instance, options)
            lines = [DecisionRecord.of(record, one, signature).to_json() for one in decisions]
            content = json.dumps(lines).encode() + b"\n"
            return _Line(content, _counts(decisions[0]), decisions[0].reasons, statistics=statistics)
        [decision] = decide_cases([case], options)
        content = json_line(DecisionRecord.of(record, decision, signature).to_json())
        return _Line(content, {**_counts(decision), "unsure": int(decision.unsure)}, decision.reasons, decision.score)


def _shortlisted(case: Case[Decision], rule: CorpusRule, options: DecisionOptions) -> tuple[Floats, list[Decision]]:
    """The statistics of a segment's possible answers, and the decision for each, without utilities."""
    problem, counts = decision_problem(case, options)
    statistics = rule.statistics(problem)
    shortlist = rule.shortlist(problem, statistics)
    unknown = np.full(len(statistics), np.nan)
    choices = [Choice(answer, unknown, math.nan) for answer in shortlist.answers]
    return shortlist.statistics, [decision_of(problem, counts, one, options) for one in choices]


def _counts(decision: Decision) -> dict[str, int]:
    counts = {
        name: getattr(decision, name) for name in ("valid", "invalid", "located", "dropped", "inexact", "malformed")
    }
    # A segment without valid candidates stops the run, unless its translation is blank.
    counts["not_applied"] = not_applied(decision.annotation)
    return counts | {"blank": int(not decision.valid + decision.invalid)}


def _case(label: str, record: CandidateRecord, options: DecisionOptions, first: Mapping[str, str] | None) -> Case[Any]:
    """The record as a segment to decide. `first` is the "decision" of the first line."""
    if record.decision is not None and record.decision != first:
        raise InputError(
            f'{label and f"{label}: "}its "decision" is {dict(record.decision)}, and that of the first line '
            f"{first and dict(first)}; give each a file of its own"
        )
    blank = blank_decision(record.segment.source, record.segment.translation, options)
    return Case(label, record.columns, record.segment.translation, record.segment.source, known=blank)
