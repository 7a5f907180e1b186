"""The supervised start in `format=marked`: the loss is that of the marks alone, and training teaches them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.distill.settings import SftOptions
from mbr_esd_metric.distill.sft import answer_loss, train_sft
from mbr_esd_metric.distill.supervision import HumanAnnotation, Selection, Supervision, select
from mbr_esd_metric.distill.training import load_tokenizer, load_trainable, load_weights
from mbr_esd_metric.distill.walks import EncodedWalk, WalkCollator, encode_walk
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer

MARKED = get_format("marked")
ANNOTATIONS = [
    HumanAnnotation(f"source {i}", f"Der Hund {'bellt' if i % 2 else 'gehte'} laut {i}", "en-de",
                    Annotation([] if i % 2 else [ErrorSpan(9, 14, "major")]))
    for i in range(12)
]  # fmt: skip


@pytest.fixture(scope="module")
def supervision() -> Supervision:
    limits = Selection(clean_share=0.5, validation=0.0)
    return select(ANNOTATIONS, load_prompt("v1", MARKED.templates), limits, MARKED)


def walks(walking_model: Path, supervision: Supervision, max_length: int | None = None) -> list[EncodedWalk]:
    tokenizer = WalkTokenizer(load_tokenizer(str(walking_model)))
    pairs = [(example.walk, example.answer) for example in supervision.train]
    return [encode_walk(walk, answer, tokenizer, max_length) for walk, answer in pairs if walk is not None]


def test_a_batch_is_measured_as_the_engine_measures_each_of_its_walks(
    walking_model: Path, supervision: Supervision
) -> None:
    import torch

    from mbr_esd_metric.generation.engine import EngineOptions
    from mbr_esd_metric.generation.pretrained import load_merged
    from mbr_esd_metric.generation.walking import Walker

    base, tokenizer = load_merged(EngineOptions(str(walking_model)))
    walker = Walker(base, base, tokenizer)
    rows = walks(walking_model, supervision)
    collator = WalkCollator(load_weights(str(walking_model), bf16=False), WalkTokenizer(tokenizer), pad=0)
    measured = collator.measured(rows)
    levels = set()
    for example, row in zip(supervision.train, measured, strict=True):
        assert example.walk is not None
        with torch.inference_mode():
            question, units, _ = walker.question(example.walk)
        assert list(row.tokens[: row.answer_start]) == question
        assert [row.tokens[place - 1] for place in row.chosen] == [unit[-1] for unit in units]
        levels |= {unit[-1] for unit in units}
    assert len(levels) > 1


def test_the_loss_is_that_of_the_marks(walking_model: Path, supervision: Supervision) -> None:
    import torch

    encoded = walks(walking_model, supervision)
    collator = WalkCollator(
        load_weights(str(walking_model), bf16=False), WalkTokenizer(load_tokenizer(str(walking_model))), pad=0
    )
    trained = load_trainable(str(walking_model), bf16=False)
    loss, count = answer_loss(trained, collator(encoded[:5]))
    plain, marks = torch.tensor(0.0), 0
    for row in collator.measured(encoded[:5]):
        logits = trained(input_ids=torch.tensor([row.tokens])).logits[0]
        for place in row.chosen:
            scores = logits[place - 1][list(row.choices)].log_softmax(0)
            plain -= scores[row.choices.index(row.tokens[place])]
            marks += 1
    assert count == marks == sum(len(walk.row.chosen) for walk in encoded[:5]) == 25
    torch.testing.assert_close(loss, plain, rtol=1e-5, atol=1e-4)
    with pytest.raises(InputError, match="more than max_length=10"):
        walks(walking_model, supervision, 10)


def test_a_run_goes_on_from_an_adapter_and_its_rate_falls_at_the_end(
    walking_model: Path, supervision: Supervision, tmp_path: Path
) -> None:
    import json

    import torch
    from safetensors.torch import load_file

    quick = SftOptions(learning_rate=2e-2, batch_size=4, per_device=4, warmup_steps=1, lora_rank=4, lora_first_layer=1)
    train_sft(supervision, tmp_path / "first", str(walking_model), replace(quick, epochs=1), {})
    adapter = str(tmp_path / "first" / "adapter")
    options = replace(quick, adapter=adapter, learning_rate=1e-9, updates=20, decay=0.25, save_steps=10)
    figures = train_sft(supervision, tmp_path / "second", str(walking_model), options, {})
    assert figures["updates"] == 20
    log = json.loads((tmp_path / "second" / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    rates = {entry["step"]: entry["learning_rate"] for entry in log if "learning_rate" in entry}
    assert rates[5] == rates[10] == pytest.approx(1e-9)
    assert 0 < rates[20] < 0.5 * rates[10]
    before, after = (
        load_file(tmp_path / name / "adapter" / "adapter_model.safetensors") for name in ("first", "second")
    )
    for name, weights in before.items():  # so small a rate changes nothing: it is the given adapter
        torch.testing.assert_close(after[name], weights, rtol=1e-2, atol=1e-4)
    assert any(weights.abs().max() > 0 for name, weights in before.items() if "lora_B" in name)
    with pytest.raises(OptionError, match="holds a run with adapter"):
        train_sft(supervision, tmp_path / "second", str(walking_model), replace(options, adapter=None), {})
    with pytest.raises(OptionError, match="decay is a share"):
        replace(options, decay=1.5)


def test_training_teaches_and_the_result_scores(walking_model: Path, supervision: Supervision, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    from mbr_esd_metric.metric.cards import load_card

    options = SftOptions(
        learning_rate=2e-2, epochs=8, batch_size=4, per_device=4, warmup_steps=1, lora_rank=4, lora_first_layer=1
    )
    out = tmp_path / "sft"
    figures = train_sft(supervision, out, str(walking_model), options, {"format": "marked", "temperature": 1.0})
    assert figures["last_loss"] < 0.9 * figures["first_loss"]
    card = load_card(str(out))
    assert (card.decision.format, card.temperature) == ("marked", 1.0)
    names = load_file(out / "adapter" / "adapter_model.safetensors")
    assert names
    assert all(".layers.1." in name for name in names)
