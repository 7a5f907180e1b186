"""The mean of adapters: its value, its type, and that shapes must agree."""

from __future__ import annotations

import sys
from pathlib import Path

import mean_adapters
import pytest

from mbr_esd_metric.errors import InputError

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")


def adapter(folder: Path, value: float, rank: int = 2) -> Path:
    folder.mkdir()
    weights = {"q.lora_A.weight": torch.full((rank, 3), value, dtype=torch.bfloat16)}
    safetensors.save_file(weights, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"r": 2}')
    return folder


def test_the_mean_is_weighted_and_keeps_the_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = adapter(tmp_path / "a", 1.0), adapter(tmp_path / "b", 2.0)
    monkeypatch.setattr(sys, "argv", ["mean_adapters.py", f"{a}=1", f"{b}=3", "-o", str(tmp_path / "mean")])
    mean_adapters.main()
    found = safetensors.load_file(tmp_path / "mean" / "adapter_model.safetensors")["q.lora_A.weight"]
    assert found.dtype == torch.bfloat16
    assert found.tolist() == [[1.75] * 3] * 2
    assert (tmp_path / "mean" / "adapter_config.json").read_text() == '{"r": 2}'


def test_other_shapes_are_refused(tmp_path: Path) -> None:
    a, b = adapter(tmp_path / "a", 1.0), adapter(tmp_path / "b", 2.0, rank=4)
    with pytest.raises(InputError, match="another rank"):
        mean_adapters.mean({a: 0.5, b: 0.5}, tmp_path / "mean")


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("FOLDER", "give FOLDER=SHARE"),
        ("FOLDER=much", "give FOLDER=SHARE"),
        ("FOLDER=0", "a share above 0"),
        ("FOLDER/..=0.5", "in a model folder it is in .*adapter"),
    ],
)
def test_what_is_wrong_with_a_share_is_said(tmp_path: Path, item: str, said: str) -> None:
    folder = adapter(tmp_path / "a", 1.0)
    with pytest.raises(InputError, match=said):
        mean_adapters.shares_of([item.replace("FOLDER", str(folder))])
    with pytest.raises(InputError, match="given twice"):
        mean_adapters.shares_of([f"{folder}=0.5", f"{folder}=0.5"])
