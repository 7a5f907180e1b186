"""The training loop of the small model: labels of tokens, pairs that stay together, and that runs go on."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers")

import train_encoder
from train_encoder import Row

from tests.generation.engines.test_tagger import made


def encodings(rows: list[Row]) -> list[train_encoder.Encoded]:
    from tests.helpers.made_tokenizer import byte_level_tokenizer

    tokenizer = byte_level_tokenizer().backend_tokenizer
    pairs = tokenizer.encode_batch([(row.translation, row.source) for row in rows])
    return [train_encoder.encoded(row, pair) for row, pair in zip(rows, pairs, strict=True)]


def test_tokens_have_the_labels_of_their_places() -> None:
    row = Row("one two", "eins zwo", ((5, 8, 2),), missing=((0, 3),), unsure=((4, 7),), sides=(4.0, 0.5))
    [one] = encodings([row])
    both = list(zip(one.types, one.labels, one.weights, strict=True))
    translation = [label for label, weight in zip(one.labels, one.weights, strict=True) if weight == 4.0]
    assert set(translation) == {0, 2}
    assert {label for _, label, weight in both if weight == 0.5} == {2}, "what is unsure has no label"
    assert train_encoder._IGNORED in one.labels


def test_joined_rows_have_the_errors_of_both() -> None:
    first, second = Row("a", "bb", ((0, 2, 2),)), Row("c", "dd", ((1, 2, 1),))
    both = train_encoder.joined(first, second)
    assert (both.translation, both.errors) == ("bb dd", ((0, 2, 2), (4, 5, 1)))
    assert both.quality == pytest.approx(-1.9459, abs=1e-4)


def test_an_original_becomes_better_than_what_was_made_of_it(tmp_path: Path) -> None:
    import torch

    trainer = train_encoder.Trainer(made(tmp_path, train_encoder.LABELS), 1e-2, 1.0)
    rows = [Row("one two", "eins zwei"), Row("one two", "one two", ((0, 7, 2),), margin=1.0)]
    batch = encodings(rows)
    for number in range(40):
        trainer.update(batch, number / 80)
    assert trainer.losses["margin"][0] / 40 < 0.7
    trainer.save(tmp_path / "out", tmp_path)
    state, updates = trainer.state(), trainer.updates
    again = train_encoder.Trainer(tmp_path, 1e-2, 1.0)
    again.load(state)
    assert again.updates == updates
    assert torch.equal(again.parameters[0], trainer.parameters[0])
    assert (tmp_path / "out" / "tokenizer.json").is_file()
