"""Distillation: DPO on preference pairs (paper, Section 6 and Appendix), so that one greedy pass does MBR's work.

TRL's trainer does the training. What is here: the paper's settings as defaults, checks before the long work begins
(one kind of pairs, no completion cut, a batch size that divides), Lion, resuming, and a result folder that works as a
model.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.distill.preferences import read_pairs
from mbr_esd_metric.distill.settings import RECIPES, DpoOptions
from mbr_esd_metric.distill.training import (
    CHECKPOINTS,
    check_same_run,
    finish,
    has_bf16,
    last_checkpoint,
    load_tokenizer,
    load_trainable,
    need_training_packages,
    quiet_libraries,
    trainer_arguments,
    training_errors,
)
from mbr_esd_metric.errors import EngineError, InputError
from mbr_esd_metric.generation.model_files import file_digest

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def load_pairs(folder: str | Path, prompt: str) -> dict[str, Any]:
    """The splits of a folder of pairs as ``datasets.Dataset``s.

    Args:
        folder: what ``mbr-esd distill pairs`` wrote.
        prompt: the prompt that the pairs must be made for.

    Raises:
        InputError: rows that are not our pairs, pairs with different signatures or another prompt, or no pair at all.
    """
    from datasets import Dataset, disable_progress_bars
    from datasets.exceptions import DatasetGenerationError

    from mbr_esd_metric.elicit.prompt import load_prompt

    disable_progress_bars()
    splits: dict[str, Any] = {}
    signatures: dict[str, str] = {}
    for split, path in read_pairs(folder):
        try:
            data = Dataset.from_json(str(path), keep_in_memory=True)
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
    if f"|prompt:{load_prompt(prompt).version}|" not in first:
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
    """TRL's trainer, ready to train. Everything that can be checked before training is checked here.

    Raises:
        InputError: pairs that do not fit together, or longer than max_length or the model's context.
        EngineError, MissingDependencyError, OptionError: the model, a package or the batch size is wrong; or the run
            in the folder began with other settings.
    """
    need_training_packages()
    quiet_libraries()
    splits = load_pairs(pairs, options.prompt)
    digest = hashlib.sha256(b"".join(file_digest(path) for _, path in read_pairs(pairs)))
    check_same_run(folder, options, options.model, options.adapter, pairs=f"sha256:{digest.hexdigest()[:16]}")
    tokenizer = load_tokenizer(options.model, options.revision)
    updates = math.ceil(len(splits["train"]) / options.batch_size)
    every = max(1, updates // options.evaluations)
    trainer = _trl_trainer(splits, folder, options, tokenizer, every)
    if options.optimizer == "lion":
        from lion_pytorch import Lion

        # A class, so that the trainer makes its groups (no decay of norms and biases) and DeepSpeed can wrap it.
        trainer.optimizer_cls_and_kwargs = (Lion, {"lr": options.learning_rate, "betas": options.betas})
    return trainer


def _trl_trainer(splits: Mapping[str, Any], folder: Path, options: DpoOptions, tokenizer: Any, every: int) -> Any:
    longest = longest_pair(splits, tokenizer)
    if longest > options.max_length:
        raise InputError(
            f"the longest pair has {longest} tokens and max_length is {options.max_length}, which would cut answers; "
            f"set max_length to {longest} or more"
        )
    from transformers import set_seed
    from trl import DPOConfig, DPOTrainer

    bf16 = has_bf16() if options.bf16 == "auto" else options.bf16 == "true"
    # Make the arguments before the model: with DeepSpeed ZeRO-3 they decide how weights are loaded.
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

    class Trainer(DPOTrainer):  # type: ignore[misc]
        """Beside the adapter in training TRL keeps its first weights, "ref", in a folder of the checkpoint. Where
        transformers finds such a folder, it loads nothing else."""

        def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            if hasattr(self.model, "peft_config"):
                self.model.load_adapter(resume_from_checkpoint, "default", is_trainable=True)

    return Trainer(
        model=model,
        args=arguments,
        train_dataset=splits["train"],
        eval_dataset=splits.get("validation"),
        processing_class=tokenizer,
    )


def train_dpo(pairs: str | Path, folder: Path, options: DpoOptions) -> dict[str, float]:
    """Distil, and write a folder for ``comet-score --model FOLDER``: greedy, one pass for each segment.

    If it was interrupted, it goes on from the last checkpoint. It keeps the weights with the lowest validation loss.

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
        "rule": "greedy",
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
    """Write the configurations of accelerate and DeepSpeed ZeRO-3 for eight GPUs. The first one names the path of the
    second."""
    folder.mkdir(parents=True, exist_ok=True)
    deepspeed, launch = folder / "deepspeed_zero3.json", folder / "accelerate_8gpu.yml"
    deepspeed.write_text((RECIPES / deepspeed.name).read_text(encoding="utf-8"), encoding="utf-8")
    text = (RECIPES / launch.name).read_text(encoding="utf-8")
    launch.write_text(text.replace(deepspeed.name, json.dumps(str(deepspeed.resolve()))), encoding="utf-8")
    return [launch, deepspeed]
