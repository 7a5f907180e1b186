"""The segments of a run, and the requests that ask for their candidates: pure functions of card, identity and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from mbr_esd_metric.generation.engine import Request
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.prompt import Context
from mbr_esd_metric.prompting.text import is_blank


@dataclass(frozen=True, slots=True)
class Segment:
    """A source and its translation.

    Attributes:
        label: the name in messages.
        system: it tells stored candidates of equal texts apart.
        document: its document, if that is known.
        context: the text around a part of a text, which the model reads.
    """

    source: str
    translation: str
    label: str
    system: str = ""
    document: str = ""
    context: Context | None = None


#: Source, translation and context: segments that agree in these share their candidates and their decision.
Pair: TypeAlias = "tuple[str, str, Context | None]"


def pair_of(segment: Segment) -> Pair:
    """Source, translation and context of a segment."""
    return segment.source, segment.translation, segment.context


def build_requests(card: ModelCard, identity: Mapping[str, str], segments: Sequence[Segment]) -> dict[Pair, Request]:
    """The request for all N samples (with `n=auto` for the most there may be) of each distinct pair that has a
    translation. Two that render to one prompt have one key, and share their candidates.

    Args:
        identity: of the engine; part of the keys.
    """
    answers = get_format(card.decision.format)
    prompt, shots = answers.prompt(card.prompt), None
    if card.shots is not None:
        from mbr_esd_metric.metric.shots import Shots

        shots = Shots.read(card.shots, answers)
    fixed = [dict(identity), asdict(card.sampling)]
    requests: dict[Pair, Request] = {}
    for segment in segments:
        source, translation, context = pair = pair_of(segment)
        if pair in requests or is_blank(translation):
            continue
        text = prompt.render(source, translation, card.lp, context)
        # All parts of a text get the same examples, so that their prompts begin alike.
        whole = source if context is None else context.source
        grammar = answers.grammar(translation, card.grounded, source)
        turns = (*prompt.turns, *(shots.turns(prompt, whole, card.lp) if shots else ()))
        # What can change a candidate, and nothing else: neither N nor an index, so that more can be added.
        content = [*fixed, text, grammar, answers.name, turns]
        requests[pair] = Request(
            key=hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest(),
            prompt=text,
            grammar=grammar,
            n=card.samples,
            label=segment.label,
            source=source,
            translation=translation,
            schema=answers.schema,
            form=answers.grammar(translation, source=source) if card.grounded and answers.schema else "",
            token_logprobs=card.samples == 1,
            turns=turns,
        )
    return requests
