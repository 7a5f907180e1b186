"""`engine=tagger`: an encoder that reads both texts at once and says of each token whether it is right.

Any `AutoModelForTokenClassification` with the labels ok, minor and major will do; its input is translation and source.
Along the source, minor and major say that the translation leaves the token out. One forward pass gives the
probabilities of each word's tags, p_i; a word has those of its token that is least likely right. Candidates are
drawn from a chain with exactly these marginals, in which neighbours agree as often as they can, so that spans hold
together:

    P(t_i | t_{i-1}) = k C_i(t_i | t_{i-1}) + (1 - k) p_i(t_i)

where C_i is the maximal coupling of p_{i-1} and p_i, and k is 0.9 or the model's ``persistence``. The greedy candidate
is the chain's likeliest path.

A candidate ends with a score, which ``score=given`` takes: ``-min(25, exp(z) - 1)``. Without more in the model's
configuration, it is the expected number of spans in MQM points. Our own models have a section ``mbr_esd_metric`` there:
``embeddings`` (an embedded model whose embeddings the folder lacks), ``persistence``, ``odds`` (by which the odds of
minor and major are multiplied in candidates), and ``score``, the weights of z: `Features` says of what.

A pair of more tokens than the model has positions is read part by part, cut between aligned sentences; penalties add.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from mbr_esd_metric.core.candidate import Candidate, TokenLogprobs
from mbr_esd_metric.elicit.sentences import Part, parts
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.generation.embedded import EMBEDDED, embedded_weights
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Generated, Request, Sampling
from mbr_esd_metric.generation.model_files import check_model_folder, model_identity
from mbr_esd_metric.generation.pretrained import bf16_works, loading, placement, problem_of, wait_passively

_TAGS = ("ok", "minor", "major")
_SECTION = "mbr_esd_metric"
_PERSISTENCE = 0.9
_POINTS = np.array([0.0, 1.0, 5.0])
#: Probabilities below this are taken for it, so that no log-probability is infinite.
_LEAST = 1e-6

Chances: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.float64]]"


@dataclass(frozen=True, slots=True)
class Features:
    """What the score is mixed from.

    Attributes:
        total: ``-log(1 + e)``, e the expected MQM points of both texts' spans.
        density: -e per word of the translation.
        worst: minus the highest probability of a major tag.
        quality, rating, edited: means over the tokens of the model's labels of these names; 0 where it has none.
    """

    total: float
    density: float
    worst: float
    quality: float = 0.0
    rating: float = 0.0
    edited: float = 0.0


class TaggerEngine(Engine):
    """An encoder loaded by transformers; uses `model`, `revision`, `dtype` and `device`."""

    name: ClassVar[str] = "tagger"
    description: ClassVar[str] = "an encoder that tags tokens, in this process"
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    extra: ClassVar[str] = "transformers"
    only_format: ClassVar[str] = "tags"
    rank: ClassVar[int | None] = 4

    def __init__(self, options: EngineOptions) -> None:
        """Load model and tokenizer.

        Raises:
            EngineError: the model cannot be loaded, has other labels, or a slow tokenizer.
            OptionError: an adapter.
        """
        check_model_folder(options)
        if options.adapter is not None:
            raise OptionError("engine=tagger takes no adapter; merge it into the model's weights")
        import torch
        from transformers import AutoModelForTokenClassification, AutoTokenizer

        wait_passively()
        with loading(options):
            model = _loaded(AutoModelForTokenClassification, options)
            base = _embeddings(model.config)
            place = embedded_weights(base) if base else options.model
            self._tokenizer = AutoTokenizer.from_pretrained(place, revision=options.revision)
        dtype = options.dtype
        if dtype == "auto":
            dtype = "bfloat16" if bf16_works(model.device.type) else "float32"
        self._model = model.to(getattr(torch, dtype)).eval()
        config = model.config
        self._labels = {name.lower(): number for number, name in config.id2label.items()}
        if missing := [tag for tag in _TAGS if tag not in self._labels]:
            raise EngineError(
                f"{options.model} has no label {missing[0]!r} but {', '.join(map(str, config.id2label.values()))}; "
                "engine=tagger needs ok, minor and major (id2label in its config.json)"
            )
        if not self._tokenizer.is_fast:
            raise EngineError(f"the tokenizer of {options.model} does not say where tokens stand; save a fast one")
        section = getattr(config, _SECTION, None) or {}
        self._persistence = float(section.get("persistence", _PERSISTENCE))
        self._odds = float(section.get("odds", 1.0))
        self._mix: Mapping[str, float] = section.get("score") or {"total": 1.0}
        if unknown := set(self._mix) - {"intercept", *Features.__dataclass_fields__}:
            raise EngineError(
                f"{options.model}: its config.json mixes the score from {min(unknown)!r}, which is unknown"
            )
        offset = 2 if config.model_type in ("roberta", "xlm-roberta", "camembert") else 0
        self._most: int = config.max_position_embeddings - offset

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        return problem_of(options)

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        return {"engine": cls.name, **model_identity(options)}

    @classmethod
    def left_out(cls, options: EngineOptions, sampling: Sampling) -> tuple[str, ...]:
        """A tag is drawn from three; nothing is cut."""
        return ("top_k",) if sampling.top_k else ()

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        for request in requests:
            if request.walk is None:
                raise EngineError("engine=tagger answers with a tag for each word; give format=tags")
            chances, features = self._read(request)
            chances = chances * [1.0, self._odds, self._odds]
            chances /= chances.sum(1, keepdims=True)
            between = len(request.walk.units)
            score = self._score(features)
            texts = [chances[:between], chances[between:]]
            paths = _Paths([_Chain(some, self._persistence, sampling) for some in texts if len(some)])
            if sampling.greedy:
                samples = (_candidate(request, paths.likeliest(), paths, score),) * request.n
            else:
                samples = tuple(
                    _candidate(request, paths.drawn(f"{sampling.seed}/{request.key}/{index}"), paths, score)
                    for index in range(request.first, request.first + request.n)
                )
            yield Generated(request.key, request.first, samples)

    def close(self) -> None:
        """Free the model's memory."""
        self._model = None

    def _score(self, features: Features) -> float:
        z = self._mix.get("intercept", 0.0)
        z += sum(self._mix.get(name, 0.0) * value for name, value in asdict(features).items())
        return -min(25.0, math.expm1(max(0.0, min(-z, 4.0))))

    def _read(self, request: Request) -> tuple[Chances, Features]:
        """The probabilities of the tags of each word, those of the source last, and what the score is mixed from."""
        translation, source = request.translation, request.source
        whole = Part(0, len(translation), 0, len(source))
        read = list(self._windows(translation, source, whole, request))
        tokens = [(place, values) for window in read for place, values in window]
        walk = request.walk
        assert walk is not None
        words = [*_places(walk.units, translation, 0), *_places(walk.source_units, source, 1)]
        tags = [self._labels[tag] for tag in _TAGS]
        chances = np.tile([1.0, 0.0, 0.0], (len(words), 1))
        at = 0
        for (side, start, end), values in sorted(tokens, key=lambda token: token[0]):
            if side < 0:
                continue
            while at < len(words) and (words[at][0], words[at][2]) <= (side, start):
                at += 1
            logits = values[tags]
            shares = np.exp(logits - logits.max())
            shares /= shares.sum()
            number = at
            while number < len(words) and words[number][0] == side and words[number][1] < end:
                if shares[0] < chances[number, 0] or chances[number, 0] == 1:
                    chances[number] = shares
                number += 1
        chances = np.maximum(chances, _LEAST)
        chances /= chances.sum(1, keepdims=True)
        return chances, self._features(chances, len(walk.units), [np.stack([v for _, v in window]) for window in read])

    def _features(self, chances: Chances, between: int, windows: Sequence[Any]) -> Features:
        expected = 0.0
        for some in (chances[:between], chances[between:]):
            # A span begins where the tag is not that of the word before; the chain's coupling says how often.
            before = np.vstack([[1.0, 0.0, 0.0], some[:-1]]) if len(some) else some
            starts = self._persistence * np.maximum(some - before, 0) + (1 - self._persistence) * some * (1 - before)
            expected += float((starts @ _POINTS).sum())
        of: dict[str, list[float]] = {
            name: [float(window[:, self._labels[name]].mean()) for window in windows]
            for name in ("quality", "rating", "edited")
            if name in self._labels
        }
        quality = -math.log1p(sum(max(0.0, math.expm1(-x)) for x in of.get("quality", ())))
        if len(windows) == 1 and "quality" in of:
            (quality,) = of["quality"]
        means = {name: float(np.mean(of[name])) for name in ("rating", "edited") if name in of}
        return Features(
            -math.log1p(expected),
            -expected / max(between, 1),
            -float(chances[:, 2].max()),
            quality,
            means.get("rating", 0.0),
            means.get("edited", 0.0),
        )

    def _windows(self, translation: str, source: str, part: Part, request: Request) -> Iterator[list[Any]]:
        """For each window the place (side, start, end) and the logits of its tokens; side -1 for special ones."""
        import torch

        here, there = translation[part.start : part.end], source[part.source_start : part.source_end]
        encoding = self._tokenizer(here, there, return_offsets_mapping=True, return_tensors="pt", verbose=False)
        if encoding["input_ids"].shape[1] > self._most:
            for smaller in _halves(translation, source, part, request.label):
                yield from self._windows(translation, source, smaller, request)
            return
        places = encoding.pop("offset_mapping")[0].tolist()
        sides = encoding.sequence_ids(0)
        with torch.inference_mode():
            logits = self._model(**{name: value.to(self._model.device) for name, value in encoding.items()}).logits[0]
        window = []
        for side, (start, end), values in zip(sides, places, logits.float().cpu().numpy(), strict=True):
            if side is None:
                window.append(((-1, 0, 0), values))
                continue
            text, by = (there, part.source_start) if side else (here, part.start)
            start += len(text[start:end]) - len(text[start:end].lstrip())
            window.append(((side if start < end else -1, start + by, end + by), values))
        yield window


