"""The training of the small model: labels of tokens, the order of translations, and that runs go on."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import train_encoder
import training_set
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
    rows, trainer = train_encoder.Rows(data, 1000, "cpu"), train_encoder.Trainer([base, base], 1e-2, "cpu")
    for number in range(80):
        trainer.update(rows.batch([[0, 1]]), number / 160)
    order = [float(loss) for loss in trainer.losses["order"]]
    assert np.mean(order[-10:]) < 0.5 < order[0]
    (tmp_path / "run").mkdir()
    trainer.store(tmp_path / "run" / "state.pt", 0.0)
    np.savez(tmp_path / "rows.npz", **data)
    words = ("train_encoder.py", base, tmp_path / "rows.npz", "--minutes", 0.02, "-o", tmp_path / "run")
    monkeypatch.setattr(sys, "argv", [*map(str, words)])
    train_encoder.main()
    TaggerEngine(EngineOptions(str(tmp_path / "run" / "model"))).load()
    again = train_encoder.Trainer([base], 1e-2, "cpu")
    again.restore(tmp_path / "run" / "state.pt")
    assert again.updates == 80
    assert all(one.equal(other) for one, other in zip(again.parameters, trainer.parameters, strict=True))


def test_lower_layers_stay_and_long_rows_are_left_out(tmp_path: Path) -> None:
    base = made(tmp_path / "base", train_encoder.LABELS)
    data = arrays_of((1.0, [[GOOD], [BAD]]), (9.0, [[Row("one " * 9, "eins " * 9, order=0.0)]] * 2))
    rows = train_encoder.Rows(data, 1000, "cpu", {"mqm": 1.0}, longest=30)
    assert {tuple(sorted(rows.draw(random.Random(seed)))) for seed in range(9)} == {(0, 1)}
    trainer = train_encoder.Trainer([base], 1e-2, "cpu", frozen=1)
    before = {name: values.clone() for name, values in trainer.model.state_dict().items()}
    trainer.update(rows.batch([[0, 1]]), 0.0)
    changed = {name for name, values in trainer.model.state_dict().items() if not values.equal(before[name])}
    upper = {name for name in before if ".layer." in name and ".layer.0." not in name}
    assert changed == upper | {"classifier.weight", "classifier.bias"}


def test_a_teachers_scores_alone_are_a_training_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = "lp\tsystem\tsegment\tsource\ttarget\tscore\n"
    of = {"one two": ("eins", "zwei", "eins zwei"), "three": ("drei", "eins", "vier"), "six": ("sechs", "so", "vier")}
    for source, texts in of.items():
        table += "".join(f"en-de\t{n}\t0\t{source}\t{text}\t{n}\n" for n, text in enumerate(texts))
    (tmp_path / "teacher.tsv").write_text(table, encoding="utf-8")
    byte_level_tokenizer().save_pretrained(tmp_path)
    words = ("training_set.py", tmp_path, "--teacher", f"{tmp_path / 'teacher.tsv'}=1", "-o", tmp_path / "rows.npz")
    monkeypatch.setattr(sys, "argv", [*map(str, words)])
    training_set.main()
    data = dict(np.load(tmp_path / "rows.npz"))
    rows = train_encoder.Rows(data, 1000, "cpu", {"teacher": 1.0})
    batch = rows.batch([rows.draw(random.Random(0))])
    assert sorted(batch["order"].tolist()) == pytest.approx([-1.837, 0, 1.837], abs=1e-3)
    assert (len(batch["pairs"]), batch["quality"].isnan().all(), batch["weights"].max()) == (3, True, 0)
    rows = train_encoder.Rows(data, 1000, "cpu", {"other": 1.0})
    batch = rows.batch([sorted(rows.draw(random.Random(0)))])
    assert batch["order"].tolist() == [0, -5]
    assert batch["quality"].isnan().tolist() == [True, False]
    text = batch["weights"] > 0
    assert text.sum(1).tolist() == [0, int((batch["ids"][1] > 2).sum())], "both texts of the wrong one"
    assert set(batch["labels"][text].tolist()) == {2}
