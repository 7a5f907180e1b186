"""The file of multilingual-e5-small: embeddings row by row, and tokens from the pieces that occur."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("tokenizers")

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation import embedded
from mbr_esd_metric.generation.e5 import WORDS, E5File, Tokenization, tokenizer_of
from tests.helpers.made_e5 import PIECES, write_e5

HARD = "Größe\u200b a\x01 ▁ ﬁne <s> x</s>y <mask>\u00ad喜 😀\t\tend\ufffd ①"


@pytest.fixture(scope="module")
def e5(tmp_path_factory: pytest.TempPathFactory) -> E5File:
    path = tmp_path_factory.mktemp("e5") / "e5.bin"
    write_e5(path)
    return E5File.read(path)


def test_embeddings_are_those_of_the_file(tmp_path: Path) -> None:
    expected = write_e5(tmp_path / "e5.bin")
    e5 = E5File.read(tmp_path / "e5.bin")
    assert e5.pieces == PIECES
    assert np.array_equal(e5.tensor(WORDS).reshape(expected.shape), expected)
    assert np.array_equal(e5.embeddings([5, 3, 5]), expected[[5, 3, 5]])
    (tmp_path / "e5.bin").write_bytes(b"GGUF")
    with pytest.raises(EngineError, match="e5-small"):
        E5File.read(tmp_path / "e5.bin")


@given(
    st.lists(
        st.tuples(*[st.text(st.sampled_from("Größeatchl 喜欢😀▁<s>/mk\t\u200b\u00ad٣ꦀ"), max_size=30)] * 2), min_size=1
    )
)
@example([(HARD, "Die Größe"), ("", " ")])
def test_the_pieces_that_occur_divide_a_text_as_all_of_them_do(e5: E5File, pairs: list[tuple[str, str]]) -> None:
    whole = tokenizer_of(list(zip(e5.pieces, e5.scores, strict=True))).encode_batch(pairs)
    for (numbers, encoding), expected in zip(Tokenization(e5).encoded(pairs), whole, strict=True):
        assert numbers == expected.ids
        for name in ("offsets", "type_ids", "sequence_ids"):
            assert getattr(encoding, name) == getattr(expected, name)


def test_a_pair_has_both_texts_and_their_sides(e5: E5File) -> None:
    [(numbers, encoding)] = Tokenization(e5).encoded([("Größe", "喜\t\ta")])
    assert [PIECES[number] for number in numbers] == ["<s>", "▁Gr", "öße", "</s>", "▁", "喜", "▁a", "</s>"]
    assert encoding.type_ids == [0] * 4 + [1] * 4
    assert encoding.sequence_ids == [None, 0, 0, None, 1, 1, 1, None]


@pytest.mark.model
def test_tokens_and_embeddings_of_the_file_in_the_wheel() -> None:
    _, name = embedded.EMBEDDED
    e5 = E5File.read(embedded.embedded_weights(name) / "e5-small-q4.bin")
    # These are sentencepiece's pieces, of the original tokenizer.
    [(numbers, _)] = Tokenization(e5).encoded([("Der Hund ging nach Hause", "")])
    assert [e5.pieces[number] for number in numbers[1:6]] == ["▁Der", "▁Hund", "▁ging", "▁nach", "▁Hause"]
    assert e5.embeddings(numbers).shape == (len(numbers), 384)
    hard = [(HARD, "我喜欢北京。 ‘Ünïcode’ – ١٢٣ \U00010400"), ("", "x" * 40)]
    whole = tokenizer_of(list(zip(e5.pieces, e5.scores, strict=True))).encode_batch(hard)
    assert [one for one, _ in Tokenization(e5).encoded(hard)] == [one.ids for one in whole]
