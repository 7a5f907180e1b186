"""How surprising each word of a translation is to a language model that reads the source first.

The surprisal of a word is ``-sum log M(token | source, the words before)`` over its tokens, in nats. A model knows it
without having learnt to judge translations. A model that learns to judge cannot compute it by itself: what it expected
next is known only in its last layer, one word too late for the layers below.

So the base model, without any adapter, measures the surprisal in a first pass, and a digit after each word states it.
This pass first reads three translations in other language pairs; otherwise a base model would copy the source. Its
softmax runs over the token itself and the first 65,536 tokens of the vocabulary, which SentencePiece orders by
frequency. These contain all words that are not rare, for a quarter of the work.

This module imports torch: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

#: Where levels 1 to 9 begin, in nats.
EDGES = (0.1, 0.3, 0.7, 1.3, 2.0, 3.0, 4.5, 7.0, 11.0)
#: The digit of each level. None occurs in the texts of the test sets, and each is a single token.
DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
#: The examples that the base model reads before source and translation.
SHOTS = (
    "Source: The cat is black.\nTranslation: Die Katze ist schwarz.\n\n"
    "Source: 他明天来这里。\nTranslation: He is coming here tomorrow.\n\n"
    "Source: We sold 300 books last year.\nTranslation: В прошлом году мы продали 300 книг.\n\n"
)
_MOST_TOKENS = 65536
_ROWS = 64


def level(surprisal: float) -> int:
    """Level 0 to 9 of a surprisal in nats."""
    return sum(surprisal >= edge for edge in EDGES)


def token_surprisals(states: Tensor, tokens: Tensor, output: Tensor) -> Tensor:
    """``-log M`` of each token, with a softmax over the most frequent tokens of the vocabulary and the token itself.

    Args:
        states: the last hidden state before each token, (T, D).
        tokens: (T,).
        output: the output layer's weights, (V, D).

    Returns:
        Nats, (T,), in float32.
    """
    frequent = output[:_MOST_TOKENS]
    own = (states.float() * output[tokens].float()).sum(-1)
    sums = [(states[i : i + _ROWS] @ frequent.T).float().logsumexp(-1) for i in range(0, len(states), _ROWS)]
    return torch.maximum(torch.cat(sums), own) - own


def by_word(surprisals: Tensor, words: Sequence[Sequence[Any]]) -> list[float]:
    """The sum over the tokens of each word; `words` says how many tokens each word has."""
    return [float(part.sum()) for part in surprisals.split([len(word) for word in words])]
