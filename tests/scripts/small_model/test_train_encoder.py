"""The training of the small model: labels of tokens, the order of translations, and that runs go on."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import train_encoder
from training_rows import Row
from training_set import Group, arrays

from mbr_esd_metric.generation.engine import EngineOptions
from mbr_esd_metric.generation.engines.tagger import TaggerEngine
from tests.generation.engines.test_tagger import made
from tests.helpers.made_tokenizer import byte_level_tokenizer

GOOD = Row("one two", "eins zwei", order=0.0)
BAD = Row("one two", "one two", ((0, 7, 2),), order=-5.0, quality=-3.0)


def arrays_of(*groups: Group) -> dict[str, Any]:
    every: Any = SimpleNamespace(of=lambda kind: list(groups) if kind == "mqm" else [])
    return arrays(every, byte_level_tokenizer().backend_tokenizer)


def test_tokens_have_the_labels_of_their_places() -> None:
    row = Row("one two", "eins zwo", ((0, 4, 1), (5, 8, 2)), ((0, 3),), ((4, 7),), (4.0, 0.5), edited=((5, 8),))
    rows = train_encoder.Rows(arrays_of((1.0, [[row]])), 1000, "cpu")
    batch = rows.batch([[0]])
    ids, first, second = batch["ids"][0].tolist(), *rows.arrays["layout"][0, [2, 4]].tolist()
    assert (ids[0], ids[first + 1], ids[first + second + 2]) == (0, 2, 2)
    labels, weights, edited = (batch[name][0].tolist() for name in ("labels", "weights", "edited"))
    assert list(dict.fromkeys(labels[1 : first + 1])) == [1, -100, 2], "a blank has no label"
    assert set(weights[1 : first + 1]) == {4.0, 0.0}
    assert (labels[first + 2], labels[first + second + 1]) == (2, -100), "left out, and unsure"
    assert [edited[0], edited[1], edited[first], edited[first + 2]] == [-1, 0, 1, -1]


def test_an_original_becomes_better_than_what_was_made_of_it_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, data = made(tmp_path / "base", train_encoder.LABELS), arrays_of((1.0, [[GOOD], [BAD]]))
    rows, trainer = train_encoder.Rows(data, 1000, "cpu"), train_encoder.Trainer(base, 1e-2, "cpu", 0.3)
    for number in range(80):
        trainer.update(rows.batch([[0, 1]]), number / 160, number % 4 == 3)
    order, fill = ([float(loss) for loss in trainer.losses[name]] for name in ("order", "fill"))
    assert np.mean(order[-10:]) < 0.5 < np.mean(order[:10])
    assert np.mean(fill[-5:]) < np.mean(fill[:5])
    (tmp_path / "run").mkdir()
    trainer.store(tmp_path / "run" / "state.pt", 0.0)
    np.savez(tmp_path / "rows.npz", **data)
    words = ("train_encoder.py", base, tmp_path / "rows.npz", "--minutes", 0.02, "-o", tmp_path / "run")
    monkeypatch.setattr(sys, "argv", [*map(str, words)])
    train_encoder.main()
    TaggerEngine(EngineOptions(str(tmp_path / "run" / "model"))).load()
    again = train_encoder.Trainer(base, 1e-2, "cpu", 0.3)
    again.restore(tmp_path / "run" / "state.pt")
    assert again.updates == 80
    assert all(one.equal(other) for one, other in zip(again.parameters, trainer.parameters, strict=True))
