"""The tokens of a walk (`format=marked`): what a model reads of it, and what the base model reads to measure it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mbr_esd_metric.elicit.formats import Walk
from mbr_esd_metric.errors import EngineError


@dataclass(frozen=True, slots=True)
class WalkTokens:
    """A walk in tokens.

    Attributes:
        before: of the text before the translation.
        units: of each unit.
        after: of the text after the translation.
    """

    before: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]
    after: tuple[int, ...]

    @property
    def translation(self) -> tuple[int, ...]:
        """The tokens of all units."""
        return tuple(token for unit in self.units for token in unit)


class WalkTokenizer:
    """A tokenizer of transformers, for walks.

    Attributes:
        begin: the tokens that every text begins with.
        shots: what the base model reads before each walk (see `surprisal.SHOTS`), `begin` included.
        digits: the token of each level of surprise.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Raises EngineError where the tokenizer splits a digit."""
        from mbr_esd_metric.generation.surprisal import DIGITS, SHOTS

        self._tokenizer = tokenizer
        self.begin: list[int] = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None else []
        self.shots = self.begin + self._encode(SHOTS)
        self.digits = [self._single(digit) for digit in DIGITS]

    def walk(self, walk: Walk) -> WalkTokens:
        """The tokens of a walk, without marks and digits."""
        return WalkTokens(
            tuple(self._encode(walk.before)),
            tuple(tuple(self._encode(unit)) for unit in walk.units),
            tuple(self._encode(walk.after)),
        )

    def reverse(self, walk: Walk) -> WalkTokens:
        """The tokens of the source's units, read as the translation of the translation; none where it has none."""
        return WalkTokens(
            tuple(self._encode(walk.reverse)), tuple(tuple(self._encode(unit)) for unit in walk.source_units), ()
        )

    def answer(self, walk: Walk, read: WalkTokens, reverse: WalkTokens, levels: Sequence[int]) -> list[list[int]]:
        """The tokens before each mark: its unit, with what stands before that, and a digit.

        Args:
            walk: of which `read` and `reverse` are the tokens.
            levels: how surprising each unit is, from 0 to 9, those of the source last.
        """
        pieces = [list(unit) for unit in (*read.units, *reverse.units)]
        if reverse.units:
            pieces[len(read.units)][:0] = self._encode(walk.between)
        return [[*piece, self.digits[level]] for piece, level in zip(pieces, levels, strict=True)]

    def question(self, tokens: WalkTokens) -> list[int]:
        """The tokens of the prompt."""
        return [*self.begin, *tokens.before, *tokens.translation, *tokens.after]

    def marks(self, walk: Walk) -> list[int]:
        """The token of each mark.

        Raises:
            EngineError: a mark is not one token.
        """
        return [self._single(mark) for mark in walk.marks]

    def _encode(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    def _single(self, text: str) -> int:
        tokens = self._encode(text)
        if len(tokens) != 1:
            raise EngineError(
                f"the model's tokenizer splits {text!r} into {len(tokens)} tokens, so format=marked cannot ask this "
                "model; take format=json or format=compact"
            )
        return tokens[0]
