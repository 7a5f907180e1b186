"""The tagging engine: exact marginals and log-probabilities, spans that hold together, long pairs, other models."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

from mbr_esd_metric import load_metric
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines import tagger
from mbr_esd_metric.generation.engines.tagger import TagChain, TaggerEngine
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.formats.tags import tagged_texts
from tests.helpers.made_tokenizer import WIDTH, byte_level_tokenizer

FORMAT = get_format("tags")
EXACT = Sampling(temperature=1.0, top_k=0)
GREEDY = Sampling(temperature=0.0, top_k=0)
SOURCE, TRANSLATION = "Take two tablets a day.", "Nehmen Sie drei Tabletten."


def made(folder: Path, labels: tuple[str, ...] = ("ok", "minor", "major", "quality"), **section: Any) -> Path:
    import torch
    from transformers import BertConfig, BertForTokenClassification

    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=WIDTH,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
        initializer_range=0.5,
        id2label=dict(enumerate(labels)),
        mbr_esd_metric=section,
    )
    BertForTokenClassification(config).save_pretrained(folder)
    byte_level_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("tagger"))


@pytest.fixture(scope="module")
def engine(folder: Path) -> TaggerEngine:
    return TaggerEngine(EngineOptions(model=str(folder), device="cpu", dtype="float32"))


def request(source: str = SOURCE, translation: str = TRANSLATION, n: int = 16, first: int = 0) -> Request:
    return Request(f"{source} {translation}", "", "", n, first, source=source, translation=translation)


def sampled(engine: TaggerEngine, one: Request, sampling: Sampling = EXACT) -> tuple[Candidate, ...]:
    (generated,) = engine.generate([one], sampling)
    return generated.samples


def transitions(chances: Any, persistence: float = 0.9) -> Any:
    return TagChain([chances], persistence).transitions


def test_the_chain_has_the_marginals_that_it_is_made_of_and_neighbours_agree_more_often() -> None:
    chances = np.array([[0.9, 0.05, 0.05], [0.2, 0.3, 0.5], [0.6, 0.1, 0.3], [1 - 2e-6, 1e-6, 1e-6]])
    marginal, steps = chances[0], transitions(chances)
    for number in range(1, len(chances)):
        marginal = marginal @ steps[number]
        assert marginal == pytest.approx(chances[number], abs=1e-9)
    assert np.allclose(steps.sum(2), 1)
    for persistence, agreement in ((0.0, 0.3), (0.9, 0.93)):
        assert transitions(np.tile([0.6, 0.1, 0.3], (20, 1)), persistence)[5, 2, 2] == pytest.approx(agreement)


def test_the_likeliest_path_is_the_likeliest_of_both_texts() -> None:
    rng = np.random.default_rng(0)
    sides = [rng.dirichlet([1, 1, 1], 3), rng.dirichlet([1, 1, 1], 2)]
    chain, paths = TagChain(sides, 0.9), np.array(list(itertools.product(range(3), repeat=5)))
    sums = chain.logprobs(paths).sum(1)
    assert np.exp(sums).sum() == pytest.approx(1)
    assert chain.likeliest().tolist() == paths[sums.argmax()].tolist()
    alone = TagChain(sides[1:], 0.9)
    assert chain.logprobs(paths)[:, 3:] == pytest.approx(alone.logprobs(paths[:, 3:])), "the source begins anew"


def test_other_temperatures_change_what_is_sampled_and_no_log_probability() -> None:
    chain = TagChain([np.tile([0.8, 0.1, 0.1], (50, 1))], 0.0)
    shares = [(chain.sampled([str(i) for i in range(100)], temperature) > 0).mean() for temperature in (0.5, 1.0, 3.0)]
    assert shares == pytest.approx([2 / 66, 0.2, 1 / 2], abs=0.02)


def test_samples_have_the_probabilities_that_they_say(engine: TaggerEngine) -> None:
    samples = sampled(engine, request("ab", "cd", 4000))
    counts = Counter(one.text for one in samples)
    logprobs = {one.text: one.logprob for one in samples}
    assert sum(math.exp(value) for value in logprobs.values() if value is not None) == pytest.approx(1, abs=0.01)
    for text, count in counts.items():
        assert count / 4000 == pytest.approx(math.exp(logprobs[text] or 0.0), abs=0.03)


def test_a_sample_depends_on_seed_request_and_index_alone(engine: TaggerEngine) -> None:
    every = sampled(engine, request())
    assert sampled(engine, request(n=3, first=5)) == every[5:8]
    other = Sampling(temperature=1.0, top_k=0, seed=1)
    assert sampled(engine, request(), other) != every


@pytest.mark.parametrize("texts", [(SOURCE, TRANSLATION), ("😀 👩‍🚀!", "我喜欢北京。"), ("我喜欢北京。", "a\tb\n c")])
def test_answers_are_read_back_with_both_sides_and_a_score(engine: TaggerEngine, texts: tuple[str, str]) -> None:
    source, translation = texts
    parser = FORMAT.parser(translation, source=source)
    for one in sampled(engine, request(source, translation)):
        assert re.fullmatch(FORMAT.grammar(translation, source=source), one.text or "")
        parsed = parser.parse(one.text)
        answer, _ = FORMAT.answer(parsed.annotation, translation, source)
        assert answer.rpartition("\n")[0] == (one.text or "").rpartition("\n")[0]
        assert -25 <= parsed.self_reported_score <= 0


def test_greedy_is_one_candidate_at_least_as_likely_as_any_sample(engine: TaggerEngine) -> None:
    greedy = sampled(engine, request(n=2), GREEDY)
    assert greedy[0] == greedy[1]
    (known,) = sampled(engine, replace(request(n=1), token_logprobs=True), GREEDY)
    assert known.token_logprobs is not None
    assert sum(known.token_logprobs.logprobs) == pytest.approx(known.logprob)
    assert all((one.logprob or 0) <= (greedy[0].logprob or 0) + 1e-9 for one in sampled(engine, request()))


def test_the_score_is_mixed_as_the_configuration_says_and_others_are_refused(tmp_path: Path) -> None:
    options = EngineOptions(model=str(made(tmp_path, score={"intercept": -math.log(3)})), device="cpu")
    (one,) = sampled(TaggerEngine(options), request(n=1))
    assert (one.text or "").endswith("\nScore: -2.0000")
    options = EngineOptions(model=str(made(tmp_path, score={"length": -1.0})), device="cpu")
    length = len(byte_level_tokenizer()(SOURCE, add_special_tokens=False).input_ids)
    for times in (1, 40):  # the second is read in several windows
        (one,) = sampled(TaggerEngine(options), request(SOURCE * times, TRANSLATION * times, n=1))
        score = float((one.text or "").rpartition(" ")[2])
        assert score == pytest.approx(-min(25.0, length * times), rel=0.02)
    for points in (-2.0, 1.0):  # near 0 the penalty is smooth: never 0, and in the order of the model's
        weights = {"intercept": -math.log(3), "points": points, "points_by_length": 0.5}
        (one,) = sampled(
            TaggerEngine(EngineOptions(model=str(made(tmp_path, score=weights)), device="cpu")), request(n=1)
        )
        penalty = 2.0 + points + 0.5 * math.log1p(length)
        score = float((one.text or "").rpartition(" ")[2])
        assert score == pytest.approx(-0.5 * math.log1p(math.exp(penalty / 0.5)), abs=1e-4)
    with pytest.raises(EngineError, match="'luck'"):
        TaggerEngine(EngineOptions(model=str(made(tmp_path, score={"luck": 1})))).load()
    with pytest.raises(EngineError, match="no label 'ok' but O, B-PER"):
        TaggerEngine(EngineOptions(model=str(made(tmp_path, ("O", "B-PER"))))).load()


def test_odds_of_errors_change_the_marks_and_no_score(tmp_path: Path) -> None:
    few, many = (
        sampled(TaggerEngine(EngineOptions(model=str(made(tmp_path, odds=odds)), device="cpu")), request())
        for odds in (0.01, 100.0)
    )
    marks = [sum((one.text or "").count(tag) for one in samples for tag in "-+") for samples in (few, many)]
    assert marks[0] < marks[1]
    assert len({(one.text or "").rpartition("\n")[2] for one in (*few, *many)}) == 1


def test_it_is_a_model_as_any_other(folder: Path) -> None:
    settings = ("class_identifier: mbr_esd_metric", "engine: tagger", "format: tags", "n: 4", "top_k: 0")
    hparams = "\n".join([*settings, "temperature: 1.0", "score: given"])
    (folder / "hparams.yaml").write_text(hparams, encoding="utf-8")
    metric = load_metric(str(folder))
    result = metric.predict([{"src": SOURCE, "mt": TRANSLATION}], progress_bar=False)
    assert 0 <= result.scores[0] <= 1
    again = load_metric(f"{folder}?rule=greedy")
    one = again.predict([{"src": SOURCE, "mt": TRANSLATION}], progress_bar=False)
    assert one.scores == pytest.approx(result.scores)
    with pytest.raises(OptionError, match="format=tags"):
        load_metric(f"{folder}?format=json").predict([{"src": SOURCE, "mt": TRANSLATION}], progress_bar=False)


PAIRS = [("ab", "cd"), (SOURCE, TRANSLATION), (f"{SOURCE} " * 12, f"{TRANSLATION} " * 12), ("我喜欢", "tea 😀")]


def test_a_batch_gives_what_one_by_one_gives(engine: TaggerEngine) -> None:
    requests = [request(source, translation, 4) for source, translation in PAIRS * 5]
    parts = list(engine.generate(iter(requests), EXACT))
    assert [one.key for one in parts] == [one.key for one in requests]
    for one, generated in zip(requests, parts, strict=True):
        assert generated.samples[0].tokens == len(tagged_texts(one.translation, one.source))
        samples = sampled(engine, one)
        assert [candidate.text for candidate in generated.samples] == [candidate.text for candidate in samples]
        for left, right in zip(generated.samples, samples, strict=True):
            assert left.logprob == pytest.approx(right.logprob, abs=1e-3)


def test_a_long_pair_is_read_in_windows(engine: TaggerEngine) -> None:
    engine.load()
    assert engine.encoder is not None
    long = request(*PAIRS[2])
    windows = tagger.windows_of(engine.encoder, [long])
    assert len(windows) > 1
    assert max(len(one.tokens) for one in windows) <= engine.encoder.longest
    parts = sorted((one.part for one in windows), key=lambda part: part.start)
    assert "".join(long.translation[part.start : part.end] for part in parts) == long.translation


def test_more_requests_than_a_batch_come_in_order_and_lazily(
    engine: TaggerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tagger, "REQUESTS", 2)
    taken = []

    def requests() -> Iterator[Request]:
        for number in range(5):
            taken.append(number)
            yield request(SOURCE * (1 + number % 2), f"{TRANSLATION} {number}", 1)

    parts = engine.generate(requests(), GREEDY)
    first = next(parts)
    assert taken == [0, 1]
    assert [first.key, *(one.key for one in parts)] == [one.key for one in requests()]
