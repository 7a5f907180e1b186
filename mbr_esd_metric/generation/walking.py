"""Walks through a translation (`format=marked`) on a transformers model: words are read, marks are sampled.

With `format=marked-omissions` a walk goes on through the source, and "word" below means one of either text. The words
of an answer are known; only its marks are not. So the model reads ahead. A draft of all marks goes through it in one
pass, which gives the distribution of every mark, given the draft's marks before it. Each sample draws its marks from
these distributions, with random numbers of its own, up to its first mark that differs from the draft. That mark is
still drawn from the right distribution. There the sample leaves the draft and goes on with a new one; samples that
agree so far share one row of the next pass. Every mark comes from the distribution that reading word by word would
give, with the same random number. So drafts change how long it takes, and nothing else.

Only the marks' rows of the output layer are used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mbr_esd_metric.core.candidate import Candidate, TokenLogprobs
from mbr_esd_metric.elicit.formats import Walk
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer, WalkTokens

if TYPE_CHECKING:
    from torch import Tensor

#: From the marks' logits, (choices, marks), and the sample and the word of each choice, the mark of each.
Choose: TypeAlias = "Callable[[Tensor, Sequence[int], Sequence[int]], Tensor]"


#: How often a word has the mark of the word before it: for the first mark (fine), and for any other. These are guesses;
#: a wrong one costs time and changes nothing else.
_SAME = (0.9, 0.6)
#: Tokens of the question and the first draft that are read at once; most sentences have fewer.
_BLOCK = 512
#: A word is read ahead if a sample gets there with at least this probability.
_LIKELY = 0.3


@dataclass(frozen=True)
class _Draft:
    """Marks that samples may choose next: all like the one before.

    Attributes:
        first: number of the first word without a mark.
        before: the mark of the word before it; None at the beginning.
        samples: those that have the same marks so far.
        words: the number of words of the translation.
    """

    first: int
    before: int | None
    samples: tuple[int, ...]
    words: int

    @property
    def marks(self) -> list[int]:
        """The drafted mark of each word that is read. The last one is never read, so any mark will do."""
        left = self.words - self.first
        if self.before is None:
            return [0] * left
        same, ahead = _SAME[self.before > 0], 1
        while ahead < left and 1 - (1 - same**ahead) ** len(self.samples) >= _LIKELY:
            ahead += 1
        return [self.before] * ahead

    def tokens(self, units: Sequence[Sequence[int]], marks: Sequence[int]) -> tuple[list[int], list[int]]:
        """What the model reads, from the mark before the first word to the last word; and where each word ends.

        Args:
            units: the tokens of every word.
            marks: the token of every mark.
        """
        read, ends = [] if self.before is None else [marks[self.before]], []
        for number, mark in enumerate(self.marks):
            read += units[self.first + number]
            ends.append(len(read) - 1)
            read.append(marks[mark])
        return read[:-1], ends


class Question(NamedTuple):
    """What a model reads of a walk: the tokens of the prompt, and those of each unit with the digit that says how
    surprising it is; and the surprisal of the whole translation, in nats."""

    prompt: list[int]
    units: list[list[int]]
    surprisal: float


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
        # The examples in the prompt are one block, which the base model reads once.
        self._cache, self._base_cache = SharedPromptCache(_BLOCK), SharedPromptCache(len(self._tokenizer.shots))
        config = model.config.get_text_config()
        self._softcap: float | None = getattr(config, "final_logit_softcapping", None)

    def question(self, walk: Walk) -> Question:
        """What the model reads of a walk, measured."""
        from mbr_esd_metric.generation.surprisal import level

        read, reverse = self._tokenizer.walk(walk), self._tokenizer.reverse(walk)
        measured = self._measured(read)
        levels = [level(x) for x in (*measured, *(self._measured(reverse) if reverse.units else ()))]
        answer = self._tokenizer.answer(walk, read, reverse, levels)
        return Question(self._tokenizer.question(read), answer, sum(measured))

    def surprisals(self, walk: Walk) -> list[float]:
        """How surprising each unit of the translation is to the base model, in nats."""
        return self._measured(self._tokenizer.walk(walk))

    def _measured(self, read: WalkTokens) -> list[float]:
        import torch

        from mbr_esd_metric.generation.surprisal import by_word, token_surprisals

        before, tokens = [*self._tokenizer.shots, *read.before], read.translation
        states = self._base_cache.read_states(self._base.get_decoder(), [*before, *tokens])[len(before) - 1 : -1]
        output = self._base.get_output_embeddings().weight
        return by_word(token_surprisals(states, torch.tensor(tokens, device=states.device), output), read.units)

    def sample(
        self, walk: Walk, question: Question, count: int, choose: Choose, by_mark: bool = False
    ) -> list[Candidate]:
        """Samples, each with the number of error spans that the model expects along it.

        Args:
            walk: the answer to walk.
            question: what `question` returned for it.
            count: of the samples, S.
            choose: from the marks' logits, (choices, marks), and the sample (0 to S - 1) and the word of each choice,
                the mark of each.
            by_mark: return the log-probability of each mark as well; a word and its mark then count as one token.
        """
        import torch

        prompt, units = question.prompt, question.units
        decoder, output = self._model.get_decoder(), self._model.get_output_embeddings().weight
        marks = self._tokenizer.marks(walk)
        rows = output[torch.tensor(marks, device=output.device)].float()
        drawing = _Drawing(rows, self._softcap, choose, count, len(units))

        # The first draft is read as part of the prompt, because all samples share it until they leave it.
        draft = _Draft(0, None, tuple(range(count)), len(units))
        tokens, ends = draft.tokens(units, marks)
        states = self._cache.read_states(decoder, [*prompt, *tokens])[len(prompt) :]
        going = drawing.advance(states[torch.tensor(ends)], [draft])
        if going:
            self._cache.start([len(prompt) + ends[held - 1] + 1 for _, held, _ in going])
        while going:
            drafts = [draft for _, _, draft in going]
            read = [draft.tokens(units, marks) for draft in drafts]
            states = self._cache.walk(decoder, [tokens for tokens, _ in read])
            starts = itertools.accumulate((len(tokens) for tokens, _ in read), initial=0)
            places = [start + end for start, (_, ends) in zip(starts, read, strict=False) for end in ends]
            going = drawing.advance(states[torch.tensor(places)], drafts)
            if going:
                forgotten = [len(read[which][0]) - 1 - read[which][1][held - 1] for which, held, _ in going]
                self._cache.keep(torch.tensor([which for which, _, _ in going]), torch.tensor(forgotten))
        words = walk.pieces
        done = []
        for row, each, known in zip(drawing.chosen, drawing.gains, drawing.shares, strict=True):
            pieces = [word + walk.marks[mark] for word, mark in zip(words, row, strict=True)]
            by_token = _by_mark(pieces, each) if by_mark else None
            expected = replace(walk.expected(row, known), words=len(walk.units), surprisal=question.surprisal)
            done.append(
                Candidate(
                    "".join(pieces), logprob=sum(each), tokens=len(units), token_logprobs=by_token, expected=expected
                )
            )
        return done


class _Drawing:
    """The marks of all samples of one walk, as they are drawn.

    Args:
        rows: of the output layer, those of the marks, (marks, D).
        softcap: of the model's logits; None where it has none.
        choose: as of `Walker.sample`.
        count, words: S samples of W words.

    Attributes:
        chosen, gains, shares: of each sample and word: its mark, the mark's log-probability, and the probability of
            every mark.
    """

    def __init__(self, rows: Tensor, softcap: float | None, choose: Choose, count: int, words: int) -> None:
        self._rows, self._softcap, self._choose, self._words = rows, softcap, choose, words
        self.chosen = [[0] * words for _ in range(count)]
        self.gains = [[0.0] * words for _ in range(count)]
        self.shares: list[list[list[float]]] = [[[]] * words for _ in range(count)]

    def advance(self, states: Tensor, drafts: Sequence[_Draft]) -> list[tuple[int, int, _Draft]]:
        """Draw each sample's marks up to the first that was not drafted, and return the drafts that follow.

        Args:
            states: after the words of the drafts, those of one draft after another's.
            drafts: what was read.

        Returns:
            Each new draft with the number of the draft that it leaves, and how many words of that still hold.
        """
        import torch

        logits = states.float() @ self._rows.T
        if self._softcap is not None:
            logits = torch.tanh(logits / self._softcap) * self._softcap
        at = 0
        every: list[int] = []
        samples: list[int] = []
        numbers: list[int] = []
        for draft in drafts:
            for sample in draft.samples:
                every += range(at, at + len(draft.marks))
                samples += [sample] * len(draft.marks)
                numbers += range(draft.first, draft.first + len(draft.marks))
            at += len(draft.marks)
        wanted = logits[torch.tensor(every, device=logits.device)]
        drawn = self._choose(wanted, samples, numbers)
        gained = wanted.log_softmax(1).gather(1, drawn[:, None])[:, 0].tolist()
        return self._taken(drafts, drawn.tolist(), gained, wanted.double().softmax(1).tolist())

    def _taken(
        self, drafts: Sequence[_Draft], drawn: list[int], gained: list[float], probabilities: list[list[float]]
    ) -> list[tuple[int, int, _Draft]]:
        """Write down what was drawn while it is as drafted, and the first that is not; returns as `advance`."""
        at = 0
        left: dict[tuple[int, int, int], list[int]] = {}
        for which, draft in enumerate(drafts):
            for sample in draft.samples:
                for held, drafted in enumerate(draft.marks):
                    mark = drawn[at + held]
                    self.chosen[sample][draft.first + held] = mark
                    self.gains[sample][draft.first + held] = gained[at + held]
                    self.shares[sample][draft.first + held] = probabilities[at + held]
                    if mark != drafted or held + 1 == len(draft.marks):
                        left.setdefault((which, held, mark), []).append(sample)
                        break
                at += len(draft.marks)
        return [
            (which, held + 1, _Draft(drafts[which].first + held + 1, mark, tuple(found), self._words))
            for (which, held, mark), found in left.items()
            if drafts[which].first + held + 1 < self._words
        ]


def _by_mark(pieces: Sequence[str], logprobs: Sequence[float]) -> TokenLogprobs | None:
    text = "".join(pieces)
    return TokenLogprobs.spelling([piece.encode("utf-8", "surrogatepass") for piece in pieces], logprobs, text)
