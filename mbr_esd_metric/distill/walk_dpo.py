"""DPO on walks (`format=marked`): of two answers with the same words, the marks of one rather than those of the other.

The words of both are given, so that the log-probability of an answer is the sum over its marks, each among the marks
alone. With the trained model M, the model R that it began as, and the answers + and - of a pair,

    loss = -log sigmoid(beta * (log M(+) - log R(+) - log M(-) + log R(-)))

(Rafailov et al. 2023, Equation 7). TRL's trainer would count the words as answers, and could not measure them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.distill.encoding import Encoded
from mbr_esd_metric.distill.settings import DpoOptions
from mbr_esd_metric.distill.training import load_trainable, on_device, trainer_arguments
from mbr_esd_metric.distill.walks import EncodedWalk, WalkCollator, choice_logprobs, encode_walk
from mbr_esd_metric.elicit.formats import FORMATS, AnswerFormat
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer

if TYPE_CHECKING:
    import torch

#: Loss terms that walks can be trained with.
LOSSES = ("sigmoid", "sft")


def walked_format(signature: str) -> AnswerFormat | None:
    """The format of pairs with this signature, if its answers are walks."""
    fields = dict(field.partition(":")[::2] for field in signature.split("|")[1:])
    found = FORMATS.get(fields.get("f", "json"))
    return found if found is not None and found.surprisals else None


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """The walk of a pair with the preferred marks, and with the others."""

    chosen: EncodedWalk
    rejected: EncodedWalk

    @property
    def length(self) -> int:
        """Tokens of either."""
        return self.chosen.length


def encode_pairs(
    rows: Sequence[Mapping[str, Any]], answers: AnswerFormat, prompt: str, tokenizer: WalkTokenizer, max_length: int
) -> list[EncodedPair]:
    """The pairs of `preferences.write_pairs` as tokens.

    Raises:
        InputError: a pair is longer than `max_length`; or a row lacks the texts of its walk.
    """
    template = load_prompt(prompt, answers.templates)
    found = []
    for row in rows:
        try:
            walk = answers.walk(template, row["source"], row["translation"], row["direction"])
        except KeyError as error:
            raise InputError(f"a pair has no {error}; make the pairs again with: mbr-esd distill pairs") from None
        assert walk is not None  # a translation without a word has one annotation, and so no pair
        sides = (row["chosen"][0]["content"], row["rejected"][0]["content"])
        found.append(EncodedPair(*(encode_walk(walk, side, tokenizer, max_length) for side in sides)))
    return found


class PairCollator:
    """Makes batches of pairs: the B preferred answers, then the B others, and what the reference thinks of each.

    Args:
        reference: the model that training begins with; with its adapter disabled it measures the words.
        tokenizer: of the model.
        pad: the token that fills rows.
    """

    def __init__(self, reference: Any, tokenizer: WalkTokenizer, pad: int) -> None:
        base = reference.get_base_model() if hasattr(reference, "get_base_model") else reference
        self._reference, self._walks = reference, WalkCollator(base, tokenizer, pad)
        self._logprobs: dict[Encoded, float] = {}

    def __call__(self, pairs: Sequence[EncodedPair]) -> dict[str, torch.Tensor]:
        """The batch of `collate`, and ``reference``, the log-probabilities of its rows, (2B,)."""
        import torch

        walks = [*(pair.chosen for pair in pairs), *(pair.rejected for pair in pairs)]
        with self._plain():
            rows = self._walks.measured(walks)
        batch = self._walks.collated(rows)
        if any(row not in self._logprobs for row in rows):
            device = self._reference.get_output_embeddings().weight.device
            with torch.inference_mode():
                there = {name: value.to(device) for name, value in batch.items()}
                sums = choice_logprobs(self._reference, there)[0].sum(1).tolist()
            self._logprobs |= dict(zip(rows, sums, strict=True))
        return batch | {"reference": torch.tensor([self._logprobs[row] for row in rows])}

    def _plain(self) -> Any:
        from contextlib import nullcontext

        return self._reference.disable_adapter() if hasattr(self._reference, "disable_adapter") else nullcontext()


def pair_loss(model: Any, batch: Mapping[str, torch.Tensor], options: DpoOptions) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of a batch of `PairCollator`, and the reward margin of each pair, (B,)."""
    import torch

    marks, chosen = choice_logprobs(model, batch)
    rewards = options.beta * (marks.sum(1) - batch["reference"])
    preferred, other = rewards.chunk(2)
    margins = preferred - other
    terms = {
        "sigmoid": -torch.nn.functional.logsigmoid(margins).mean(),
        "sft": -marks.chunk(2)[0].sum() / chosen.chunk(2)[0].sum(),
    }
    weights = options.loss_weights or (1.0,) * len(options.loss_type)
    loss = torch.stack([w * terms[name] for name, w in zip(options.loss_type, weights, strict=True)]).sum()
    return loss, margins.detach()


def build_walk_trainer(
    splits: Mapping[str, Any], answers: AnswerFormat, folder: Path, options: DpoOptions, tokenizer: Any, every: int
) -> Any:
    """The trainer of `dpo.build_trainer`, for walks; arguments and errors as there.

    Raises:
        OptionError: a loss that walks cannot be trained with.
    """
    from transformers import TrainingArguments, set_seed

    from mbr_esd_metric.distill.training import bf16_works

    for name in options.loss_type:
        if name not in LOSSES:
            raise OptionError(f"answers that are walks are trained with {' and '.join(LOSSES)}, not {name!r}")
    walks = WalkTokenizer(tokenizer)
    data = {
        name: encode_pairs(list(rows), answers, options.prompt, walks, options.max_length)
        for name, rows in splits.items()
    }
    bf16 = bf16_works() if options.bf16 == "auto" else options.bf16 == "true"
    arguments = TrainingArguments(
        **trainer_arguments(folder, options, bf16=bf16, validated="validation" in splits, every=every),
        gradient_checkpointing=options.gradient_checkpointing,
        remove_unused_columns=False,
        label_names=["labels"],
        prediction_loss_only=True,
        logging_steps=1,
    )
    set_seed(options.seed)  # a new adapter's weights are random
    model, reference = (
        load_trainable(options.model, adapter=options.adapter, lora_rank=rank, revision=options.revision, bf16=bf16)
        for rank in (options.lora_rank, 0)
    )
    return _trainer_class()(
        options,
        answers,
        model=model,
        args=arguments,
        train_dataset=data["train"],
        eval_dataset=data.get("validation"),
        processing_class=tokenizer,
        data_collator=PairCollator(on_device(reference), walks, tokenizer.pad_token_id),
    )


def _trainer_class() -> Any:
    """transformers' trainer with this module's loss."""
    from transformers import Trainer

    class WalkTrainer(Trainer):  # type: ignore[misc]
        def __init__(self, dpo: DpoOptions, answers: AnswerFormat, **arguments: Any) -> None:
            super().__init__(**arguments)
            self.answers, self._dpo = answers, dpo
            self._margins: list[float] = []

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            with self.compute_loss_context_manager():
                loss, margins = pair_loss(model, inputs, self._dpo)
            if model.training:
                self._margins += margins.tolist()
            loss = loss / (self.args.gradient_accumulation_steps if num_items_in_batch is not None else 1)
            return (loss, {}) if return_outputs else loss

        def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
            if "loss" in logs and self._margins:
                logs["rewards/margins"] = sum(self._margins) / len(self._margins)
                self._margins = []
            super().log(logs, *args, **kwargs)

    return WalkTrainer
