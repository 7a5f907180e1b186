"""The settings of a training run: of the supervised start and of DPO, with the recipes that ship with the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.distill.training_options import check_numbers, with_changes
from mbr_esd_metric.errors import InputError, OptionError, unknown

#: Recipes that ship with the package: NAME.yaml in this folder.
RECIPES = Path(__file__).parent / "recipes"
OPTIMIZERS = ("lion", "adamw")


@dataclass(frozen=True, slots=True)
class DpoOptions:
    """How to distil. Defaults with (*) are the paper's; the others are TRL's or ours.

    Attributes:
        model: hub id or folder of the model that sampled the candidates.
        revision: of the hub model.
        adapter: folder of a LoRA adapter to train further; the reference model keeps it unchanged.
        lora_rank: rank of a new adapter; 0 trains all weights (*).
        prompt: prompt of the pairs; the result expects the same one.
        learning_rate: peak (* 1e-7), reached after `warmup_steps` (* 50) and falling linearly.
        optimizer: "lion" (*) or "adamw", with `betas` and `weight_decay` (* 0.1).
        batch_size: pairs for each update, over all processes (* 256); `per_device` of them in a forward pass.
        epochs: most passes (* 5); the checkpoint with the lowest validation loss is kept (*).
        beta: strength of the tie to the reference model, TRL's beta (* 0.5).
        loss_type, loss_weights: of TRL; ("sigmoid", "sft") with (1.0, 0.5) adds the SFT term.
        max_length: longest question and answer in tokens; longer pairs are an error, not cut.
        evaluations: validations, and checkpoints, in each epoch.
        gradient_checkpointing: recompute activations instead of keeping them.
        precompute_reference: compute compute the reference model's log-probabilities once, before training.
        bf16: "auto" uses bfloat16 if the hardware supports it (*); or "true" or "false".
        grounded: the result may mark only spans of the translation, like its candidates.
        max_tokens: longest answer of the result when it scores.
        seed: of order and adapters.
    """

    model: str = "meta-llama/Llama-3.3-70B-Instruct"
    revision: str | None = None
    adapter: str | None = None
    lora_rank: int = 0
    prompt: str = "v1"
    learning_rate: float = 1e-7
    optimizer: str = "lion"
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.1
    warmup_steps: int = 50
    batch_size: int = 256
    per_device: int = 1
    epochs: float = 5.0
    beta: float = 0.5
    loss_type: tuple[str, ...] = ("sigmoid",)
    loss_weights: tuple[float, ...] | None = None
    max_length: int = 4096
    evaluations: int = 4
    gradient_checkpointing: bool = True
    precompute_reference: bool = False
    bf16: str = "auto"
    grounded: bool = False
    max_tokens: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise unknown("optimizer", self.optimizer, OPTIMIZERS)
        if self.bf16 not in ("auto", "true", "false"):
            raise OptionError(f"bf16 is auto, true or false, not {self.bf16!r}")
        if self.adapter is not None and self.lora_rank:
            raise OptionError("adapter trains an adapter further, lora_rank makes a new one; set lora_rank to 0")
        check_numbers(self)
        if self.loss_weights is not None and len(self.loss_weights) != len(self.loss_type):
            raise OptionError(
                f"loss_weights has {len(self.loss_weights)} values and loss_type {len(self.loss_type)}; give one each"
            )


def load_recipe(name: str | Path = "paper", changes: Mapping[str, Any] | None = None) -> DpoOptions:
    """Options from a YAML recipe, with changes on top.

    Args:
        name: a recipe of the package ("paper"), or the path of a YAML file. Options that it leaves out have their
            defaults.
        changes: option -> value, as typed or as text.

    Raises:
        OptionError: an unknown recipe or option, or a value that does not fit.
        InputError: a file that is not a YAML mapping.
    """
    import yaml

    path = RECIPES / f"{name}.yaml"
    if not path.is_file():
        path = Path(name)
    if not path.is_file():
        raise OptionError(
            f"{unknown('recipe', str(name), [p.stem for p in RECIPES.glob('*.yaml')])}, or the path of a YAML file"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: give a mapping of options, one a line, such as learning_rate: 1.0e-7")
    try:
        options = with_changes(DpoOptions(), content)
    except OptionError as error:
        raise OptionError(f"{path.name}: {error}") from None
    return with_changes(options, changes or {})


@dataclass(frozen=True, slots=True)
class SftOptions:
    """How to train; the defaults suit a small model with LoRA.

    Attributes:
        adapter: folder of a LoRA adapter to train further, in place of a new one.
        learning_rate: peak, reached after `warmup_steps`.
        decay: share of the updates, the last ones, over which it falls linearly to 0.
        epochs: passes over the examples.
        updates: how many there are, whatever `epochs` says.
        batch_size: examples an update, over all processes.
        per_device: examples of one forward pass of one process.
        weight_decay: of AdamW.
        warmup_steps: updates until the peak.
        lora_rank: rank of new adapters on all linear layers; 0 trains all weights.
        lora_first_layer: layers before this one get no adapter; the gradient then stops there, which saves time.
        max_length: longest question and answer, in tokens. Longer ones are an error: nothing is cut in silence.
        seed: of adapters and order.
        save_steps: updates between checkpoints (and validations).
    """

    adapter: str | None = None
    learning_rate: float = 1e-3
    decay: float = 1.0
    epochs: float = 2.0
    updates: int | None = None
    batch_size: int = 16
    per_device: int = 8
    weight_decay: float = 0.0
    warmup_steps: int = 10
    lora_rank: int = 8
    lora_first_layer: int = 0
    max_length: int = 2048
    seed: int = 0
    save_steps: int = 50

    def __post_init__(self) -> None:
        check_numbers(self)
        if self.decay > 1:
            raise OptionError(f"decay is a share of the updates, at most 1, not {self.decay:g}")
