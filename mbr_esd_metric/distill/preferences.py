"""Preference pairs from stored candidates (paper, Section 6): the best MBR candidate against the worst.

Per segment, of N candidates with expected utilities U under MBR,

    chosen = argmax U,    rejected = argmin U

Ties go to the likelier candidate, then to the lower index, on both sides. A segment gives no pair where the two are
the same annotation or their utilities are equal (within `core.hypotheses.TIE`): neither is better. Invalid candidates
are neither chosen nor rejected.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.hypotheses import TIE
from mbr_esd_metric.core.rules import SegmentRule
from mbr_esd_metric.core.severity import BETA, GAMMA
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.distill.split import held_out_groups
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import Prompt
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError
from mbr_esd_metric.files.records import CandidateRecord, json_line
from mbr_esd_metric.files.streams import whole_file

#: Why a segment gives no pair.
NO_VALID = "no valid candidate"
ONE_ANNOTATION = "all candidates are one annotation"
EQUAL_UTILITY = "all candidates have one utility"


@dataclass(frozen=True, slots=True)
class PairOptions:
    """How pairs are made; all of it is in the signature.

    Attributes:
        decision: how the best and the worst candidate are found.
        prompt: version or path of the template that the candidates were sampled with.
        lp: such as "en-de", if the prompt named the languages.
        validation: share of pairs kept for validation, split by source.
        seed: of the split.
    """

    decision: DecisionOptions = DecisionOptions()
    prompt: str = "v1"
    lp: str | None = None
    validation: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        rule = self.decision.decided_by
        if not (rule.by_utility and isinstance(rule, SegmentRule)):
            raise OptionError(f"pairs go by expected utility, as the rule 'mbr' does, not {rule.name!r}")
        name = self.decision.format
        if get_format(name).engine:
            raise OptionError(
                f"an answer of format={name} tags given words, and is not learnt from pairs; learn each tag from the "
                f"candidates: mbr-esd distill sft --choices FILE --answer-format {name}"
            )
        if not 0 <= self.validation < 1:
            raise OptionError(f"validation is a share in [0, 1), not {self.validation!r}")

    @property
    def question(self) -> Prompt:
        """The prompt in the words of the answers' format."""
        return get_format(self.decision.format).prompt(self.prompt)

    @property
    def signature(self) -> str:
        """What must agree between pairs that are trained on together."""
        fields: dict[str, object] = {
            **({} if self.decision.rule == "mbr" else {"d": self.decision.rule}),
            "u": self.decision.maximised,
            "w": self.decision.weights,
            "b": f"{BETA:g}",
            "g": f"{GAMMA:g}",
            **({} if self.decision.format == "json" else {"f": self.decision.format}),
            "prompt": self.question.version,
            "lp": self.lp or "-",
            "loc": self.decision.location,
            "v": __version__,
        }
        return "mbr-esd-pairs|" + "|".join(f"{key}:{value}" for key, value in fields.items())


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """A preference: for this question, `chosen` rather than `rejected`.

    Attributes:
        id, system: of the segment.
        source: the source text; a split never divides it.
        prompt: the user message.
        chosen, rejected: answers as the model wrote them.
        chosen_utility, rejected_utility: expected utilities, higher is better.
    """

    id: str
    system: str | None
    source: str
    prompt: str
    chosen: str
    rejected: str
    chosen_utility: float
    rejected_utility: float

    def row(self, signature: str) -> dict[str, Any]:
        """The row in TRL's conversational preference format, with more facts about the pair."""
        return {
            "prompt": [{"role": "user", "content": self.prompt}],
            "chosen": [{"role": "assistant", "content": self.chosen}],
            "rejected": [{"role": "assistant", "content": self.rejected}],
            "chosen_utility": self.chosen_utility,
            "rejected_utility": self.rejected_utility,
            "id": self.id,
            "system": self.system,
            "signature": signature,
        }


@dataclass(frozen=True, slots=True)
class PreferenceData:
    """The pairs of a corpus.

    Attributes:
        train, validation: no source is in both.
        without: why segments gave no pair, and how many for each reason.
    """

    train: tuple[PreferencePair, ...]
    validation: tuple[PreferencePair, ...]
    without: Mapping[str, int] = field(default_factory=dict)

    def report(self) -> str:
        """Pairs, why segments gave none, utility gap and lengths, as lines of text."""
        both = (*self.train, *self.validation)
        segments = len(both) + sum(self.without.values())
        sides = f"{len(self.train)} train, {len(self.validation)} validation"
        lines = [f"{len(both)} pairs of {segments} segments: {sides}"]
        lines += [f"  {count:>6}  no pair: {reason}" for reason, count in sorted(self.without.items())]
        if both:
            for name, values in (
                ("utility gap", [pair.chosen_utility - pair.rejected_utility for pair in both]),
                ("characters chosen", [len(pair.chosen) for pair in both]),
                ("characters rejected", [len(pair.rejected) for pair in both]),
            ):
                low, middle, high = min(values), statistics.median(values), max(values)
                mean = statistics.fmean(values)
                lines.append(f"  {name}: mean {mean:.4g}, min {low:.4g}, median {middle:.4g}, max {high:.4g}")
        return "\n".join(lines)


