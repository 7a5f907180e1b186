"""The encoder that ONNX Runtime runs: torch's numbers, for each pair alone, from the folder that `pack` writes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("transformers")

import encoder_folder

from mbr_esd_metric import load_metric
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation import encoder
from mbr_esd_metric.generation.embedded import EMBEDDED
from mbr_esd_metric.generation.encoder import OnnxEncoder, processors
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines.tagger import TaggerEngine
from mbr_esd_metric.generation.torch_encoder import TorchEncoder
from tests.helpers.made_e5 import set_config, write_e5, write_trained

SMALL = "intfloat/multilingual-e5-small"
PAIRS = [("Die Größe.", "the size"), ("", "a"), ("喜欢 <s> 😀", "tea time " * 5), ("Die " * 20, "the")]
HPARAMS = """\
class_identifier: mbr_esd_metric
engine: tagger
format: tags
n: 4
top_k: 0
temperature: 1.0
score: given
"""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that `pack` wrote, whose embeddings are in the cache."""
    root = tmp_path_factory.mktemp("packed")
    cache = root / "cache" / EMBEDDED[SMALL].folder
    cache.mkdir(parents=True)
    embeddings = write_e5(cache / "e5-small-q4.bin")
    write_trained(root / "trained", embeddings)
    encoder_folder.pack([root / "trained"], root / "small", {"embeddings": SMALL, "score": {"total": 1.0}})
    (root / "small" / "hparams.yaml").write_text(HPARAMS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MBR_ESD_CACHE", str(root / "cache"))
        yield root / "small"


def numbers(model: Any, pairs: list[tuple[str, str]]) -> list[Any]:
    return list(model.logits(model.tokens(pairs)))


def test_its_numbers_are_torchs_and_nearly_those_before_packing(packed: Path) -> None:
    by_onnx = OnnxEncoder(packed)
    by_torch = TorchEncoder(EngineOptions(str(packed), dtype="float32", device="cpu"))
    assert by_onnx.tokens(PAIRS) == by_torch.tokens(PAIRS)
    for ours, theirs in zip(numbers(by_onnx, PAIRS), numbers(by_torch, PAIRS), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    import torch
    from transformers import BertForTokenClassification

    trained = BertForTokenClassification.from_pretrained(packed.parent / "trained").eval()
    (tokens,) = by_onnx.tokens(PAIRS[:1])
    with torch.inference_mode():
        ids, types = torch.tensor([tokens.numbers]), torch.tensor([tokens.types])
        expected = trained(ids, token_type_ids=types).logits[0].numpy()
    assert numbers(by_onnx, PAIRS[:1])[0] == pytest.approx(expected, abs=0.1)


def test_a_pair_has_the_same_numbers_beside_any_other(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = OnnxEncoder(packed)
    alone = [numbers(model, [pair])[0] for pair in PAIRS]
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        for values, expected in zip(numbers(model, PAIRS * 4), alone * 4, strict=True):
            assert np.array_equal(values, expected)


def test_another_number_format_takes_torch(packed: Path) -> None:
    engines = {
        dtype: TaggerEngine(EngineOptions(str(packed), dtype=dtype)) for dtype in ("auto", "float32", "bfloat16")
    }
    assert [one.by_onnx for one in engines.values()] == [True, True, False]
    assert engines["auto"].identity == engines["float32"].identity != engines["bfloat16"].identity
    request = Request("key", "", "", 4, source=PAIRS[0][1], translation=PAIRS[0][0])
    (exact,), (rounded,) = (
        engines[dtype].generate([request], Sampling(temperature=1.0, top_k=0)) for dtype in ("auto", "bfloat16")
    )
    assert len(exact.samples) == len(rounded.samples) == 4


def test_threads_get_what_one_gets(packed: Path) -> None:
    """Each of its own metric, and all of one."""
    samples = [[{"src": "the tea", "mt": f"Die {word}"}] for word in ("Größe", "Taube", "Tat", "Nacht")]
    shared = load_metric(str(packed))
    expected = [shared.predict(one, progress_bar=False).scores for one in samples]
    for dtype in ("float32", "bfloat16"):
        name = f"{packed}?dtype={dtype}"
        expected = [load_metric(name).predict(one, progress_bar=False).scores for one in samples]
        os.environ["MBR_ESD_STORE"] = ":memory:"
        for metric in (load_metric(name), None):
            found: list[Any] = [None] * len(samples)

            def work(at: int, metric: Any = metric, name: str = name, found: list[Any] = found) -> None:
                found[at] = (metric or load_metric(name)).predict(samples[at], progress_bar=False).scores

            threads = [threading.Thread(target=work, args=(at,)) for at in range(len(samples))]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            assert found == expected


def test_a_folder_that_lacks_something_is_refused_with_what_to_do(packed: Path, tmp_path: Path) -> None:
    import shutil

    def load() -> None:
        TaggerEngine(EngineOptions(str(folder), device="cpu")).load()

    folder = tmp_path / "folder"
    shutil.copytree(packed, folder)
    (folder / "model.onnx").write_bytes((folder / "model.onnx").read_bytes()[:3000])
    with pytest.raises(EngineError, match=r"cannot load .*model.onnx: .*; download the folder again"):
        load()
    shutil.copy(packed / "model.onnx", folder)
    set_config(folder, embeddings="other/base")
    with pytest.raises(EngineError, match="'other/base', which this version does not support"):
        load()
    set_config(folder, embeddings=SMALL)
    (folder / "model.safetensors").unlink()
    with pytest.raises(EngineError, match="has no model.safetensors"):
        load()


def test_it_needs_no_torch(packed: Path) -> None:
    code = (
        "import sys; from mbr_esd_metric import load_metric\n"
        "load_metric(sys.argv[1]).predict([{'src': 'the tea', 'mt': 'Die Nacht.'}], progress_bar=False)\n"
        "heavy = {'torch', 'transformers', 'comet', 'pandas', 'safetensors', 'huggingface_hub', 'onnx'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(packed)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_missing_package_is_named_with_the_extra_that_brings_it(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else find(name))
    assert "[small]" in str(TaggerEngine(EngineOptions(str(packed))).problem)


def test_the_number_of_cores_has_a_limit_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert processors() >= 1
    for limit, expected in (("1", 1), ("0", 1), ("many", encoder.processors())):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert processors() == expected
