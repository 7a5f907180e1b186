"""Walks: marks as a plain forward pass would give them, words read, and a digit that says how surprising each is."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import torch

from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.generation.base import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from mbr_esd_metric.generation.surprisal import DIGITS, EDGES, SHOTS, level
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import Segment, annotate, plan

SRC, MT = "The dog barks.", " Der Hund, bellt  laut."
MARKED = get_format("marked")
WARM = Sampling(1.0, 0, 1.0, seed=3)


@pytest.fixture(scope="module")
def folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that knows the digits."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_tokens(list(DIGITS))
    model = AutoModelForCausalLM.from_pretrained(tiny)
    model.resize_token_embeddings(max(len(tokenizer), model.config.vocab_size))
    made = tmp_path_factory.mktemp("marked")
    model.save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def engine(folder: Path) -> TransformersEngine:
    return TransformersEngine(EngineOptions(model=str(folder), device="cpu", max_model_len=2048))


def request(n: int, mt: str = MT) -> Request:
    prompt = load_prompt("v1", MARKED.templates)
    walk = MARKED.walk(prompt, SRC, mt)
    return Request("key", prompt.render(SRC, mt), MARKED.grammar(mt), n, 0, "segment 1", SRC, mt, walk=walk)


@pytest.fixture(scope="module")
def plain(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)


def logits(model: Any, tokens: list[int]) -> Any:
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0].float()


def encoded(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_each_word_is_followed_by_how_surprising_it_is(engine: TransformersEngine, plain: tuple[Any, Any]) -> None:
    model, tokenizer = plain
    list(engine.generate([request(1)], WARM))
    assert engine._walker is not None
    walk = request(1).walk
    assert walk is not None
    with torch.inference_mode():
        tokens, units = engine._walker.question(walk)
    begin: list[int] = []  # this tokenizer has no token to begin with
    before, after = encoded(tokenizer, f"Source: {SRC}\nTranslation:"), encoded(tokenizer, "\nMarked:")
    read = begin + encoded(tokenizer, SHOTS) + before
    expected, words = begin + before, []
    for unit in (" Der", " Hund", ",", " bellt", "  laut", "."):
        surprisal = 0.0
        for token in encoded(tokenizer, unit):
            surprisal -= float(logits(model, read)[-1].log_softmax(0)[token])
            read.append(token)
            expected.append(token)
        digit = DIGITS[sum(surprisal >= edge for edge in EDGES)]
        words.append(encoded(tokenizer, unit) + encoded(tokenizer, digit))
    assert tokens == expected + after
    assert [level(x) for x in (0.09, 0.1, 10.9, 11.0, math.inf)] == [0, 1, 8, 9, 9]
    assert units == words


def test_log_probabilities_are_those_of_a_plain_forward_pass(
    engine: TransformersEngine, plain: tuple[Any, Any]
) -> None:
    model, tokenizer = plain
    (part,) = engine.generate([request(16)], WARM)
    assert engine._walker is not None
    walk = request(1).walk
    assert walk is not None
    with torch.inference_mode():
        question, units = engine._walker.question(walk)
    marks = [encoded(tokenizer, mark)[0] for mark in walk.marks]
    assert len({sample.text for sample in part.samples}) > 8
    for sample in part.samples:
        total, tokens, at = 0.0, list(question), 0
        for word, unit in zip(("Der", " Hund", ",", " bellt", "  laut", "."), units, strict=True):
            at += len(word) + 1
            tokens += unit
            mark = walk.marks.index(sample.text[at - 1])
            total += float(logits(model, tokens)[-1][marks].log_softmax(0)[mark])
            tokens.append(marks[mark])
        assert sample.logprob == pytest.approx(total, abs=2e-4)
        assert sample.tokens == 6
        assert not sample.truncated
        assert MARKED.parser(MT).parse(sample.text)


def test_greedy_takes_the_likeliest_mark_and_samples_do_not_depend_on_how_many_are_asked(
    engine: TransformersEngine,
) -> None:
    (greedy,) = engine.generate([request(1)], Sampling(temperature=0.0, top_k=0))
    (again,) = engine.generate([request(1)], Sampling(temperature=0.0, top_k=0))
    assert greedy == again
    few, many = ([s for part in engine.generate([request(n)], WARM) for s in part.samples] for n in (4, 40))
    assert many[:4] == few
    cold = next(iter(engine.generate([request(4)], Sampling(1e-3, 0, 1.0, seed=1)))).samples
    assert {sample.text for sample in cold} == {greedy.samples[0].text}


def test_a_card_with_this_format_scores(folder: Path, tmp_path: Path) -> None:
    options = f"engine=transformers&temperature=1&format=marked&n=4&max_tokens=8&store={tmp_path / 'store'}"
    card = load_card(f"mbr-esd-llama?model={folder}&{options}")
    done = annotate(card, [Segment(SRC, MT, "one"), Segment(SRC, "", "two"), Segment(SRC, " ", "three")])
    assert "|format:marked|" in done.signature
    assert len(done.decisions) == 3
    assert done.decisions[0].valid == 4
    assert not done.decisions[1].annotation
    with pytest.raises(OptionError, match="engine=transformers"):
        plan(
            load_card("mbr-esd-llama?format=marked&engine=server&server=http://localhost:1/v1"), [Segment(SRC, MT, "x")]
        )


def test_what_does_not_fit_is_named(folder: Path, tiny: Path) -> None:
    short = TransformersEngine(EngineOptions(model=str(folder), device="cpu", max_model_len=64))
    with pytest.raises(EngineError, match="segment 1"):
        list(short.generate([request(1, MT * 3)], WARM))
    bytes_only = TransformersEngine(EngineOptions(model=str(tiny), device="cpu"))
    with pytest.raises(EngineError, match="format=compact"):
        list(bytes_only.generate([request(1)], WARM))


def test_the_log_probability_of_each_mark(engine: TransformersEngine) -> None:
    (part,) = engine.generate([replace(request(2), token_logprobs=True)], WARM)
    for sample in part.samples:
        found = sample.token_logprobs
        assert found is not None
        words = ("Der", " Hund", ",", " bellt", "  laut", ".")
        assert found.sizes == tuple(len(word) + 1 for word in words)
        assert sum(found.logprobs) == sample.logprob
        assert max(found.logprobs) < 0
    (part,) = engine.generate([request(1)], WARM)
    assert part.samples[0].token_logprobs is None
