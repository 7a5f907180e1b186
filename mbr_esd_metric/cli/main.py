"""`mbr-esd VERB`: runs the verb's module, and turns errors into one line and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from traceback import walk_tb
from typing import Any, NoReturn, TextIO, cast

from mbr_esd_metric._version import __version__
from mbr_esd_metric.cli.verbs import VERBS, add_verbs
from mbr_esd_metric.errors import RESUME, MbrEsdError, unknown
from mbr_esd_metric.log import notes, show_log
from mbr_esd_metric.messages import printable
from mbr_esd_metric.plugins import PARTS

#: Verbs that may have sampled candidates before they were interrupted.
_SAMPLING = ("mbr-esd score", "mbr-esd sample", "mbr-esd wmt score")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0 success, 1 error, 2 wrong usage, 3 failed gate (`gates.close_gate`), 130 interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    parser = _Parser(
        prog="mbr-esd",
        description="Error span detection for machine translation by Minimum Bayes Risk decoding.",
        epilog="example:\n  mbr-esd score -s src.txt -t mt.txt --model mbr-esd-small",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mbr-esd {__version__}")
    if "_ARGCOMPLETE" in os.environ:  # shell completion
        with contextlib.suppress(ImportError):
            import argcomplete

            add_verbs(parser, VERBS.all().values(), "".join(os.environ.get("COMP_LINE", "").split()[1:2]))
            argcomplete.autocomplete(parser)  # exits
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the parent process, as by some schedulers
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters that the terminal or UTF-8 cannot encode are escaped instead of raising an error.
            stream.reconfigure(errors="backslashreplace")
    named = "".join(words[:1])
    args = argparse.Namespace(prog=f"mbr-esd {named}")  # until a verb below it says its own
    try:
        show_log()
        with contextlib.redirect_stdout(cast("TextIO", _Output(sys.stdout))) as output:
            add_verbs(parser, VERBS.all().values(), named)
            parser.parse_args(words, args)
            if args.run is None:
                args.verbs.print_help(sys.stderr)
                return 2
            with notes(not getattr(args, "quiet", False)):
                status = int(args.run(args))
            output.flush()
            return status
    except KeyboardInterrupt:
        print(f"mbr-esd: interrupted{f'; {RESUME}' if args.prog in _SAMPLING else ''}", file=sys.stderr)
        return 130
    except Exception as error:
        part, ours = _part_at_fault(error), isinstance(error, (MbrEsdError, OSError))
        if part is None and not ours:
            raise
        message = str(error) if ours else f"{type(error).__name__}: {printable(str(error))}"
        message += f"; raised in {part}" if part else ""
        message += f"; {RESUME}" if isinstance(error, OSError) and args.prog in _SAMPLING else ""
        print(f"{args.prog}: error: {message}", file=sys.stderr)
        return 1
    finally:
        if argv is None:
            # All output is written: during shutdown, Ctrl-C would only print a traceback.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _part_at_fault(error: BaseException | None) -> str | None:
    """The plugin whose code raised an exception or its cause; None for our own code."""
    while error is not None:
        files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
        if type(error).__name__ == "_RemoteTraceback":  # a worker's, as text
            files += re.findall(r'File "(.+?)", line', str(error))
        if part := next((part for path, part in PARTS.items() if any(file.startswith(path) for file in files)), None):
            return part
        error = error.__cause__ or error.__context__
    return None


class _Output:
    """Standard output whose reader (`head`, a pager) may exit early. The verb does not notice, and runs to its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except BrokenPipeError:
            self._to_nowhere()
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._to_nowhere()

    def _to_nowhere(self) -> None:
        """Redirect the file descriptor, so that flushing at exit does not fail."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Parser(argparse.ArgumentParser):
    """Parser with hints for missing arguments and for unknown verbs, options and values."""

    def _check_value(self, action: argparse.Action, value: str) -> None:
        """Suggest the closest verb, subcommand or value instead of argparse's list."""
        if action.choices is not None and value not in action.choices:
            kind = "verb" if action.metavar == "VERB" else f"value of {'/'.join(action.option_strings)}"
            self.error(str(unknown(kind, value, action.choices)))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject unknown arguments in the subparser, whose options the usage shows, not in the parent parser."""
        parsed, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}{self._hint(rest[0].partition('=')[0])}")
        return parsed, rest

    def error(self, message: str) -> NoReturn:
        """Print the message with the usage, and end with status 2."""
        missing = message.partition("are required: ")[2].split(", ")
        named = {action.metavar or action.dest for action in self._actions if not action.option_strings}
        # An option with several values consumes all arguments up to the next option.
        several = [a.option_strings[-1] for a in self._actions if a.option_strings and a.nargs == "+" and a.required]
        if several and named.issuperset(missing):
            take = "take" if several[1:] else "takes"
            message += (
                f"; {' and '.join(several)} {take} all following arguments: put {' '.join(missing)} first, or after --"
            )
        super().error(message)

    def _hint(self, word: str) -> str:
        """A hint for an unknown argument; "" if there is none."""
        from mbr_esd_metric.decoding.options import FIELDS
        from mbr_esd_metric.metric.card import OPTIONS

        options = self._option_string_actions
        if not word.startswith("--"):
            return "; for plain text files, use -s SRC -t MT" if "--sources" in options else ""
        name = word[2:].replace("-", "_")
        if "--model" in options and name in (*OPTIONS, *FIELDS, "batch_size", "gpus"):
            return f"; {name} is an option of a model: --model 'NAME?{name}=...'"
        near = difflib.get_close_matches(word, options, n=1, cutoff=0.7)
        return f"; did you mean {near[0]}?" if near else ""
