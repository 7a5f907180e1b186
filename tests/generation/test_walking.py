"""Walks: marks as a plain forward pass would give them, words read, and a digit that says how surprising each is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import torch

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines.transformers import TransformersEngine, _choose, _uniform
from mbr_esd_metric.generation.shared_prompt import SharedPromptCache
from mbr_esd_metric.generation.surprisal import DIGITS, EDGES, SHOTS, level
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment, plan

SRC, MT = "The dog barks.", " Der Hund, bellt  laut."
MARKED = get_format("marked")
WARM = Sampling(1.0, 0, 1.0, seed=3)


def with_digits(folder: Path, made: Path) -> Path:
    """The same model, with a tokenizer that knows the digits."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(list(DIGITS))
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(max(len(tokenizer), model.config.vocab_size))
    model.save_pretrained(made)
    tokenizer.save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def folder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that knows the digits."""
    return with_digits(tiny, tmp_path_factory.mktemp("marked"))


@pytest.fixture(scope="module")
def windowed(make_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose first layer sees 24 tokens back."""
    settings = {"sliding_window": 24, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 12}
    return with_digits(make_model("gemma2", **settings), tmp_path_factory.mktemp("windowed"))


@pytest.fixture(scope="module")
def engine(folder: Path) -> TransformersEngine:
    return TransformersEngine(EngineOptions(model=str(folder), device="cpu"))


def made_request(n: int, mt: str = MT) -> Request:
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
    list(engine.generate([made_request(1)], WARM))
    assert engine._walker is not None
    walk = made_request(1).walk
    assert walk is not None
    with torch.inference_mode():
        tokens, units, _ = engine._walker.question(walk)
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


