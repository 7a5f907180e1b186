"""A grid of settings of one model, to choose among by what they give (`mbr-esd sample --grid`).

Each setting is a model's name of its own. So its candidates are those that a later run of that name takes from the
store, a grid that was killed goes on where it stopped, and settings that only decide otherwise sample nothing anew.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from mbr_esd_metric.errors import NoValidCandidateError, OptionError, useless
from mbr_esd_metric.metric.card import ModelCard, with_options
from mbr_esd_metric.metric.cards import load_card, with_named
from mbr_esd_metric.metric.estimate import Estimate, estimates
from mbr_esd_metric.metric.pipeline import Annotated, annotate
from mbr_esd_metric.metric.plan import Segment

#: Settings of a grid; each is planned, sampled and shown by itself.
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell of a grid.

    Attributes:
        values: option -> its value, in the order of the grid.
        model: the name of the model with these options.
        card: of that name.
    """

    values: Mapping[str, str]
    model: str
    card: ModelCard


@dataclass(frozen=True, slots=True)
class Measured:
    """What a setting gave.

    Attributes:
        run: its decisions, and the counts of its candidates.
        tokens: mean number of tokens of a candidate; None if it is not known.
        sampled: candidates sampled in this run; with `n=auto` at most so many.
        seconds: that the run took; None if everything was stored.
        lacking: whether a segment has no valid candidate; its candidates then count as no error.
    """

    run: Annotated
    tokens: float | None
    sampled: int
    seconds: float | None
    lacking: bool


def grid(model: str, axes: Sequence[str]) -> list[Setting]:
    """Every combination of the values, the last option changing first.

    Args:
        model: a model's name, with or without options.
        axes: ``option=value,value,...`` each.

    Raises:
        OptionError: an axis of another form, an option or a value twice, more than 1,000 settings, or whatever the name
            of a setting raises.

    >>> for one in grid("mbr-esd-llama?n=4", ["temperature=.7,1", "format=compact"]):
    ...     print(one.model)
    mbr-esd-llama?n=4&temperature=.7&format=compact
    mbr-esd-llama?n=4&temperature=1&format=compact
    """
    values: dict[str, list[str]] = {}
    for axis in axes:
        option, equals, text = axis.partition("=")
        listed = text.split(",")
        if not equals or not option or not all(listed):
            raise OptionError(f"--grid {axis}: write an option of the model and its values, such as temperature=.7,1,2")
        if option in values:
            raise OptionError(f"--grid names {option} twice; give all its values at once: {option}=A,B,...")
        if len(set(listed)) < len(listed):
            raise OptionError(f"--grid {axis}: a value is there twice")
        values[option] = listed
    size = prod(map(len, values.values()))
    if size > _MOST:
        raise OptionError(f"--grid asks for {size:,} settings; give fewer values, for at most {_MOST:,}")
    settings = []
    for chosen in product(*values.values()):
        options = dict(zip(values, chosen, strict=True))
        name = with_named(model, options)
        settings.append(Setting(options, name, load_card(name)))
    return settings


def planned(setting: Setting, segments: Sequence[Segment], trial: int = 0) -> list[Estimate]:
    """What a setting would sample; of several models joined, one estimate each.

    Raises:
        OptionError: a setting that samples nothing (`engine=replay`); and as `estimates`.
    """
    if any(one.engine == "replay" or one.candidates for one in (setting.card, *setting.card.others)):
        raise useless("--grid", "engine=replay, which samples nothing")
    return estimates(setting.card, segments, trial)


def measure(setting: Setting, segments: Sequence[Segment], *, progress: bool = False) -> Measured:
    """Sample what the store lacks of a setting, decide, and count.

    Raises:
        EngineError, StoreError: what was sampled before stays in the store.
    """
    left = sum(one.candidates - one.stored for one in planned(setting, segments))
    lacking = False
    began = time.monotonic()
    try:
        run = annotate(setting.card, segments, progress=progress)
    except NoValidCandidateError:
        lacking = True
        run = annotate(with_options(setting.card, {"invalid": "empty"}), segments)
    seconds = time.monotonic() - began
    known = [(one.stored, one.mean_tokens) for one in planned(setting, segments) if one.mean_tokens is not None]
    stored = sum(count for count, _ in known)
    tokens = sum(count * mean for count, mean in known) / stored if stored else None
    return Measured(run, tokens, left, seconds if left else None, lacking)