def _halves(translation: str, source: str, part: Part, label: str) -> list[Part]:
    """Two windows of a part that is too long, cut between sentences, or else in the middle of both texts."""
    found = parts(source[part.source_start : part.source_end], translation[part.start : part.end])
    if len(found) > 1:
        middle = (part.end - part.start) / 2
        cut = min(found[1:], key=lambda one: abs(one.start - middle))
        at, there = part.start + cut.start, part.source_start + cut.source_start
    else:
        at, there = (part.start + part.end) // 2, (part.source_start + part.source_end) // 2
    if not part.start < at < part.end:
        raise EngineError(f"{label or 'a segment'}: its source is too long for this model; split it")
    return [replace(part, end=at, source_end=there), replace(part, start=at, source_start=there)]


def _embeddings(config: Any) -> str | None:
    """The embedded model whose embeddings and tokenizer a folder lacks."""
    return (getattr(config, _SECTION, None) or {}).get("embeddings")


def _loaded(auto: Any, options: EngineOptions) -> Any:
    """The model; its embeddings come from an embedded model where its configuration says so."""
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(options.model, revision=options.revision)
    base = _embeddings(config)
    if base is None:
        return auto.from_pretrained(options.model, revision=options.revision, **placement(options.device))
    if base not in EMBEDDED:
        raise EngineError(f"{options.model}: its config.json takes embeddings of {base!r}, which is not one of ours")
    from safetensors.torch import load_file

    with torch.device("meta"):
        model = auto.from_config(config)
    state = load_file(embedded_weights(base) / "model.safetensors")
    state |= load_file(Path(options.model) / "model.safetensors")
    for name in [name for name in state if name.endswith(".scale")]:
        weights = name.removesuffix(".scale")
        state[weights] = state[weights].float() * state.pop(name).float()[:, None]
    missing, _ = model.load_state_dict(state, strict=False, assign=True)
    if missing := [name for name in missing if not name.endswith(("position_ids", "token_type_ids"))]:
        raise EngineError(f"{options.model}: model.safetensors has no {missing[0]}; fetch the folder again")
    for module in model.modules():
        for name, buffer in list(module.named_buffers(recurse=False)):
            if buffer.is_meta:
                value = torch.arange(buffer.shape[-1]).expand(buffer.shape) if name == "position_ids" else None
                setattr(module, name, torch.zeros_like(buffer, device="cpu") if value is None else value.clone())
    device = options.device if options.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(device)


