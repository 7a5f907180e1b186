"""Estimates what a run would cost, before anything is loaded or paid for (`mbr-esd score --dry-run`).

How long a run takes depends on the machine, on what else it does, and on the texts. A trial measures it: it samples a
few of the run's own segments, which the run then need not sample.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.errors import EngineError, no_effect_error
from mbr_esd_metric.generation.server.client import cost
from mbr_esd_metric.generation.store import CandidateStore, store_path
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.sampler import Sampler
from mbr_esd_metric.metric.sources import Sampled, Segment, build_requests
from mbr_esd_metric.metric.units import units_of
from mbr_esd_metric.prompting.formats import get_format

#: Model -> how long it takes where it runs without a server (docs/small-model.md: in float32, the slower way).
MEASURED = {"mbr-esd-small": "about 40 s for 1,000 on two cores"}
#: Bytes for each token of a prompt, for estimates: about four in English, fewer in other languages.
BYTES_A_TOKEN = 3.5


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds to load the model and sample a first segment (0 where a server has loaded it); then the segments and
    candidates that were sampled after that, and their seconds."""

    loading: float
    segments: int
    candidates: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The work that is left to do. With `n=auto` the numbers to sample are upper limits.

    Attributes:
        pairs: distinct (source, translation) pairs that are not blank.
        candidates, stored: of all pairs, and those in the store.
        prompts, prompt_characters: the distinct prompts to read for the missing candidates, and their total length.
        tokens: to generate; estimated from `mean_tokens`, of the stored candidates, where any are known.
        requests: HTTP requests of `engine=server`, or prompts for the other engines.
        prompt_tokens: estimated tokens of prompts that are paid for; a prompt counts for each request.
        cost: the estimated cost at the card's price, and the most that it can be; None without a price.
        note: why another engine than this machine's is counted, or why the run would stop; "" if neither.
        timing: of the trial; None without one.
    """

    card: ModelCard
    engine: str
    segments: int
    pairs: int
    candidates: int
    stored: int
    prompts: int
    prompt_characters: int
    tokens: int
    requests: int
    mean_tokens: float | None
    prompt_tokens: int
    cost: tuple[float, float] | None
    note: str
    timing: Timing | None

    def lines(self) -> list[str]:
        """The lines that a terminal shows."""
        most = "at most " if self.card.adaptive else ""
        source = "the mean of what is stored" if self.mean_tokens is not None else "a guess, as nothing is stored yet"
        rows = [
            ("segments", f"{self.segments:,}"),
            ("distinct pairs", f"{self.pairs:,}"),
            ("candidates", f"{most}{self.candidates:,}"),
            ("  in the store", f"{self.stored:,}"),
            ("  to sample", f"{most}{self.candidates - self.stored:,}"),
            ("prompts to read", f"{self.prompts:,} ({self.prompt_characters:,} characters)"),
            ("tokens to generate", f"{most}{self.tokens:,} (estimated; tokens a candidate: {source})"),
            ("requests", f"{most}{self.requests:,} (engine={self.engine})"),
        ]
        if self.cost is not None:
            expected, bound = self.cost
            prompts = f"{self.prompt_tokens:,} tokens of prompts"
            rows.append(("cost", f"{most}{expected:,.4f} (estimated, with {prompts}; never more than {bound:,.4f})"))
            if self.card.max_cost is not None and self.card.max_cost < bound:
                rows.append(("  max_cost", f"{self.card.max_cost:,.4f}: the run stops before it would pass it"))
        if self.candidates == self.stored:
            rows.append(("time", "none for sampling: all candidates are stored"))
        elif self.timing is None:
            known = MEASURED.get(self.card.name, "not known")
            rows.append(("time", f"{known}; --dry-run 4 samples 4 of the segments, which are kept, and measures"))
        else:
            one = self.timing
            seconds = one.loading + (self.candidates - self.stored) * one.seconds / one.candidates
            loading = f"; {one.loading:,.0f} s to load the model and sample one" if one.loading else ""
            rate = f"at {one.candidates / one.seconds:,.2f} candidates/s, as in {one.segments} segments"
            rows.append(("time", f"{most}{_in_words(seconds)} ({rate} sampled just now and kept{loading})"))
        rows += [("note", self.note)] if self.note else []
        return [f"{name:<21}{text}" for name, text in rows]


def _in_words(seconds: float) -> str:
    """
    >>> _in_words(59), _in_words(3700), _in_words(200_000)
    ('about 59 s', 'about 1 h 2 min', 'about 55 h 33 min')
    """
    if seconds < 120:
        return f"about {seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {hours} h {minutes} min" if hours else f"about {minutes} min"


def _timed(card: ModelCard, segments: Sequence[Segment], trial: int) -> Timing | None:
    """Sample `trial` segments into the store, spread over all that lack candidates, and measure. The first waits until
    the model is loaded, and the others give the rate. None if fewer than two lack candidates."""
    source = Sampled(card)
    card, engine = source.card, source.engine
    with CandidateStore(store_path(card.store)) as store, Sampler(engine, store) as sampler:
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


def estimate(card: ModelCard, segments: Sequence[Segment], trial: int = 0) -> Estimate:
    """The work of a run, counted without loading the model or creating a store. The weights of an embedded model are
    fetched if they are missing, because their digest is part of the store's keys. `trial` segments are sampled to
    measure the time; 0 samples none. Raises as `annotate` does, and `OptionError` for candidates of a file."""
    if card.candidates is not None:
        raise no_effect_error("a dry run", f"candidates={card.candidates}, of which nothing is sampled")
    timing = _timed(card, segments, trial) if trial else None
    note = ""
    try:
        source = Sampled(card)
    except EngineError:
        name = get_format(card.decision.format).engine or "server"
        note = f"{card.name} does not run here (mbr-esd models --check says why); counted for engine={name}"
        source = Sampled(replace(card, engine=name))
    card, engine, answers = source.card, source.engine, get_format(card.decision.format)
    every = build_requests(card, engine.identity, units_of(card, segments).units).values()
    price = card.price or (0.0, 0.0)
    per_request = engine.samples_per_request or card.samples
    stored, prompts, characters, prompt_bytes, requests = 0, 0, 0, 0, 0
    guess, bound, lengths = 0, 0.0, list[int]()
    with CandidateStore(path if (path := store_path(card.store)).exists() else ":memory:") as store:
        for request in every:
            samples = {at: one for at, one in enumerate(store.get(request.key, request.n)) if one is not None}
            stored += len(samples)
            lengths += [one.tokens for one in samples.values() if one.tokens]
            sizes = [
                min(per_request, part.n - done)
                for part in request.only(set(range(request.n)) - set(samples))
                for done in range(0, part.n, per_request)
            ]
            if sizes:
                guess += sum(sizes) * min(answers.usual_tokens(request.translation), card.max_tokens)
                prompts += 1
                characters += len(request.text)
                requests += len(sizes)
                prompt_bytes += len(sizes) * len(request.text.encode("utf-8", "surrogatepass"))
                bound += sum(cost(price, request.text, n * card.max_tokens) for n in sizes)
    total = sum(request.n for request in every)
    mean = sum(lengths) / len(lengths) if lengths else None
    tokens = guess if mean is None else round(mean * (total - stored))
    lacking = [name for name in engine.packages if importlib.util.find_spec(name) is None]
    if not note and total > stored and (lacking or not engine.loads_weights) and (problem := engine.problem):
        note = f"as things are, the run would stop: {problem}"
    prompt_tokens = round(prompt_bytes / BYTES_A_TOKEN)
    return Estimate(
        card,
        engine.name,
        len(segments),
        pairs=len(every),
        candidates=total,
        stored=stored,
        prompts=prompts,
        prompt_characters=characters,
        tokens=tokens,
        requests=requests,
        mean_tokens=mean,
        prompt_tokens=prompt_tokens,
        cost=(cost(price, prompt_tokens, tokens), bound) if card.price else None,
        note=note,
        timing=timing,
    )
