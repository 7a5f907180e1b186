"""Messages of a run: counts of lost candidates and spans, and options that help if the scores are uninformative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mbr_esd_metric.core.corrections import NOT_APPLIED, not_applied
from mbr_esd_metric.core.decision import FEW, UNSURE, Decision, mostly_lost
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.decoding.segment import CUT, FOUND_INEXACTLY
from mbr_esd_metric.generation.engine import NO_MODEL, Engine
from mbr_esd_metric.messages import first_of, number_of
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting.languages import lp_of
from mbr_esd_metric.prompting.prompt import built_in

#: The summary of a run without candidates.
NO_CANDIDATES = "no candidates: every translation is blank or was rejected by the server"


def summary(
    card: ModelCard, engine: Engine | None, segments: Sequence[Segment], decisions: Sequence[Decision]
) -> tuple[str, list[str]]:
    """The summary and advice of `run.Annotated` for a run with an engine; there is one decision per segment."""
    names = ("valid", "invalid", "located", "dropped", "unplaced", "inexact", "unmarked", "malformed")
    total = {name: sum(getattr(one, name) for one in decisions) for name in names}
    total["cut"] = sum(one.reasons.get(CUT, 0) for one in decisions)
    candidates = total["valid"] + total["invalid"]
    advice = []
    if card.needs_prompt and card.prompt in built_in("json"):
        advice.append(
            f"{card.name} was trained on its authors' prompt, but ours is in use; save theirs to a file (see "
            "docs/models.md) and set prompt=FILE"
        )
    advice += _losses(card, engine, total)
    if unmeasured := card.unmeasured([card.lp] if card.lp else {*filter(None, map(lp_of, segments))}):
        advice.append(unmeasured)
    if unsure := [segment.label for segment, one in zip(segments, decisions, strict=True) if one.unsure]:
        advice.append(
            f"{number_of(len(unsure), 'segment')} {UNSURE} ({first_of(unsure)}): an answer without an error is rarely "
            "malformed, so the scores may be too high"
        )
    advice += _equal_scores(card, decisions, candidates, total["unmarked"])
    if not candidates:
        return NO_CANDIDATES, advice
    source = f" or the source (of omissions: {total['unplaced']})" if card.decision.both_sides() else ""
    lost = {"cut at max_tokens": total["cut"], "could not be read": total["invalid"] - total["cut"]}
    unfound = {f"not found in the translation{source}": total["dropped"], FOUND_INEXACTLY: total["inexact"]}
    unfound |= {"malformed": total["malformed"]}
    parts = [
        _nonzero_counts(candidates, "candidate", lost),
        _nonzero_counts(total["located"] + total["dropped"] + total["malformed"], "error span", unfound),
    ]
    if left := sum(not_applied(one.annotation) for one in decisions):
        parts.append(f"{number_of(left, 'correction')} {NOT_APPLIED}")
    lowest = [s for s, one in zip(segments, decisions, strict=True) if one.valid and one.score <= 0]
    if lowest:  # further errors do not change the score
        judged = number_of(sum(one.valid > 0 for one in decisions), "segment")
        parts.append(f"{len(lowest)} of {judged} reached the lowest score")
    if lowest and card.unit != "sentence" and engine is not None:
        from mbr_esd_metric.prompting import sentences

        if any(len(sentences.parts(one.source, one.translation, card.lp or lp_of(one))) > 1 for one in lowest):
            parts.append("unit=sentence")
    return "; ".join(filter(None, parts)), advice


def _nonzero_counts(whole: int, what: str, counts: Mapping[str, int]) -> str:
    """The nonzero counts, out of a total, as text; "" if all are 0."""
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return shown and f"of {number_of(whole, what)} {shown}"


def _losses(card: ModelCard, engine: Engine | None, total: Mapping[str, int]) -> list[str]:
    """Advice for runs that lost most candidates or spans; the summary has the counts."""
    takes_grammar = engine is None or not engine.missing_capability(logprobs=False, grammar=True)
    anew = "sample candidates" if engine is None else "sample again"
    cooler = ["temperature=1"] if card.sampling.temperature > 1 and engine is not None else []
    advice, candidates = [], total["valid"] + total["invalid"]
    if candidates >= FEW and 2 * total["cut"] > candidates:
        shorter = ["format=compact"] if card.decision.format == "json" else []
        fixes = [f"max_tokens={2 * card.max_tokens}", *shorter, *cooler]
        advice.append(f"most candidates were cut at max_tokens: {anew} with {' or '.join(fixes)}")
    elif candidates >= FEW and 2 * total["invalid"] > candidates:
        fixes = [] if takes_grammar else ["on a server with constrained decoding (vLLM, llama.cpp)"]
        fixes += [f"with {one}" for one in cooler]
        fix = " or ".join(fixes) or "with another model, because this one does not follow the format"
        advice.append(f"most candidates are cut or could not be read: {anew} {fix}")
    if mostly_lost(candidates, total["located"], total["dropped"]):
        where = "" if takes_grammar else ", on a server with constrained decoding (vLLM, SGLang, llama.cpp)"
        fix = f"with grounded=true{where}, which constrains spans to the translation"
        if engine is not None and card.grounded:
            fix = "on a server that enforces the grammar of grounded=true"
        advice.append(
            f"most error spans of the candidates were dropped because they are not in the translation: {anew} {fix}"
        )
    return advice


def _equal_scores(card: ModelCard, decisions: Sequence[Decision], candidates: int, unmarked: int) -> list[str]:
    """Advice for runs in which all segments have the same score; `unmarked` is the number of candidates without
    errors."""
    judged = [one for one in decisions if one.valid]
    if len(judged) < 2 or len({one.score for one in judged}) > 1 or math.isnan(judged[0].score):
        return []
    if card.engine == NO_MODEL:
        return []
    empty = number_of(sum(not one.annotation for one in judged), "decision")
    line = (
        f"all {len(judged)} segments have the score {judged[0].score:.4f}: {empty} without error spans, and "
        f"{unmarked} of {candidates} candidates mark no error"
    )
    means = [one.located / one.valid for one in judged]
    if card.samples == 1:
        line += "; to separate segments, sample several candidates: rule=mbr&n=16&temperature=1&score=expected"
    elif card.decision.score == "chosen" and max(means) > min(means):
        line += (
            f"; score=expected uses the mean over the candidates, which mark {min(means):.2f} to {max(means):.2f} "
            "error spans per segment, without sampling again"
        )
    elif unmarked == candidates:
        line += "; this model detects no errors here: use a larger one"
    return [line]
