"""`engine=transformers`: a causal language model in this process, with grammar-constrained decoding.

On one machine, sample i of a request depends only on (seed, request, i), to the last bit. Random numbers are hashes of
these three. Samples are decoded in fixed groups (0 to 15, 16 to 63, then 64 at a time), so that floating-point results
do not depend on the number of requested samples. The prompt is processed once for all samples, in blocks at fixed
positions, so that prompts with a common prefix share blocks, with the same results as without sharing.

outlines_core compiles the grammar to an automaton over the bytes of the vocabulary. Answers are decoded from the bytes
of the tokens: the text is exactly what the grammar allows, without the clean-up of the tokenizer's own decoding.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from mbr_esd_metric.core.decision import Candidate, TokenLogprobs
from mbr_esd_metric.errors import EngineError, no_effect_error
from mbr_esd_metric.generation import pretrained
from mbr_esd_metric.generation.embedded import with_weights
from mbr_esd_metric.generation.engine import Generated, Request, Sampling
from mbr_esd_metric.generation.pretrained import PretrainedEngine, prompt_tokens, torch_in_use

if TYPE_CHECKING:
    from torch import Tensor

#: The ends of the first groups of samples that are decoded together, and the size of further groups. They are not
#: configurable, because samples depend on them.
_FIRST_GROUPS = (16, 64)
_GROUP = 64
#: The number of prompt tokens per block.
_BLOCK = 64


class TransformersEngine(PretrainedEngine):
    """A causal language model on the CPU or on GPUs; uses `model`, `adapter`, `revision`, `dtype` and `device`."""

    name: ClassVar[str] = "transformers"
    description: ClassVar[str] = "the model in this process, on the CPU or on GPUs"
    packages: ClassVar[tuple[str, ...]] = ("torch", "transformers", "outlines_core")
    _model: Any = None

    def load(self) -> None:
        if self._model is not None:
            return
        options = self.options
        if options.vllm:
            raise no_effect_error("vllm=", "engine=transformers; it is for engine=vllm and mbr-esd serve")
        self.check()
        options = with_weights(options)
        model, self._tokenizer = pretrained.load_merged(options)
        import torch

        if not self._tokenizer.chat_template:
            fix = "use the model's instruct version, or add chat_template to its tokenizer_config.json"
            raise EngineError(
                f"the tokenizer of {options.model} has no chat template, unlike instruction-tuned models: {fix}"
            )
        self._model = pretrained.in_fast_type(model, options)
        self._vocabulary = Vocabulary(self._tokenizer)
        output = self._model.get_output_embeddings().weight
        width, device = output.shape[0], output.device
        self._grammar = lru_cache(4)(lambda one: self._vocabulary.grammar(one, width, device))
        config = self._model.config.get_text_config()
        self._context: int = getattr(config, "max_position_embeddings", None) or 1 << 30
        self._no_grad = torch.inference_mode
        self._cache = PromptCache(self._model)
        self._try(options.model)

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        self.load()
        for request in requests:
            label = request.label or "a segment"
            with torch_in_use(label), self._no_grad():
                tokens = prompt_tokens(self._tokenizer, request)
                if len(tokens) + sampling.max_tokens > self._context:
                    fix = "split the segment, lower max_tokens, or use a model with a longer context"
                    raise EngineError(
                        f"{label}: its prompt has {len(tokens)} tokens, which with max_tokens={sampling.max_tokens} do "
                        f"not fit in the model's context of {self._context} tokens; {fix}"
                    )
                grammar = self._grammar(request.grammar)
                logits = self._cache.read(tokens)
            last = request.first + request.n
            for indices in [range(1)] if sampling.greedy else _groups(request.first, last):
                with torch_in_use(label), self._no_grad():
                    group = self._decode(request, indices, logits, grammar, sampling)
                low, high = max(indices.start, request.first), min(indices.stop, last)
                yield Generated(request.key, low, tuple(group[low - indices.start : high - indices.start]))

    def close(self) -> None:
        if self._model is None:
            return
        import gc

        import torch

        self._model = None
        self._cache.clear()
        self._grammar.cache_clear()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _try(self, name: str) -> None:
        """Process two tokens and generate one, so that unsupported models fail at loading time."""
        try:
            with torch_in_use(name), self._no_grad():
                chosen = self._cache.read([self._vocabulary.eos] * 2).argmax(1)
                self._cache.start(1)
                self._cache.step(chosen)
        except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
            raise EngineError(
                f"{name} ({type(self._model).__name__}) uses a key-value cache that engine=transformers does not "
                f"support ({error}); use engine=vllm or engine=server"
            ) from error
        self._cache.clear()

    def _decode(
        self, request: Request, indices: Sequence[int], logits: Tensor, grammar: TokenGrammar, sampling: Sampling
    ) -> list[Candidate]:
        """Decode samples that continue the cached prompt; `logits`, shape (1, V), are those after the prompt."""
        import torch

        self._cache.start(len(indices))
        logits = logits.expand(len(indices), -1)
        states = [grammar.start] * len(indices)
        texts: list[list[int]] = [[] for _ in indices]
        gains: list[list[float]] = [[] for _ in indices]
        closed = [False] * len(indices)
        alive = list(range(len(indices)))
        for step in range(sampling.max_tokens):
            forbidden = grammar.forbidden([states[row] for row in alive]).to(logits.device)
            scores = logits.float().masked_fill(forbidden, -math.inf)
            uniform = [_uniform(sampling.seed, request.key, indices[row], step) for row in alive]
            chosen = _choose(scores, uniform, sampling)
            gained = scores.gather(1, chosen[:, None])[:, 0] - scores.logsumexp(1)
            still = []
            for place, (row, token, gain) in enumerate(zip(alive, chosen.tolist(), gained.tolist(), strict=True)):
                texts[row].append(token)
                gains[row].append(gain)
                closed[row] = token == grammar.eos
                if not closed[row]:
                    states[row] = grammar.after(states[row], token)
                    still.append(place)
            if not still or step + 1 == sampling.max_tokens:
                break
            if len(still) < len(alive):
                places = torch.tensor(still, device=chosen.device)
                chosen = chosen[places]
                self._cache.keep(places)
                alive = [alive[place] for place in still]
            logits = self._cache.step(chosen)
        samples = []
        for tokens, each, done in zip(texts, gains, closed, strict=True):
            text, by_token = self._vocabulary.text(tokens), None
            if request.token_logprobs:
                by_token = TokenLogprobs.spelling(self._vocabulary.pieces(tokens), each, text)
            samples.append(Candidate(text, None, sum(each), not done, by_token, tokens=len(tokens)))
        return samples


def _groups(first: int, last: int) -> Iterator[range]:
    start = 0
    for end in itertools.chain(_FIRST_GROUPS, itertools.count(_FIRST_GROUPS[-1] + _GROUP, _GROUP)):
        if start >= last:
            return
        if end > first:
            yield range(start, end)
        start = end


def _uniform(seed: int, key: str, index: int, step: int) -> float:
    """A pseudo-random number in [0, 1), determined by the arguments."""
    digest = hashlib.blake2b(f"{seed}/{key}/{index}/{step}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


def _choose(scores: Tensor, uniform: Sequence[float], sampling: Sampling) -> Tensor:
    """One token for each row of the masked logits, shape (B, V), by temperature, top-k and inverse CDF."""
    import torch

    if sampling.greedy:
        return scores.argmax(1)
    values, tokens = scores.topk(min(sampling.top_k or scores.shape[1], scores.shape[1]))
    shares = (values.double() / sampling.temperature).softmax(1)
    below = shares.cumsum(1)
    target = torch.tensor(uniform, dtype=below.dtype, device=below.device)[:, None] * below[:, -1:]
    place = (below <= target).sum(1, keepdim=True)
    # If the last sum does not exceed `target` due to rounding, use the last token with a non-zero probability.
    place = torch.minimum(place, (shares > 0).sum(1, keepdim=True) - 1)
    return tokens.gather(1, place)[:, 0]


class PromptCache:
    """The key-value cache of one prompt, and its copy for the samples that continue it."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.clear()

    def clear(self) -> None:
        """Remove the prompt."""
        from transformers import DynamicCache

        self._tokens: list[int] = []
        # Without the model's configuration, the cache also keeps tokens outside a sliding window, so it can be cropped.
        self._prompt = DynamicCache()
        self._samples: Any = None

    def read(self, tokens: Sequence[int]) -> Tensor:
        """Process a prompt, except for blocks shared with the previous one. Returns the last logits, shape (1, V)."""
        import torch

        shared = 0
        while shared + _BLOCK < len(tokens) and self._tokens[: shared + _BLOCK] == tokens[: shared + _BLOCK]:
            shared += _BLOCK
        if len(self._tokens) > shared:
            self._prompt.crop(shared - len(self._tokens))
        logits = None
        for start in range(shared, len(tokens), _BLOCK):
            block = torch.tensor([tokens[start : start + _BLOCK]])
            # An index instead of the number 1, for which torch creates a view, whose product with a frozen output layer
            # for 262,144 tokens takes 2.4 s on a CPU instead of 0.06 s.
            logits = self._forward(self._prompt, block, logits_to_keep=torch.tensor([block.shape[1] - 1]))
        self._tokens = list(tokens)
        if self._prompt.get_seq_length() != len(tokens):
            raise ValueError("it does not fill the cache that its caller gives it")
        assert logits is not None, "a prompt has at least one token"
        return logits

    def start(self, samples: int) -> None:
        """Start this number of samples at the end of the prompt."""
        self._samples = copy.deepcopy(self._prompt)
        self._samples.batch_repeat_interleave(samples)

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each sample, shape (B,). Returns the next logits, shape (B, V)."""
        return self._forward(self._samples, tokens[:, None])

    def keep(self, rows: Tensor) -> None:
        """Keep only these samples."""
        self._samples.batch_select_indices(rows)

    def _forward(self, cache: Any, tokens: Tensor, **options: Tensor) -> Tensor:
        device = self._model.get_input_embeddings().weight.device
        output = self._model(input_ids=tokens.to(device), past_key_values=cache, use_cache=True, **options)
        logits: Tensor = output.logits[:, -1]
        return logits


class TokenGrammar:
    """The automaton of a regular expression over a vocabulary, with the initial state `start`. The end token `eos` is
    allowed in accepting states."""

    def __init__(self, index: Any, eos: int, width: int, device: Any) -> None:
        self.start: int = index.get_initial_state()
        self.eos = eos
        self._index = index
        self._width = width
        self._device = device
        self._forbidden: dict[int, Tensor] = {}

    def forbidden(self, states: Sequence[int]) -> Tensor:
        """Whether each token is forbidden in each state, shape (len(states), V)."""
        import torch

        for state in states:
            if state not in self._forbidden:
                row = torch.ones(self._width, dtype=torch.bool)
                row[self._index.get_allowed_tokens(state)] = False
                self._forbidden[state] = row.to(self._device)
        return torch.stack([self._forbidden[state] for state in states])

    def after(self, state: int, token: int) -> int:
        """The state after an allowed token."""
        return int(self._index.get_next_state(state, token))


class Vocabulary:
    """The bytes of each token of a tokenizer, without special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        if tokenizer.eos_token_id is None:
            raise EngineError("the model's tokenizer has no end token; set eos_token in its tokenizer_config.json")
        self.eos: int = tokenizer.eos_token_id
        self._tokenizer, self._to_bytes = tokenizer, _token_bytes(tokenizer)

    @cached_property
    def _bytes(self) -> dict[int, bytes]:  # takes seconds to compute
        entries = self._tokenizer.added_tokens_decoder.values()
        special = {token.content for token in entries if token.special} | set(self._tokenizer.all_special_tokens)
        added = {token.content for token in entries}
        return {
            number: token.encode() if token in added else self._to_bytes(token)
            for token, number in self._tokenizer.get_vocab().items()
            if token not in special
        }

    def text(self, tokens: Iterable[int]) -> str:
        """The text of these tokens; the end token is empty, and an incomplete character at the end is dropped."""
        return b"".join(self.pieces(tokens)).decode("utf-8", "ignore")

    def pieces(self, tokens: Iterable[int]) -> list[bytes]:
        """The bytes of each token; empty for the end token."""
        return [self._bytes.get(token, b"") for token in tokens]

    def grammar(self, expression: str, width: int, device: Any) -> TokenGrammar:
        """The automaton of a regular expression for whole answers, for V = `width` logits on a device."""
        import outlines_core

        tokens: dict[bytes, list[int]] = {}
        for number, spelled in self._bytes.items():
            if spelled and number < width:
                tokens.setdefault(spelled, []).append(number)
        try:
            index = outlines_core.Index(expression, outlines_core.Vocabulary(self.eos, tokens))
        except ValueError as error:
            raise EngineError(f"the output grammar is not compatible with this model's vocabulary: {error}") from error
        return TokenGrammar(index, self.eos, width, device)


def _token_bytes(tokenizer: Any) -> Callable[[str], bytes]:
    """The function from a vocabulary entry to its bytes."""
    # The state of the decoder only: that of a whole tokenizer with 262,144 entries takes a second.
    backend = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    decoder = str(json.loads(backend.__getstate__())) if backend is not None else ""
    if "'ByteLevel'" in decoder:
        # Byte-level BPE maps printable bytes to themselves, and other bytes to the characters from U+0100 on.
        printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
        others = iter(range(0x100, 0x200))
        byte_of = {chr(byte if byte in printable else next(others)): byte for byte in range(256)}
        return lambda token: bytes(byte_of[character] for character in token)
    if "\u2581" in decoder:
        return lambda token: (
            bytes([int(token[3:5], 16)])
            if len(token) == 6 and token.startswith("<0x")
            else token.replace("\u2581", " ").encode()
        )
    raise EngineError(
        f"the tokenizer ({type(tokenizer).__name__}) is neither byte-level nor SentencePiece with a tokenizer.json, so "
        "the output grammar cannot be applied to its tokens; use engine=vllm or engine=server"
    )
