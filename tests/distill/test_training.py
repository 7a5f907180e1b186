"""What both trainings share: the result of a model whose weights lie in parts in several processes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from mbr_esd_metric.distill.training import finish, load_tokenizer, load_trainable


def in_parts(model: Any, wanted: float) -> dict[str, Any]:
    """Leave the model as ZeRO-3 does, with nothing in its parameters, and give its whole state: `wanted` everywhere."""
    import torch

    state = {name: torch.full_like(value, wanted) for name, value in model.state_dict().items()}
    for parameter in model.parameters():
        parameter.data = torch.empty(0)
    return state


def trained(model: Any, state: dict[str, Any], calls: list[object], writes: bool = True) -> Any:
    """A trainer that DeepSpeed has wrapped, as far as `finish` asks it; `calls` gets whose state was gathered."""

    def get_state_dict(engine: object) -> dict[str, Any] | None:
        calls.append(engine)
        return state if writes else None  # as DeepSpeed: the first process gets it

    history = SimpleNamespace(save_to_json=lambda path: None, global_step=1, log_history=[], best_metric=None)
    return SimpleNamespace(
        model=model, deepspeed="engine", is_deepspeed_enabled=True, state=history, train_dataset=[1],
        accelerator=SimpleNamespace(get_state_dict=get_state_dict), is_world_process_zero=lambda: writes,
    )  # fmt: skip


@pytest.mark.parametrize("lora_rank", [0, 4])
def test_the_gathered_weights_are_written_not_the_models_own(tiny_model: Path, tmp_path: Path, lora_rank: int) -> None:
    import torch
    from safetensors.torch import load_file

    model = load_trainable(str(tiny_model), lora_rank=lora_rank, bf16=False)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    state = in_parts(model, 0.3)
    finish(trained(model, state, []), load_tokenizer(str(tiny_model)), tmp_path, str(tiny_model), {}, "pairs")
    if lora_rank:
        written = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
        assert {name.replace("lora_A", "lora_A.default").replace("lora_B", "lora_B.default") for name in written} == {
            name for name in shapes if "lora_" in name
        }
    else:
        written = load_file(tmp_path / "model.safetensors")
        assert {name: value.shape for name, value in written.items()} == shapes
    assert {value.dtype for value in written.values()} == {torch.bfloat16}
    assert all((value == torch.tensor(0.3, dtype=torch.bfloat16)).all() and len(value) for value in written.values())
    hparams = yaml.safe_load((tmp_path / "hparams.yaml").read_text(encoding="utf-8"))
    assert hparams.get("adapter") == ("adapter" if lora_rank else None)


def test_every_process_gathers_and_one_writes(tmp_path: Path) -> None:
    calls: list[object] = []
    assert finish(trained(None, {}, calls, writes=False), None, tmp_path, "base", {}, "pairs") == {}
    assert calls == ["engine"]
    assert not list(tmp_path.iterdir())
