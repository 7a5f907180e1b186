"""Attention of many samples over one prompt, for a transformers model with ``attn_implementation=NAME``.

For B samples of t tokens after a prompt of P tokens, keys and values take P + B t places instead of B (P + t), and one
matrix product is enough for the prompt's part of all samples. The prompt is read in blocks, always of the same shape,
so that prompts with a common beginning share blocks, and their numbers are the same, bit by bit, as if each was read
alone. This module imports torch: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

#: The name under which transformers finds the attention function.
NAME = "mbr_esd_shared_prompt"
#: Tokens of a prompt that are read together.
BLOCK = 64


def attention(
    module: Any,
    query: Tensor,
    key: _Layer,
    value: _Layer,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    sliding_window: int | None = None,
    s_aux: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """transformers calls this in each layer; `key` and `value` are what `SharedPromptCache.update` returned."""
    for argument, what in ((s_aux, "attention sinks"), (attention_mask, "an attention mask of its own")):
        if argument is not None:
            raise NotImplementedError(what)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    attend = key.attend_prompt if key.samples is None else key.attend_samples
    return attend(query, scale, softcap, sliding_window), None


class SharedPromptCache:
    """Keys and values of one prompt and of the samples that continue it; handed to the model as `past_key_values`."""

    is_compileable = False

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._layers: dict[int, _Layer] = {}
        self._written = 0

    def read(self, model: Any, tokens: Sequence[int]) -> Tensor:
        """Read a prompt, except the blocks that it shares with the one before; returns its last logits (1, V)."""
        shared = 0
        while shared + BLOCK < len(tokens) and self.tokens[shared : shared + BLOCK] == tokens[shared : shared + BLOCK]:
            shared += BLOCK
        self.tokens = self.tokens[:shared]
        for layer in self._layers.values():
            layer.samples, layer.length = None, shared
        logits: Tensor | None = None
        for start in range(shared, len(tokens), BLOCK):
            block = list(tokens[start : start + BLOCK])
            self._written = start
            # An index, not the number 1: of a slice torch makes a view, whose product with a frozen output layer of
            # 262,144 tokens takes 2.4 s on a processor, against 0.06 s.
            last = torch.tensor([len(block) - 1])
            logits = self._forward(model, torch.tensor([block]), logits_to_keep=last).logits[:, -1]
            self.tokens += block
        assert logits is not None, "a prompt has at least one token"
        self._written = len(tokens)
        return logits

    def start(self, samples: int) -> None:
        """Begin so many samples at the end of the prompt."""
        self._written = len(self.tokens)
        for layer in self._layers.values():
            layer.start(samples)

    def step(self, model: Any, tokens: Tensor) -> Tensor:
        """Append one token to each sample, (B,); returns the logits after it, (B, V)."""
        logits: Tensor = self._forward(model, tokens[:, None]).logits[:, -1]
        self._written += 1
        return logits

    def clear(self) -> None:
        """Forget the prompt."""
        self.tokens = []
        self._layers.clear()

    def keep(self, rows: Tensor) -> None:
        """Go on with these samples alone."""
        for layer in self._layers.values():
            assert layer.samples is not None
            layer.samples = layer.samples.index_select(1, rows.to(layer.samples.device))

    def _forward(self, model: Any, tokens: Tensor, **options: Tensor) -> Any:
        device = model.get_input_embeddings().weight.device
        positions = torch.arange(self._written, self._written + tokens.shape[1], device=device)
        return model(
            input_ids=tokens.to(device),
            position_ids=positions.expand(tokens.shape),
            past_key_values=self,
            use_cache=True,
            **options,
        )

    # What transformers asks of a cache.

    def update(self, key: Tensor, value: Tensor, layer_idx: int, *args: Any, **kwargs: Any) -> tuple[_Layer, _Layer]:
        """Take a layer's new keys and values, (B, heads, new, d); the attention function gets the layer itself."""
        layer = self._layers.setdefault(layer_idx, _Layer())
        layer.append(key, value)
        return layer, layer

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Tokens before the ones that are being read."""
        return self._written


class _Layer:
    """One layer's keys and values.

    Attributes:
        prompt: keys and values, (2, heads, room, d), of which `length` places are filled.
        samples: likewise (2, B, heads, room, d), of which `grown` places are filled; None while the prompt is read.
    """

    def __init__(self) -> None:
        self.prompt = torch.empty(0)
        self.length = 0
        self.samples: Tensor | None = None
        self.grown = 0

    def start(self, samples: int) -> None:
        _, heads, _, width = self.prompt.shape
        self.samples, self.grown = self.prompt.new_zeros(2, samples, heads, BLOCK, width), 0

    def append(self, key: Tensor, value: Tensor) -> None:
        # On a processor float32 is exact and costs little; on a GPU the model's own format halves the memory traffic.
        dtype = torch.float32 if key.device.type == "cpu" else key.dtype
        both = torch.stack([key, value]).to(dtype)
        new = key.shape[2]
        if self.samples is None:
            if not self.prompt.numel():
                self.prompt = both.new_empty(2, key.shape[1], 0, key.shape[3])
            self.prompt = _with_room(self.prompt, self.length + new)
            self.prompt[..., self.length : self.length + new, :] = both[:, 0]
            self.length += new
        else:
            self.samples = _with_room(self.samples, self.grown + new)
            self.samples[..., self.grown : self.grown + new, :] = both
            self.grown += new

    def attend_prompt(self, query: Tensor, scale: float, softcap: float | None, window: int | None) -> Tensor:
        """The newest tokens of the prompt over all up to each of them: (1, H, m, d) -> (1, m, H, d)."""
        keys, values = self.prompt[:, :, : self.length]
        _, total_heads, new, width = query.shape
        heads = keys.shape[0]
        q = query.to(keys.dtype).reshape(heads, -1, width)
        scores = _scores(q @ keys.transpose(1, 2), scale, softcap).view(heads, -1, new, self.length)
        places = torch.arange(self.length, device=keys.device)
        distance = places[self.length - new :, None] - places
        hidden = distance < 0
        if window is not None:
            hidden |= distance >= window
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).to(values.dtype)
        mixed = weights.view(heads, -1, self.length) @ values
        return mixed.view(1, total_heads, new, width).transpose(1, 2).to(query.dtype)

    def attend_samples(self, query: Tensor, scale: float, softcap: float | None, window: int | None) -> Tensor:
        """The newest token of each sample over the prompt and itself: (B, H, 1, d) -> (B, 1, H, d)."""
        assert self.samples is not None
        keys, values = self.prompt[:, :, : self.length]
        sample_keys, sample_values = self.samples[:, :, :, : self.grown]
        batch, total_heads, _, width = query.shape
        heads, length = keys.shape[0], self.length
        q = query.to(keys.dtype).reshape(batch, heads, -1, width)  # heads that share keys are rows
        over_prompt = q.transpose(0, 1).reshape(heads, -1, width) @ keys.transpose(1, 2)
        over_itself = q @ sample_keys.transpose(2, 3)
        both = (over_prompt.view(heads, batch, -1, length).transpose(0, 1), over_itself)
        scores = _scores(torch.cat(both, -1), scale, softcap)
        if window is not None and length + self.grown > window:
            scores[..., : length + self.grown - window] = -torch.inf
        weights = scores.softmax(-1).to(values.dtype)
        mixed = weights[..., :length].transpose(0, 1).reshape(heads, -1, length) @ values
        result = weights[..., length:] @ sample_values
        result += mixed.view(heads, batch, -1, width).transpose(0, 1)
        return result.reshape(batch, 1, total_heads, width).to(query.dtype)


def _scores(products: Tensor, scale: float, softcap: float | None) -> Tensor:
    scores = products.float() * scale
    return scores if softcap is None else torch.tanh(scores / softcap) * softcap


def _with_room(tensor: Tensor, length: int) -> Tensor:
    """`tensor` with at least `length` places in the dimension before the last; twice as many when it has to grow."""
    have = tensor.shape[-2]
    if length <= have:
        return tensor
    room = max(2 * have, -(-length // BLOCK) * BLOCK)
    grown = tensor.new_zeros(*tensor.shape[:-2], room, tensor.shape[-1])
    grown[..., :have, :] = tensor
    return grown