def preference(record: CandidateRecord, prompt: Prompt, options: PairOptions) -> PreferencePair | str:
    """The pair of one segment, or why there is none (`NO_VALID`, `ONE_ANNOTATION`, `EQUAL_UTILITY`).

    Raises:
        InputError: as `decide`, with the segment; or its answers are not in the format of the options.
    """
    form = record.columns.format
    if form not in (None, options.decision.format):
        raise InputError(
            f"{record.label}: its candidates are in the format {form}, and the pairs are in "
            f"{options.decision.format}; give candidates in one format"
        )
    try:
        source = options.decision.source_of(record.src)
        decision = decide_segment(record.columns, record.mt, options.decision, source=source)
    except NoValidCandidateError:
        return NO_VALID
    except InputError as error:
        raise InputError(f"{record.label}: {error}") from None
    if decision.distinct == 1:
        return ONE_ANNOTATION
    utilities = decision.expected_utilities
    lowest = min(value for value in utilities if value == value)  # invalid candidates have NaN
    if decision.expected_utility - lowest <= TIE:
        return EQUAL_UTILITY
    if decision.index is None:
        raise OptionError(f"pairs need a rule that chooses a candidate, not {options.decision.rule!r}")
    rejected = min(
        (i for i, value in enumerate(utilities) if value <= lowest + TIE),
        key=lambda i: (-_known(record.columns.logprobs[i]), i),
    )
    return PreferencePair(
        record.id,
        record.system,
        record.src,
        prompt.render(record.src, record.mt, options.lp),
        record.texts[decision.index],
        record.texts[rejected],
        decision.expected_utility,
        utilities[rejected],
    )


def make_pairs(records: Iterable[CandidateRecord], options: PairOptions) -> PreferenceData:
    """The pairs of all segments, split by source; deterministic.

    Raises:
        InputError: no segment gives a pair; or all pairs have the same source, and some must be held out.
    """
    prompt = options.question
    pairs: list[PreferencePair] = []
    without: Counter[str] = Counter()
    for record in records:
        made = preference(record, prompt, options)
        if isinstance(made, str):
            without[made] += 1
        else:
            pairs.append(made)
    if not pairs:
        why = ", ".join(f"{count} segments: {reason}" for reason, count in without.most_common()) or "no segments"
        raise InputError(
            f"there is no preference pair ({why}); sample more candidates, at a higher temperature, or check that the "
            "candidates belong to these translations"
        )
    held_out = held_out_groups((pair.source for pair in pairs), options.validation, options.seed)
    return PreferenceData(
        tuple(pair for pair in pairs if pair.source not in held_out),
        tuple(pair for pair in pairs if pair.source in held_out),
        dict(without),
    )


def write_pairs(pairs: PreferenceData, folder: Path, options: PairOptions) -> list[Path]:
    """Write ``train`` and ``validation`` to `folder` as JSON lines that ``datasets`` loads."""
    folder.mkdir(parents=True, exist_ok=True)
    signature = options.signature
    written = []
    for name, part in (("train", pairs.train), ("validation", pairs.validation)):
        rows = [pair.row(signature) for pair in part]
        path = folder / f"{name}.jsonl"
        if not rows:
            path.unlink(missing_ok=True)
            continue
        with whole_file(path) as file:
            for row in rows:
                file.write(json_line(row))
        written.append(path)
    return written


def read_pairs(folder: str | Path) -> Iterator[tuple[str, Path]]:
    """(split, file) of the pairs in a folder that `write_pairs` wrote.

    Raises:
        InputError: there is no training split.
    """
    folder = Path(folder)
    found = [(split, folder / f"{split}.jsonl") for split in ("train", "validation")]
    if not found[0][1].is_file():
        raise InputError(f"{folder} has no train.jsonl; make it with: mbr-esd distill pairs")
    yield from (one for one in found if one[1].is_file())


def _known(logprob: float | None) -> float:
    return float("-inf") if logprob is None else logprob
