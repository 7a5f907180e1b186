"""DPO: the paper's settings in the built trainer, the loss falls, the result scores, bad input is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from mbr_esd_metric.distill.dpo import (
    build_trainer,
    train_dpo,
    write_launch_configurations,
)
from mbr_esd_metric.distill.settings import RECIPES, DpoOptions, load_recipe
from mbr_esd_metric.distill.training import last_checkpoint, training_errors
from mbr_esd_metric.distill.training_options import as_yaml
from mbr_esd_metric.errors import EngineError, InputError, MbrEsdError, OptionError
from mbr_esd_metric.metric.cards import load_card

#: What makes a run of a tiny model short.
SHORT: dict[str, Any] = {
    "learning_rate": 5e-3,
    "optimizer": "adamw",
    "weight_decay": 0.0,
    "warmup_steps": 0,
    "batch_size": 5,
    "per_device": 5,
    "epochs": 4,
    "lora_rank": 4,
    "evaluations": 1,
    "gradient_checkpointing": False,
    "bf16": "false",
}


def options(model: Path, **changes: object) -> DpoOptions:
    return load_recipe("paper", {**SHORT, "model": str(model), **changes})


def test_the_recipe_and_the_defaults_are_the_papers() -> None:
    assert load_recipe("paper") == DpoOptions()
    paper = load_recipe()
    assert (paper.learning_rate, paper.optimizer, paper.betas) == (1e-7, "lion", (0.9, 0.99))
    assert (paper.weight_decay, paper.warmup_steps, paper.batch_size) == (0.1, 50, 256)
    assert (paper.beta, paper.epochs, paper.loss_type) == (0.5, 5.0, ("sigmoid",))


def test_the_built_trainer_has_the_papers_settings(tiny_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    """Read back from TRL's own objects, not from what we meant to give it."""
    from lion_pytorch import Lion

    trainer = build_trainer(pair_folder, tmp_path, load_recipe("paper", {"model": str(tiny_model), "bf16": "false"}))
    trainer.create_optimizer_and_scheduler(num_training_steps=1000)
    optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
    assert isinstance(optimizer, Lion)
    assert {group["betas"] for group in optimizer.param_groups} == {(0.9, 0.99)}
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]  # the second: norms
    assert trainer.args.learning_rate == 1e-7
    rates = []
    for _ in range(60):
        rates.append(optimizer.param_groups[0]["lr"])
        trainer.lr_scheduler.step()
    assert max(rates) == pytest.approx(1e-7)
    assert rates.index(max(rates)) == 50
    batch = trainer.args.per_device_train_batch_size * trainer.args.gradient_accumulation_steps
    assert batch * trainer.args.world_size == 256
    assert trainer.beta == 0.5
    assert trainer.loss_types == ["sigmoid"]
    assert trainer.args.num_train_epochs == 5
    assert trainer.args.load_best_model_at_end
    assert (trainer.args.metric_for_best_model, trainer.args.greater_is_better) == ("eval_loss", False)
    assert trainer.args.gradient_checkpointing
    assert trainer.ref_model is not None  # all weights are trained, so the reference is a copy
    assert len(trainer.eval_dataset) > 0


def test_every_setting_can_be_changed(tiny_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    changed = load_recipe(
        "paper",
        {
            "model": str(tiny_model),
            "learning_rate": "2e-6",
            "betas": "[0.8, 0.95]",
            "weight_decay": "0.2",
            "batch_size": "8",
            "per_device": "2",
            "beta": "0.1",
            "loss_type": "[sigmoid, sft]",
            "loss_weights": "[1.0, 0.5]",
            "lora_rank": "4",
            "bf16": "false",
        },
    )
    trainer = build_trainer(pair_folder, tmp_path, changed)
    trainer.create_optimizer_and_scheduler(num_training_steps=10)
    optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.95)
    assert optimizer.param_groups[0]["weight_decay"] == 0.2
    assert trainer.args.learning_rate == 2e-6
    assert trainer.args.gradient_accumulation_steps == 4
    assert trainer.loss_types == ["sigmoid", "sft"]
    assert trainer.loss_weights == [1.0, 0.5]
    assert trainer.beta == 0.1
    assert trainer.ref_model is None  # without the adapter the model is its own reference
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(as_yaml(changed), encoding="utf-8")
    assert load_recipe(recipe) == changed


