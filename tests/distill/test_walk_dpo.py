"""DPO on walks: the loss is that of the marks, training prefers the chosen ones, and the result scores greedily."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.distill.dpo import build_trainer, load_pairs, train_dpo
from mbr_esd_metric.distill.preferences import PairOptions, make_pairs, write_pairs
from mbr_esd_metric.distill.settings import DpoOptions, load_recipe
from mbr_esd_metric.distill.training import load_tokenizer, load_trainable
from mbr_esd_metric.distill.walk_dpo import PairCollator, encode_pairs, pair_loss, walked_format
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.records import CandidateRecord, write_records
from mbr_esd_metric.generation.base import EngineOptions
from mbr_esd_metric.generation.walk_tokens import WalkTokenizer

MARKED = get_format("marked")
SENTENCES = ("Der Hund bellt laut", "Die Katze schläft nie", "Das Haus ist alt")
OPTIONS = PairOptions(DecisionOptions(format="marked"), validation=0.2)


def record(number: int) -> CandidateRecord:
    """Candidates that mostly agree on the second word."""
    text = f"{SENTENCES[number % 3]} {number}"
    place = text.index(" ") + 1
    likely = Annotation([ErrorSpan(place, text.index(" ", place), "major")])
    other = Annotation([ErrorSpan(0, 3, "minor")])
    texts = tuple(MARKED.answer(annotation, text)[0] for annotation in (likely, likely, other, Annotation([])))
    return CandidateRecord(str(number), f"source {number}", text, texts, (None,) * 4, (False,) * 4)


@pytest.fixture
def pair_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pairs"
    write_pairs(make_pairs([record(i) for i in range(12)], OPTIONS), folder, OPTIONS)
    return folder


def options(model: Path, **changes: object) -> DpoOptions:
    short = {
        "learning_rate": 1e-2,
        "optimizer": "adamw",
        "weight_decay": 0.0,
        "warmup_steps": 0,
        "batch_size": 5,
        "per_device": 5,
        "epochs": 6,
        "lora_rank": 4,
        "evaluations": 1,
        "gradient_checkpointing": False,
        "bf16": "false",
    }
    return load_recipe("paper", {**short, "model": str(model), **changes})


def test_the_command_writes_what_a_walk_needs(tmp_path: Path) -> None:
    write_records(tmp_path / "candidates.jsonl", [record(i) for i in range(12)])
    arguments = ["distill", "pairs", str(tmp_path / "candidates.jsonl"), "-o", str(tmp_path / "made")]
    assert main([*arguments, "--answers", "marked", "--lp", "en-de"]) == 0
    row = json.loads((tmp_path / "made" / "train.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert row["translation"].split()[:2] in [sentence.split()[:2] for sentence in SENTENCES]
    assert (row["source"], row["direction"]) == (f"source {row['id']}", "en-de")
    assert "+" in row["chosen"][0]["content"]
    found = walked_format(row["signature"])
    assert found is not None
    assert found.name == "marked"
    assert walked_format("mbr-esd-pairs|u:softf1|prompt:v1") is None


def test_the_loss_is_that_of_the_engines_log_probabilities(
    walking_model: Path, pair_folder: Path, tmp_path: Path
) -> None:
    """With the reference moved away from the model; the engine walks each answer by itself."""
    import torch

    from mbr_esd_metric.generation.engines.transformers import load_merged
    from mbr_esd_metric.generation.walking import Walker

    settings = options(walking_model, beta=0.7)
    rows = list(load_pairs(pair_folder, "v1")["train"])[:4]
    tokenizer = WalkTokenizer(load_tokenizer(str(walking_model)))
    pairs = encode_pairs(rows, MARKED, "v1", tokenizer, 4096)
    model = load_trainable(str(walking_model), lora_rank=4, bf16=False)
    collator = PairCollator(model.eval(), tokenizer, 0)
    batch = collator(pairs)
    loss, margins = pair_loss(model, batch, settings)
    assert float(loss.detach()) == pytest.approx(math.log(2), abs=1e-4)  # the model is the reference
    assert margins.abs().max() < 1e-3

    base, raw = load_merged(EngineOptions(str(walking_model)))
    walker, sums = Walker(base, base, raw), []
    for side in ("chosen", "rejected"):
        for row in rows:
            walk = MARKED.walk(OPTIONS.question, row["source"], row["translation"], row["direction"])
            assert walk is not None
            marks, at = [], 0
            for word in (walk.units[0].removeprefix(" "), *walk.units[1:]):
                at += len(word) + 1
                marks.append(walk.marks.index(row[side][0]["content"][at - 1]))
            with torch.inference_mode():
                question = walker.question(walk)
                (sample,) = walker.sample(
                    walk, question, 1, lambda _, samples, words, m=marks: torch.tensor([m[w] for w in words])
                )
            sums.append(sample.logprob)
    torch.testing.assert_close(batch["reference"], torch.tensor(sums), rtol=1e-4, atol=1e-3)

    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "lora_B" in name:
                weights.normal_(0, 0.3)
    moved, margins = pair_loss(model, batch, settings)
    again = PairCollator(model, tokenizer, 0)(pairs)["reference"]
    expected = 0.7 * (again - batch["reference"])
    torch.testing.assert_close(margins, expected[:4] - expected[4:], rtol=1e-4, atol=1e-3)
    assert float(moved.detach()) == pytest.approx(float(-torch.nn.functional.logsigmoid(margins).mean()), abs=1e-4)


def test_training_prefers_what_was_chosen_and_the_result_scores(
    walking_model: Path, pair_folder: Path, tmp_path: Path
) -> None:
    from mbr_esd_metric.metric.cards import load_card

    out = tmp_path / "distilled"
    figures = train_dpo(pair_folder, out, options(walking_model))
    assert figures["last_loss"] < 0.8 * figures["first_loss"]
    assert figures["last_margin"] > 0
    assert figures["validation_loss"] < math.log(2)
    card = load_card(str(out))
    assert (card.decision.format, card.decision.rule, card.n) == ("marked", "greedy", 1)
    assert train_dpo(pair_folder, out, options(walking_model))["updates"] == figures["updates"]  # resumes at the end


def test_what_does_not_fit_is_told(walking_model: Path, pair_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="trained with sigmoid and sft, not 'hinge'"):
        build_trainer(pair_folder, tmp_path / "a", options(walking_model, loss_type=["hinge"]))
    with pytest.raises(InputError, match="more than max_length=20"):
        build_trainer(pair_folder, tmp_path / "b", options(walking_model, max_length=20))
    for path in pair_folder.iterdir():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text(
            "".join(json.dumps({k: v for k, v in row.items() if k != "translation"}) + "\n" for row in rows)
        )
    with pytest.raises(InputError, match="a pair has no 'translation'"):
        build_trainer(pair_folder, tmp_path / "c", options(walking_model))
