"""The supervised start: the shared prefix changes nothing, and training teaches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.distill.encoding import collate, common_prefix, encode_example
from mbr_esd_metric.distill.settings import SftOptions
from mbr_esd_metric.distill.sft import answer_loss, train_sft
from mbr_esd_metric.distill.supervision import Example, Supervision
from mbr_esd_metric.distill.training import load_tokenizer, load_trainable
from mbr_esd_metric.distill.training_options import with_changes
from mbr_esd_metric.elicit.grammar import render_answer
from mbr_esd_metric.errors import EngineError, InputError, OptionError


def example(number: int, errors: int = 1) -> Example:
    error = {"error_span": "Hund" * (number % 3 + 1), "category": "style", "sub_category": "a", "severity": "minor"}
    return Example(
        f"{'Mark the errors. ' * 6}\nSource {number}: " + "x" * number, render_answer([error] * errors), str(number)
    )


@pytest.fixture
def batch(tiny_model: Path) -> tuple[Any, list[Any]]:
    tokenizer = load_tokenizer(str(tiny_model))
    return tokenizer, [encode_example(example(i, i % 3), tokenizer) for i in range(5)]


def test_loss_and_gradient_are_those_of_the_examples_in_full(tiny_model: Path, batch: tuple[Any, list[Any]]) -> None:
    import torch

    _, rows = batch
    assert common_prefix(rows) >= 30
    model = load_trainable(str(tiny_model), bf16=False)
    loss, tokens = answer_loss(model, collate(rows, pad=0))
    loss.backward()
    gradient = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    plain = torch.tensor(0.0)
    for row in rows:
        ids = torch.tensor([row.tokens])
        logits = model(input_ids=ids).logits[0, row.answer_start - 1 : -1]
        plain = plain + torch.nn.functional.cross_entropy(logits, ids[0, row.answer_start :], reduction="sum")
    plain.backward()
    assert tokens == sum(len(row.tokens) - row.answer_start for row in rows)
    torch.testing.assert_close(loss, plain, rtol=1e-5, atol=1e-4)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradient[name], parameter.grad, rtol=1e-3, atol=1e-4, msg=name)


def test_a_batch_of_one_question_keeps_a_token_apart(batch: tuple[Any, list[Any]]) -> None:
    _, rows = batch
    data = collate([rows[0], rows[0]], pad=0)
    assert data["prefix"].shape[1] == rows[0].answer_start - 1
    assert (data["labels"][:, 0] == -100).all()


def test_the_answer_ends_with_the_closing_token(batch: tuple[Any, list[Any]]) -> None:
    tokenizer, rows = batch
    text = tokenizer.decode(rows[1].tokens[rows[1].answer_start :])
    assert text == example(1, 1).answer + tokenizer.eos_token


def test_training_teaches_writes_a_folder_that_scores_and_resumes(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervision = Supervision(tuple(example(i) for i in range(16)), (example(20), example(21)), 0, 0)
    options = SftOptions(
        learning_rate=1e-2, epochs=6, batch_size=4, per_device=2, warmup_steps=1, lora_rank=4, save_steps=4
    )
    out = tmp_path / "sft"
    figures = train_sft(supervision, out, str(tiny_model), options, {"n": 4})
    assert figures["updates"] == 24
    assert figures["last_loss"] < figures["first_loss"]
    assert figures["validation_loss"] < figures["first_loss"]
    config = json.loads((out / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert config["r"] == 4
    assert "base_model_name_or_path" not in config

    from mbr_esd_metric.metric.cards import load_card

    card = load_card(str(out))
    assert (card.model, card.n) == (str(tiny_model), 4)
    assert Path(str(card.adapter)) == (out / "adapter").resolve()
    again = train_sft(supervision, out, str(tiny_model), options, {"n": 4})  # resumes at the end: trains nothing more
    assert again["updates"] == 24
    fewer = Supervision(supervision.train[1:], supervision.validation, 0, 0)
    with pytest.raises(OptionError, match="sft holds a run with examples 'sha256:"):
        train_sft(fewer, out, str(tiny_model), options, {"n": 4})

    from safetensors.torch import load_file

    kinds = {str(value.dtype) for value in load_file(out / "adapter" / "adapter_model.safetensors").values()}
    assert kinds == {"torch.bfloat16"}


def test_errors_name_the_fix(tiny_model: Path, tmp_path: Path, batch: tuple[Any, list[Any]]) -> None:
    tokenizer, _ = batch
    with pytest.raises(InputError, match="more than max_length=10"):
        encode_example(example(1), tokenizer, 10)
    supervision = Supervision((example(1),), (), 0, 0)
    with pytest.raises(OptionError, match="batch_size 3 is no multiple"):
        train_sft(supervision, tmp_path, str(tiny_model), SftOptions(batch_size=3, per_device=2), {})
    with pytest.raises(OptionError, match="learning_rate"):
        with_changes(SftOptions(), {"learnin_rate": "1"})
    for name in ("per_device", "save_steps", "epochs"):
        with pytest.raises(OptionError, match=f"{name} must be above 0, not 0"):
            with_changes(SftOptions(), {name: "0"})
    with pytest.raises(EngineError, match="no tokenizer"):
        train_sft(supervision, tmp_path, str(tmp_path / "nothing"), SftOptions(), {})
