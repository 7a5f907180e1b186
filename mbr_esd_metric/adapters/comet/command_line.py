"""Additions to ``comet-score`` and ``comet-compare`` for models of this package: one-line errors, file checks (COMET
truncates files to the shortest), and additional keys in the JSON."""

from __future__ import annotations

import atexit
import codecs
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, SimpleNamespace, TracebackType
from typing import IO, Any

from mbr_esd_metric.errors import RESUME, InputError, MbrEsdError
from mbr_esd_metric.files.judged import JudgedSegment
from mbr_esd_metric.files.paths import check_output, compression
from mbr_esd_metric.files.streams import read_segments
from mbr_esd_metric.log import show_log

#: Module of a COMET command -> name of the command.
_COMMANDS = {"comet.cli.score": "comet-score", "comet.cli.compare": "comet-compare"}


def calling_comet_command() -> tuple[str, Any, dict[str, Any]] | None:
    """Name, parsed arguments and globals of the calling COMET command, or None if COMET is used as a library."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        # The name in the spec is also correct under `python -m comet.cli.score`, where the module is called __main__.
        module = getattr(frame.f_globals.get("__spec__"), "name", "")
        if module in _COMMANDS and "cfg" in frame.f_locals:
            return _COMMANDS[module], frame.f_locals["cfg"], frame.f_globals
        frame = frame.f_back
    return None


def report_errors() -> None:
    """In COMET commands, print errors as one line on standard error, and no traceback for Ctrl-C during shutdown."""
    command = calling_comet_command()
    if command is None or getattr(sys.excepthook, "mbr_esd", False):
        return
    program, previous = command[0], sys.excepthook

    def report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            print(f"\n{program}: interrupted; {RESUME}", file=sys.stderr)
            raise SystemExit(130)
        # If loading a model fails, COMET raises a KeyError in addition.
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, MbrEsdError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            print(f"{program}: error: {cause}", file=sys.stderr)
        elif isinstance(error, OSError):
            print(f"{program}: error: {error}; {RESUME}", file=sys.stderr)
        else:
            previous(kind, error, traceback)

    show_log()
    report.mbr_esd = True  # type: ignore[attr-defined]
    sys.excepthook = report
    # Registered last, so run first: Ctrl-C would interrupt exit handlers of torch and others with a traceback.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def check_arguments(*inputs: str | None) -> list[str]:
    """In COMET commands, the name of each translation for messages, file by file; otherwise empty.

    Raises:
        InputError: problems that COMET itself would report late or never: files of different lengths, empty, not UTF-8
            or with a byte order mark; too few files; or a ``--to_json`` that cannot be written or would overwrite an
            input (including `inputs`, which the model reads).
    """
    command = calling_comet_command()
    if command is None:
        return []
    program, cfg, _ = command
    if not cfg.translations:
        raise InputError("no translations are given; add -t FILE, or several")
    if program == "comet-compare" and len(cfg.translations) < 2:
        raise InputError("comparing needs two systems or more: -t FILE FILE")
    named = [cfg.sources, *cfg.translations, *([cfg.references] if cfg.references else [])]
    counts = {path.rel_path: _count_lines(path.rel_path) for path in named}
    if len(set(counts.values())) > 1:
        listing = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise InputError(f"the files have different numbers of lines: {listing}; line i of each is segment i")
    if cfg.to_json:
        path = Path(cfg.to_json)
        check_output(path, [*counts, *inputs])
        if ending := compression(path):
            raise InputError(f"--to_json {path}: COMET writes plain JSON; leave {ending} out, or use `mbr-esd score`")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"--to_json {path} cannot be written; choose another file")
    lines = range(1, counts[cfg.sources.rel_path] + 1)
    return [f"line {line} of {path.rel_path}" for path in cfg.translations for line in lines]


def _count_lines(path: str) -> int:
    """The number of lines, counted as in COMET."""
    with open(path, "rb") as file:
        if file.read(3) == codecs.BOM_UTF8:
            raise InputError(
                f"{path} begins with a byte order mark, which COMET would read as part of the first segment; "
                "save the file as UTF-8 without it"
            )
    return len(read_segments(path))


def add_to_json(samples: Sequence[Any], judged: Sequence[JudgedSegment]) -> None:
    """Add the segments' keys to the samples of a COMET command, for ``--to_json``; COMET adds the score. COMET itself
    would omit empty lists of errors, as for a metric without error spans, and write NaN, which is not valid JSON."""
    command = calling_comet_command()
    if command is None:
        return
    command[2]["json"] = SimpleNamespace(dump=_dump_without_nan)
    for sample, one in zip(samples, judged, strict=True):
        if isinstance(sample, dict):
            sample |= {key: value for key, value in one.to_json().items() if key not in ("src", "mt", "COMET")}


def _dump_without_nan(value: object, file: IO[str], **options: Any) -> None:
    """``json.dump``, with null for NaN."""
    json.dump(json.loads(json.dumps(value), parse_constant=lambda _: None), file, **options)
