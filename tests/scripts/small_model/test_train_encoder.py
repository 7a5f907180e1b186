"""The training of the small model: labels of tokens, the order of translations, made-up words, and that runs go on."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import train_encoder
from training_rows import Row
from training_set import KINDS_OF_GROUPS, Group, arrays

from tests.generation.engines.test_tagger import made
from tests.helpers.made_tokenizer import byte_level_tokenizer

GOOD = Row("one two", "eins zwei", order=0.0)
BAD = Row("one two", "one two", ((0, 7, 2),), order=-5.0, quality=-3.0)


def rows_of(groups: Mapping[str, Sequence[Group]], tokens: int = 1000) -> train_encoder.Rows:
    every = SimpleNamespace(of=lambda kind: groups.get(kind, []))
    return train_encoder.Rows(arrays(every, byte_level_tokenizer().backend_tokenizer), tokens, "cpu")


def test_tokens_have_the_labels_of_their_places() -> None:
    row = Row("one two", "eins zwo", ((0, 4, 1), (5, 8, 2)), ((0, 3),), ((4, 7),), (4.0, 0.5), edited=((5, 8),))
    rows = rows_of({"mqm": [(1.0, [[row]])]})
    batch = rows.batch([[0]])
    ids, first, second = batch["ids"][0].tolist(), *rows.arrays["layout"][0, [2, 4]].tolist()
    assert (ids[0], ids[first + 1], ids[first + second + 2]) == (0, 2, 2)
    assert set(ids[first + second + 3 :]) <= {1}
    labels, weights, edited = (batch[name][0].tolist() for name in ("labels", "weights", "edited"))
    assert list(dict.fromkeys(labels[1 : first + 1])) == [1, -100, 2], "a blank has no label"
    assert set(weights[1 : first + 1]) == {4.0, 0.0}
    assert {label for label, weight in zip(labels, weights, strict=True) if weight == 0.5} <= {0, 2}
    assert labels[first + 2] == 2
    assert labels[first + second + 1] == -100, "what is unsure has no label"
    assert [edited[0], edited[1], edited[first], edited[first + 2]] == [-1, 0, 1, -1]


def test_a_group_has_one_row_of_each_translation() -> None:
    raters = [[Row("a", f"b{n}", order=float(n)), Row("a", f"b{n}", order=float(n))] for n in range(12)]
    rows = rows_of({"mqm": [(1.0, raters)], "teacher": [(1.0, [[GOOD]])]})
    chance = random.Random(0)
    drawn = [rows.draw(chance) for _ in range(100)]
    assert {len(group) for group in drawn} == {1, 8}
    assert all(len({row // 2 for row in group}) == 8 for group in drawn if len(group) > 1)
    [large] = [group for group in drawn if len(group) == 8][:1]
    assert len(rows.batch([large])["pairs"]) == 28
    batches = rows.batches(chance)
    assert all(next(batches)["ids"].numel() <= 1000 + 8 * 64 for _ in range(20))


def test_kinds_have_their_shares_of_the_rows() -> None:
    rows = rows_of({kind: [(1.0, [[GOOD], [BAD]])] * 3 for kind in KINDS_OF_GROUPS})
    assert rows.chances == pytest.approx(list(train_encoder.SHARES.values()))


def test_an_original_becomes_better_than_what_was_made_of_it_and_the_run_goes_on(tmp_path: Path) -> None:
    base, rows = made(tmp_path / "base", train_encoder.LABELS), rows_of({"spoilt": [(1.0, [[GOOD], [BAD]])]})
    trainer = train_encoder.Trainer(base, 1e-2, "cpu", 0.3)
    for number in range(80):
        trainer.update(rows.batch([[0, 1]]), number / 160, number % 4 == 3)
    order, fill = ([float(loss) for loss in trainer.losses[name]] for name in ("order", "fill"))
    assert np.mean(order[-10:]) < 0.5 < np.mean(order[:10])
    assert len(trainer.losses["replaced"]) == 20
    assert np.mean(fill[-5:]) < np.mean(fill[:5])
    trainer.store(tmp_path / "state.pt", 12.0)
    again = train_encoder.Trainer(base, 1e-2, "cpu", 0.3)
    assert again.restore(tmp_path / "state.pt") == 12.0
    assert again.updates == 80
    assert all(one.equal(other) for one, other in zip(again.parameters, trainer.parameters, strict=True))


def test_the_command_writes_a_model_that_the_engine_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mbr_esd_metric.generation.engine import EngineOptions
    from mbr_esd_metric.generation.engines.tagger import TaggerEngine

    base = made(tmp_path / "base", train_encoder.LABELS)
    every: Any = SimpleNamespace(of=lambda kind: [(1.0, [[GOOD], [BAD]])] if kind == "planted" else [])
    np.savez(tmp_path / "rows.npz", **arrays(every, byte_level_tokenizer().backend_tokenizer))
    command = [*map(str, ("train_encoder.py", base, tmp_path / "rows.npz"))]
    monkeypatch.setattr(sys, "argv", [*command, "--minutes", "0.02", "-o", str(tmp_path / "run")])
    train_encoder.main()
    TaggerEngine(EngineOptions(str(tmp_path / "run" / "model"))).load()
