"""Walks as examples (`format=marked`): words are measured as the engine does, and the loss is that of the marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.distill.walks import EncodedWalk, WalkCollator, choice_distributions, encode_walk
from mbr_esd_metric.elicit.formats import Walk, get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer

MARKED = get_format("marked")


def examples() -> list[tuple[Walk, str]]:
    prompt, found = load_prompt("v1", MARKED.templates), []
    for i in range(12):
        text = f"Der Hund {'bellt' if i % 2 else 'gehte'} laut {i}"
        walk = MARKED.walk(prompt, f"source {i}", text, "en-de")
        assert walk is not None
        found.append((walk, MARKED.answer(Annotation([] if i % 2 else [ErrorSpan(9, 14, "major")]), text)[0]))
    return found


def plain_model(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(str(folder)).eval()


def encoded(model: Path, max_length: int | None = None) -> list[EncodedWalk]:
    from transformers import AutoTokenizer

    tokenizer = WalkTokenizer(AutoTokenizer.from_pretrained(str(model)))
    return [encode_walk(walk, answer, tokenizer, max_length) for walk, answer in examples()]


def test_a_batch_is_measured_as_the_engine_measures_each_of_its_walks(walking_model: Path) -> None:
    import torch

    from mbr_esd_metric.generation.pretrained import load_merged
    from mbr_esd_metric.generation.walking import Walker

    base, tokenizer = load_merged(EngineOptions(str(walking_model)))
    walker = Walker(base, base, tokenizer)
    measured = WalkCollator(plain_model(walking_model), WalkTokenizer(tokenizer), pad=0).measured(
        encoded(walking_model)
    )
    levels = set()
    for (walk, _), row in zip(examples(), measured, strict=True):
        with torch.inference_mode():
            question, units, _ = walker.question(walk)
        assert list(row.tokens[: row.answer_start]) == question
        assert [row.tokens[place - 1] for place in row.chosen] == [unit[-1] for unit in units]
        levels |= {unit[-1] for unit in units}
    assert len(levels) > 1


def test_the_probabilities_are_those_of_the_marks(walking_model: Path) -> None:
    import torch
    from transformers import AutoTokenizer

    model, tokenizer = plain_model(walking_model), AutoTokenizer.from_pretrained(str(walking_model))
    collator, rows = WalkCollator(model, WalkTokenizer(tokenizer), pad=0), encoded(walking_model)[:5]
    logprobs, chosen, wanted = choice_distributions(model, collator(rows))
    plain = []
    for row in collator.measured(rows):
        logits = model(input_ids=torch.tensor([row.tokens])).logits[0]
        for place in row.chosen:
            scores = logits[place - 1][list(row.choices)].log_softmax(0)
            plain.append(scores[row.choices.index(row.tokens[place])])
    assert int(chosen.sum()) == len(plain) == 25
    torch.testing.assert_close(logprobs.gather(1, wanted[:, None])[:, 0], torch.stack(plain), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="more than max_length=10"):
        encoded(walking_model, 10)