def test_a_walk_reads_the_tokenizer_once_and_makes_no_table_of_its_tokens(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both took seconds before the first score."""
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    config = peft.LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")
    peft.get_peft_model(AutoModelForCausalLM.from_pretrained(folder), config).save_pretrained(tmp_path)

    read = AutoTokenizer.from_pretrained
    asked: list[object] = []

    def counted(*given: Any, **named: Any) -> Any:
        asked.append(given)
        return read(*given, **named)

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", counted)
    own = TransformersEngine(EngineOptions(model=str(folder), adapter=str(tmp_path), device="cpu"))
    (part,) = own.generate([made_request(2)], WARM)
    assert len(part.samples) == 2
    assert len(asked) == 1
    assert "_bytes" not in vars(own._vocabulary)
    own.close()


def test_a_walk_goes_on_through_the_source(engine: TransformersEngine, plain: tuple[Any, Any]) -> None:
    """Its words come with how surprising they are after the translation, and marks as a plain forward pass has them."""
    model, tokenizer = plain
    both = get_format("marked-omissions")
    prompt = load_prompt("v1", both.templates)
    walk = both.walk(prompt, SRC, MT)
    assert walk is not None
    request = replace(made_request(8), key="both", grammar=both.grammar(MT, source=SRC), walk=walk)
    (part,) = engine.generate([request], WARM)
    assert engine._walker is not None
    with torch.inference_mode():
        question, units, surprisal = engine._walker.question(walk)
        plainly = engine._walker.surprisals(walk)
    assert surprisal == pytest.approx(sum(plainly))
    read = encoded(tokenizer, SHOTS) + encoded(tokenizer, f"Source: {MT}\nTranslation:")
    for number, unit in enumerate((" The", " dog", " barks", ".")):
        tokens = encoded(tokenizer, unit)
        found = 0.0
        for token in tokens:
            found -= float(logits(model, read)[-1].log_softmax(0)[token])
            read.append(token)
        digit = encoded(tokenizer, DIGITS[level(found)])
        between = [] if number else encoded(tokenizer, "\nSource:")
        assert units[6 + number] == between + tokens + digit
    marks = [encoded(tokenizer, mark)[0] for mark in walk.marks]
    parser = both.parser(MT, source=SRC)
    sided = 0
    for sample in part.samples:
        total, tokens, at = 0.0, list(question), 0
        for text, unit in zip(walk.pieces, units, strict=True):
            at += len(text) + 1
            tokens += unit
            mark = walk.marks.index(sample.text[at - 1])
            total += float(logits(model, tokens)[-1][marks].log_softmax(0)[mark])
            tokens.append(marks[mark])
        assert sample.logprob == pytest.approx(total, abs=1e-3)
        read_back = parser.parse(sample.text).annotation
        assert isinstance(read_back, Annotation)
        sided += read_back.sided
        assert sample.expected is not None
        assert sample.expected.words == 6
        assert 0 < sample.expected.missing < sample.expected.minor + sample.expected.major
    assert sided


def test_log_probabilities_are_those_of_a_plain_forward_pass(
    engine: TransformersEngine, plain: tuple[Any, Any]
) -> None:
    model, tokenizer = plain
    (part,) = engine.generate([made_request(16)], WARM)
    assert engine._walker is not None
    walk = made_request(1).walk
    assert walk is not None
    with torch.inference_mode():
        question, units, _ = engine._walker.question(walk)
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


@pytest.mark.parametrize(
    "sampling",
    [
        WARM,
        Sampling(0.0, 0),
        Sampling(3.0, 0, seed=1),
        Sampling(0.5, 2, seed=2),
        Sampling(1.5, 0, 0.8, seed=3),
        Sampling(2.0, 2, seed=4),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", ["folder", "windowed"])
def test_reading_ahead_gives_the_samples_of_a_walk_word_by_word(
    model: str, sampling: Sampling, request: pytest.FixtureRequest
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = request.getfixturevalue(model)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    plain = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    engine = TransformersEngine(EngineOptions(model=str(folder), device="cpu"))
    asked = made_request(1 if sampling.greedy else 24, MT * 3)
    done = [sample for part in engine.generate([asked], sampling) for sample in part.samples]
    assert engine._walker is not None
    walk = asked.walk
    assert walk is not None
    with torch.inference_mode():
        question, units, _ = engine._walker.question(walk)
    marks = [encoded(tokenizer, mark)[0] for mark in walk.marks]
    known: dict[tuple[int, ...], Any] = {}  # the logits of the marks that follow these marks
    for index, sample in enumerate(done):
        before: tuple[int, ...] = ()
        total = 0.0
        for number in range(len(units)):
            if before not in known:
                tokens = [*question, *units[0]]
                for mark, unit in zip(before, units[1:], strict=False):
                    tokens += [marks[mark], *unit]
                known[before] = logits(plain, tokens)[-1:, marks]
            (mark,) = _choose(known[before], [_uniform(sampling.seed, "key", index, number)], sampling).tolist()
            total += float(known[before].log_softmax(1)[0, mark])
            before = (*before, mark)
        words = (walk.units[0].removeprefix(" "), *walk.units[1:])
        assert sample.text == "".join(word + walk.marks[mark] for word, mark in zip(words, before, strict=True))
        assert sample.logprob == pytest.approx(total, abs=5e-4)
    assert len(known) > len(units) or sampling.greedy


@pytest.mark.parametrize(("mark", "passes"), [(0, 1), (1, 8)])
def test_a_translation_is_read_in_fewer_passes_than_it_has_words(
    mark: int, passes: int, engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass reads the base model's question, and one both the question and an answer of which all is as drafted."""
    walk = made_request(1, MT * 3).walk
    list(engine.generate([made_request(1)], WARM))
    assert engine._walker is not None
    assert walk is not None
    assert len(walk.units) == 18
    read = []
    forward = SharedPromptCache._forward

    def counted(self: SharedPromptCache, *args: Any, **options: Any) -> Any:
        read.append(1)
        return forward(self, *args, **options)

    monkeypatch.setattr(SharedPromptCache, "_forward", counted)
    with torch.inference_mode():
        question = engine._walker.question(walk)
        assert len(read) == 1
        engine._walker.sample(walk, question, 2, lambda logits, *_: torch.full((len(logits),), mark))
    assert len(read) - 1 <= passes


def test_greedy_takes_the_likeliest_mark_and_samples_do_not_depend_on_how_many_are_asked(
    engine: TransformersEngine,
) -> None:
    (greedy,) = engine.generate([made_request(1)], Sampling(temperature=0.0, top_k=0))
    (again,) = engine.generate([made_request(1)], Sampling(temperature=0.0, top_k=0))
    assert greedy == again
    few, many = ([s for part in engine.generate([made_request(n)], WARM) for s in part.samples] for n in (4, 40))
    assert many[:4] == few
    cold = next(iter(engine.generate([made_request(4)], Sampling(1e-3, 0, 1.0, seed=1)))).samples
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
    bytes_only = TransformersEngine(EngineOptions(model=str(tiny), device="cpu"))
    with pytest.raises(EngineError, match="format=compact"):
        list(bytes_only.generate([made_request(1)], WARM))


def test_the_log_probability_of_each_mark(engine: TransformersEngine) -> None:
    (part,) = engine.generate([replace(made_request(2), token_logprobs=True)], WARM)
    for sample in part.samples:
        found = sample.token_logprobs
        assert found is not None
        words = ("Der", " Hund", ",", " bellt", "  laut", ".")
        assert found.sizes == tuple(len(word) + 1 for word in words)
        assert sum(found.logprobs) == sample.logprob
        assert max(found.logprobs) < 0
    (part,) = engine.generate([made_request(1)], WARM)
    assert part.samples[0].token_logprobs is None


def test_expected_spans_are_as_many_as_there_are_spans_on_average(engine: TransformersEngine) -> None:
    """All 81 walks through four words, each weighted by its probability: expectations without any sampling."""
    mt = "Der Hund bellt laut"
    walk = made_request(1, mt).walk
    assert walk is not None
    list(engine.generate([made_request(1)], WARM))
    assert engine._walker is not None
    every = list(itertools.product(range(3), repeat=4))
    with torch.inference_mode():
        question = engine._walker.question(walk)
        done = engine._walker.sample(
            walk,
            question,
            len(every),
            lambda _, samples, numbers: torch.tensor(
                [every[i][j] for i, j in zip(samples, numbers, strict=True)], dtype=torch.long
            ),
        )
    chances = np.exp([sample.logprob for sample in done])
    assert chances.sum() == pytest.approx(1, abs=1e-6)
    parser = MARKED.parser(mt)
    for severity in ("minor", "major"):
        spans, expected = [], []
        for sample in done:
            read = parser.parse(sample.text).annotation
            assert isinstance(read, Annotation)
            assert sample.expected is not None
            spans.append(read.count(severity))
            expected.append(getattr(sample.expected, severity))
        mean = chances @ spans
        assert chances @ expected == pytest.approx(mean, abs=1e-6)
        assert len(set(np.round(expected, 6))) == 27, "what was expected goes by the marks before each word"
        assert 0.1 < mean < 2


def test_a_greedy_answer_says_what_was_expected_along_it(engine: TransformersEngine, plain: tuple[Any, Any]) -> None:
    model, tokenizer = plain
    (part,) = engine.generate([made_request(1)], Sampling(temperature=0.0, top_k=0))
    (sample,) = part.samples
    walk = made_request(1).walk
    assert walk is not None
    assert engine._walker is not None
    with torch.inference_mode():
        tokens, units, _ = engine._walker.question(walk)
    marks = [encoded(tokenizer, mark)[0] for mark in walk.marks]
    sums, before, at = {"-": 0.0, "+": 0.0}, "", 0
    for word, unit in zip(("Der", " Hund", ",", " bellt", "  laut", "."), units, strict=True):
        at += len(word) + 1
        tokens = [*tokens, *unit]
        chances = logits(model, tokens)[-1][marks].softmax(0).tolist()
        for mark in sums:
            sums[mark] += chances["=-+".index(mark)] * (before != mark)
        before = sample.text[at - 1]
        tokens.append(marks["=-+".index(before)])
    assert sample.expected is not None
    assert (sample.expected.minor, sample.expected.major) == pytest.approx((sums["-"], sums["+"]), abs=2e-4)
