"""Distillation: DPO on preference pairs (paper, Section 6 and Appendix), so that one greedy pass does MBR's work.

TRL's trainer does the training. What is here: the paper's settings as defaults, checks before hours are spent (pairs of
one kind, no completion cut, a batch that divides), Lion, resuming, and a result folder that scores.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.distill.options import check_numbers, with_changes
from mbr_esd_metric.distill.preferences import read_pairs
from mbr_esd_metric.distill.training import (
    CHECKPOINTS,
    bf16_works,
    check_same_run,
    finish,
    last_checkpoint,
    load_tokenizer,
    load_trainable,
    need_training_packages,
    quiet_libraries,
    trainer_arguments,
    training_errors,
)
from mbr_esd_metric.errors import EngineError, InputError, OptionError, unknown
from mbr_esd_metric.generation.model_files import file_digest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

#: Recipes that ship with the package: NAME.yaml in this folder.
RECIPES = Path(__file__).parent / "recipes"
OPTIMIZERS = ("lion", "adamw")


@dataclass(frozen=True, slots=True)
class DpoOptions:
    """How to distil. The defaults are the paper's where it says (*), TRL's or ours where it does not.

    Attributes:
        model: hub id or folder of the model that sampled the candidates.
        revision: of the hub model.
        adapter: folder of a LoRA adapter to train further; the reference model has it too, as it was.
        lora_rank: rank of a new adapter; 0 trains all weights (*).
        prompt: prompt of the pairs, which the result is to be asked with.
        learning_rate: peak (* 1e-7), reached after `warmup_steps` (* 50) and falling linearly.
        optimizer: "lion" (*) or "adamw", with `betas` and `weight_decay` (* 0.1).
        batch_size: pairs an update, over all processes (* 256); `per_device` of them a forward pass.
        epochs: at most so many passes (* 5); the checkpoint with the lowest validation loss is kept (*).
        beta: strength of the tie to the reference model, TRL's beta (* 0.5).
        loss_type, loss_weights: of TRL; ("sigmoid", "sft") with (1.0, 0.5) adds the SFT term.
        max_length: longest question and answer in tokens; longer pairs are an error, not cut.
        evaluations: validations, and checkpoints, an epoch.
        gradient_checkpointing: recompute activations instead of keeping them.
        precompute_reference: the reference model's log-probabilities once, before training.
        bf16: "auto" takes bfloat16 where the hardware computes in it (*), else "true" or "false".
        grounded: the result is to be held to spans of the translation, as its candidates were.
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
        name: a recipe of the package ("paper"), or the path of a YAML file; what it leaves out has the default.
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


def load_pairs(folder: str | Path, prompt: str) -> dict[str, Any]:
    """The splits of a folder of pairs as ``datasets.Dataset``s.

    Args:
        folder: what ``mbr-esd distill pairs`` wrote.
        prompt: the prompt that the pairs must have been made for.

    Raises:
        InputError: rows that are no pairs of ours, pairs of several signatures or of another prompt, no pair at all.
    """
    from datasets import Dataset, disable_progress_bars
    from datasets.exceptions import DatasetGenerationError

    from mbr_esd_metric.elicit.prompt import load_prompt

    disable_progress_bars()
    splits: dict[str, Any] = {}
    signatures: dict[str, str] = {}
    for split, path in read_pairs(folder):
        read = Dataset.from_parquet if path.suffix == ".parquet" else Dataset.from_json
        try:
            data = read(str(path), keep_in_memory=True)
        except (DatasetGenerationError, ValueError, OSError, StopIteration) as error:
            raise InputError(f"{path} cannot be read as preference pairs: {error}") from None
        missing = {"prompt", "chosen", "rejected", "signature"} - set(data.column_names)
        if missing:
            raise InputError(f"{path} has no column {', '.join(sorted(missing))}; make it with: mbr-esd distill pairs")
        if not len(data):
            raise InputError(f"{path} has no pairs; make more with: mbr-esd distill pairs")
        for signature in data.unique("signature"):
            signatures.setdefault(str(signature), str(path))
        splits[split] = data
    first, where = next(iter(signatures.items()))
    for signature, place in signatures.items():
        if not signature.startswith("mbr-esd-pairs|"):
            raise InputError(f"{place}: foreign signature {signature!r}; make pairs with: mbr-esd distill pairs")
        if signature != first:
            raise InputError(
                f"pairs of two kinds: {first!r} in {where} and {signature!r} in {place}; train on one kind, made by "
                "one version and with one set of options"
            )
    wanted = load_prompt(prompt).version
    if f"|prompt:{wanted}|" not in first:
        raise InputError(f"{where}: the pairs are for another prompt ({first}); set prompt, now {prompt!r}, to it")
    return splits


def longest_pair(splits: Mapping[str, Any], tokenizer: PreTrainedTokenizerBase) -> int:
    """Tokens of the longest question with an answer, in the tokenizer's chat template."""
    longest = 0
    for data in splits.values():
        for row in data:
            for answer in ("chosen", "rejected"):
                text = tokenizer.apply_chat_template(row["prompt"] + row[answer], tokenize=False)
                longest = max(longest, len(tokenizer(text, add_special_tokens=False)["input_ids"]))
    return longest


