"""The engine in process: exact log-probabilities, samples that depend on nothing but seed, request and index; and
the automaton over the bytes of tokens, for both families of tokenizers."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import regex
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation import pretrained
from mbr_esd_metric.generation.engine import EngineOptions, Request, Sampling
from mbr_esd_metric.generation.engines.transformers import TransformersEngine, Vocabulary, _choose, _uniform
from mbr_esd_metric.generation.pretrained import merged_folder, prompt_tokens
from mbr_esd_metric.prompting.formats.json import output_grammar
from tests.helpers.chat_requests import collect
from tests.helpers.made_tokenizer import byte_level_tokenizer

PLAIN = output_grammar("[a-z ]+")
ANY = output_grammar()
LONG = "Mark the errors in the translation below. " * 12
SHORT_ANSWERS = Sampling(max_tokens=60, seed=3)


def sample(engine: TransformersEngine, requests: Iterable[Request], sampling: Sampling) -> dict[str, list[Candidate]]:
    samples: dict[str, list[Candidate]] = {}
    for (key, _), one in sorted(collect(engine.generate(requests, sampling)).items(), key=lambda item: item[0]):
        samples.setdefault(key, []).append(one)
    return samples


@pytest.fixture(scope="module")
def engine(tiny: Path) -> TransformersEngine:
    return loaded(model=str(tiny))


def loaded(**options: Any) -> TransformersEngine:
    one = TransformersEngine(EngineOptions(device="cpu", **options))
    one.load()
    return one


def recorded(engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The tokens of every text that the engine makes from now on, in order."""
    tokens: list[list[int]] = []
    spell = engine._vocabulary.text
    monkeypatch.setattr(engine._vocabulary, "text", lambda ids: tokens.append(list(ids)) or spell(ids))
    return tokens


