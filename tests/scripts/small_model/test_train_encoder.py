"""The training of the small model: its rows, labels of tokens, the order of translations, and that runs go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

import train_encoder
import training_rows
from training_rows import Row

from tests.generation.engines.test_tagger import made


def encodings(rows: list[Row]) -> list[train_encoder.Encoded]:
    from tests.helpers.made_tokenizer import byte_level_tokenizer

    tokenizer = byte_level_tokenizer().backend_tokenizer
    pairs = tokenizer.encode_batch([(row.translation, row.source) for row in rows])
    return [train_encoder.encoded(row, pair, 0) for row, pair in zip(rows, pairs, strict=True)]


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
    both = training_rows.joined(first, second)
    assert (both.translation, both.errors) == ("bb dd", ((0, 2, 2), (4, 5, 1)))
    assert both.quality == pytest.approx(-1.9459, abs=1e-4)


def test_translations_of_a_source_have_the_order_of_the_mean_of_their_raters(tmp_path: Path) -> None:
    lines = ["mt_system\tdoc\tseg\trater\tsource\ttarget\tstart_indices\tend_indices\terrors"]
    for rater, ends in (("strict", ("1 2", "2")), ("mild", ("1", "-1"))):
        for system, end in zip("ab", ends, strict=True):
            fine = end == "-1"
            starts, kinds = (
                (end, "no-error") if fine else (" ".join("0" for _ in end.split()), "major " * len(end.split()))
            )
            lines.append("\t".join([system, "doc", "1", rater, "eins", f"one {system}", starts, end, kinds.strip()]))
    path = tmp_path / "2021_de-en.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    mqm, clean = training_rows.read_mqm_rows(str(path), 1.0)
    [[worse, better]] = mqm.sources
    assert [row.order for row in worse] == pytest.approx([-2, -2]), "one standard deviation of each rater"
    assert [row.order for row in better] == pytest.approx([2, 2])
    assert worse[0].quality == pytest.approx(-(2.3979 + 1.7918) / 2, abs=1e-3)
    assert [one.translation for one in clean] == ["one b"]


def test_minimal_pairs_say_where_something_is_lost(tmp_path: Path) -> None:
    pair = {"kind": "negation", "severity": "critical", "src": "nicht da", "good": "is not here", "bad": "is here"}
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(pair | {"wrong": [], "removed": [[3, 7]]}) + "\n", encoding="utf-8")
    [[good, bad]] = training_rows.read_minimal(path)["negation"]
    assert (good.errors, bad.errors, bad.sides) == ((), ((1, 3, 2),), (4.0, 0.0))
    assert (good.order or 0.0) > (bad.order or 0.0)


def test_an_original_becomes_better_than_what_was_made_of_it(tmp_path: Path) -> None:
    import torch

    trainer = train_encoder.Trainer(made(tmp_path, train_encoder.LABELS), 1e-2)
    rows = [Row("one two", "eins zwei", order=0.0), Row("one two", "one two", ((0, 7, 2),), order=-5.0)]
    batch = encodings(rows)
    for number in range(40):
        trainer.update(batch, number / 80)
    assert trainer.losses["order"][0] / 40 < 0.6
    trainer.save(tmp_path / "out", tmp_path)
    state, updates = trainer.state(), trainer.updates
    again = train_encoder.Trainer(tmp_path, 1e-2)
    again.load(state)
    assert again.updates == updates
    assert torch.equal(again.parameters[0], trainer.parameters[0])
    assert (tmp_path / "out" / "tokenizer.json").is_file()
