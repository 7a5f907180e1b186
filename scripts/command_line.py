"""Generates docs/command-line.md, with all verbs of `mbr-esd` and their arguments, from the parsers.

python scripts/command_line.py
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from mbr_esd_metric.cli.verbs import VERBS, add_verbs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "command-line.md"
_HEAD = """# The command line

All verbs of `mbr-esd` and their arguments, as `mbr-esd VERB --help` prints them. `scripts/command_line.py` writes this
page; a test compares it with the program.
"""


def page() -> str:
    """The page's text."""
    parser = argparse.ArgumentParser("mbr-esd")
    add_verbs(parser, VERBS.all().values())
    return "\n".join((_HEAD, *_below(parser)))


def _below(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from (f"## {verb.prog}", "", _sentence(verb.description or ""), "")
                yield from _arguments(verb)
                yield from _below(verb)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    rows = [one for one in parser._actions if one.help not in (None, argparse.SUPPRESS) and one.dest != "help"]
    rows = [one for one in rows if not isinstance(one, argparse._SubParsersAction)]
    if rows:
        yield from ("| argument | meaning |", "|---|---|")
        for action in rows:
            text = str(action.help) % {**vars(action), "prog": parser.prog}
            yield f"| {_name(action)} | {' '.join(text.split()).replace('|', chr(92) + '|')} |"
        yield ""


def _name(action: argparse.Action) -> str:
    """The names of an option with its metavariable, or the name of a positional argument."""
    value = "" if action.nargs == 0 else action.metavar or f"{{{','.join(map(str, action.choices or ()))}}}"
    if value in ("{}", "") and action.nargs != 0:
        value = action.dest if not action.option_strings else action.dest.upper()
    value = " ".join(value) if isinstance(value, tuple) else str(value)
    value += {"*": " ...", "+": " ..."}.get(str(action.nargs), "")
    if action.nargs == "?":
        value = f"[{value}]"
    names = [f"{name} {value}".strip() for name in action.option_strings] or [value]
    return ", ".join(f"`{name}`" for name in names).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