class Reference:
    """A model in a full forward pass, with the tokens that the grammar `PLAIN` admits found by brute force."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.end = self.tokenizer.eos_token_id
        self._model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").float().eval()
        texts = dict(enumerate(self.tokenizer.batch_decode([[token] for token in range(len(self.tokenizer))])))
        special = set(self.tokenizer.all_special_ids)
        #: The tokens that stand for ASCII text.
        self.spelled = {token: text for token, text in texts.items() if text.isascii() and token not in special}

    def scored(self, prompt: str, generated: list[int]) -> tuple[list[float], str, list[int]]:
        """The log-probability of each token among the admissible ones, the text, and the likeliest tokens."""
        before = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            logits = self._model(torch.tensor([before + generated])).logits[0, len(before) - 1 : -1].double()
        pattern, text = regex.compile(PLAIN), ""
        each, likeliest = [], []
        for row, token in zip(logits, generated, strict=True):
            allowed = [token for token, more in self.spelled.items() if pattern.fullmatch(text + more, partial=True)]
            allowed += [self.end] * bool(pattern.fullmatch(text))
            assert token in allowed
            each.append(float(row[token] - row[allowed].logsumexp(0)))
            likeliest.append(allowed[int(row[allowed].argmax())])
            text += "" if token == self.end else self.tokenizer.decode([token])
        return each, text, likeliest


ARCHITECTURES = {
    "llama": {},
    "qwen2": {},
    "phi3": {},
    "mistral": {"sliding_window": 32},
    "gemma2": {"sliding_window": 24, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 12},
}


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_logprob_is_the_sum_over_admissible_tokens_of_a_full_forward_pass(
    kind: str, make_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_model(kind, **ARCHITECTURES[kind])
    engine = loaded(model=str(folder))
    tokens = recorded(engine, monkeypatch)
    # Two prompts with a common beginning, so that the second one finds blocks of the first.
    requests = [Request(name, LONG + name, PLAIN, 3, token_logprobs=True) for name in ("one", "two")]
    samples = sample(engine, requests, SHORT_ANSWERS)

    reference = Reference(folder)
    for name, group in (("one", tokens[0:3]), ("two", tokens[16:19])):
        for generated, one in zip(group, samples[name], strict=True):
            each, text, _ = reference.scored(f"<|user|>{LONG}{name}<|end|><|model|>", generated)
            assert (one.text, one.tokens) == (text, len(generated))
            assert one.truncated == (generated[-1] != reference.end)
            assert one.logprob == pytest.approx(sum(each), abs=2e-3)
            assert one.token_logprobs is not None
            assert one.token_logprobs.logprobs == pytest.approx(each, abs=2e-3)
            assert one.token_logprobs.sizes == tuple(len(reference.spelled.get(token, "")) for token in generated)


def test_a_sample_depends_on_nothing_but_seed_request_and_index(tiny: Path, engine: TransformersEngine) -> None:
    def request(key: str, n: int, first: int = 0) -> Request:
        return Request(key, LONG + key, ANY, n, first)

    whole = sample(engine, [request("a", 70), request("b", 20)], SHORT_ANSWERS)
    fresh = TransformersEngine(EngineOptions(model=str(tiny), device="cpu"))
    assert sample(fresh, [request("b", 3, 9)], SHORT_ANSWERS)["b"] == whole["b"][9:12]
    assert sample(fresh, [request("a", 54, 16)], SHORT_ANSWERS)["a"] == whole["a"][16:]
    both = sample(fresh, [request("b", 16), request("a", 16)], SHORT_ANSWERS)
    assert both == {key: samples[:16] for key, samples in whole.items()}
    assert sample(fresh, [request("a", 16)], Sampling(max_tokens=60, seed=4))["a"] != whole["a"][:16]
    assert len({one.text for one in whole["a"]}) > 60


def test_greedy_takes_the_likeliest_admissible_token(
    tiny: Path, engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = recorded(engine, monkeypatch)
    sampling = Sampling(temperature=0, max_tokens=40)
    (only,) = sample(engine, [Request("k", "hello", PLAIN, 1)], sampling)["k"]
    assert len(tokens) == 1
    _, _, likeliest = Reference(tiny).scored("<|user|>hello<|end|><|model|>", tokens[0])
    assert tokens[0] == likeliest
    one = sample(engine, [Request("k", "hello", PLAIN, 1)], Sampling(top_k=1, max_tokens=40))["k"][0]
    assert one.text == only.text


def test_temperature_then_top_k() -> None:
    scores, draws = [0.0, 2.0, float("-inf"), 4.0, 1.0], 20_000
    hot = torch.tensor(scores).div(2).exp()
    for k, kept in ((0, hot), (2, hot * torch.tensor([0, 1, 0, 1, 0]))):
        uniform = [(i + 0.5) / draws for i in range(draws)]
        chosen = _choose(torch.tensor([scores]).expand(draws, -1), uniform, Sampling(top_k=k))
        assert (torch.bincount(chosen, minlength=5) / draws).tolist() == pytest.approx(kept / kept.sum(), abs=1e-4)
    single = torch.full((3, 50), float("-inf"))  # fewer admissible tokens than places
    single[:, 7] = 1.0
    assert _choose(single, [0.0, 0.5, 1 - 2**-53], Sampling(top_k=10)).tolist() == [7, 7, 7]


def test_random_numbers_are_fixed() -> None:
    assert _uniform(0, "key", 0, 0) == 0.49022673328896493


def test_a_prompt_that_does_not_fit_is_an_error_with_numbers(engine: TransformersEngine) -> None:
    request = Request("k", "word " * 400, ANY, 1, label="segment 12 of mt.txt")
    with pytest.raises(EngineError, match=r"segment 12 of mt.txt: its prompt has \d+ tokens.*context of 512 tokens"):
        sample(engine, [request], SHORT_ANSWERS)


def without(folder: Path, target: Path, **changes: Any) -> Path:
    """A copy of a model folder with other entries in its tokenizer_config.json (None: left out)."""
    shutil.copytree(folder, target)
    (target / "chat_template.jinja").unlink(missing_ok=True)
    path = target / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}), encoding="utf-8")
    return target


def test_models_that_cannot_be_used_say_why(tiny: Path, tmp_path: Path, make_model: Callable[..., Path]) -> None:
    damaged = without(tiny, tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"no weights")
    for folder, message in {
        without(tiny, tmp_path / "a", chat_template=None): "no chat template",
        without(tiny, tmp_path / "b", eos_token=None, chat_template="{{ messages }}"): "no end token",
        tmp_path / "nowhere": "is neither a folder nor a hub id",
        tmp_path: "config.json",
        damaged: "cannot load",
        make_model("mamba"): "uses a key-value cache that engine=transformers does not support",
    }.items():
        with pytest.raises(EngineError, match=message) as error:
            loaded(model=str(folder))
        assert "huggingface.co" not in str(error.value)


def test_a_template_that_asks_for_the_date_gets_a_fixed_one(tiny: Path, tmp_path: Path) -> None:
    template = "{{ date_string if date_string is defined else strftime_now('%d') }} {{ messages[0]['content'] }}"
    folder = without(tiny, tmp_path / "dated", chat_template=template)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.decode(prompt_tokens(tokenizer, Request("k", "x", ANY, 1))) == "26 Jul 2024 x"


def test_problem_is_none_or_the_fix(tiny: Path) -> None:
    assert TransformersEngine(EngineOptions(model=str(tiny))).problem is None
    assert TransformersEngine(EngineOptions(model="org/huge", weights_gb=0.1)).problem is None
    problem = TransformersEngine(EngineOptions(model="org/huge", weights_gb=1e6)).problem or ""
    assert re.search("needs 1000000 GB .*engine=server", problem)


def test_bfloat16_is_left_where_the_processor_lacks_it_and_memory_suffices(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.bfloat16)
    for dtype, fast, memory in (("bfloat16", False, 10**12), ("auto", True, 10**12), ("auto", False, 10**4)):
        monkeypatch.setattr(pretrained, "bf16_works", lambda device, fast=fast: fast)
        monkeypatch.setattr(pretrained, "memory", lambda memory=memory: memory)
        assert pretrained.in_fast_type(model, EngineOptions("m", dtype=dtype)).dtype == torch.bfloat16
    monkeypatch.setattr(pretrained, "memory", lambda: 10**12)
    assert pretrained.in_fast_type(model, EngineOptions("m")).dtype == torch.float32


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tiny: Path) -> None:
    monkeypatch.setattr(TransformersEngine, "packages", ("no_such_package",))
    with pytest.raises(EngineError, match=r"engine=transformers .*no_such_package.*\[transformers\]"):
        loaded(model=str(tiny))


def test_running_out_of_memory_names_the_segment(engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(engine._cache, "step", full)
    with pytest.raises(EngineError, match=r"out of memory while processing segment 3.*dtype=bfloat16"):
        sample(engine, [Request("k", "x", ANY, 1, label="segment 3")], SHORT_ANSWERS)


def test_identity_follows_the_content_not_the_place(tiny: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))
    moved = tmp_path / "moved"
    shutil.copytree(tiny, moved)

    def identity(**options: Any) -> dict[str, str]:
        return dict(TransformersEngine(EngineOptions(**{"model": str(moved), **options})).identity)

    before = dict(TransformersEngine(EngineOptions(model=str(tiny))).identity)
    assert identity() == before == identity(device="cpu", concurrency=7, weights_gb=1.0)
    for change in ({"dtype": "float32"}, {"revision": "v2"}, {"adapter": str(tiny)}):
        assert identity(**change) != before
    with pytest.raises(EngineError, match="adapter="):
        identity(adapter=str(tmp_path / "none"))
    weights = moved / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert identity() != before
    assert len(list((tmp_path / "cache" / "digests").iterdir())) == 2


def test_an_adapter_is_merged_on_load(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peft = pytest.importorskip("peft")
    torch.manual_seed(5)
    adapted = peft.get_peft_model(
        AutoModelForCausalLM.from_pretrained(tiny), peft.LoraConfig(r=2, target_modules=["q_proj", "down_proj"])
    )
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    adapted.save_pretrained(tmp_path / "adapter")
    adapted.merge_and_unload().save_pretrained(tmp_path / "merged")
    AutoTokenizer.from_pretrained(tiny).save_pretrained(tmp_path / "merged")

    def first(**options: Any) -> Candidate:
        engine = TransformersEngine(EngineOptions(device="cpu", **options))
        return sample(engine, [Request("k", "hello", ANY, 1)], SHORT_ANSWERS)["k"][0]

    merged = first(model=str(tmp_path / "merged"))
    loaded = first(model=str(tiny), adapter=str(tmp_path / "adapter"))
    assert loaded.text == merged.text
    assert loaded.logprob == pytest.approx(merged.logprob, abs=1e-3)
    assert first(model=str(tiny)).text != merged.text

    monkeypatch.setenv("MBR_ESD_CACHE", str(tmp_path / "cache"))
    folder = merged_folder(EngineOptions(model=str(tiny), adapter=str(tmp_path / "adapter"), device="cpu"))
    assert first(model=str(folder)) == loaded


TEXT = 'die "Größe" der Straße, 又好又快 😀 x  y'


def sentencepiece_tokenizer() -> Any:
    """A tokenizer as SentencePiece models have it in tokenizer.json: a marker for spaces, bytes for the rest."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁derSta,xyi", "de", "der", "▁der"]
    merges = [("d", "e"), ("de", "r"), ("▁", "der")]
    tokenizer = Tokenizer(
        models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>")


@pytest.mark.parametrize("make", [byte_level_tokenizer, sentencepiece_tokenizer])
def test_the_automaton_admits_every_spelling_byte_by_byte_and_nothing_else(make: Callable[[], Any]) -> None:
    tokenizer = make()
    vocabulary = Vocabulary(tokenizer)
    tokens = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    assert vocabulary.text([*tokens, tokenizer.eos_token_id]) == TEXT
    emoji = tokenizer("😀", add_special_tokens=False)["input_ids"]
    assert vocabulary.text(emoji[:-1]) == "", "half a character is left out"
    width = len(tokenizer) + 3
    grammar = vocabulary.grammar("(der|die) 好", width, "cpu")

    def spellings(state: int, tokens: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
        for token in (~grammar.forbidden([state])[0]).nonzero()[:, 0].tolist():
            if token == grammar.eos:
                yield tokens
            else:
                yield from spellings(grammar.after(state, token), (*tokens, token))

    every = set(spellings(grammar.start))
    assert {vocabulary.text(tokens) for tokens in every} == {"der 好", "die 好"}
    assert tuple(tokenizer("der 好", add_special_tokens=False)["input_ids"]) in every
    assert len(every) > 2
    assert grammar.forbidden([grammar.start])[0, len(tokenizer) :].all(), "places beyond the vocabulary"


def test_no_special_token_is_ever_admitted() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|pad|>"]})
    tokenizer.add_tokens(["Straßenbahn"])
    grammar = Vocabulary(tokenizer).grammar(r"[^\n]*", len(tokenizer), "cpu")
    tokens = tokenizer.convert_tokens_to_ids(["<|user|>", "<|model|>", "<|pad|>", tokenizer.eos_token, "Straßenbahn"])
    assert grammar.forbidden([grammar.start])[0, tokens].tolist() == [True, True, True, False, False]
    assert Vocabulary(tokenizer).text(tokens) == "Straßenbahn"


def test_what_cannot_be_held_to_a_grammar_says_so(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "</s>": 1}, unk_token="a")), eos_token="</s>"
    )
    with pytest.raises(EngineError, match="neither byte-level nor SentencePiece"):
        Vocabulary(words)
    vocabulary = Vocabulary(byte_level_tokenizer())
    with pytest.raises(EngineError, match="the output grammar is not compatible with"):
        vocabulary.grammar("(unclosed", 500, "cpu")
