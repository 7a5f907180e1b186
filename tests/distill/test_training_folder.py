"""The folder of `distill pairs` and `distill sft`, through the real TRL: settings, reference, nothing cut, a kill."""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from mbr_esd_metric import load_metric
from mbr_esd_metric.files.records import read_candidates, write_records
from mbr_esd_metric.metric.cards import load_card
from tests.helpers.command import Command

HUMAN = Path(__file__).parents[2] / "docs" / "examples" / "human.tsv"
#: What makes a run of a tiny model short, and lets a processor do it.
SHORT = [
    *("--optim", "adamw_torch", "--bf16", "false", "--use_cpu", "true", "--disable_tqdm", "true"),
    *("--learning_rate", "5e-3", "--warmup_steps", "0", "--weight_decay", "0", "--num_train_epochs", "4"),
    *("--gradient_accumulation_steps", "1", "--per_device_train_batch_size", "5"),
    *("--eval_steps", "1", "--save_steps", "1", "--save_total_limit", "50"),
]
ADAPTER = ["--load_in_4bit", "false", "--dtype", "float32"]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model as a model folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    hparams = f"class_identifier: mbr_esd_metric\nmodel: {tiny_model}\nn: 4\ngrounded: true\nmax_tokens: 77\n"
    (tmp_path / "hparams.yaml").write_text(hparams, encoding="utf-8")
    return tmp_path


@pytest.fixture
def pairs(model: Path, candidates: Path, mbr_esd: Command) -> Path:
    mbr_esd("distill pairs", candidates, "--model", model, "-o", model / "pairs")
    return model / "pairs"


def parsed(method: str, config: Path, *arguments: str) -> Any:
    """TRL's own script, and what it reads from the configuration: of script, trainer, model and mixture."""
    script = importlib.import_module(f"trl.scripts.{method}")
    return script, script.make_parser().parse_args_and_config(["--config", str(config), *arguments])


def trl(method: str, config: Path, *arguments: str) -> None:
    script, values = parsed(method, config, *SHORT, *arguments)
    script.main(*values)


def eval_losses(checkpoint: Path) -> list[float]:
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    return [entry["eval_loss"] for entry in state["log_history"] if "eval_loss" in entry]


def test_the_configuration_says_the_papers_settings_to_trl(pairs: Path) -> None:
    _, (data, dpo, model, _) = parsed("dpo", pairs / "dpo.yaml", "--use_cpu", "true")
    assert (dpo.beta, dpo.loss_type, dpo.optim) == (0.5, ["sigmoid"], "lion_32bit")
    assert (dpo.adam_beta1, dpo.adam_beta2) == (0.9, 0.99)
    assert (dpo.learning_rate, dpo.warmup_steps, dpo.weight_decay, dpo.num_train_epochs) == (1e-7, 50, 0.1, 5)
    assert 8 * dpo.gradient_accumulation_steps * dpo.per_device_train_batch_size == 256
    assert (dpo.bf16, dpo.max_length) == (True, None)
    assert (dpo.load_best_model_at_end, dpo.metric_for_best_model) == (True, "eval_loss")
    assert (data.dataset_name, dpo.output_dir, model.use_peft) == (str(pairs), str(pairs / "model"), False)
    _, (_, lora, model, _) = parsed("dpo", pairs / "dpo-lora.yaml", "--use_cpu", "true")
    assert (model.use_peft, model.load_in_4bit, lora.gradient_accumulation_steps) == (True, True, 256)
    assert lora.output_dir == str(pairs / "lora")


