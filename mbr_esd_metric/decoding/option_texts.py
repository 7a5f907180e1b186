"""Options of a decision as people and files write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.decoding.options import FIELDS, DecisionOptions
from mbr_esd_metric.errors import OptionError, no_effect_error

#: What a file of candidates always says.
_STORED = ("rule", "utility", "score", "mqm")


def option_help(name: str) -> str:
    """An option's meaning, and the values that it takes, for people."""
    metadata = FIELDS[name].metadata
    takes = metadata["takes"]() if callable(metadata["takes"]) else metadata["takes"]
    return f"{metadata['help']}: {takes or ', '.join(metadata['valid']())}"


def stored_options(options: DecisionOptions) -> dict[str, str]:
    """Option -> value as a file of candidates has it: the usual four, and what is not at its default. The answer
    format is not among them, as it has a key of its own there; nor is the utility of a rule that has its own."""
    left_out = ("format", "utility") if options.rule_instance.fixed_utility else ("format",)
    values = {name: str(getattr(options, name)) for name in FIELDS if name not in left_out}
    return {name: value for name, value in values.items() if name in _STORED or value != FIELDS[name].default}


def changed_options(
    options: DecisionOptions, changes: Mapping[str, str], spell: Callable[[str, str], str]
) -> DecisionOptions:
    """These options with a user's changes; `spell` writes an option and its value for messages. `OptionError` for a
    name that an option does not take, and for an option that changes nothing beside the others."""
    values: dict[str, Any] = dict(changes)
    for name, value in values.items():
        try:
            DecisionOptions.of(None, {name: value})
        except OptionError as error:
            raise OptionError(f"{spell(name, value)}: {error}") from None
    changed = replace(options, **values)
    utility = changed.rule_instance.fixed_utility
    if utility is not None and "utility" in changes:
        raise no_effect_error(
            spell("utility", changes["utility"]),
            f"{spell('rule', changed.rule)}, which maximises the corpus {utility}",
        )
    if changed.rule_instance.needs_references:
        raise OptionError(
            f"{spell('rule', changed.rule)} needs human annotations, and there are none beside candidates; take "
            f"one of {', '.join(rules(references=False))}"
        )
    return changed