def _places(units: Sequence[str], text: str, side: int) -> Iterator[tuple[int, int, int]]:
    """Side, start and end of each unit; units begin with the white space before them."""
    at = 0
    for unit in units:
        word = unit.lstrip()
        at = text.index(word, at)
        yield side, at, at + len(word)
        at += len(word)


class _Chain:
    """The tags of one text's words, given their probabilities (words, 3)."""

    def __init__(self, chances: Chances, persistence: float, sampling: Sampling) -> None:
        self._exact = _transitions(chances, persistence)
        self._used = self._exact
        if not sampling.greedy and sampling.temperature != 1:
            warm = np.exp(np.log(chances) / sampling.temperature)
            self._used = _transitions(warm / warm.sum(1, keepdims=True), persistence)

    def drawn(self, chance: random.Random) -> list[int]:
        tags: list[int] = []
        for rows in self._used:
            below = rows[tags[-1] if tags else 0].cumsum()
            tags.append(min(int(np.searchsorted(below, chance.random() * below[-1], side="right")), 2))
        return tags

    def likeliest(self) -> list[int]:
        """The likeliest path (Viterbi)."""
        logs = np.log(self._exact)
        best, back = logs[0, 0], []
        for rows in logs[1:]:
            through = best[:, None] + rows
            back.append(through.argmax(0))
            best = through.max(0)
        tags = [int(best.argmax())]
        for before in reversed(back):
            tags.append(int(before[tags[-1]]))
        return tags[::-1]

    def logprobs(self, tags: Sequence[int]) -> list[float]:
        """Of each tag, given the one before it."""
        first = math.log(self._exact[0, 0, tags[0]])
        return [first, *(math.log(self._exact[i, a, b]) for i, (a, b) in enumerate(pairwise(tags), 1))]


