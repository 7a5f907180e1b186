"""Attention of many samples over one prompt. The prompt's keys and values are kept once, not once for each sample.

Load a transformers model with ``attn_implementation=NAME`` (after `register_attention`) and give it a
`SharedPromptCache`. It then reads the prompt in blocks, and decodes a batch of samples that all continue it. For B
samples of t tokens after a prompt of P tokens, keys and values take P + B t places instead of B (P + t). Nothing is
copied when they grow, and one matrix product is enough for the prompt's part of all samples.

A block is always read in the same shape, whatever was read before it. So prompts with a common beginning share blocks,
and their numbers are the same, bit by bit, as if each prompt was read alone.

Samples need not be equally long, nor continue the prompt at its end: each may see only its first tokens. New tokens of
all samples go through the model as one sequence without padding; only the attention knows whose they are.

This module imports torch: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

#: The name under which transformers finds the attention function.
NAME = "mbr_esd_shared_prompt"
#: Tokens of a prompt that are read together.
BLOCK = 64
_CPU = torch.device("cpu")


def register_attention() -> None:
    """Make the attention function known to transformers; safe to call again."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, _attention)


def _attention(
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
    if s_aux is not None:
        raise NotImplementedError("attention sinks")
    if attention_mask is not None:
        raise NotImplementedError("an attention mask of its own")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    attend = key.attend_prompt if key.samples is None else key.attend_samples
    return attend(query, scale, softcap, sliding_window), None


class SharedPromptCache:
    """Keys and values of one prompt and of the samples that continue it; handed to the model as `past_key_values`.

    Args:
        block: tokens of a prompt that are read at once.
    """

    is_compileable = False

    def __init__(self, block: int = BLOCK) -> None:
        self.tokens: list[int] = []
        self._block = block
        self._layers: dict[int, _Layer] = {}
        self._states: list[Tensor] = []
        self._written = 0
        self._seen = torch.zeros(0, dtype=torch.long)
        self._own = torch.zeros(0, dtype=torch.long)

    def read(self, model: Any, tokens: Sequence[int]) -> Tensor:
        """Read a prompt, except the blocks that it shares with the one before; returns its last logits (1, V)."""
        logits: Tensor | None = None
        for block, start in self._blocks(tokens):
            # An index, not the number 1: of a slice torch makes a view, whose product with a frozen output layer of
            # 262,144 tokens takes 2.4 s on a processor, against 0.06 s.
            output = self._forward_block(model, block, start, logits_to_keep=torch.tensor([block.shape[1] - 1]))
            logits = output.logits[:, -1]
        assert logits is not None, "a prompt has at least one token"
        return logits

    def read_states(self, decoder: Any, tokens: Sequence[int]) -> Tensor:
        """Read a prompt as `read` does; returns the last hidden state of every token, (T, D).

        Args:
            decoder: the model without its output layer.
            tokens: T of them, at least one.
        """
        for block, start in self._blocks(tokens):
            states = self._forward_block(decoder, block, start).last_hidden_state[0]
            self._states[start // self._block :] = [states]
        return torch.cat(self._states)

    def _blocks(self, tokens: Sequence[int]) -> Iterator[tuple[Tensor, int]]:
        """The blocks of a prompt that are to be read, (1, up to a block), and where each begins."""
        size, shared = self._block, 0
        self.stop()
        while shared + size < len(tokens) and self.tokens[shared : shared + size] == tokens[shared : shared + size]:
            shared += size
        self.tokens = self.tokens[:shared]
        for layer in self._layers.values():
            layer.length = shared
        for start in range(shared, len(tokens), size):
            block = list(tokens[start : start + size])
            self._written = start
            yield torch.tensor([block]), start
            self.tokens += block
        self._written = len(tokens)

    def start(self, seen: Sequence[int]) -> None:
        """Begin one sample for each entry, right after so many tokens of the prompt."""
        self._seen, self._own = torch.tensor(seen), torch.zeros(len(seen), dtype=torch.long)
        for layer in self._layers.values():
            layer.start(len(seen))

    def stop(self) -> None:
        """Forget the samples; the prompt stays."""
        for layer in self._layers.values():
            layer.samples = None

    def step(self, model: Any, tokens: Tensor) -> Tensor:
        """Append one token to each sample, (B,); returns the logits after it, (B, V)."""
        logits: Tensor = self._forward_new(model, tokens, [1] * len(tokens)).logits[0]
        return logits

    def walk(self, decoder: Any, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Append some tokens to each sample; returns the last hidden state of each, (their number, D), in order."""
        flat = torch.tensor([token for row in tokens for token in row])
        states: Tensor = self._forward_new(decoder, flat, [len(row) for row in tokens]).last_hidden_state[0]
        return states

    def clear(self) -> None:
        """Forget everything."""
        self.tokens = []
        self._layers.clear()
        self._states.clear()

    def keep(self, rows: Tensor, forgotten: Tensor | None = None) -> None:
        """Go on with these samples; one that is named twice is continued in two ways.

        Args:
            rows: the samples.
            forgotten: how many of its last tokens each of them takes back; none without it.
        """
        rows = rows.to(self._own.device)
        self._seen, self._own = self._seen[rows], self._own[rows]
        if forgotten is not None:
            self._own = self._own - forgotten.to(self._own.device)
        for layer in self._layers.values():
            layer.keep(rows, int(self._own.max()))

    def _forward_new(self, model: Any, tokens: Tensor, counts: Sequence[int]) -> Any:
        new = _NewTokens(self._seen, self._own, torch.tensor(counts))
        for layer in self._layers.values():
            layer.new = new
        self._written = int(self._seen[0] + self._own[0])
        output = self._forward(model, tokens[None], new.positions[None])
        self._own = self._own + new.counts
        return output

    def _forward_block(self, model: Any, tokens: Tensor, start: int, **options: Tensor) -> Any:
        return self._forward(model, tokens, torch.arange(start, start + tokens.shape[1])[None], **options)

    def _forward(self, model: Any, tokens: Tensor, positions: Tensor, **options: Tensor) -> Any:
        device = model.get_input_embeddings().weight.device
        return model(
            input_ids=tokens.to(device),
            position_ids=positions.to(device),
            past_key_values=self,
            use_cache=True,
            **options,
        )

    # What transformers asks of a cache.

    def update(self, key: Tensor, value: Tensor, layer_idx: int, *args: Any, **kwargs: Any) -> tuple[_Layer, _Layer]:
        """Take a layer's new keys and values, (B, heads, new, d); the attention function gets the layer itself."""
        layer = self._layers.get(layer_idx)
        if layer is None:
            layer = self._layers[layer_idx] = _Layer()
        layer.append(key, value)
        return layer, layer

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Tokens before the ones that are being read."""
        return self._written


class _NewTokens:
    """New tokens of B samples, T in all, in the order of the samples.

    Args:
        seen: how many tokens of the prompt each sample sees, (B,).
        own: how many of its own each has already, (B,).
        counts: how many each gets now, (B,).

    Attributes:
        positions: of each new token in its text, (T,).
        most: new tokens of a sample, at most.
        even: whether all samples get equally many.
        end: tokens of its own that a sample has then, at most.
    """

    def __init__(self, seen: Tensor, own: Tensor, counts: Tensor) -> None:
        self.seen, self.own, self.counts = seen, own, counts
        row = torch.repeat_interleave(torch.arange(len(counts)), counts)
        column = torch.arange(len(row)) - (counts.cumsum(0) - counts)[row]
        place = own[row] + column
        self._where = {_CPU: (row, column, place)}
        self.positions = seen[row] + place
        self.most = int(counts.max())
        self.even = bool((counts == counts[0]).all())
        self.end = int((own + counts).max())
        self._hidden: dict[tuple[int, int | None], Tensor | None] = {}

    def hidden(self, length: int, window: int | None, device: torch.device) -> Tensor | None:
        """What each new token must not look at, (B, 1, 1, `most`, `length` of the prompt + `end`); None if nothing."""
        if (length, window) not in self._hidden:
            own, seen = self.own[:, None, None], self.seen[:, None, None]
            at = own + torch.arange(self.most)[:, None]  # of each new token among its sample's own
            prompt, mine = torch.arange(length), torch.arange(self.end)
            hidden = torch.cat([(prompt >= seen).expand(-1, self.most, -1), mine > at], 2)
            if window is not None:
                hidden |= torch.cat([seen + at - prompt >= window, at - mine >= window], 2)
            self._hidden[length, window] = hidden[:, None, None].to(device) if bool(hidden.any()) else None
        return self._hidden[length, window]

    def apart(self, packed: Tensor) -> Tensor:
        """(1, H, T, d) -> (B, H, most, d), zeros where a sample has fewer."""
        _, heads, _, width = packed.shape
        if self.even:
            return packed[0].view(heads, len(self.counts), self.most, width).transpose(0, 1)
        found = packed.new_zeros(len(self.counts), heads, self.most, width)
        row, column, _ = self.where(packed.device)
        found[row, :, column] = packed[0].transpose(0, 1)
        return found

    def together(self, found: Tensor) -> Tensor:
        """(B, H, most, d) -> (1, T, H, d)."""
        if self.even:
            return found.transpose(1, 2).reshape(1, -1, found.shape[1], found.shape[3])
        row, column, _ = self.where(found.device)
        return found[row, :, column][None]

    def where(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Of each new token its sample, its number among that sample's new ones, and among all of its own, (T,)."""
        if device not in self._where:
            row, column, place = self._where[_CPU]
            self._where[device] = (row.to(device), column.to(device), place.to(device))
        return self._where[device]


class _Layer:
    """One layer's keys and values.

    Attributes:
        prompt: keys and values, (2, heads, room, d), of which `length` places are filled.
        samples: likewise (2, B, heads, room, d), of each sample as many filled as it has tokens of its own; None while
            the prompt is read.
        new: what is being read now.
    """

    def __init__(self) -> None:
        self.prompt: Tensor | None = None
        self.length = 0
        self.samples: Tensor | None = None
        self.new: _NewTokens | None = None

    def start(self, batch: int) -> None:
        assert self.prompt is not None
        _, heads, _, width = self.prompt.shape
        self.samples = self.prompt.new_zeros(2, batch, heads, BLOCK, width)

    def keep(self, rows: Tensor, longest: int) -> None:
        assert self.samples is not None
        old = self.samples
        self.samples = old.new_zeros(2, len(rows), *old.shape[2:])
        self.samples[..., :longest, :] = old[..., :longest, :].index_select(1, rows.to(old.device))

    def append(self, key: Tensor, value: Tensor) -> None:
        # On a processor float32 is exact and costs little; on a GPU the model's own format halves the memory traffic.
        dtype = torch.float32 if key.device.type == "cpu" else key.dtype
        if self.samples is None:
            new = key.shape[2]
            if self.prompt is None:
                self.prompt = torch.empty(2, key.shape[1], 0, key.shape[3], dtype=dtype, device=key.device)
            self.prompt = _with_room(self.prompt, self.length + new)
            self.prompt[0, :, self.length : self.length + new] = key[0]
            self.prompt[1, :, self.length : self.length + new] = value[0]
            self.length += new
        else:
            assert self.new is not None
            self.samples = _with_room(self.samples, self.new.end)
            row, _, place = self.new.where(key.device)
            for kind, tensor in enumerate((key, value)):
                self.samples[kind][row, :, place] = tensor[0].transpose(0, 1).to(dtype)

    def attend_prompt(self, query: Tensor, scale: float, softcap: float | None, window: int | None) -> Tensor:
        """The newest tokens of the prompt over all up to each of them: (1, H, m, d) -> (1, m, H, d)."""
        assert self.prompt is not None
        keys, values = self.prompt[:, :, : self.length]
        _, total_heads, new, width = query.shape
        heads = keys.shape[0]
        q = query.to(keys.dtype).reshape(heads, -1, width)
        scores = _scores(q @ keys.transpose(1, 2), scale, softcap).view(heads, -1, new, self.length)
        distance = torch.arange(self.length - new, self.length, device=keys.device)[:, None] - torch.arange(
            self.length, device=keys.device
        )
        hidden = distance < 0
        if window is not None:
            hidden |= distance >= window
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).to(values.dtype)
        mixed = weights.view(heads, -1, self.length) @ values
        return mixed.view(1, total_heads, new, width).transpose(1, 2).to(query.dtype)

    def attend_samples(self, query: Tensor, scale: float, softcap: float | None, window: int | None) -> Tensor:
        """The new tokens of each sample over the prompt and itself: (1, H, T, d) -> (1, T, H, d)."""
        assert self.prompt is not None
        assert self.samples is not None
        assert self.new is not None
        keys, values = self.prompt[:, :, : self.length]
        own_keys, own_values = self.samples[:, :, :, : self.new.end]
        apart = self.new.apart(query.to(keys.dtype))
        batch, total_heads, new, width = apart.shape
        heads, length = keys.shape[0], self.length
        q = apart.reshape(batch, heads, -1, width)
        rows = q.shape[2]  # heads that share keys, times new tokens
        over_prompt = q.transpose(0, 1).reshape(heads, -1, width) @ keys.transpose(1, 2)
        over_own = q @ own_keys.transpose(2, 3)
        both = (over_prompt.view(heads, batch, rows, length).transpose(0, 1), over_own)
        scores = _scores(torch.cat(both, -1), scale, softcap)
        hidden = self.new.hidden(length, window, scores.device)
        if hidden is not None:
            scores = scores.view(batch, heads, -1, new, scores.shape[-1]).masked_fill(hidden, -torch.inf)
        weights = scores.softmax(-1).to(values.dtype).view(batch, heads, rows, -1)
        mixed = weights[..., :length].transpose(0, 1).reshape(heads, -1, length) @ values
        own = weights[..., length:] @ own_values
        own += mixed.view(heads, batch, rows, width).transpose(0, 1)
        return self.new.together(own.view(batch, total_heads, new, width)).to(query.dtype)


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
