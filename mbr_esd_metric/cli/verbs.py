"""The table of `mbr-esd` verbs; other packages can add verbs (entry point group ``mbr_esd_metric.verbs``)."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mbr_esd_metric.plugins import Rows


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb, whose module is imported when it is used.

    Attributes:
        name: the word after ``mbr-esd``, or after its parent verb.
        text: one line of help.
        module: dotted name of a module with ``configure(parser)``, which adds the verb's arguments and sets
            ``parser.epilog`` to an example, and ``run(args) -> int``, which does the work and returns the exit status;
            or MODULE:SUFFIX, whose functions are ``configure_SUFFIX`` and ``run_SUFFIX``. A verb with
            subcommands, which its ``configure`` adds with `add_verbs`, has no ``run``.
    """

    name: str
    text: str
    module: str

    def functions(
        self,
    ) -> tuple[Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int] | None]:
        """``configure`` and ``run``."""
        module, _, suffix = self.module.partition(":")
        functions, ending = importlib.import_module(module), f"_{suffix}" if suffix else ""
        return getattr(functions, f"configure{ending}"), getattr(functions, f"run{ending}", None)


_CLI = "mbr_esd_metric.cli"
_ROWS = (
    Verb("score", "score translations with any model", f"{_CLI}.score"),
    Verb("sample", "sample candidates and write them to a file", f"{_CLI}.sample"),
    Verb("decide", "choose one annotation per segment from stored candidates", f"{_CLI}.decide"),
    Verb(
        "models",
        "list model names and their requirements; --check: test which ones work on this machine",
        f"{_CLI}.models",
    ),
    Verb("serve", "start a vLLM server for a model, for engine=server", f"{_CLI}.serve"),
    Verb("show", "show segments with their error spans in the terminal", f"{_CLI}.show"),
    Verb("report", "write an HTML page for browsing error spans", f"{_CLI}.show:report"),
    Verb("wmt", "WMT test sets: import human annotations, score with any metric, write submissions", f"{_CLI}.wmt"),
    Verb("leaderboard", "rank metrics by agreement with human scores and error spans", f"{_CLI}.leaderboard"),
    Verb("calibrate", "measure and correct the calibration of span confidences", f"{_CLI}.calibrate"),
    Verb("oracle", "upper bound: score of the best candidate, by rule and by number of candidates", f"{_CLI}.oracle"),
    Verb(
        "compare",
        "compare systems' mean scores with confidence intervals; optionally fail if the new one is worse",
        f"{_CLI}.compare",
    ),
    Verb("distill", "build TRL training data: DPO preference pairs or SFT examples", f"{_CLI}.distill"),
)
VERBS = Rows("verb", "verbs", {verb.name: verb for verb in _ROWS}, Verb)
#: Registered by an entry point, like a plugin's verb: nothing else in this package imports its dependencies.
ANNOTATE = Verb("annotate", "create Pearmut annotation campaigns and import the ratings", f"{_CLI}.annotate")


def add_verbs(parser: argparse.ArgumentParser, verbs: Iterable[Verb], named: str | None = None) -> None:
    """Add verbs, whose ``run`` is in the arguments then; without a verb it shows the help. If one is `named`, it alone
    gets its arguments, and the modules of the others are not loaded."""
    parser.set_defaults(run=None, verbs=parser)
    below = parser.add_subparsers(title="verbs", metavar="VERB", help="see `VERB --help` for details")
    for verb in verbs:
        one = below.add_parser(verb.name, help=verb.text, description=verb.text, formatter_class=parser.formatter_class)
        if named in (None, verb.name):
            configure, run = verb.functions()
            one.set_defaults(run=run, prog=one.prog)
            configure(one)
