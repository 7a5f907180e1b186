"""The summary of a run: how many candidates and error spans were lost, and where the scores say nothing, which option
helps. All of it is measured on the run's own candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.decoding.segment import CUT
from mbr_esd_metric.elicit.prompt import TEMPLATES
from mbr_esd_metric.errors import number_of
from mbr_esd_metric.generation.engine import engine_class
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.plan import Segment
from mbr_esd_metric.metric.units import divisible

#: Fewer candidates than these show nothing of a model.
_FEW = 8


@dataclass(frozen=True, slots=True)
class Summary:
    """The counts of a run, and what follows from them.

    Attributes:
        candidates, cut, unreadable: all of them, those cut by `max_tokens`, and those invalid for another reason.
        unmarked: valid candidates without an error span.
        located, dropped: error spans of the valid candidates, found in the translation and not found.
        omissions: how many of those dropped are omissions, which are looked for in the source; None for a model that
            marks the translation alone.
        segments, lowest: how many there are with a candidate, and how many of them reached the lowest score.
        longer: whether one of these has several sentences and was judged at once.
        advice: one line each about what makes the scores say little, with the option that helps.
    """

    candidates: int = 0
    cut: int = 0
    unreadable: int = 0
    unmarked: int = 0
    located: int = 0
    dropped: int = 0
    omissions: int | None = None
    segments: int = 0
    lowest: int = 0
    longer: bool = False
    advice: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The counts as one line."""
        if not self.candidates:
            return "no candidates, as there is no translation to mark"
        cut = f"{self.cut} cut at max_tokens, " if self.cut else ""
        spans = number_of(self.located + self.dropped, "error span")
        source = "" if self.omissions is None else f" or the source (of omissions: {self.omissions})"
        line = (
            f"of {number_of(self.candidates, 'candidate')} {cut}{self.unreadable} could not be read; of {spans} "
            f"{self.dropped} not found in the translation{source}"
        )
        if self.lowest:  # further errors changed nothing
            line += f"; {self.lowest} of {number_of(self.segments, 'segment')} reached the lowest score"
        return line + ("; unit=sentence" if self.longer else "")


def summary(card: ModelCard, engine: str, segments: Sequence[Segment], decisions: Sequence[Decision]) -> Summary:
    """The summary of a run.

    Args:
        card: the first of its models.
        engine: its engine's name.
        segments: of the run.
        decisions: one a segment.
    """
    both = any(one.decision.both_sides() for one in (card, *card.others))
    lowest = [s for s, one in zip(segments, decisions, strict=True) if one.valid and one.score <= 0]
    cut = sum(one.reasons.get(CUT, 0) for one in decisions)
    counts = Summary(
        candidates=sum(one.valid + one.invalid for one in decisions),
        cut=cut,
        unreadable=sum(one.invalid for one in decisions) - cut,
        unmarked=sum(one.unmarked for one in decisions),
        located=sum(one.located for one in decisions),
        dropped=sum(one.dropped for one in decisions),
        omissions=sum(one.unplaced for one in decisions) if both else None,
        segments=sum(one.valid > 0 for one in decisions),
        lowest=len(lowest),
        longer=card.unit != "sentence" and engine != "replay" and any(divisible(one, card.lp) for one in lowest),
    )
    advice = _losses(card, engine, counts)
    advice += _equal_scores(
        card, counts, decisions, "" if advice else "; this model finds nothing here: take a larger one"
    )
    if card.name == "mbr-esd-llama-distill" and card.prompt in TEMPLATES:
        advice.insert(
            0,
            f"{card.name} is asked with our prompt, and was trained on its authors': make theirs a file, as "
            "docs/models.md shows, and give prompt=FILE",
        )
    return replace(counts, advice=tuple(advice))


def _losses(card: ModelCard, engine: str, counts: Summary) -> list[str]:
    """Advice where most candidates or spans are lost."""
    if counts.candidates < _FEW:
        return []
    takes_grammar = engine == "replay" or not engine_class(engine).lacks(
        card.engine_options(engine, fetch=False), logprobs=False, grammar=True
    )
    anew = "sample candidates" if engine == "replay" else "draw new ones"
    cooler = "temperature=1" if card.temperature > 1 and not card.sampling.greedy and engine != "replay" else ""
    advice = []
    lost = counts.cut + counts.unreadable
    if 2 * counts.cut > counts.candidates:
        fixes = [f"max_tokens={2 * card.max_tokens}", *(["format=compact"] if card.decision.format == "json" else [])]
        fixes += [cooler] if cooler else []
        advice.append(
            f"{counts.cut} of {counts.candidates} candidates were cut at max_tokens: {anew} with {' or '.join(fixes)}"
        )
    elif 2 * lost > counts.candidates:
        fixes = [] if takes_grammar else ["on a server that holds answers to a grammar (vLLM, llama.cpp)"]
        fixes += [f"with {cooler}"] if cooler else []
        advice.append(
            f"{lost} of {counts.candidates} candidates are cut or could not be read: {anew} "
            + (" or ".join(fixes) or "with another model, as this one does not keep to the format")
        )
    if counts.dropped > counts.located and (engine == "replay" or not card.grounded):
        where = "" if takes_grammar else ", on a server that takes a grammar (vLLM, SGLang, llama.cpp)"
        advice.append(
            f"{counts.dropped} of {counts.located + counts.dropped} error spans that candidates marked are not in the "
            f"translation, and were dropped: {anew} with grounded=true{where}, which allows only pieces of the "
            "translation"
        )
    return advice


def _equal_scores(card: ModelCard, counts: Summary, decisions: Sequence[Decision], otherwise: str) -> list[str]:
    """Advice where all segments have the same score; `otherwise` ends the line where no option helps."""
    judged = [one for one in decisions if one.valid]
    if len(judged) < 2 or len({one.score for one in judged}) > 1 or math.isnan(judged[0].score):
        return []
    line = (
        f"all {len(judged)} segments have the score {judged[0].score:.4f}: {sum(not one.annotation for one in judged)} "
        f"answers mark no error, and neither do {counts.unmarked} of {counts.candidates} candidates"
    )
    means = [one.located / one.valid for one in judged]
    if card.samples == 1:
        return [f"{line}; several candidates tell more than one: rule=mbr&n=16&temperature=1&score=expected"]
    if card.decision.score == "chosen" and max(means) > min(means):
        return [
            f"{line}; score=expected takes the mean over the candidates, which mark {min(means):.2f} to "
            f"{max(means):.2f} error spans a segment, with nothing sampled anew"
        ]
    return [f"{line}{otherwise}"]
