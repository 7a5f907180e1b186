"""What both trainings share: going on with a run, and the result of a model that lies in parts in several processes."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from mbr_esd_metric.distill.settings import DpoOptions
from mbr_esd_metric.distill.training import (
    CHECKPOINTS,
    check_same_run,
    finish,
    load_tokenizer,
    load_trainable,
    save_result,
)
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metric.cards import load_card


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
        model=model,
        deepspeed="engine",
        is_deepspeed_enabled=True,
        state=history,
        train_dataset=[1],
        accelerator=SimpleNamespace(get_state_dict=get_state_dict),
        is_world_process_zero=lambda: writes,
    )


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


def test_a_result_holds_the_prompt_file_that_it_names(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    class Whole:
        def to(self, _: object) -> Whole:
            return self

        def save_pretrained(self, folder: str, **_: object) -> None:
            pass

    prompt = tmp_path / "mine.txt"
    prompt.write_text("{source} {translation}", encoding="utf-8")
    folder = tmp_path / "model"
    folder.mkdir()
    save_result(Whole(), Whole(), folder, "base", {"prompt": str(prompt)})  # type: ignore[arg-type]
    prompt.unlink()
    assert load_prompt(load_card(str(folder)).prompt).template == "{source} {translation}"


def test_every_process_gathers_and_one_writes(tmp_path: Path) -> None:
    calls: list[object] = []
    assert finish(trained(None, {}, calls, writes=False), None, tmp_path, "base", {}, "pairs") == {}
    assert calls == ["engine"]
    assert not list(tmp_path.iterdir())


def test_a_run_goes_on_with_what_it_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, model, adapter = tmp_path / "run", tmp_path / "model", tmp_path / "adapter"
    for place in (model, adapter):
        place.mkdir()
        (place / "config.json").write_text("{}", encoding="utf-8")

    def begin(pairs: str = "a", given: Path = model, **changes: Any) -> None:
        check_same_run(folder, DpoOptions(**changes), str(given), str(adapter), pairs=pairs)

    begin(seed=1)
    with monkeypatch.context() as second:
        second.setenv("RANK", "1")  # the first process writes
        begin(seed=2)
    assert '"seed": 1' in (folder / CHECKPOINTS / "run.json").read_text(encoding="utf-8")
    begin()  # nothing was saved, so nothing is gone on with
    checkpoint = folder / CHECKPOINTS / "checkpoint-3"
    checkpoint.mkdir()
    (checkpoint / "trainer_state.json").touch()
    begin()
    begin(per_device=2, gradient_checkpointing=False, precompute_reference=True, max_length=9)
    begin(prompt="x", grounded=True, max_tokens=9)
    for changes, message in (
        ({"learning_rate": 1e-6}, "learning_rate 1e-07, not 1e-06"),
        ({"betas": (0.9, 0.95)}, r"betas \[0.9, 0.99\], not \[0.9, 0.95\]"),
        ({"lora_rank": 8}, "lora_rank 0, not 8"),
        ({"pairs": "b"}, "pairs 'a', not 'b'"),
        ({"given": adapter}, "model 'model-[0-9a-f]{8}', not 'adapter-[0-9a-f]{8}'"),
    ):
        with pytest.raises(OptionError, match=f"run holds a run with {message}; .* another folder"):
            begin(**changes)
    (adapter / "config.json").write_text('{"r": 8}', encoding="utf-8")
    with pytest.raises(OptionError, match="adapter 'adapter-[0-9a-f]{8}', not 'adapter-[0-9a-f]{8}'"):
        begin()
    for file in (folder / CHECKPOINTS).glob("*.json"):
        file.unlink()
    with pytest.raises(InputError, match="checkpoints does not say what its checkpoints began with"):
        begin()
    shutil.rmtree(checkpoint)
    begin()


def test_putting_an_adapter_on_says_nothing(tiny_model: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    load_trainable(str(tiny_model), lora_rank=4).save_pretrained(tmp_path)
    load_trainable(str(tiny_model), adapter=str(tmp_path))
    assert not [warning for warning in recwarn if "is_gradient_checkpointing" in str(warning.message)]
