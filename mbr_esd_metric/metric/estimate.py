"""Estimates what a run would cost, before anything is loaded or paid for (`mbr-esd score --dry-run`).

How long a run takes depends on the machine, on what else it does, and on the texts. So no figure is kept for it: a
trial samples a few of the run's own segments, which the run then need not sample, and measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import EngineError, useless
from mbr_esd_metric.generation.registry import engine_class
from mbr_esd_metric.generation.server.budget import Prices
from mbr_esd_metric.generation.server.dialect import Usage
from mbr_esd_metric.generation.store import CandidateStore, store_path
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.metric.engine_choice import choose_engine
from mbr_esd_metric.metric.pipeline import Segment, Timing, plan, timed
from mbr_esd_metric.metric.pooled import members
from mbr_esd_metric.metric.sampler import missing

#: Tokens of a candidate if the store holds none to measure: the mean of the demo model on TED talks.
TOKENS_A_CANDIDATE = 64
#: Bytes for each token of a prompt, for estimates: about four in English, fewer in other languages.
BYTES_A_TOKEN = 3.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """The work that is left to do. With `n=auto` the numbers to sample are upper limits.

    Attributes:
        name: of the model.
        engine: the engine that would run.
        segments, pairs: the number of segments, and of distinct (source, translation) pairs that are not blank.
        candidates, stored: the number of candidates wanted, and of those that the store holds.
        prompts, prompt_characters: the distinct prompts to read for the missing candidates, and their total length.
        tokens: the estimated number of tokens to generate.
        requests: HTTP requests of `engine=server`, or prompts for the other engines.
        adaptive: whether sampling stops early.
        measured: whether the tokens of a candidate are a mean over stored candidates.
        prompt_tokens: the estimated number of tokens of prompts that are paid for; a prompt counts for each request.
        cost: the estimated cost at the card's prices, and the most that it can be; None if no prices are given.
        max_cost: the cost at which the run would stop, if any.
        note: why another engine than this machine's is counted; "" if none is.
        timing: of segments sampled on trial; None without a trial.
    """

    name: str
    engine: str
    segments: int
    pairs: int
    candidates: int
    stored: int
    prompts: int
    prompt_characters: int
    tokens: int
    requests: int
    adaptive: bool
    measured: bool
    prompt_tokens: int
    cost: tuple[float, float] | None
    max_cost: float | None
    note: str = ""
    timing: Timing | None = None

    @property
    def seconds(self) -> float | None:
        """How long the rest takes, loading included, at the speed of the trial; None without one."""
        if self.timing is None or not self.timing.candidates:
            return None
        left = self.candidates - self.stored
        return self.timing.first + left * self.timing.seconds / self.timing.candidates if left else 0.0

    def lines(self) -> list[str]:
        """The lines that a terminal shows."""
        most = "at most " if self.adaptive else ""
        source = "the mean of what is stored" if self.measured else "a guess, as nothing is stored yet"
        lines = [
            f"segments             {self.segments:,}",
            f"distinct pairs       {self.pairs:,}",
            f"candidates           {most}{self.candidates:,}",
            f"  in the store       {self.stored:,}",
            f"  to sample          {most}{self.candidates - self.stored:,}",
            f"prompts to read      {self.prompts:,} ({self.prompt_characters:,} characters)",
            f"tokens to generate   {most}{self.tokens:,} (estimated; tokens a candidate: {source})",
            f"requests             {most}{self.requests:,} (engine={self.engine})",
        ]
        if self.cost is not None:
            expected, bound = self.cost
            lines.append(
                f"cost                 {most}{expected:,.4f} (estimated, with {self.prompt_tokens:,} tokens of "
                f"prompts; never more than {bound:,.4f})"
            )
            if self.max_cost is not None and self.max_cost < bound:
                lines.append(f"  max_cost           {self.max_cost:,.4f}: the run stops before it would pass it")
        lines.append(f"time                 {most if self.seconds else ''}{self._time()}")
        if self.note:
            lines.append(f"note                 {self.note}")
        return lines

    def _time(self) -> str:
        if self.candidates == self.stored:
            return "none for sampling: all candidates are stored"
        if self.seconds is None or self.timing is None:
            return "not known; --try 4 samples 4 of the segments, which are kept, and measures"
        one = self.timing
        return (
            f"{_in_words(self.seconds)} (at {one.candidates / one.seconds:,.2f} candidates/s, as in {one.segments} "
            f"segments sampled just now and kept; {one.first:,.0f} s to load the model and sample one)"
        )


def _in_words(seconds: float) -> str:
    """
    >>> _in_words(59), _in_words(3700), _in_words(200_000)
    ('about 59 s', 'about 1 h 2 min', 'about 55 h 33 min')
    """
    if seconds < 120:
        return f"about {seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"about {hours} h {minutes} min" if hours else f"about {minutes} min"


def estimates(card: ModelCard, segments: Sequence[Segment], trial: int = 0) -> list[Estimate]:
    """`estimate` of each model that a card pools; one where nothing is.

    Args:
        card: one model or several.
        segments: of the run.
        trial: segments to sample of each model, to measure the time; 0 samples none.

    Raises:
        OptionError, EngineError, StoreError: as `estimate`, and with a trial as `pipeline.timed`.
    """
    found = []
    for one in members(card):
        alone = replace(one, others=())
        timing = timed(alone, segments, trial) if trial else None
        found.append(replace(estimate(alone, segments), timing=timing))
    return found


def _countable(card: ModelCard) -> tuple[ModelCard, str]:
    """The card with an engine to count for, and a note where this machine has none."""
    try:
        choose_engine(card)
    except EngineError:
        # Only this engine reads an answer that goes through the translation word by word.
        engine = "transformers" if get_format(card.decision.format).surprisals else "server"
        return replace(card, engine=engine), (
            f"{card.name} does not run here as things are (mbr-esd doctor says why); counted for engine={engine}"
        )
    return card, ""


def estimate(card: ModelCard, segments: Sequence[Segment]) -> Estimate:
    """Count what `pipeline.annotate` would sample, without loading a model or creating a store.

    The weights of an embedded model are fetched if they are missing, because their digest is part of the store's keys.

    Raises:
        OptionError, EngineError, StoreError: as `pipeline.annotate`; also for `engine=replay`, which samples nothing.
    """
    card, note = _countable(card)
    todo = plan(card, segments)
    if todo.engine == "replay":
        raise useless("a dry run", "engine=replay, which samples nothing")
    keep = engine_class(todo.engine).stored and store_path(card.store).exists()
    stored = tokens = prompts = characters = requests = prompt_bytes = 0
    bound = 0.0
    prices = None if card.price_in is None or card.price_out is None else Prices(card.price_in, card.price_out)
    options = card.engine_options(todo.engine, fetch=False)
    per_request = engine_class(todo.engine).samples_a_request(options) or card.samples
    with CandidateStore.open(card.store, keep=keep) as store:
        for request in todo.requests.values():
            have = store.get(request.key, request.n)
            held = [sample for sample in have if sample is not None]
            stored += len(held)
            tokens += sum(sample.tokens for sample in held)
            parts = list(missing(request, have))
            if parts:
                prompts += 1
                characters += len(request.prompt)
                asked = [min(per_request, part.n - done) for part in parts for done in range(0, part.n, per_request)]
                requests += len(asked)
                prompt_bytes += len(asked) * len(request.prompt.encode("utf-8", "surrogatepass"))
                if prices is not None:
                    bound += sum(prices.bound(request.prompt, n * card.max_tokens) for n in asked)
    candidates = sum(request.n for request in todo.requests.values())
    each = tokens / stored if stored else min(TOKENS_A_CANDIDATE, card.max_tokens)
    left = round(each * (candidates - stored))
    prompt_tokens = round(prompt_bytes / BYTES_A_TOKEN)
    return Estimate(
        name=card.name,
        engine=todo.engine,
        segments=len(segments),
        pairs=len(todo.requests),
        candidates=candidates,
        stored=stored,
        prompts=prompts,
        prompt_characters=characters,
        tokens=left,
        requests=requests,
        adaptive=card.adaptive,
        measured=stored > 0,
        prompt_tokens=prompt_tokens,
        cost=None if prices is None else (prices.of(Usage(prompt_tokens, left)), bound),
        max_cost=card.max_cost,
        note=note,
    )
