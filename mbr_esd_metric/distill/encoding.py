"""Examples as tokens, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mbr_esd_metric.distill.supervision import Example, conversation
from mbr_esd_metric.errors import InputError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

#: Label of tokens without loss.
NO_LOSS = -100


@dataclass(frozen=True, slots=True)
class Encoded:
    """Tokens of one example: question, then answer from `answer_start` on.

    Attributes:
        tokens: of both.
        answer_start: the place of the answer's first token.
        choices: the tokens that the model chooses among; none if that is the whole vocabulary.
        chosen: the places of the tokens that were chosen, in an answer with `choices`; the others are given.
    """

    tokens: tuple[int, ...]
    answer_start: int
    choices: tuple[int, ...] = ()
    chosen: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """The length of the question, by which batches are grouped. With the answers, some batches would have clean
        translations only, and each would teach the model to mark nothing."""
        return self.answer_start


def encode_example(example: Example, tokenizer: PreTrainedTokenizerBase, max_length: int | None = None) -> Encoded:
    """The example in the tokenizer's chat template.

    The answer ends with the token that ends an assistant's turn, so that the model learns to stop.

    Raises:
        InputError: the example is longer than `max_length`.
    """
    turns = conversation(example)
    question: str = tokenizer.apply_chat_template(turns["prompt"], tokenize=False, add_generation_prompt=True)
    head: list[int] = tokenizer(question, add_special_tokens=False)["input_ids"]
    tail: list[int] = tokenizer(example.answer, add_special_tokens=False)["input_ids"]
    tokens = (*head, *tail, tokenizer.eos_token_id)
    check_length(tokens, max_length, example.answer)
    return Encoded(tokens, len(head))


def check_length(tokens: Sequence[int], max_length: int | None, answer: str) -> None:
    """Raise `InputError` where an example has more tokens than `max_length`."""
    if max_length is not None and len(tokens) > max_length:
        raise InputError(
            f"an example has {len(tokens)} tokens, more than max_length={max_length}; raise it, or leave out long "
            f"translations. It begins: {answer[:60]!r}"
        )


def common_prefix(rows: Sequence[Encoded]) -> int:
    """The number of tokens that all questions of a batch begin with. At least one token of each question is not
    shared."""
    first = min(row.tokens[: row.answer_start - 1] for row in rows)
    last = max(row.tokens[: row.answer_start - 1] for row in rows)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return length


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids, padded on the right, and their mask, both (B, n)."""
    import torch

    width = max(map(len, rows))
    ids = torch.full((len(rows), width), pad)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = 1
    return ids, mask


def collate(rows: Sequence[Encoded], pad: int) -> dict[str, torch.Tensor]:
    """A batch: ``prefix`` (1 x p), and ``input_ids``, ``attention_mask``, ``labels`` (B x n) after it.

    Rows are padded on the right; the mask covers prefix and row (B x (p + n)).
    """
    import torch

    choices = rows[0].choices
    p = 0 if choices else common_prefix(rows)
    ids, mask = padded([row.tokens[p:] for row in rows], pad)
    labels = torch.full(ids.shape, NO_LOSS)
    for i, row in enumerate(rows):
        learnt = list(row.chosen) if choices else range(row.answer_start - p, len(row.tokens) - p)
        labels[i, list(learnt)] = ids[i, list(learnt)]
    return {
        "prefix": torch.tensor([rows[0].tokens[:p]], dtype=torch.long),
        "input_ids": ids,
        "attention_mask": torch.cat([mask.new_ones(len(rows), p), mask], 1),
        "labels": labels,
        **({"choices": torch.tensor(choices)} if choices else {}),
    }
