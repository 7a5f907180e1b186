"""`engine=tagger`: an encoder that labels each token of source and translation as correct or as an error.

It supports any `AutoModelForTokenClassification` with the labels ok, minor and major, whose input is the translation
and the source. For source tokens, minor and major mean that the translation omits the token. One forward pass computes
the probabilities p_i of the tags of each word, which are those of its token with the lowest probability of ok.
Candidates are sampled from a Markov chain with exactly these marginals, in which neighbouring tags agree as often as
possible, so that errors form spans:

    P(t_i | t_{i-1}) = k C_i(t_i | t_{i-1}) + (1 - k) p_i(t_i)

where C_i is the maximal coupling of p_{i-1} and p_i, and k is 0.9 or the ``persistence`` of the model. The greedy
candidate is the most probable path.

Each candidate ends with a score for ``score=given``, minus the penalty ``min(25, exp(-z) - 1)``. By default, it is
minus the expected MQM penalty of the spans. Models of this package have a section ``mbr_esd_metric`` in their
configuration: ``embeddings`` (the embedded model), ``persistence``, ``score`` (the weights of z, see
`TaggerEngine._features`; and those of `_penalty` for the source length), and ``odds``, a
factor on the odds of errors in candidates, but not in the score, which sets the share of good translations with marked
errors.

A pair with more tokens than the model's maximum is split into windows between aligned sentences; their penalties are
added.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from mbr_esd_metric.core.decision import Candidate, TokenLogprobs
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.generation.encoder import (
    GRAPH,
    SECTION,
    Encoder,
    Matrix,
    OnnxEncoder,
    Tokens,
    embeddings_of,
    folder_config,
)
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Request, Sampling
from mbr_esd_metric.generation.pretrained import PretrainedEngine
from mbr_esd_metric.messages import encodable
from mbr_esd_metric.prompting.formats.tags import TAGS, tagged_texts, words_of
from mbr_esd_metric.prompting.sentences import Part, parts

_LABELS = ("ok", "minor", "major")
#: Features of the score: means over tokens of the logits of these labels, if the model has them, otherwise 0.
_MEANS = ("quality", "rating", "edited")
#: Weights of the penalty itself: points, and points for each unit of ``log(1 + n)``, n the number of source tokens.
_OF_PENALTY = ("points", "points_by_length")
#: Points within which a penalty near 0 is smoothed, so that the order of translations of one source stays.
_SMOOTH = 0.5
_PERSISTENCE = 0.9
_POINTS = np.array([0.0, 1.0, 5.0])
#: The minimum probability, which keeps log-probabilities finite.
_LEAST = 1e-6
#: The number of requests that are tokenized together.
REQUESTS = 256

#: Transition probabilities, shape (words, 3, 3).
Transitions: TypeAlias = "np.ndarray[tuple[int, int, int], np.dtype[np.float64]]"


@dataclass(frozen=True, slots=True)
class Window:
    """A pair of texts, or a part of one, that fits the model: the index of its request, the part, and its tokens."""

    number: int
    part: Part
    tokens: Tokens


class TaggerEngine(PretrainedEngine):
    """A token classifier; uses `model`, `revision`, `dtype` and `device`.

    Folders with ``model.onnx`` and the embeddings of an embedded model run with ONNX Runtime in float32, unless another
    dtype is specified. Other models run with transformers.
    """

    name: ClassVar[str] = "tagger"
    description: ClassVar[str] = "an encoder that tags tokens, in this process"
    packages: ClassVar[tuple[str, ...]] = ("onnxruntime", "tokenizers")
    extra: ClassVar[str] = "small"
    only_format: ClassVar[str] = "tags"
    #: The loaded model.
    encoder: Encoder | None = None

    def __init__(self, options: EngineOptions) -> None:
        folder = Path(options.model)
        has_graph = (folder / GRAPH).is_file() and embeddings_of(folder_config(folder)) is not None
        #: Whether the model runs with ONNX Runtime.
        self.by_onnx = has_graph and options.dtype in ("auto", "float32")
        super().__init__(replace(options, dtype="float32") if self.by_onnx else options)

    def required(self) -> tuple[tuple[str, ...], str]:
        return (self.packages, self.extra) if self.by_onnx else (("torch", "transformers"), "transformers")

    def load(self) -> None:
        """Load model and tokenizer, if not loaded yet. Raises `EngineError` for a model without the three labels."""
        if self.encoder is not None:
            return
        self.check()
        options = self.options
        if options.adapter is not None:
            raise OptionError("engine=tagger does not support adapters; merge it into the model's weights")
        encoder: Encoder
        if self.by_onnx:
            encoder = OnnxEncoder(Path(options.model))
        else:
            from mbr_esd_metric.generation.torch_encoder import TorchEncoder

            encoder = TorchEncoder(options)
        names = encoder.config["id2label"]
        self._labels = {str(name).lower(): int(number) for number, name in names.items()}
        if missing := [label for label in _LABELS if label not in self._labels]:
            raise EngineError(
                f"{options.model} has no label {missing[0]!r} but {', '.join(map(str, names.values()))}; "
                "engine=tagger needs ok, minor and major (id2label in its config.json)"
            )
        section = encoder.config.get(SECTION) or {}
        self._persistence = float(section.get("persistence", _PERSISTENCE))
        self._odds = np.array([1.0, *[float(section.get("odds", 1.0))] * 2])
        self._mix: Mapping[str, float] = section.get("score") or {"total": 1.0}
        if unknown := set(self._mix) - {"intercept", "total", "length", *_MEANS, *_OF_PENALTY}:
            raise EngineError(f"{options.model}: unknown feature {min(unknown)!r} of the score in its config.json")
        self.encoder = encoder

    def unsupported_settings(self, sampling: Sampling) -> tuple[str, ...]:
        """Top-k, because there are only three tags."""
        return ("top_k",) if sampling.top_k else ()

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        self.load()
        encoder, left = self.encoder, iter(requests)
        assert encoder is not None
        while group := list(islice(left, REQUESTS)):
            windows = windows_of(encoder, group)
            logits: dict[int, list[tuple[Window, Matrix]]] = defaultdict(list)
            for window, values in zip(windows, encoder.logits([one.tokens for one in windows]), strict=True):
                logits[window.number].append((window, values))
            for number, request in enumerate(group):
                yield Generated(request.key, request.first, self._candidates(request, logits[number], sampling))

    def close(self) -> None:
        """Release the model."""
        self.encoder = None

    def _candidates(
        self, request: Request, windows: Sequence[tuple[Window, Matrix]], sampling: Sampling
    ) -> tuple[Candidate, ...]:
        sides = self._probabilities(request, windows)
        score = -self._penalty(self._features(sides, windows))
        weighted = [side * self._odds for side in sides]
        chain = TagChain([side / side.sum(1, keepdims=True) for side in weighted], self._persistence)
        if sampling.greedy:
            paths = chain.likeliest()[None].repeat(request.n, 0)
        else:
            numbers = range(request.first, request.first + request.n)
            seeds = [f"{sampling.seed}/{request.key}/{number}" for number in numbers]
            paths = chain.sampled(seeds, sampling.temperature)
        texts, tags, ending = tagged_texts(request.translation, request.source), tuple(TAGS), f"\nScore: {score:.4f}"
        samples = []
        for path, each in zip(paths.tolist(), chain.logprobs(paths).tolist(), strict=True):
            words = [text + tags[tag] for text, tag in zip(texts, path, strict=True)]
            text, by_token = "".join(words), None
            if request.token_logprobs:  # a word and its tag count as one token
                by_token = TokenLogprobs.spelling([word.encode("utf-8", "surrogatepass") for word in words], each, text)
            samples.append(Candidate(text + ending, logprob=sum(each), tokens=len(words), token_logprobs=by_token))
        return tuple(samples)

    def _probabilities(self, request: Request, windows: Sequence[tuple[Window, Matrix]]) -> list[Matrix]:
        """The tag probabilities of the words of the translation and of the source, shape (words, 3) each."""
        words = [words_of(request.translation), words_of(request.source)]
        ends = [[word.end for word in side] for side in words]
        sides: list[Matrix] = [np.tile([1.0, 0.0, 0.0], (len(side), 1)) for side in words]
        for window, values in windows:
            texts, begin = (request.translation, request.source), (window.part.start, window.part.source_start)
            logits = values[:, [self._labels[label] for label in _LABELS]]
            shares = np.exp(logits - logits.max(1, keepdims=True))
            shares /= shares.sum(1, keepdims=True)
            tokens = window.tokens
            for side, (start, end), share in zip(tokens.sides, tokens.offsets, shares, strict=True):
                if side is None:
                    continue
                start, end = start + begin[side], end + begin[side]
                start += len(texts[side][start:end]) - len(texts[side][start:end].lstrip())
                if start == end:
                    continue
                at = bisect_right(ends[side], start)
                while at < len(words[side]) and words[side][at].start < end:
                    if share[0] < sides[side][at, 0]:
                        sides[side][at] = share
                    at += 1
        least = [np.maximum(side, _LEAST) for side in sides]
        return [side / side.sum(1, keepdims=True) for side in least]

    def _penalty(self, features: Mapping[str, float]) -> float:
        """The MQM penalty that a score states, in [0, 25]. With the weights `_OF_PENALTY`, people's penalties of long
        sources are higher: of x = exp(-z) - 1 + points + points_by_length log(1 + n) it is s log(1 + exp(x / s))."""
        mix = self._mix
        z = mix.get("intercept", 0.0) + sum(mix.get(name, 0.0) * value for name, value in features.items())
        penalty = math.expm1(min(-z, 4.0))
        if not any(name in mix for name in _OF_PENALTY):
            return min(25.0, max(0.0, penalty))
        penalty += mix.get("points", 0.0) + mix.get("points_by_length", 0.0) * features["length"]
        return min(25.0, float(np.logaddexp(0.0, penalty / _SMOOTH)) * _SMOOTH)

    def _features(self, sides: Sequence[Matrix], windows: Sequence[tuple[Window, Matrix]]) -> dict[str, float]:
        """The features of the score: the means of `_MEANS`; `total`, ``-log(1 + e)``, where e is the expected MQM
        penalty of the spans in both texts; and `length`, ``log(1 + n)``, where n is the number of source tokens."""
        expected = 0.0
        for side in sides:
            # A span starts where the tag differs from the previous one; the probability follows from the chain.
            before = np.vstack([[1.0, 0.0, 0.0], side[:-1]]) if len(side) else side
            starts = self._persistence * np.maximum(side - before, 0) + (1 - self._persistence) * side * (1 - before)
            expected += float((starts @ _POINTS).sum())
        columns = {name: self._labels[name] for name in _MEANS if name in self._labels}
        of = {name: [float(values[:, column].mean()) for _, values in windows] for name, column in columns.items()}
        means = {name: float(np.mean(values)) for name, values in of.items()}
        if len(windows) > 1 and "quality" in of:
            means["quality"] = -math.log1p(sum(max(0.0, math.expm1(-value)) for value in of["quality"]))
        length = sum(window.tokens.sides.count(1) for window, _ in windows)
        return {"total": -math.log1p(expected), "length": math.log1p(length), **means}


def windows_of(encoder: Encoder, requests: Sequence[Request]) -> list[Window]:
    """The windows of these requests: whole pairs, or parts that are split until they fit."""
    windows = []
    todo = [(n, Part(0, len(one.translation), 0, len(one.source))) for n, one in enumerate(requests)]
    while todo:
        pairs = [
            (
                encodable(requests[number].translation[part.start : part.end]),
                encodable(requests[number].source[part.source_start : part.source_end]),
            )
            for number, part in todo
        ]
        every, todo = zip(todo, encoder.tokens(pairs), strict=True), []
        for (number, part), tokens in every:
            if len(tokens) <= encoder.longest:
                windows.append(Window(number, part, tokens))
            else:
                todo += [(number, half) for half in _halves(requests[number], part)]
    return windows


def _halves(request: Request, part: Part) -> list[Part]:
    """The two halves of a part that is too long, split between sentences, or else in the middle of both texts."""
    source = request.source[part.source_start : part.source_end]
    translation = request.translation[part.start : part.end]
    sentences = parts(source, translation)
    if len(sentences) > 1:
        cut = min(sentences[1:], key=lambda one: abs(one.start - len(translation) / 2))
        end, source_end = part.start + cut.start, part.source_start + cut.source_start
    else:
        end, source_end = (part.start + part.end) // 2, (part.source_start + part.source_end) // 2
    if not part.start < end < part.end:
        raise EngineError(f"{request.label or 'a segment'}: its source is too long for this model; split it")
    return [replace(part, end=end, source_end=source_end), replace(part, start=end, source_start=source_end)]


class TagChain:
    """The Markov chain of the tags of both texts. The first word of the source is independent of the translation.

    Args:
        sides: the tag probabilities of the words of each text, shape (words, 3).
        persistence: k.

    Attributes:
        transitions: P(t_i | t_{i-1}) for each word, shape (words, 3, 3).
    """

    def __init__(self, sides: Sequence[Matrix], persistence: float) -> None:
        self._sides, self._persistence = sides, persistence
        self.transitions = self._transitions(sides)

    def sampled(self, seeds: Sequence[str], temperature: float) -> Matrix:
        """The tags of one path per seed, shape (seeds, words). With a temperature, the marginals are proportional to
        ``p_i ** (1 / temperature)``."""
        used = self.transitions
        if temperature != 1:
            warm = [np.exp(np.log(side) / temperature) for side in self._sides]
            used = self._transitions([side / side.sum(1, keepdims=True) for side in warm])
        below = used.cumsum(2)[:, :, :2]
        words = len(used)
        uniform = []
        for seed in seeds:
            generator = random.Random(seed)
            uniform.append([generator.random() for _ in range(words)])
        numbers, paths = np.array(uniform).reshape(len(seeds), words, 1), np.zeros((len(seeds), words + 1), np.int64)
        for i in range(words):
            paths[:, i + 1] = (numbers[:, i] >= below[i, paths[:, i]]).sum(1)
        return paths[:, 1:]

    def likeliest(self) -> Any:
        """The tags of the most probable path (Viterbi), shape (words,)."""
        logs = np.log(self.transitions)
        best, back = np.zeros(3), []
        for rows in logs:
            through = best[:, None] + rows
            back.append(through.argmax(0))
            best = through.max(0)
        path = [int(best.argmax())]
        for before in reversed(back[1:]):
            path.append(int(before[path[-1]]))
        return np.array(path[::-1])

    def logprobs(self, paths: Matrix) -> Any:
        """The log-probability of each tag given the previous one, shape (paths, words)."""
        before = np.pad(paths[:, :-1], ((0, 0), (1, 0)))
        return np.log(self.transitions[np.arange(len(self.transitions)), before, paths])

    def _transitions(self, sides: Sequence[Matrix]) -> Transitions:
        """P(t_i | t_{i-1}), shape (words, 3, 3); for the first word of a text, all rows are equal."""
        return np.concatenate([_of_text(side, self._persistence) for side in sides if len(side)])


def _of_text(side: Matrix, persistence: float) -> Any:
    before, after = side[:-1], side[1:]
    same = np.minimum(before, after)
    gained = after - same
    lost = gained.sum(1, keepdims=True)
    coupled = ((before - same) / before)[:, :, None] * (gained / np.where(lost > 0, lost, 1))[:, None, :]
    coupled += (same / before)[:, :, None] * np.eye(3)
    rest = persistence * coupled + (1 - persistence) * after[:, None, :]
    whole = np.maximum(np.concatenate([np.broadcast_to(side[:1, None, :], (1, 3, 3)), rest]), 1e-12)
    return whole / whole.sum(2, keepdims=True)