def test_no_answer_is_cut(tiny_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which would cut answers; set max_length to") as error:
        build_trainer(pair_folder, tmp_path, options(tiny_model, max_length=100))
    fits = int(str(error.value).split("set max_length to ")[1].split()[0])
    trainer = build_trainer(pair_folder, tmp_path, options(tiny_model, max_length=fits))
    tokenizer = trainer.processing_class
    for row in trainer.train_dataset:
        for answer in ("chosen", "rejected"):
            assert len(row["prompt_ids"] + row[f"{answer}_ids"]) <= fits
            assert tokenizer.decode(row[f"{answer}_ids"]).startswith(row[answer][0]["content"] + tokenizer.eos_token)
    with pytest.raises(InputError, match="set max_length to"):
        build_trainer(pair_folder, tmp_path, options(tiny_model, max_length=fits - 1))


def test_training_prefers_the_chosen_and_resumes_after_a_kill(
    tiny_model: Path, pair_folder: Path, tmp_path: Path
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    figures = train_dpo(pair_folder, whole, options(tiny_model))
    assert figures["first_loss"] == pytest.approx(0.6931, abs=1e-3)  # log 2: policy and reference agree
    assert figures["last_loss"] < figures["first_loss"] - 0.02
    assert figures["last_margin"] > 0
    assert figures["validation_loss"] < 0.6931

    # A kill after the second checkpoint: what came later is not there.
    class Killed(Exception):
        pass

    trainer = build_trainer(pair_folder, stopped, options(tiny_model))
    from transformers import TrainerCallback

    class Kill(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 5:
                raise Killed

    trainer.add_callback(Kill())
    with pytest.raises(Killed):
        trainer.train()
    assert str(last_checkpoint(stopped)).endswith("checkpoint-4")
    with pytest.raises(OptionError, match="stopped holds a run with learning_rate 0.005, not 0.001; give"):
        train_dpo(pair_folder, stopped, options(tiny_model, learning_rate=1e-3))
    shutil.copytree(pair_folder, tmp_path / "others")
    _edit(tmp_path / "others", id="another")
    with pytest.raises(OptionError, match="stopped holds a run with pairs 'sha256:"):
        train_dpo(tmp_path / "others", stopped, options(tiny_model))
    again = train_dpo(pair_folder, stopped, options(tiny_model, per_device=1, grounded=True))
    assert again["updates"] == figures["updates"]
    assert again["last_loss"] == pytest.approx(figures["last_loss"], rel=1e-4)

    card = load_card(str(whole))
    assert (card.decision.rule, card.samples, card.sampling.temperature) == ("greedy", 1, 0.0)
    assert Path(str(card.adapter)) == (whole / "adapter").resolve()
    state = json.loads((whole / "trainer_state.json").read_text(encoding="utf-8"))
    assert any("eval_loss" in entry for entry in state["log_history"])


def test_all_weights_are_written_as_a_model_folder(tiny_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    train_dpo(pair_folder, tmp_path / "out", options(tiny_model, lora_rank=0, epochs=1, precompute_reference=True))
    card = load_card(str(tmp_path / "out"))
    assert Path(card.model) == (tmp_path / "out").resolve()
    assert card.adapter is None
    assert (tmp_path / "out" / "tokenizer.json").is_file()


def test_an_adapter_is_trained_further(tiny_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    train_dpo(pair_folder, tmp_path / "first", options(tiny_model, epochs=1))
    adapter = tmp_path / "first" / "adapter"
    figures = train_dpo(pair_folder, tmp_path / "second", options(tiny_model, lora_rank=0, adapter=str(adapter)))
    assert figures["first_loss"] == pytest.approx(0.6931, abs=5e-3)  # the reference has the adapter too
    assert figures["last_loss"] < figures["first_loss"]

    from safetensors.torch import load_file

    first, second = (load_file(f / "adapter_model.safetensors") for f in (adapter, tmp_path / "second" / "adapter"))
    assert first.keys() == second.keys()  # no copy of the reference is left in the result
    assert any((first[name] != second[name]).any() for name in first)
    with pytest.raises(InputError, match=r"no adapter_config\.json"):
        build_trainer(pair_folder, tmp_path, options(tiny_model, lora_rank=0, adapter=str(tmp_path)))


def _edit(folder: Path, **changes: object) -> None:
    path = folder / "train.jsonl"
    rows = [{**json.loads(line), **changes} for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_pairs_that_do_not_belong_are_refused(tiny_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    def fails(match: str, **changes: object) -> None:
        with pytest.raises(MbrEsdError, match=match):
            build_trainer(pair_folder, tmp_path, options(tiny_model, **changes))

    template = tmp_path / "other.txt"
    template.write_text("Errors of {translation} for {source}?", encoding="utf-8")
    fails("another prompt", prompt=str(template))
    kept = (pair_folder / "train.jsonl").read_text(encoding="utf-8")
    signature = json.loads(kept.splitlines()[0])["signature"]
    _edit(pair_folder, signature="someone|else")
    fails("foreign signature 'someone\\|else'")
    _edit(pair_folder, signature=signature.replace("u:softf1", "u:f1"))
    fails("pairs of two kinds")
    (pair_folder / "train.jsonl").write_text("", encoding="utf-8")
    fails(r"train\.jsonl")
    (pair_folder / "train.jsonl").write_text('{"prompt": "x"}\n', encoding="utf-8")
    fails("no column chosen, rejected, signature")
    (pair_folder / "train.jsonl").write_text("no JSON\n", encoding="utf-8")
    fails("cannot be read as preference pairs")
    shutil.rmtree(pair_folder)
    fails(r"has no train\.jsonl")


def test_models_that_cannot_be_trained_are_refused(tiny_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no tokenizer for"):
        build_trainer(pair_folder, tmp_path, options(tmp_path / "nowhere"))
    bare = tmp_path / "bare"
    shutil.copytree(tiny_model, bare)
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        path = bare / name
        if name.endswith(".json"):
            config = json.loads(path.read_text(encoding="utf-8"))
            config.pop("chat_template", None)
            path.write_text(json.dumps(config), encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
    with pytest.raises(InputError, match="has no chat template; take the instruction-tuned"):
        build_trainer(pair_folder, tmp_path, options(bare))
    encoder = tmp_path / "encoder"
    shutil.copytree(tiny_model, encoder)
    (encoder / "config.json").write_text(json.dumps({"model_type": "t5"}), encoding="utf-8")
    with pytest.raises(EngineError, match="cannot be loaded as a causal language model"):
        build_trainer(pair_folder, tmp_path, options(encoder))


def test_out_of_memory_says_what_to_lower() -> None:
    import torch

    for error in (torch.OutOfMemoryError("CUDA out of memory. Tried"), RuntimeError("can't allocate memory: 9 bytes")):
        with pytest.raises(EngineError, match="out of memory.*lower per_device"), training_errors("lower per_device"):
            raise error
    with pytest.raises(RuntimeError, match="else"), training_errors("x"):
        raise RuntimeError("something else")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimizer": "lyon"}, "did you mean 'lion'"),
        ({"learning_rat": 1}, "did you mean 'learning_rate'"),
        ({"learning_rate": "fast"}, "learning_rate: 'fast' is no float"),
        ({"batch_size": "2.5"}, "batch_size: 2.5 is no int"),
        ({"epochs": 0}, "epochs must be above 0"),
        ({"lora_rank": -1}, "lora_rank must be 0 or more, not -1"),
        ({"max_tokens": 0}, "max_tokens must be above 0"),
        ({"betas": [0.9]}, "betas"),
        ({"gradient_checkpointing": "maybe"}, "gradient_checkpointing"),
        ({"loss_weights": [1.0, 0.5]}, "loss_weights has 2 values and loss_type 1"),
        ({"adapter": "x", "lora_rank": 8}, "set lora_rank to 0"),
        ({"bf16": "sometimes"}, "bf16 is auto, true or false"),
    ],
)
def test_wrong_options_name_the_right_ones(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        load_recipe("paper", changes)


def test_recipes_are_found_or_told(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="^lora_rank"):
        load_recipe("paper", {"lora_rank": "x"})
    (tmp_path / "wrong.yaml").write_text("lora_rank: x", encoding="utf-8")
    with pytest.raises(OptionError, match="^wrong.yaml: lora_rank"):
        load_recipe(tmp_path / "wrong.yaml")
    with pytest.raises(OptionError, match="did you mean 'paper'"):
        load_recipe("papper")
    (tmp_path / "list.yaml").write_text("- 1", encoding="utf-8")
    with pytest.raises(InputError, match="mapping"):
        load_recipe(tmp_path / "list.yaml")
    (tmp_path / "bad.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(InputError, match="not YAML"):
        load_recipe(tmp_path / "bad.yaml")


def test_the_configurations_for_eight_gpus_load(tmp_path: Path, tiny_model: Path) -> None:
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser
    from transformers.integrations.deepspeed import HfDeepSpeedConfig

    launch, deepspeed = write_launch_configurations(tmp_path)
    config = load_config_from_file(str(launch))
    assert config.num_processes == 8
    assert str(config.distributed_type).endswith("DEEPSPEED")
    assert config.deepspeed_config["deepspeed_config_file"] == str(deepspeed)
    command = ["--config_file", str(launch), "-m", "mbr_esd_metric", "distill"]
    args = launch_command_parser().parse_args(command)
    assert (args.module, args.training_script) == (True, "mbr_esd_metric")
    content = json.loads(deepspeed.read_text(encoding="utf-8"))
    assert content["zero_optimization"]["stage"] == 3
    assert content["zero_allow_untested_optimizer"]  # Lion is not one of DeepSpeed's own
    assert content["train_batch_size"] == "auto"  # the recipe's batch decides
    assert HfDeepSpeedConfig
    assert yaml.safe_load((RECIPES / "accelerate_8gpu.yml").read_text(encoding="utf-8"))["num_machines"] == 1
