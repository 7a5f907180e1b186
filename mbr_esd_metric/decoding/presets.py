"""Presets: several options of a decision that go together, under one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mbr_esd_metric.core.candidate import Candidate, CandidateColumns
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.errors import unknown


@dataclass(frozen=True, slots=True)
class Preset:
    """One preset.

    Attributes:
        description: a few words for `--help`.
        settles: option -> the value that it sets; the user cannot give these options together with the preset.
        format: the only answer format that it reads.
        check: raises `OptionError` for a rule or utility that the preset does not have.
        decide: (candidates, translation, rule, utility) -> decision, where that is not the package's own.
    """

    description: str
    settles: Mapping[str, str]
    format: str
    check: Callable[[str, str], None] | None = None
    decide: Callable[[Sequence[Candidate] | CandidateColumns, str, str, str], Decision] | None = None


def _check_released(rule: str, utility: str) -> None:
    from mbr_esd_metric.decoding.released_code import check_released

    check_released(rule, utility)


def _decide_released(
    candidates: Sequence[Candidate] | CandidateColumns, translation: str, rule: str, utility: str
) -> Decision:
    from mbr_esd_metric.decoding.released_code import decide_released

    return decide_released(candidates, translation, rule, utility)


PRESETS: Mapping[str, Preset] = {
    "released-code": Preset(
        "decide as the code that the paper's authors released, to the last tie",
        {
            "weights": "uniform",
            "invalid": "empty",
            "mqm": "google",
            "location": "first",
            "score": "chosen",
            "blank": "perfect",
            "merge": "none",
            "unplaced": "drop",
        },
        "json",
        _check_released,
        _decide_released,
    ),
    "gemba": Preset(
        "score as GEMBA-MQM reads its answers: five errors at most, 25 for a critical one, whatever they say",
        {"invalid": "empty", "score": "given"},
        "gemba-mqm",
    ),
}


def get_preset(name: str) -> Preset:
    """The preset of that name; raises `OptionError`, with the nearest ones, where there is none."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    return PRESETS[name]