def _transitions(chances: Chances, persistence: float) -> Any:
    """P(t_i | t_{i-1}), (words, 3, 3); the first word's rows are all alike."""
    before, after = chances[:-1], chances[1:]
    same = np.minimum(before, after)
    gained = after - same
    lost = gained.sum(1, keepdims=True)
    coupled = ((before - same) / before)[:, :, None] * (gained / np.where(lost > 0, lost, 1))[:, None, :]
    coupled += (same / before)[:, :, None] * np.eye(3)
    rest = persistence * coupled + (1 - persistence) * after[:, None, :]
    first = np.broadcast_to(chances[:1, None, :], (1, 3, 3))
    whole = np.maximum(np.concatenate([first, rest]), 1e-12)
    return whole / whole.sum(2, keepdims=True)


class _Paths:
    """The chains of both texts, one after the other."""

    def __init__(self, chains: Sequence[_Chain]) -> None:
        self._chains = chains

    def drawn(self, seed: str) -> list[list[int]]:
        chance = random.Random(seed)
        return [chain.drawn(chance) for chain in self._chains]

    def likeliest(self) -> list[list[int]]:
        return [chain.likeliest() for chain in self._chains]

    def logprobs(self, paths: Sequence[Sequence[int]]) -> list[float]:
        return [one for chain, path in zip(self._chains, paths, strict=True) for one in chain.logprobs(path)]


def _candidate(request: Request, paths: Sequence[Sequence[int]], chains: _Paths, score: float) -> Candidate:
    walk = request.walk
    assert walk is not None
    tags = [tag for path in paths for tag in path]
    said = [piece + walk.marks[tag] for piece, tag in zip(walk.pieces, tags, strict=True)]
    text, each = "".join((*said, f"\nScore: {score:.4f}")), chains.logprobs(paths)
    by_token = None
    if request.token_logprobs:  # a word and its tag count as one token
        by_token = TokenLogprobs.spelling([one.encode("utf-8", "surrogatepass") for one in said], each, "".join(said))
    return Candidate(text, logprob=sum(each), tokens=len(tags), token_logprobs=by_token)
