"""The supervised start: a causal language model learns to write answers from human annotations.

The loss is the mean cross-entropy of the answer's tokens, including the closing one. The question has no loss.

All questions begin with the same instructions, which are half of all tokens. A batch runs them through the model
once, with gradient, and every example continues from there. Attention is causal, so loss and gradient equal those of
the full examples (a test compares them), with about half the work.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.distill.encoding import NO_LOSS, collate, encode_example
from mbr_esd_metric.distill.settings import SftOptions
from mbr_esd_metric.distill.supervision import Supervision
from mbr_esd_metric.distill.training import (
    check_same_run,
    finish,
    has_bf16,
    last_checkpoint,
    load_tokenizer,
    load_trainable,
    load_weights,
    need_training_packages,
    on_device,
    quiet_libraries,
    trainer_arguments,
    training_errors,
)
from mbr_esd_metric.distill.walks import WalkCollator, choice_logprobs, encode_walk
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer

if TYPE_CHECKING:
    import torch


def answer_loss(model: Any, batch: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of the cross-entropy over the answers' tokens of a batch from `collate`, and the number of these
    tokens.

    The output layer, a fifth of a small model, is applied only from the first answer of the batch on.
    """
    import torch

    if "choices" in batch:
        return _choice_loss(model, batch)
    cache = None
    if batch["prefix"].shape[1]:
        cache = model(input_ids=batch["prefix"], use_cache=True, logits_to_keep=1).past_key_values
        cache.batch_repeat_interleave(len(batch["input_ids"]))
    targets = batch["labels"][:, 1:]
    chosen = targets != NO_LOSS
    first = int(chosen.any(dim=0).nonzero()[0])
    logits = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        past_key_values=cache,
        use_cache=cache is not None,
        logits_to_keep=torch.arange(first, targets.shape[1], device=targets.device),
    ).logits
    chosen = chosen[:, first:]
    loss = torch.nn.functional.cross_entropy(logits[chosen].float(), targets[:, first:][chosen], reduction="sum")
    return loss, chosen.sum()


def _choice_loss(model: Any, batch: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """As `answer_loss`, where each token is one among few."""
    logprobs, chosen = choice_logprobs(model, batch)
    return -logprobs[chosen].sum(), chosen.sum()


def train_sft(
    supervision: Supervision, folder: Path, model: str, options: SftOptions, card: Mapping[str, Any]
) -> dict[str, float]:
    """Train, and write a model folder. If it was interrupted, it goes on from the last checkpoint.

    Args:
        supervision: what to learn.
        folder: of the result; checkpoints go to ``checkpoints/`` in it.
        model: hub id or folder of the base model.
        options: how.
        card: options of the model card that the result is to have.

    Returns:
        Figures of the run: examples, updates, first and last training loss, best validation loss; nothing in the
        other processes of a run of several.

    Raises:
        InputError: an example is too long.
        EngineError: the model cannot be loaded or trained.
        OptionError: the folder's run began with something else.
    """
    need_training_packages()
    quiet_libraries()
    digest = hashlib.sha256(repr((supervision.train, supervision.validation)).encode())
    check_same_run(folder, options, model, options.adapter, examples=f"sha256:{digest.hexdigest()[:16]}")
    import torch
    from transformers import TrainingArguments

    tokenizer, bf16 = load_tokenizer(model), has_bf16()
    parts: list[list[Any]] = []
    if any(example.walk is not None for example in supervision.train):
        walks = WalkTokenizer(tokenizer)
        for part in (supervision.train, supervision.validation):
            given = [(example.walk, example.answer) for example in part]
            parts.append([encode_walk(walk, answer, walks, options.max_length) for walk, answer in given if walk])
        base = on_device(load_weights(model, bf16=bf16))
        collator: Any = WalkCollator(base, walks, tokenizer.pad_token_id)
    else:
        for part in (supervision.train, supervision.validation):
            parts.append([encode_example(example, tokenizer, options.max_length) for example in part])
        collator = partial(collate, pad=tokenizer.pad_token_id)
    train, validation = parts
    torch.manual_seed(options.seed)
    trained = load_trainable(
        model,
        adapter=options.adapter,
        lora_rank=options.lora_rank,
        lora_first_layer=options.lora_first_layer,
        bf16=bf16,
    )
    arguments = TrainingArguments(
        **trainer_arguments(folder, options, bf16=bf16, validated=bool(validation), every=options.save_steps)
        | schedule(options, len(train)),
        logging_steps=5,
        remove_unused_columns=False,
        label_names=["labels"],
        prediction_loss_only=True,
        ddp_find_unused_parameters=False,
    )
    trainer = _trainer_class()(
        model=trained, args=arguments, train_dataset=train, eval_dataset=validation or None, data_collator=collator
    )
    with training_errors("lower per_device, or leave out long translations with max_characters"):
        trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    return finish(trainer, tokenizer, folder, model, card, "examples")


def schedule(options: SftOptions, examples: int) -> dict[str, Any]:
    """Arguments of the trainer that say how long it trains, and when the learning rate falls."""
    updates = options.updates or math.ceil(examples / options.batch_size * options.epochs)
    if options.decay == 1:
        how: dict[str, Any] = {"lr_scheduler_type": "linear"}
    else:
        falling = {"num_decay_steps": math.ceil(options.decay * updates), "decay_type": "linear"}
        how = {"lr_scheduler_type": "warmup_stable_decay", "lr_scheduler_kwargs": falling}
    return how | ({"max_steps": updates} if options.updates else {})


def _trainer_class() -> Any:
    """transformers' trainer with this module's loss, and batches of questions of similar length."""
    from transformers import Trainer
    from transformers.trainer_pt_utils import LengthGroupedSampler

    class SftTrainer(Trainer):  # type: ignore[misc]
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            with self.compute_loss_context_manager():
                loss, tokens = answer_loss(model, inputs)
            if num_items_in_batch is None:
                loss = loss / tokens
            else:  # counted over all processes, whose gradients are averaged
                loss = loss * self.accelerator.num_processes / num_items_in_batch
            return (loss, {}) if return_outputs else loss

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            import torch

            return LengthGroupedSampler(
                self.args.train_batch_size * self.args.gradient_accumulation_steps,
                lengths=[row.length for row in self.train_dataset],
                generator=torch.Generator().manual_seed(self.args.seed),
            )

    return SftTrainer
