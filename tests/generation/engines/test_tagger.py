"""The tagging engine: exact marginals and log-probabilities, spans that hold together, long pairs, other models."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

from mbr_esd_metric import load_metric
from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import EngineError, OptionError
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines.tagger import TaggerEngine, _Chain, _transitions
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
    walk = FORMAT.walk(load_prompt("v1", FORMAT.templates), source, translation)
    return Request(f"{source} {translation}", "", "", n, first, source=source, translation=translation, walk=walk)


def sampled(engine: TaggerEngine, one: Request, sampling: Sampling = EXACT) -> tuple[Candidate, ...]:
    (generated,) = engine.generate([one], sampling)
    return generated.samples


def test_the_chain_has_the_given_marginals() -> None:
    chances = np.array([[0.9, 0.05, 0.05], [0.2, 0.3, 0.5], [0.6, 0.1, 0.3], [1 - 2e-6, 1e-6, 1e-6]])
    marginal, steps = chances[0], _transitions(chances, 0.9)
    for number in range(1, len(chances)):
        marginal = marginal @ steps[number]
        assert marginal == pytest.approx(chances[number], abs=1e-9)
    assert np.allclose(steps.sum(2), 1)


def test_neighbours_agree_more_often_than_independent_ones() -> None:
    chances = np.tile([0.6, 0.1, 0.3], (20, 1))
    apart, together = _transitions(chances, 0.0), _transitions(chances, 0.9)
    assert apart[5, 2, 2] == pytest.approx(0.3)
    assert together[5, 2, 2] == pytest.approx(0.93)


def test_the_likeliest_path_is_the_likeliest() -> None:
    import itertools

    rng = np.random.default_rng(0)
    chances = rng.dirichlet([1, 1, 1], 5)
    chain = _Chain(chances, 0.9, GREEDY)
    best = max(itertools.product(range(3), repeat=5), key=lambda path: sum(chain.logprobs(path)))
    assert tuple(chain.likeliest()) == best
    assert sum(math.exp(sum(chain.logprobs(path))) for path in itertools.product(range(3), repeat=5)) == pytest.approx(
        1
    )


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


def test_answers_are_read_back_with_both_sides_and_a_score(engine: TaggerEngine) -> None:
    parser = FORMAT.parser(TRANSLATION, source=SOURCE)
    import re

    for one in sampled(engine, request()):
        assert re.fullmatch(FORMAT.grammar(TRANSLATION, source=SOURCE), one.text or "")
        parsed = parser.parse(one.text)
        annotation = parsed.annotation
        assert FORMAT.answer(annotation, TRANSLATION, SOURCE)[0] == (one.text or "").rpartition("\n")[0]  # type: ignore[arg-type]
        score = parsed.stated
        assert score is not None
        assert -25 <= score <= 0


def test_greedy_is_one_candidate_at_least_as_likely_as_any_sample(engine: TaggerEngine) -> None:
    greedy = sampled(engine, request(n=2), GREEDY)
    assert greedy[0] == greedy[1]
    (known,) = sampled(engine, replace(request(n=1), token_logprobs=True), GREEDY)
    assert known.token_logprobs is not None
    assert sum(known.token_logprobs.logprobs) == pytest.approx(known.logprob)
    assert all((one.logprob or 0) <= (greedy[0].logprob or 0) + 1e-9 for one in sampled(engine, request()))


def test_a_long_pair_is_read_in_parts(engine: TaggerEngine) -> None:
    source, translation = " ".join([SOURCE] * 12), " ".join([TRANSLATION] * 12)
    (one,) = sampled(engine, request(source, translation, 1), GREEDY)
    assert one.tokens == len(request(source, translation).walk.pieces)  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["😀 👩‍🚀!", "我喜欢北京。", "a\tb\n c"])
def test_every_script_is_read(engine: TaggerEngine, text: str) -> None:
    (one,) = sampled(engine, request(text, text, 1))
    assert FORMAT.parser(text, source=text).parse(one.text) is not None


def test_the_score_is_mixed_as_the_configuration_says(tmp_path: Path) -> None:
    options = EngineOptions(model=str(made(tmp_path, score={"intercept": -math.log(3)})), device="cpu")
    (one,) = sampled(TaggerEngine(options), request(n=1))
    assert (one.text or "").endswith("\nScore: -2.0000")
    with pytest.raises(EngineError, match="'luck'"):
        TaggerEngine(EngineOptions(model=str(made(tmp_path, score={"luck": 1}))))


def test_odds_make_errors_likelier(tmp_path: Path) -> None:
    def logprob(**section: float) -> float:
        engine = TaggerEngine(EngineOptions(model=str(made(tmp_path, **section)), device="cpu"))
        (one,) = sampled(engine, request(n=1), GREEDY)
        assert set(one.text or "") >= {"=" if section.get("odds", 1) < 1 else "+"}
        return one.logprob or 0.0

    assert logprob(odds=1e-4) > logprob(odds=1.0) < logprob(odds=1e4)


def test_other_labels_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no label 'ok' but O, B-PER"):
        TaggerEngine(EngineOptions(model=str(made(tmp_path, ("O", "B-PER")))))


def test_it_is_a_model_as_any_other(folder: Path, tmp_path: Path) -> None:
    settings = {"engine": "tagger", "format": "tags", "n": "4", "top_k": "0", "temperature": "1.0", "score": "given"}
    lines = [f"{name}: {value}" for name, value in {"class_identifier": "mbr_esd_metric", **settings}.items()]
    hparams = "\n".join(lines)
    (folder / "hparams.yaml").write_text(hparams, encoding="utf-8")
    metric = load_metric(f"{folder}?store={tmp_path / 'store.sqlite'}")
    result = metric.predict([{"src": SOURCE, "mt": TRANSLATION}], progress_bar=False)
    assert 0 <= result.scores[0] <= 1
    again = load_metric(f"{folder}?rule=greedy&store={tmp_path / 'store.sqlite'}")
    one = again.predict([{"src": SOURCE, "mt": TRANSLATION}], progress_bar=False)
    assert one.scores == pytest.approx(result.scores)
    with pytest.raises(OptionError, match="format=tags"):
        load_metric(f"{folder}?format=json").predict([{"src": SOURCE, "mt": TRANSLATION}], progress_bar=False)
    assert json.loads((folder / "config.json").read_text())["mbr_esd_metric"] == {}


def test_embeddings_of_an_embedded_model_and_weights_of_eight_bits(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    from mbr_esd_metric.generation.engines import tagger

    base, ours = tmp_path / "base", tmp_path / "ours"
    for place in (base, ours):
        place.mkdir()
    state = load_file(folder / "model.safetensors")
    words = "bert.embeddings.word_embeddings.weight"
    save_file({words: state.pop(words)}, base / "model.safetensors")
    for path in folder.glob("tokenizer*"):
        shutil.copy(path, base)
    for name in [name for name, values in state.items() if values.dim() == 2 and "layer" in name]:
        scale = state[name].abs().amax(1) / 127
        state[f"{name}.scale"], state[name] = scale, (state[name] / scale[:, None]).round().to(torch.int8)
    save_file(state, ours / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["mbr_esd_metric"] = {"embeddings": "other/base"}
    (ours / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineError, match="'other/base', which is not one of ours"):
        TaggerEngine(EngineOptions(model=str(ours), device="cpu"))
    monkeypatch.setattr(tagger, "EMBEDDED", {"other/base": None})
    monkeypatch.setattr(tagger, "embedded_weights", lambda name: base)
    whole, packed = (
        TaggerEngine(EngineOptions(model=str(one), device="cpu", dtype="float32")) for one in (folder, ours)
    )
    for mine, its in zip(packed._read(request())[0], whole._read(request())[0], strict=True):
        assert mine == pytest.approx(its, abs=0.05)