def test_the_cards_are_written_beforehand_and_the_pairs_have_their_language_pair(pairs: Path) -> None:
    card = load_card(str(pairs / "model"))
    assert (card.decision.rule, card.samples, card.grounded, card.max_tokens) == ("greedy", 1, True, 77)
    assert card.model == str(pairs / "model")
    lora = load_card(str(pairs / "lora"))
    assert (Path(lora.model).name[:4], lora.adapter) == ("tiny", str(pairs / "lora"))
    rows = [*lines(pairs / "train.jsonl"), *lines(pairs / "validation.jsonl")]
    assert {row["lp"] for row in rows} == {"en-de", "ja-de", "zh-de"}
    for row in rows:
        assert ("Japanese" in row["prompt"][0]["content"]) == (row["lp"] == "ja-de")
    assert "lp" not in yaml.safe_load((pairs / "model" / "hparams.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["dpo", "dpo-lora"])
def test_a_killed_run_goes_on_as_if_nothing_had_been_and_its_result_scores(pairs: Path, name: str) -> None:
    import torch
    from safetensors.torch import load_file

    config, result = pairs / f"{name}.yaml", pairs / ("lora" if "lora" in name else "model")
    more = ADAPTER if "lora" in name else []
    weights = result / ("adapter_model.safetensors" if "lora" in name else "model.safetensors")
    trl("dpo", config, *more)
    whole = load_file(weights)
    assert min(eval_losses(result / "checkpoint-12")) < 0.6931 - 0.02
    # A kill after the fifth update: what came later is not there.
    for number in range(6, 13):
        shutil.rmtree(result / f"checkpoint-{number}")
    weights.unlink()
    trl("dpo", config, *more, "--resume_from_checkpoint", str(result / "checkpoint-5"))
    for key, value in load_file(weights).items():
        torch.testing.assert_close(value, whole[key])
    card = f"{result}?engine=transformers&max_tokens=8&invalid=empty"
    assert len(load_metric(card).predict([{"src": "a", "mt": "Der Hund"}], progress_bar=False).scores) == 1


def test_examples_are_trained_and_people_and_choices_give_different_cards(
    model: Path, candidates: Path, tmp_path: Path, mbr_esd: Command
) -> None:
    folder = tmp_path / "sft"
    mbr_esd("distill sft", candidates, "--model", model, "-o", folder)
    assert load_card(str(folder / "model")).decision.rule == "greedy"
    trl("sft", folder / "sft.yaml", "--num_train_epochs", "2")
    losses = eval_losses(folder / "model" / "checkpoint-6")
    assert losses[-1] < losses[0]
    mbr_esd("distill sft", f"en-de={HUMAN}", "--model", model, "-o", tmp_path / "started")
    card = load_card(str(tmp_path / "started" / "model"))
    assert (card.decision.rule, card.n) == ("mbr", 4)


def test_a_prompt_file_is_copied_into_the_result(candidates: Path, tmp_path: Path, mbr_esd: Command) -> None:
    prompt = tmp_path / "mine.txt"
    prompt.write_text("{source} {translation}", encoding="utf-8")
    folder = tmp_path / "pairs"
    mbr_esd("distill pairs", candidates, f"--model mbr-esd-llama?prompt={prompt} -o", folder)
    prompt.unlink()
    for result in ("model", "lora"):
        assert Path(load_card(str(folder / result)).prompt).read_text(encoding="utf-8") == "{source} {translation}"
    assert lines(folder / "train.jsonl")[0]["prompt"][0]["content"].startswith("source ")


def test_language_pairs_are_those_of_the_files_or_of_their_arguments(
    candidates: Path, tmp_path: Path, mbr_esd: Command
) -> None:
    plain = tmp_path / "plain.jsonl"
    write_records(
        plain,
        [
            replace(record, lp=None, segment=replace(record.segment, source=f"b {record.segment.source}"))
            for record in read_candidates(candidates)
        ],
    )
    folder = tmp_path / "pairs"
    for words in (f"en-fr={plain}", f"{plain} --model mbr-esd-llama?lp=en-fr"):
        mbr_esd(f"distill pairs {words} -o {folder}")
        assert "French" in lines(folder / "train.jsonl")[0]["prompt"][0]["content"]
    message = mbr_esd(f"distill pairs en-fr={candidates} -o {folder}", status=1).err
    assert "segment '0': its language pair is en-de, not en-fr; remove the prefix en-fr=" in message
    assert "such as 'en-de', not 'x'" in mbr_esd(f"distill pairs x={tmp_path} -o {folder}", status=1).err