def build_trainer(pairs: str | Path, folder: Path, options: DpoOptions) -> Any:
    """TRL's trainer, ready to train; every check that can be made before is made here.

    Raises:
        InputError: pairs that do not fit together, or longer than max_length or the model's context.
        EngineError, MissingDependencyError, OptionError: the model, a package or the batch; a folder whose run began
            with something else.
    """
    need_training_packages()
    quiet_libraries()
    splits = load_pairs(pairs, options.prompt)
    digest = hashlib.sha256(b"".join(file_digest(path) for _, path in read_pairs(pairs)))
    check_same_run(folder, options, options.model, options.adapter, pairs=f"sha256:{digest.hexdigest()[:16]}")
    tokenizer = load_tokenizer(options.model, options.revision)
    longest = longest_pair(splits, tokenizer)
    if longest > options.max_length:
        raise InputError(
            f"the longest pair has {longest} tokens and max_length is {options.max_length}, which would cut answers; "
            f"set max_length to {longest} or more"
        )
    from transformers import set_seed
    from trl import DPOConfig, DPOTrainer

    bf16 = bf16_works() if options.bf16 == "auto" else options.bf16 == "true"
    updates = math.ceil(len(splits["train"]) / options.batch_size)
    every = max(1, updates // options.evaluations)
    # The arguments come before the model: with DeepSpeed ZeRO-3 they decide how its weights are loaded.
    arguments = DPOConfig(
        **trainer_arguments(folder, options, bf16=bf16, validated="validation" in splits, every=every),
        beta=options.beta,
        loss_type=list(options.loss_type),
        loss_weights=None if options.loss_weights is None else list(options.loss_weights),
        max_length=options.max_length,
        precompute_ref_log_probs=options.precompute_reference,
        gradient_checkpointing=options.gradient_checkpointing,
        logging_steps=1,
    )
    set_seed(options.seed)  # a new adapter's weights are random
    model = load_trainable(
        options.model, adapter=options.adapter, lora_rank=options.lora_rank, revision=options.revision, bf16=bf16
    )
    context = getattr(model.config, "max_position_embeddings", None)
    if context is not None and longest > context:
        raise InputError(f"the longest pair has {longest} tokens, the model reads {context}; leave out long segments")
    trainer = DPOTrainer(
        model=model,
        args=arguments,
        train_dataset=splits["train"],
        eval_dataset=splits.get("validation"),
        processing_class=tokenizer,
    )
    if options.optimizer == "lion":
        from lion_pytorch import Lion

        # As a class, so that the trainer makes its groups (no decay of norms and biases) and DeepSpeed may wrap it.
        trainer.optimizer_cls_and_kwargs = (Lion, {"lr": options.learning_rate, "betas": options.betas})
    return trainer


def train_dpo(pairs: str | Path, folder: Path, options: DpoOptions) -> dict[str, float]:
    """Distil, and write a folder that ``comet-score --model FOLDER`` scores with: greedy, one pass a segment.

    Goes on from the last checkpoint where it was interrupted. The weights kept are those of the lowest validation loss.

    Returns:
        Figures of the run: pairs, updates, first and last training loss, last reward margin, best validation loss.

    Raises:
        InputError, EngineError, OptionError: as `build_trainer`; running out of memory, with what to lower.
    """
    with training_errors(
        "lower per_device (batch_size stays as it is), set gradient_checkpointing: true, train an adapter with "
        "lora_rank: 16, or use more GPUs with the DeepSpeed configuration"
    ):
        trainer = build_trainer(pairs, folder, options)
        trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    card: dict[str, Any] = {
        "decision": "greedy",
        "n": 1,
        "grounded": options.grounded,
        "prompt": options.prompt,
        "max_tokens": options.max_tokens,
    }
    if options.revision:
        card["revision"] = options.revision
    figures = finish(trainer, trainer.processing_class, folder, options.model, card, "pairs")
    if figures and "first_loss" not in figures:
        raise EngineError(f"no update was made; {folder / CHECKPOINTS} holds a finished run, give a new folder")
    return figures


def write_launch_configurations(folder: Path) -> list[Path]:
    """Write the configurations of accelerate and DeepSpeed ZeRO-3 for eight GPUs, one naming the other's place."""
    folder.mkdir(parents=True, exist_ok=True)
    deepspeed, launch = folder / "deepspeed_zero3.json", folder / "accelerate_8gpu.yml"
    deepspeed.write_text((RECIPES / deepspeed.name).read_text(encoding="utf-8"), encoding="utf-8")
    text = (RECIPES / launch.name).read_text(encoding="utf-8")
    launch.write_text(text.replace(deepspeed.name, json.dumps(str(deepspeed.resolve()))), encoding="utf-8")
    return [launch, deepspeed]
