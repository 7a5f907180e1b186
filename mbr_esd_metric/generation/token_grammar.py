"""A grammar over a tokenizer's vocabulary: which tokens may come next, and where each one leads.

outlines_core builds the automaton (its `Index`) from the regular expression and the bytes of every token. So the
bytes of a character may be spread over several tokens. The answer is read back byte by byte: the text is exactly what
the grammar allowed, whatever a tokenizer's own decoding would clean up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor


class TokenGrammar:
    """The automaton of one regular expression over one vocabulary. The numbers of its states have no meaning.

    Attributes:
        start: the first state.
        eos: the token that closes an answer; it is allowed where the expression may end.
    """

    def __init__(self, index: Any, eos: int, width: int, device: Any) -> None:
        self.start: int = index.get_initial_state()
        self.eos = eos
        self._index = index
        self._width = width
        self._device = device
        self._forbidden: dict[int, Tensor] = {}

    def forbidden(self, states: Sequence[int]) -> Tensor:
        """For each state, whether a token may not come next: (len(states), V)."""
        import torch

        for state in states:
            if state not in self._forbidden:
                row = torch.ones(self._width, dtype=torch.bool)
                row[self._index.get_allowed_tokens(state)] = False
                self._forbidden[state] = row.to(self._device)
        return torch.stack([self._forbidden[state] for state in states])

    def after(self, state: int, token: int) -> int:
        """The state that an allowed token leads to."""
        return int(self._index.get_next_state(state, token))


class Vocabulary:
    """The bytes of each token of a tokenizer; special tokens stand for no text and are left out."""

    def __init__(self, tokenizer: Any) -> None:
        """Read the vocabulary of a transformers tokenizer, byte-level or made by SentencePiece."""
        if tokenizer.eos_token_id is None:
            raise EngineError("the model's tokenizer has no end token; set eos_token in its tokenizer_config.json")
        self.eos: int = tokenizer.eos_token_id
        self._tokenizer, self._to_bytes = tokenizer, _token_bytes(tokenizer)

    @cached_property
    def _bytes(self) -> dict[int, bytes]:
        """The bytes of each token; made where a grammar or a text needs them, which takes seconds."""
        entries = self._tokenizer.added_tokens_decoder.values()
        special = {token.content for token in entries if token.special} | set(self._tokenizer.all_special_tokens)
        added = {token.content for token in entries}
        return {
            number: token.encode() if token in added else self._to_bytes(token)
            for token, number in self._tokenizer.get_vocab().items()
            if token not in special
        }

    def text(self, tokens: Iterable[int]) -> str:
        """The text of these tokens; the end token has no text, and an incomplete character at the end is left out."""
        return b"".join(self.pieces(tokens)).decode("utf-8", "ignore")

    def pieces(self, tokens: Iterable[int]) -> list[bytes]:
        """The bytes of each of these tokens; the end token has none."""
        return [self._bytes.get(token, b"") for token in tokens]

    def grammar(self, expression: str, width: int, device: Any) -> TokenGrammar:
        """Build the automaton of a regular expression.

        Args:
            expression: what the whole answer matches.
            width: V, the number of the model's logits; at least that of the vocabulary.
            device: where `TokenGrammar.forbidden` is wanted.
        """
        import outlines_core

        tokens: dict[bytes, list[int]] = {}
        for number, spelled in self._bytes.items():
            if spelled and number < width:
                tokens.setdefault(spelled, []).append(number)
        try:
            index = outlines_core.Index(expression, outlines_core.Vocabulary(self.eos, tokens))
        except ValueError as error:
            raise EngineError(f"the output grammar does not suit this model's vocabulary: {error}") from error
        return TokenGrammar(index, self.eos, width, device)


def _token_bytes(tokenizer: Any) -> Callable[[str], bytes]:
    """The function from a vocabulary entry to the bytes that it stands for."""
    # Of the decoder alone: that of a whole tokenizer with 262,144 entries takes a second.
    backend = getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None)
    decoder = str(json.loads(backend.__getstate__())) if backend is not None else ""
    if "'ByteLevel'" in decoder:
        # Byte-level BPE writes printable bytes as themselves, and the others as the characters from U+0100 on.
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
        "its tokens cannot be held to the output grammar here; use engine=vllm or engine=server"
    )
