"""Tokens as bytes, for both families of tokenizers, and the automaton over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("outlines_core")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engines.transformers import Vocabulary
from tests.helpers.made_tokenizer import byte_level_tokenizer

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
    usual = tuple(tokenizer("der 好", add_special_tokens=False)["input_ids"])
    assert usual in every
    assert len(every) > 2
    assert grammar.forbidden([grammar.start]).shape == (1, width)
    assert grammar.forbidden([grammar.start])[0, len(tokenizer) :].all(), "places beyond the vocabulary"


def test_no_special_token_is_ever_admitted() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|pad|>"]})
    tokenizer.add_tokens(["Straßenbahn"])
    grammar = Vocabulary(tokenizer).grammar(r"[^\n]*", len(tokenizer), "cpu")
    open_to = ~grammar.forbidden([grammar.start])[0]
    for token in ("<|user|>", "<|model|>", "<|pad|>"):
        assert not open_to[tokenizer.convert_tokens_to_ids(token)]
    assert open_to[tokenizer.eos_token_id]
    added = tokenizer.convert_tokens_to_ids("Straßenbahn")
    assert open_to[added]
    assert Vocabulary(tokenizer).text([added]) == "Straßenbahn"


def test_what_cannot_be_held_to_a_grammar_says_so(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0, "</s>": 1}, unk_token="a")), eos_token="</s>"
    )
    with pytest.raises(EngineError, match="neither byte-level nor SentencePiece"):
        Vocabulary(words)
    vocabulary = Vocabulary(byte_level_tokenizer())
    with pytest.raises(EngineError, match="the output grammar does not suit"):
        vocabulary.grammar("(unclosed", 500, "cpu")
