"""Decisions for a whole file of candidates: streaming, in order, over several processes, resumable.

A run writes to ``OUT.partial``: for each record its checksum and the decision. It renames the file to OUT when all
lines are there, so OUT is never incomplete. If a run was stopped, or stopped at a malformed line, the next one
goes on from there, as long as the records that are done have not changed. Memory does not grow with the number of
segments, except for the numbers that a rule over the whole file (`mbr-corpus`) needs.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import re
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mbr_esd_metric.core.corpus_choice import CorpusChoice
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.rules import CorpusRule
from mbr_esd_metric.decoding.blank import blank_decision
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import corpus_segment, decide_segment
from mbr_esd_metric.errors import InputError, MbrEsdError, NoValidCandidateError, OptionError
from mbr_esd_metric.files.journal import Journal
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.files.progress import progress_bar
from mbr_esd_metric.files.records import CandidateRecord, DecisionRecord, candidate_record, json_line, raw_records
from mbr_esd_metric.files.streams import open_binary, whole_file

#: Workers get blocks of about this many bytes.
_BLOCK = 1 << 21
#: Characters of a record's checksum.
_CHECKSUM = 8
#: Seconds until a worker sees that its parent has ended.
_WATCH_SECONDS = 0.5
_SCORE = re.compile(rb'"score": (-?[0-9.]+)[,}]')
_SKIPPED = b'{"skipped"'
_STATISTICS = b'{"statistics"'
#: The end of a decision's line.
_COUNTS = re.compile(rb'"valid": (\d+), "distinct": \d+, "invalid": (\d+)\}\n$')


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What a run did.

    Attributes:
        segments: decisions written.
        skipped: why records were left out, each naming file and line.
        candidates, invalid: of the segments decided.
        blank: of the segments decided, those with a blank translation.
        score: that of every segment, if they all have the same and there are several; else None.
        ratios: of a rule that decides over the whole file, what it maximises after each pass.
    """

    segments: int
    skipped: tuple[str, ...]
    candidates: int
    invalid: int
    ratios: tuple[float, ...] = ()
    blank: int = 0
    score: float | None = None


def decide_file(
    candidates: str | Path,
    output: str | Path,
    options: DecisionOptions,
    *,
    workers: int = 1,
    skip_invalid: bool = False,
    progress: bool = False,
) -> FileSummary:
    """Decide every segment of a candidates file.

    Args:
        candidates: JSON lines or `*.gen.json`, plain or compressed.
        output: where the decisions go, compressed by suffix.
        options: rule, utility and so on.
        workers: processes that parse and decide.
        skip_invalid: leave out records that are malformed or have no valid candidate, instead of stopping.
        progress: show a bar on standard error.

    Raises:
        InputError: a malformed record (file and line), no record at all, an unfinished run with other options or
            records in the way, or an output that cannot be written or is the input.
        NoValidCandidateError: a segment without a valid candidate (file, line and segment).
        OptionError: a rule that needs human annotations, which a candidates file does not hold.
    """
    if options.decided_by.needs_references:
        raise OptionError(f"the rule {options.rule!r} needs human annotations, which a candidates file does not hold")
    output = Path(output)
    unfinished = output.with_name(output.name + ".partial")
    for path in (output, unfinished):
        check_output(path, [candidates])
    header = json_line({"candidates": str(Path(candidates).resolve()), "options": options.described()})
    with Journal(unfinished, output, header, _CHECKSUM) as journal:
        if journal.done:
            _check_done(journal, candidates)
        blocks = _blocks(Path(candidates), journal.done)
        lines = _decided(blocks, options, workers, skip_invalid)
        for checksum, line in progress_bar("deciding", " segments", iterable=lines, done=journal.done, shown=progress):
            journal.append(checksum, line)
        if not journal.done:
            raise InputError(f"{candidates} holds no segment; give one JSON object a line (mbr-esd sample writes them)")
        summary = _finish(journal, output, options)
        journal.remove()
    return summary


