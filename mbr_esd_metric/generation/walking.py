"""Walks through a translation (`format=marked`) on a transformers model: words are read, marks are sampled.

The words of an answer are known, so all candidates go from mark to mark together: one pass reads a word for every
candidate, and of the output layer only the marks' rows are used. Candidates whose marks agree so far are one row
of the batch until they part; on a good translation most never do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mbr_esd_metric.core.candidate import TokenLogprobs
from mbr_esd_metric.elicit.formats import Walk
from mbr_esd_metric.generation.base import Sample
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer

if TYPE_CHECKING:
    from torch import Tensor


class Walker:
    """Samples walks from one model.

    Args:
        model: a causal language model of transformers, loaded with the attention of `shared_prompt`.
        base: the same model without its adapter, which measures surprisals.
        tokenizer: of both.
    """

    def __init__(self, model: Any, base: Any, tokenizer: Any) -> None:
        from mbr_esd_metric.generation.shared_prompt import SharedPromptCache

        self._model, self._base, self._tokenizer = model, base, WalkTokenizer(tokenizer)
        self._cache, self._base_cache = SharedPromptCache(), SharedPromptCache()

    def question(self, walk: Walk) -> tuple[list[int], list[list[int]]]:
        """The tokens of the prompt, and those of each unit with the digit that says how surprising it is."""
        import torch

        from mbr_esd_metric.generation.surprisal import by_word, level, token_surprisals

        read = self._tokenizer.walk(walk)
        before, tokens = [*self._tokenizer.shots, *read.before], read.translation
        states = self._base_cache.read_states(self._base.get_decoder(), [*before, *tokens])[len(before) - 1 : -1]
        output = self._base.get_output_embeddings().weight
        surprisals = by_word(token_surprisals(states, torch.tensor(tokens, device=states.device), output), read.units)
        digits = self._tokenizer.digits
        return self._tokenizer.question(read), [
            [*unit, digits[level(x)]] for unit, x in zip(read.units, surprisals, strict=True)
        ]

    def sample(
        self,
        walk: Walk,
        question: tuple[list[int], list[list[int]]],
        indices: Sequence[int],
        choose: Callable[[Tensor, int], Tensor],
        by_mark: bool = False,
    ) -> list[Sample]:
        """One answer for each index.

        Args:
            walk: the answer to walk.
            question: what `question` returned for it.
            indices: of the samples.
            choose: from the marks' logits, (samples, marks), and the number of the word, the mark of each sample.
            by_mark: return the log-probability of each mark as well; a word and its mark then count as one token.
        """
        import torch

        prompt, units = question
        decoder, output = self._model.get_decoder(), self._model.get_output_embeddings().weight
        marks = torch.tensor(self._tokenizer.marks(walk), device=output.device)
        rows = output[marks].float()
        self._cache.read_states(decoder, prompt)
        self._cache.start(1)
        row_of = torch.zeros(len(indices), dtype=torch.long, device=output.device)
        last = marks.new_empty(1, 0)
        gains = []
        chosen = []
        for number, unit in enumerate(units):
            tokens = torch.cat([last, torch.tensor([unit], device=output.device).expand(len(last), -1)], 1)
            logits = (self._cache.walk(decoder, tokens).float() @ rows.T)[row_of]
            mark = choose(logits, number)
            gains.append(logits.log_softmax(1).gather(1, mark[:, None])[:, 0])
            chosen.append(mark)
            # Samples with equal marks so far stay one row.
            ways, row_of = torch.unique(row_of * len(marks) + mark, return_inverse=True)
            self._cache.keep(ways // len(marks))
            last = marks[ways % len(marks)][:, None]
        words = [walk.units[0].removeprefix(" "), *walk.units[1:]]
        samples = []
        for row, each in zip(torch.stack(chosen, 1).tolist(), torch.stack(gains, 1).tolist(), strict=True):
            pieces = [word + walk.marks[mark] for word, mark in zip(words, row, strict=True)]
            by_token = _by_mark(pieces, each) if by_mark else None
            samples.append(Sample("".join(pieces), sum(each), len(units), token_logprobs=by_token))
        return samples


def _by_mark(pieces: Sequence[str], logprobs: Sequence[float]) -> TokenLogprobs | None:
    text = "".join(pieces)
    return TokenLogprobs.spelling([piece.encode("utf-8", "surrogatepass") for piece in pieces], logprobs, text)
