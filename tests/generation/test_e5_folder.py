"""The embeddings of multilingual-e5-small, as a wheel holds them, become a folder that transformers reads."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.e5_folder import write_folder

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁Gr", "öße", "喜", "欢", "😀", "a", "<mask>"]


def written(path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A file in that layout, with 4-bit embeddings of 32 numbers a piece; returns these."""
    rng, rows = np.random.default_rng(0), len(PIECES)
    numbers, scales = rng.integers(0, 16, (rows, 32)), rng.random(rows).astype("<f2")
    text = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, text)]).astype("<u4")
    head = b"E5S1" + struct.pack("<I7ifi", 1, 32, 1, 1, 64, rows, 16, 2, 1e-12, 32)
    head += struct.pack("<5iQ", rows, 0, 2, 1, 3, len(b"".join(text))) + ends.tobytes()
    head += np.array([-float(i) for i in range(rows)], "<f4").tobytes() + b"".join(text)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 9, 1, 32) + struct.pack("<i", 1)
    packed = (numbers[:, :16] | numbers[:, 16:] << 4).astype("u1")
    blocks = b"".join(s.tobytes() + p.tobytes() for s, p in zip(scales, packed, strict=True))
    head += struct.pack("<H", 8) + b"emb.word" + struct.pack("<BIQQ", 1, 32 * rows, len(head) + 31, len(blocks))
    path.write_bytes(head + blocks)
    return ((numbers - 8) * scales.astype(np.float32)[:, None]).astype(np.float32)


def test_embeddings_and_tokenizer_are_those_of_the_file(tmp_path: Path) -> None:
    from safetensors.numpy import load_file
    from transformers import AutoTokenizer

    expected = written(tmp_path / "e5.bin")
    (tmp_path / "out").mkdir()
    write_folder(tmp_path / "e5.bin", tmp_path / "out")
    (embeddings,) = load_file(tmp_path / "out" / "model.safetensors").values()
    assert np.allclose(embeddings, expected, atol=1e-2)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("Größe 😀 a", "喜欢", "Größe a"):
        assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text
    pair = tokenizer("Größe", "喜\t\ta", return_offsets_mapping=True)
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"])[:4] == ["<s>", "▁Gr", "öße", "</s>"]
    assert pair["token_type_ids"] == [0] * 4 + [1] * (len(pair["input_ids"]) - 4)
    assert pair.sequence_ids(0)[1] == 0


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e5.bin").write_bytes(b"GGUF")
    with pytest.raises(EngineError, match="e5-small"):
        write_folder(tmp_path / "e5.bin", tmp_path)