def _check_done(journal: Journal, candidates: str | Path) -> None:
    """Make sure that the entries of an unfinished run were made from the records that the file now begins with."""
    records = raw_records(candidates)
    for checksum, _ in journal.entries():
        where, value = next(records, (f"{candidates}, which is shorter", b""))
        if checksum != _checksum(value):
            raise journal.other(f"they differ from {where}")


def _checksum(value: bytes | list[Any]) -> bytes:
    """The checksum of a record without its line end. It only has to show whether a record was edited. CRC-32 takes a
    third of the time of a cryptographic digest, which took a tenth of the run."""
    content = value.strip() if isinstance(value, bytes) else json.dumps(value).encode()
    return b"%08x" % zlib.crc32(content)


#: The checksum of a record, and the line made from it.
_Entry: TypeAlias = "tuple[bytes, bytes]"


def _decided(blocks: Iterable[_Block], options: DecisionOptions, workers: int, skip_invalid: bool) -> Iterator[_Entry]:
    """One entry a record, in order."""
    work = partial(_decide_block, options=options, skip_invalid=skip_invalid)
    if workers <= 1:
        for block in blocks:
            lines, error = work(block)
            yield from lines
            if error is not None:
                raise error
        return
    with ProcessPoolExecutor(workers, initializer=_end_with_parent) as pool:
        waiting: deque[Future[tuple[list[_Entry], MbrEsdError | None]]] = deque()
        try:
            for block in blocks:
                waiting.append(pool.submit(work, block))
                if len(waiting) > 2 * workers:
                    yield from _result(waiting.popleft())
            while waiting:
                yield from _result(waiting.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """End this worker when its parent ends, even by kill -9. Otherwise it would wait for work forever.

    The parent's process id is looked at besides, as a worker that was forked later keeps the sentinel of an earlier
    one open, and the sentinel, as the parent may be gone before the first look.
    """
    started_by, parent = os.getppid(), multiprocessing.parent_process()

    def watch() -> None:
        while os.getppid() == started_by and parent is not None and parent.is_alive():
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _result(future: Future[tuple[list[_Entry], MbrEsdError | None]]) -> Iterator[_Entry]:
    lines, error = future.result()
    yield from lines
    if error is not None:
        raise error


def _blocks(path: Path, done: int) -> Iterator[_Block]:
    """The records after the first `done`, in blocks of about `_BLOCK` bytes."""
    if path.suffix in (".gz", ".zst") or path.name.endswith(".gen.json"):
        yield from _carried(islice(raw_records(path), done, None))
        return
    next(raw_records(path), None)  # raises for a file of another kind
    with open_binary(path) as file:
        offset = number = 0
        while done and (line := file.readline()):
            done -= bool(line.strip())
            offset, number = offset + len(line), number + 1
        while lines := file.read(_BLOCK):
            lines += file.readline()
            yield _Stretch(path, offset, len(lines), number)
            offset, number = offset + len(lines), number + lines.count(b"\n")


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Whole lines of an uncompressed file, for a worker to read: cheaper than sending them to it.

    Attributes:
        offset, size: in bytes.
        number: lines before it.
    """

    path: Path
    offset: int
    size: int
    number: int

    def __iter__(self) -> Iterator[tuple[str, bytes | list[Any]]]:
        with open_binary(self.path) as file:
            file.seek(self.offset)
            lines = file.read(self.size).split(b"\n")
        for number, line in enumerate(lines, self.number + 1):
            if line.strip():
                yield f"{self.path}, line {number}", line


#: Records of `raw_records`, or where to read them.
_Block: TypeAlias = "list[tuple[str, bytes | list[Any]]] | _Stretch"


def _carried(records: Iterable[tuple[str, bytes | list[Any]]]) -> Iterator[_Block]:
    block: list[tuple[str, bytes | list[Any]]] = []
    size = 0
    for where, value in records:
        block.append((where, value))
        # Of a decoded list only the number of candidates is known; some 300 bytes each is usual.
        size += len(value) if isinstance(value, bytes) else 300 * len(value[2])
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _decide_block(
    block: _Block, options: DecisionOptions, skip_invalid: bool
) -> tuple[list[_Entry], MbrEsdError | None]:
    """The lines of a block, up to the first record that stops the run, and why it does."""
    # A block makes a million small objects and no cycles. The search for cycles would take an eighth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _lines_of(block, options, skip_invalid)
    finally:
        if collecting:
            gc.enable()


def _lines_of(block: _Block, options: DecisionOptions, skip_invalid: bool) -> tuple[list[_Entry], MbrEsdError | None]:
    lines: list[_Entry] = []
    for where, value in block:
        try:
            record = candidate_record(where, value)
            try:
                lines.append((_checksum(value), _decide(record, options)))
            except (InputError, NoValidCandidateError) as error:
                raise type(error)(f"{where}, {record.label}: {error}") from None
        except (InputError, NoValidCandidateError) as error:
            if not skip_invalid:
                fix = "fix the line, or leave such lines out with --skip-invalid (in Python skip_invalid=True)"
                return lines, type(error)(f"{error}; {fix}")
            lines.append((_checksum(value), json_line({"skipped": str(error)})))
    return lines, None


def _decide(record: CandidateRecord, options: DecisionOptions) -> bytes:
    blank = blank_decision(record.src, record.mt, options)
    if blank is not None and options.blank == "skip":
        return json_line({"skipped": f"{record.label}: a blank translation (blank=skip)"})
    source = options.source_of(record.src, record.columns.format)
    if blank is None and options.whole_set:
        return _corpus_line(record, options, source)
    decision = blank or decide_segment(record.columns, record.mt, options, source=source)
    return json_line(DecisionRecord.of(record, decision).to_json())


def _corpus_line(record: CandidateRecord, options: DecisionOptions, source: str | None) -> bytes:
    """The decisions that a rule over the whole file may come to in this segment, with the numbers that it goes by."""
    segment = corpus_segment(record.columns, record.mt, options, source=source)
    decisions = [
        DecisionRecord.of(record, segment.decision(position, None)).to_json()
        for position in range(len(segment.shortlist.answers))
    ]
    return json_line({"statistics": segment.shortlist.statistics.tolist(), "decisions": decisions})


def _finish(journal: Journal, output: Path, options: DecisionOptions) -> FileSummary:
    """Turn the entries of a complete run into the output file."""
    rule = options.decided_by
    chosen: Iterator[int] = iter(())
    choice: CorpusChoice | None = None
    if isinstance(rule, CorpusRule):
        statistics = [
            np.array(json.loads(line)["statistics"]) for _, line in journal.entries() if line.startswith(_STATISTICS)
        ]
        if statistics:
            choice = rule.settle(statistics)
            chosen = iter(choice.chosen.tolist())
    skipped: list[str] = []
    segments = candidates = invalid = blank = 0
    scores: set[bytes] = set()
    with whole_file(output) as file:
        for _, line in journal.entries():
            if line.startswith(_SKIPPED):
                skipped.append(json.loads(line)["skipped"])
                continue
            if choice is not None and isinstance(rule, CorpusRule) and line.startswith(_STATISTICS):
                value, at = json.loads(line), next(chosen)
                of_segment: Floats = np.array(value["statistics"])
                utility = float(rule.values(of_segment, choice)[at])
                line = json_line(value["decisions"][at] | {"expected_utility": utility})
            file.write(line)
            counts = _COUNTS.search(line)
            if counts is None:
                raise journal.other("a line of it is damaged")
            if len(scores) < 2 and (score := _SCORE.search(line)) is not None:
                scores.add(score[1])
            segments += 1
            blank += counts[1] == counts[2] == b"0"  # whatever has no candidates but these stops the run
            candidates += int(counts[1]) + int(counts[2])
            invalid += int(counts[2])
    same = float(next(iter(scores))) if len(scores) == 1 < segments else None
    return FileSummary(segments, tuple(skipped), candidates, invalid, choice.ratios if choice else (), blank, same)
