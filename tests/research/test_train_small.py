"""The training loop of the small model: what it draws, which marks count, and that a killed run goes on."""

from __future__ import annotations

import json
import random
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path

import pytest
import train_small
from clean_pairs import read_pairs
from spoilt import KINDS

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.distill.supervision import HumanAnnotation
from mbr_esd_metric.elicit.formats.marked import words_of
from tests.helpers.made_tokenizer import WIDTH, byte_level_tokenizer

WORDS = {
    "en": "the red house stands near an old river while seven dogs often run along its green banks today",
    "de": "das rote Haus steht an einem alten Fluss wobei sieben Hunde oft entlang der grünen Ufer laufen",
    "ru": "красный дом стоит у старой реки пока семь собак часто бегают вдоль её зелёных берегов сегодня",
}


@pytest.fixture
def texts(tmp_path: Path) -> Namespace:
    """Clean pairs, and annotations of people, of two language pairs."""
    draw = random.Random(0)
    lines, rows = [], []
    for lp in ("en-de", "ru-en"):
        for _ in range(20):
            source, translation = (
                ", ".join(" ".join(draw.choices(WORDS[language].split(), k=3)) for _ in range(3)) + "."
                for language in lp.split("-")
            )
            lines.append(json.dumps({"lp": lp, "source": source, "translation": translation, "links": []}))
    for number in range(20):
        wrong = ["0", "4", "major"] if number % 2 else ["-1", "-1", "no-error"]
        source, translation = (" ".join(draw.choices(WORDS[language].split(), k=6)) for language in ("en", "de"))
        rows.append("\t".join(["system", "document", str(number), "rater1", source, translation, *wrong]))
    pairs, human = tmp_path / "pairs.jsonl", tmp_path / "2021_en-de.tsv"
    pairs.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    human.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    return Namespace(pairs=str(pairs), human=[f"{human}=1"], seed=3, share_human=0.3, share_planted=0.3, joined=0.2)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of a Llama of random weights, whose tokenizer has the digits, and of an adapter for it."""
    torch, peft = pytest.importorskip("torch"), pytest.importorskip("peft")
    from transformers import LlamaConfig, LlamaForCausalLM

    from mbr_esd_metric.generation.surprisal import DIGITS

    folder, adapter = tmp_path_factory.mktemp("base"), tmp_path_factory.mktemp("adapter")
    tokenizer = byte_level_tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.add_tokens(list(DIGITS))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WIDTH, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=4096,
    )  # fmt: skip
    whole = LlamaForCausalLM(config)
    whole.save_pretrained(folder)
    peft.get_peft_model(whole, peft.LoraConfig(r=2, task_type="CAUSAL_LM")).save_pretrained(adapter)
    return folder, adapter


def test_what_is_drawn_depends_on_the_seed_alone(texts: Namespace) -> None:
    def rows(seed: int) -> list[train_small.Row]:
        stream = train_small.Stream(Namespace(**(vars(texts) | {"seed": seed})))
        return [row for _ in range(400) for row in stream.draw()]

    first = rows(3)
    assert first == rows(3) != rows(4)
    assert {row.kind for row in first} >= {"human", "planted", "good", "segment", "clause", "cut", "copied", "twice"}
    assert {row.kind for row in first} <= {"human", "planted", "good", *KINDS}
    assert all(row.missing for row in first if row.kind in ("segment", "clause"))
    assert not any(row.missing or row.errors for row in first if row.kind == "good")
    # The original decides at the same places of the source as what is spoilt beside it.
    pairs = [(bad, good) for bad, good in pairwise(first) if bad.kind in KINDS and good.kind == "good"]
    assert len(pairs) > 50
    assert all(bad.source == good.source and bad.decisive[1] == good.decisive[1] for bad, good in pairs)


def test_neighbouring_words_are_one_place() -> None:
    assert train_small._runs([(6, 9), (0, 5), (12, 14)]) == [(0, 9), (12, 14)]


def test_marks_of_unknown_words_have_no_loss_and_first_ones_decide(model: tuple[Path, Path]) -> None:
    trainer = train_small.Trainer(str(model[0]), str(model[1]))
    row = train_small.Row(
        "cut", "one two three four", "eins zwei", Annotation(),
        missing=((8, 13), (14, 18)), unsure=((4, 7),), decisive=(((0, 1),), ((0, 1), (8, 18))),
    )  # fmt: skip
    one = trainer.encoded(row)
    assert one is not None
    chosen = one.walk.row.chosen  # two words of the translation, then four of the source
    assert len(chosen) == len(words_of(row.translation)) + len(words_of(row.source)) == 6
    assert one.silent == (chosen[3],)
    assert one.decisive == (chosen[0], chosen[2], chosen[4])
    marks = [one.walk.row.choices.index(one.walk.row.tokens[place]) for place in chosen]
    assert marks == [0, 0, 0, 0, 2, 2]
    alone = trainer.encoded(train_small.Row("human", row.source, row.translation, Annotation(), both=False))
    assert alone is not None
    assert (len(alone.walk.row.chosen), alone.silent, alone.decisive) == (2, (), ())


def test_updates_teach_the_marks_and_weigh_those_that_decide(texts: Namespace, model: tuple[Path, Path]) -> None:
    import torch

    losses = {}
    for first in (1.0, 5.0):
        trainer = train_small.Trainer(str(model[0]), str(model[1]), first)
        every = train_small.batches(train_small.Stream(texts), trainer)
        batch = next(batch for batch in every if any(one.decisive for one in batch))
        torch.manual_seed(0)
        losses[first] = [trainer.update(batch, 2e-2) for _ in range(20)]
        assert losses[first][-1] < 0.8 * losses[first][0], losses
        assert set(trainer.losses) == {one.kind for one in batch}
    assert losses[1.0][0] != losses[5.0][0]


def test_a_teacher_says_what_to_expect_of_peoples_translations_alone(
    texts: Namespace, model: tuple[Path, Path], tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file

    weights = load_file(model[1] / "adapter_model.safetensors")
    torch.manual_seed(1)
    save_file({name: torch.randn(one.shape) for name, one in weights.items()}, tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_bytes((model[1] / "adapter_config.json").read_bytes())

    def loss(trust: float, row: train_small.Row, adapter: Path = model[1]) -> float:
        trainer = train_small.Trainer(str(model[0]), str(adapter), 1.0, str(tmp_path), trust)
        one = trainer.encoded(row)
        assert one is not None
        other = trainer.encoded(train_small.Row("planted", "four five", "vier", Annotation()))
        assert other is not None
        trainer.update([other, one], 0.0)
        return trainer.losses[row.kind][0]

    person = train_small.Row("human", "one two three", "eins zwei drei", Annotation(), both=True)
    low, half, high = (loss(trust, person) for trust in (0.0, 0.5, 1.0))
    assert half == pytest.approx((low + high) / 2, rel=1e-4)
    assert abs(high - low) > 1e-4
    # Nobody is nearer to what the teacher expects than the teacher; of other rows it says nothing.
    assert loss(1.0, replace(person, both=False), tmp_path) < loss(1.0, replace(person, both=False))
    assert loss(1.0, replace(person, kind="good")) == pytest.approx(low, rel=1e-6)


def test_annotations_are_joined_with_their_errors() -> None:
    first = HumanAnnotation("one", "eins", "en-de", Annotation([ErrorSpan(0, 4, "minor")]))
    second = HumanAnnotation("two", "zwei", "en-de", Annotation([ErrorSpan(1, 3, "major")]))
    both = train_small._behind(first, second)
    assert (both.source, both.translation, both.lp) == ("one two", "eins zwei", "en-de")
    assert [(s.start, s.end, s.severity) for s in both.annotation] == [(0, 4, "minor"), (6, 8, "major")]


def test_a_run_that_is_killed_goes_on_from_its_last_checkpoint(
    texts: Namespace,
    model: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import torch

    output = tmp_path / "run"
    command = ["train_small.py", "--pairs", texts.pairs, "--human", *texts.human, "--base", str(model[0])]
    command += ["--init", str(model[1]), "--minutes", "0.2", "--first", "4", "-o", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(train_small, "_SAVE", 2)
    seconds = count()  # each look at the clock takes one
    monkeypatch.setattr(train_small, "time", Namespace(monotonic=lambda: float(next(seconds))))
    done: list[float] = []
    update = train_small.Trainer.update

    def killed_later(trainer: train_small.Trainer, batch: Sequence[train_small.Drawn], rate: float) -> float:
        done.append(update(trainer, batch, rate))
        if len(done) == 5:
            raise KeyboardInterrupt
        return done[-1]

    with monkeypatch.context() as patch:
        patch.setattr(train_small.Trainer, "update", killed_later)
        with pytest.raises(KeyboardInterrupt):
            train_small.main()
    assert train_small.last_checkpoint(output) == output / "after-4"
    assert sorted(path.name for path in output.iterdir()) == ["after-4"]

    def killed_while_writing(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", killed_while_writing)
        with pytest.raises(KeyboardInterrupt):
            train_small.main()
    assert train_small.last_checkpoint(output) == output / "after-4"
    before = torch.load(output / "after-4" / "state.pt", weights_only=False)
    assert before["updates"] == 4
    capsys.readouterr()
    train_small.main()
    said = capsys.readouterr().out
    assert said.startswith("goes on after 4 updates")
    last = train_small.last_checkpoint(output)
    assert last is not None
    after = torch.load(last / "state.pt", weights_only=False)
    assert after["updates"] > 4
    assert f"{output / 'adapter'}: {after['updates']} updates" in said
    assert [one["step"].item() for one in after["optimizer"]["state"].values()] == [after["updates"]] * len(
        after["optimizer"]["state"]
    )
    assert {path.name for path in (output / "adapter").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    train_small.Trainer(str(model[0]), str(output / "adapter"))


def test_pairs_are_read_as_they_were_written(texts: Namespace) -> None:
    assert len(read_pairs(texts.pairs)) == 40
