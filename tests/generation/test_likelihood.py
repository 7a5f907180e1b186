"""Log-likelihood of given answers: equal to what a sample of the same tokens reports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from mbr_esd_metric.elicit.grammar import output_grammar
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.likelihood import LikelihoodEngine

GRAMMAR = output_grammar("[a-z ]{1,6}")


class SplitAsSampled:
    """The engine's tokenizer, which splits sampled texts as they were sampled: a random model never does it itself."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokens: dict[str, list[int]] = {}
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __call__(self, text: str, **options: Any) -> Any:
        return {"input_ids": self.tokens[text]} if text in self.tokens else self._tokenizer(text, **options)


def test_equals_the_logprob_of_samples(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = LikelihoodEngine(EngineOptions(model=str(tiny), device="cpu"))
    tokenizer = SplitAsSampled(engine._tokenizer)
    spell = engine._vocabulary.text

    def spelled(tokens: Iterable[int]) -> str:
        kept = [token for token in tokens if token != engine._vocabulary.eos]
        tokenizer.tokens[spell(kept)] = kept
        return spell(kept)

    monkeypatch.setattr(engine._vocabulary, "text", spelled)
    monkeypatch.setattr(engine, "_tokenizer", tokenizer)
    request = Request("key", "Mark the errors.", GRAMMAR, 16)
    samples = [s for part in engine.generate([request], Sampling(max_tokens=120, seed=3)) for s in part.samples]
    whole = [sample for sample in samples if not sample.truncated]
    assert len({sample.text for sample in whole}) > 3
    by_text: dict[str, list[float]] = {}
    for sample in whole:
        by_text.setdefault(sample.text, []).append(sample.logprob)
    for text, logprobs in by_text.items():
        # A text that was sampled in two splits has two log-probabilities, of which the last is asked for.
        assert engine.log_likelihood(request, text) == pytest.approx(logprobs[-1], abs=1e-3)
    assert engine.log_likelihood(request, '{"errors": []}') < 0


def test_an_answer_that_the_grammar_does_not_admit(tiny: Path) -> None:
    engine = LikelihoodEngine(EngineOptions(model=str(tiny), device="cpu"))
    with pytest.raises(InputError, match="admits no such answer after"):
        engine.log_likelihood(Request("key", "Mark.", GRAMMAR, 1), '{"errors": [ ]}')
