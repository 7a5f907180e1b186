"""Several models, one decision: their candidates are pooled as supports and as hypotheses, weighted equally by model.

Several settings of one language model are one model whose candidates all weigh the same, so that a share of them can be
drawn at another temperature.

Each model samples by itself, under its own keys in the store, so that a pool costs nothing where its models have been
run. Whether supports of several families make better decisions has not been measured here; the paper names metric bias
and better hypothesis sets as future work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mbr_esd_metric.core.annotation import Annotation, SpanKey
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import read_annotations
from mbr_esd_metric.generation.engines.replay import ReplayEngine
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.engine_choice import choose_engine

#: The models that have each span of a decision, in the order of its spans.
Origins = tuple[tuple[str, ...], ...]


def members(card: ModelCard) -> list[ModelCard]:
    """The cards that are pooled; one where nothing is. A card with a file of candidates has the format of the file; one
    that leaves its model to the server has the model that is served there.

    Raises:
        InputError: such a file is malformed.
        EngineError: the server does not answer, or serves several models.
    """
    return [_as_stored(_as_served(one)) for one in (card, *card.others)]


def _as_served(card: ModelCard) -> ModelCard:
    if card.model or card.candidates is not None:
        return card
    return replace(card, model=card.engine_options(choose_engine(card)).model)


def _as_stored(card: ModelCard) -> ModelCard:
    form = None if card.candidates is None else ReplayEngine.format(card.engine_options("replay"))
    return card if form is None else replace(card, decision=replace(card.decision, format=form))


def origins(
    decision: Decision,
    candidates: Sequence[Candidate],
    translation: str,
    options: DecisionOptions,
    source: str | None = None,
) -> Origins:
    """For each span of the answer the models that have it in one of their candidates, with its severity."""
    read = read_annotations(candidates, translation, options, source)
    found: dict[SpanKey, dict[str, None]] = {}
    for candidate, annotation in zip(candidates, read, strict=True):
        if isinstance(annotation, Annotation) and candidate.model is not None:
            for span in annotation:
                found.setdefault(span.key, {})[candidate.model] = None
    return tuple(tuple(found.get(span.key, ())) for span in decision.annotation)


def with_models(decision: Decision, found: Origins) -> Decision:
    """The decision with each span's models in brackets after its category, as raters are named in reports.

    So ratings in WMT's layout, reports and `mbr-esd show` say which models each chosen span came from.
    """
    spans = [
        replace(span, category=f"{span.category or ''} ({', '.join(which)})".strip()) if which else span
        for span, which in zip(decision.annotation, found, strict=True)
    ]
    return replace(decision, annotation=decision.annotation.with_spans(spans))
