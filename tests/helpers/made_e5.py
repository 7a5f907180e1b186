"""A file in the layout of multilingual-e5-small's in 4 bits, with a small vocabulary, and a model that takes it."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZäöüß.,!?0123456789"
PIECES = [
    *(
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁",
        "▁Gr",
        "öße",
        "喜",
        "欢",
        "😀",
        "▁the",
        "▁a",
        "en",
        "▁Die",
        "ch",
        "▁t",
        "le",
    ),
    *_LETTERS,
    "<mask>",
]
WIDTH, POSITIONS = 32, 64


def write_e5(path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Write the file; returns the embeddings, 32 numbers a piece."""
    rng, rows = np.random.default_rng(0), len(PIECES)
    numbers, scales = rng.integers(0, 16, (rows, WIDTH)), (rng.random(rows) / 20).astype("<f2")
    text = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, text)]).astype("<u4")
    head = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, 1, 1, 64, rows, POSITIONS, 2, 1e-12, 32)
    head += struct.pack("<5iQ", rows, 0, 2, 1, 3, len(b"".join(text))) + ends.tobytes()
    head += np.array([0.0 if "<" in piece else -2.0 - i / 8 for i, piece in enumerate(PIECES)], "<f4").tobytes()
    head += b"".join(text) + struct.pack("<iI", 1, 9) + struct.pack("<IBI", 9, 1, 32) + struct.pack("<i", 1)
    packed = (numbers[:, :16] | numbers[:, 16:] << 4).astype("u1")
    blocks = b"".join(s.tobytes() + p.tobytes() for s, p in zip(scales, packed, strict=True))
    head += struct.pack("<H", 8) + b"emb.word" + struct.pack("<BIQQ", 1, WIDTH * rows, len(head) + 31, len(blocks))
    path.write_bytes(head + blocks)
    return ((numbers - 8) * scales.astype(np.float32)[:, None]).astype(np.float32)


def write_trained(folder: Path, embeddings: Any, labels: tuple[str, ...] = ("ok", "minor", "major", "quality")) -> None:
    """Write a BERT of random weights with these word embeddings, as the training leaves one."""
    import torch
    from transformers import BertConfig, BertForTokenClassification

    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(PIECES),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=POSITIONS,
        initializer_range=0.3,
        id2label=dict(enumerate(labels)),
        pad_token_id=1,
    )
    model = BertForTokenClassification(config)
    model.bert.embeddings.word_embeddings.weight.data.copy_(torch.tensor(embeddings))
    model.save_pretrained(folder)


def set_config(folder: Path, **section: Any) -> None:
    """Change settings of the model's section in ``config.json``."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["mbr_esd_metric"] |= section
    path.write_text(json.dumps(config), encoding="utf-8")
