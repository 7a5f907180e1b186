"""Estimates the time and cost of a run before anything is loaded or paid for (`mbr-esd score --dry-run`).

The time of a run depends on the machine, its load, and the texts. A trial measures it by sampling a few segments of the
run, which are kept.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError, no_effect_error
from mbr_esd_metric.generation.server.client import cost
from mbr_esd_metric.generation.store import CandidateStore, store_path
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.sampler import Sampler
from mbr_esd_metric.metric.sources import Sampled, build_requests
from mbr_esd_metric.metric.units import units_of
from mbr_esd_metric.prompting.formats import get_format

#: Model without a server -> its usual time (docs/small-model.md: in float32, the slower way).
MEASURED = {
    "mbr-esd-small": "about 40 s for 1,000 on two cores",
    "mbr-esd-checks": "about 2 s for 5,000 strings, 3 s without lp=",
}
#: Bytes for each token of a prompt, for estimates: about four in English, fewer in other languages.
BYTES_A_TOKEN = 3.5


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds to load the model and sample the first segment (0 if a server has loaded it); then the numbers of
    segments and candidates sampled after that, and their seconds."""

    loading: float
    segments: int
    candidates: int
    seconds: float

    def of(self, candidates: int) -> str:
        """The estimated time for a number of candidates, and its basis."""
        loading = f"; {self.loading:,.0f} s to load the model and sample the first segment" if self.loading else ""
        rate = f"at {self.candidates / self.seconds:,.2f} candidates/s, as in {self.segments} segments"
        time = timedelta(seconds=round(self.loading + candidates * self.seconds / self.candidates))
        return f"about {time} h ({rate} just sampled and kept{loading})"


def timed(card: ModelCard, segments: Sequence[Segment], trial: int) -> Timing | None:
    """Sample `trial` segments into the store, spread over all without candidates, and measure the time: the first one
    includes loading the model, the others give the rate. None if fewer than two lack candidates."""
    source = Sampled(card)
    card, engine = source.card, source.engine
    with CandidateStore(store_path()) as store, Sampler(engine, store) as sampler:
        engine.confirm()
        requests = build_requests(card, engine.identity, units_of(card, segments).units)
        lacking = {one.key: (one, n) for one in requests.values() if (n := sum(p.n for p in sampler.missing([one])))}
        count = min(trial, len(lacking))
        if count < 2:
            return None
        first, *others = [[*lacking.values()][i * len(lacking) // count] for i in range(count)]
        began = time.monotonic()
        sampler.sample(card, [first[0]])
        loaded = time.monotonic()
        sampler.sample(card, [one for one, _ in others])
    loading = loaded - began if engine.loads_weights else 0.0
    return Timing(loading, count - 1, sum(n for _, n in others), time.monotonic() - loaded)


def estimate(card: ModelCard, segments: Sequence[Segment], trial: int = 0) -> dict[str, str]:
    """The work of a run as rows of a table, computed without loading the model or creating a store. Missing weights of
    an embedded model are downloaded, because their digest is part of the store's keys. `trial` segments are sampled to
    measure the time. Raises the exceptions of `annotate`, and `OptionError` for candidates from a file."""
    if card.candidates is not None:
        raise no_effect_error("a dry run", f"candidates={card.candidates}, which are already sampled")
    timing = timed(card, segments, trial) if trial else None
    note = ""
    try:
        source = Sampled(card)
    except EngineError:
        name = get_format(card.decision.format).engine or "server"
        note = f"{card.name} does not run here (see mbr-esd models --check); counts are for engine={name}"
        source = Sampled(replace(card, engine=name))
    card, engine, answers = source.card, source.engine, get_format(card.decision.format)
    every = build_requests(card, engine.identity, units_of(card, segments).units).values()
    price = card.price or (0.0, 0.0)
    per_request = engine.samples_per_request or card.samples
    stored, prompts, characters, prompt_bytes, requests = 0, 0, 0, 0, 0
    guess, bound, lengths = 0, 0.0, list[int]()
    with CandidateStore(path if (path := store_path()).exists() else ":memory:") as store:
        for request in every:
            samples = {at: one for at, one in enumerate(store.get(request.key, request.n)) if one is not None}
            stored += len(samples)
            lengths += [one.tokens for one in samples.values() if one.tokens]
            missing = request.only(set(range(request.n)) - set(samples))
            sizes = [part.n for one in missing for part in one.parts(per_request)]  # a prompt is charged per request
            if sizes:
                guess += sum(sizes) * min(answers.usual_tokens(request.translation), card.max_tokens)
                prompts += 1
                characters += len(request.text)
                requests += len(sizes)
                prompt_bytes += len(sizes) * len(request.text.encode("utf-8", "surrogatepass"))
                bound += sum(cost(price, request.text, n * card.max_tokens) for n in sizes)
    total = sum(request.n for request in every)
    left = total - stored
    tokens = round(sum(lengths) / len(lengths) * left) if lengths else guess
    known = "mean of the stored candidates" if lengths else "a guess, because the store is empty"
    rows = {
        "segments": f"{len(segments):,}",
        "distinct pairs": f"{len(every):,}",
        "candidates": f"{total:,}",
        "  in the store": f"{stored:,}",
        "  to sample": f"{left:,}",
        "prompts to read": f"{prompts:,} ({characters:,} characters)",
        "tokens to generate": f"{tokens:,} (estimated; tokens a candidate: {known})",
        "requests": f"{requests:,} (engine={engine.name})",
    }
    if card.price is not None:
        prompt_tokens = round(prompt_bytes / BYTES_A_TOKEN)
        expected = f"{cost(price, prompt_tokens, tokens):,.4f}"
        rows["cost"] = f"{expected} (estimated, with {prompt_tokens:,} prompt tokens; at most {bound:,.4f})"
        if card.max_cost is not None and card.max_cost < bound:
            rows["  max_cost"] = f"{card.max_cost:,.4f}: the run stops before exceeding it"
    if not left:
        rows["time"] = "none: all candidates are stored"
    elif timing is None:
        time_known = MEASURED.get(card.name, "not known")
        rows["time"] = f"{time_known}; --dry-run 4 samples and keeps 4 segments to measure it"
    else:
        rows["time"] = timing.of(left)
    lacking = [name for name in engine.packages if importlib.util.find_spec(name) is None]
    if not note and left and (lacking or not engine.loads_weights) and (problem := engine.problem):
        note = f"the run would fail: {problem}"
    return rows | ({"note": note} if note else {})
