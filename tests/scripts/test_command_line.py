"""The page of the command line."""

from __future__ import annotations

import argparse
import re

from scripts.command_line import PAGE, page


def test_the_page_is_that_of_the_parsers() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python scripts/command_line.py"


def test_it_has_every_verb_and_every_option() -> None:
    """Counted in the help that the program prints, apart from how the page is made."""
    from mbr_esd_metric.cli.verbs import VERBS, add_verbs

    parser = argparse.ArgumentParser("mbr-esd")
    add_verbs(parser, VERBS.all().values())
    waiting, text = [parser], page()
    while waiting:
        one = waiting.pop()
        verbs = [action for action in one._actions if isinstance(action, argparse._SubParsersAction)]
        waiting += [below for action in verbs for below in action.choices.values()]
        section = text.partition(f"## {one.prog}\n")[2].partition("\n## ")[0]
        for name in set(re.findall(r"(?<![\w-])--[a-z][\w-]+", one.format_usage())) if not verbs else ():
            assert name in section, (one.prog, name)
