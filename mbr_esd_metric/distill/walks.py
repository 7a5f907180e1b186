"""Walks as examples (`format=marked`): words are given, marks are learnt, and a digit before each mark says how
surprising the word is to the base model.

The base model measures each batch when its turn comes. A run that is killed loses no measurement but those of its last
batch, and a long run begins at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.elicit.formats import Walk
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer, WalkTokens

if TYPE_CHECKING:
    import torch

#: Label of tokens without loss.
NO_LOSS = -100


@dataclass(frozen=True, slots=True)
class Encoded:
    """Tokens of one example: question, then answer from `answer_start` on.

    Attributes:
        tokens: of both.
        answer_start: the place of the answer's first token.
        choices: the tokens that the model chooses among.
        chosen: the places of the tokens that were chosen; the others are given.
    """

    tokens: tuple[int, ...]
    answer_start: int
    choices: tuple[int, ...]
    chosen: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EncodedWalk:
    """A walk with its marks, before it is measured.

    Attributes:
        read, reverse: its tokens, and those of the source's units, if it goes on there.
        row: question and answer; where a digit goes, level 0 stands.
    """

    read: WalkTokens
    reverse: WalkTokens
    row: Encoded

    @property
    def length(self) -> int:
        """Tokens of question and answer, by which batches are grouped: a clean translation's answer is as long."""
        return len(self.row.tokens)


def encode_walk(walk: Walk, answer: str, tokenizer: WalkTokenizer, max_length: int | None = None) -> EncodedWalk:
    """A walk and its answer as tokens.

    Raises:
        EngineError: the tokenizer splits a mark.
        InputError: the example is longer than `max_length`.
    """
    read, reverse, marks = tokenizer.walk(walk), tokenizer.reverse(walk), tokenizer.marks(walk)
    question = tokenizer.question(read)
    tokens, chosen, at = list(question), [], 0
    for text, piece in zip(walk.pieces, tokenizer.answer(walk, read, reverse, [0] * len(walk.pieces)), strict=True):
        at += len(text) + 1
        tokens += piece
        chosen.append(len(tokens))
        tokens.append(marks[walk.marks.index(answer[at - 1])])
    if max_length is not None and len(tokens) > max_length:
        raise InputError(
            f"an example has {len(tokens)} tokens, more than max_length={max_length}; raise it, or leave out long "
            f"translations. It begins: {answer[:60]!r}"
        )
    return EncodedWalk(read, reverse, Encoded(tuple(tokens), len(question), tuple(marks), tuple(chosen)))


class WalkCollator:
    """Makes batches of walks: measures their words, and writes the digits.

    Args:
        base: the model without any adapter, which measures.
        tokenizer: of the model.
        pad: the token that fills rows.
    """

    def __init__(self, base: Any, tokenizer: WalkTokenizer, pad: int) -> None:
        self._base, self._tokenizer, self._pad = base, tokenizer, pad
        self._measured: dict[WalkTokens, list[int]] = {}

    def __call__(self, walks: Sequence[EncodedWalk]) -> dict[str, torch.Tensor]:
        """The batch of `collate`."""
        return self.collated(self.measured(walks))

    def collated(self, rows: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        """The batch of walks that are measured."""
        return collate(rows, self._pad)

    def measured(self, walks: Sequence[EncodedWalk]) -> list[Encoded]:
        """The walks with their digits. Each is measured once."""
        every = [read for walk in walks for read in (walk.read, walk.reverse) if read.units]
        new = list(dict.fromkeys(read for read in every if read not in self._measured))
        if new:
            self._measured |= dict(zip(new, self._levels(new), strict=True))
        rows = []
        for walk in walks:
            tokens = list(walk.row.tokens)
            levels = [*self._measured[walk.read], *(self._measured[walk.reverse] if walk.reverse.units else ())]
            for place, level in zip(walk.row.chosen, levels, strict=True):
                tokens[place - 1] = self._tokenizer.digits[level]
            rows.append(replace(walk.row, tokens=tuple(tokens)))
        return rows

    def _levels(self, walks: Sequence[WalkTokens]) -> list[list[int]]:
        """How surprising the words of each walk are, from 0 to 9; the walks in one batch."""
        import torch

        from mbr_esd_metric.generation.surprisal import by_word, level, token_surprisals

        decoder, output = self._base.get_decoder(), self._base.get_output_embeddings().weight
        found = []
        with torch.inference_mode():
            *head, last = self._tokenizer.shots
            shots = torch.tensor([head], device=output.device)
            cache = decoder(input_ids=shots, use_cache=True).past_key_values
            cache.batch_repeat_interleave(len(walks))
            ids, mask = padded([[last, *walk.before, *walk.translation] for walk in walks], self._pad)
            mask = torch.cat([mask.new_ones(len(walks), shots.shape[1]), mask], 1)
            states = decoder(
                input_ids=ids.to(output.device),
                attention_mask=mask.to(output.device),
                past_key_values=cache,
                use_cache=True,
            ).last_hidden_state
            for row, walk in zip(states, walks, strict=True):
                first, tokens = len(walk.before), torch.tensor(walk.translation, device=output.device)
                surprisals = token_surprisals(row[first : first + len(tokens)], tokens, output)
                found.append([level(x) for x in by_word(surprisals, walk.units)])
        return found


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
    """A batch, padded on the right: ``input_ids``, ``attention_mask``, ``labels`` (B x n), and ``choices``."""
    import torch

    ids, mask = padded([row.tokens for row in rows], pad)
    labels = torch.full(ids.shape, NO_LOSS)
    for i, row in enumerate(rows):
        labels[i, list(row.chosen)] = ids[i, list(row.chosen)]
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "labels": labels,
        "choices": torch.tensor(rows[0].choices),
    }


def choice_distributions(
    model: Any, batch: Mapping[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What a model expects where one of K tokens was chosen, at m places in all.

    Of the output layer only the rows of the choices are used.

    Args:
        model: with or without an adapter.
        batch: of `collate`, n tokens wide.

    Returns:
        The log-probabilities (m, K), the places (B, n - 1), and the number of the chosen token (m,).
    """
    import torch

    plain = model.get_base_model() if hasattr(model, "get_base_model") else model
    states = plain.get_decoder()(
        input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False
    ).last_hidden_state
    targets = batch["labels"][:, 1:]
    chosen = targets != NO_LOSS
    rows = plain.get_output_embeddings().weight[batch["choices"]]
    logits = (states[:, :-1][chosen] @ rows.to(states.dtype).T).float()
    softcap = getattr(plain.config.get_text_config(), "final_logit_softcapping", None)
    if softcap is not None:
        logits = torch.tanh(logits / softcap) * softcap
    return logits.log_softmax(1), chosen, (targets[chosen][:, None] == batch["choices"]).long().argmax(1)
