"""The examples of docs/frameworks.md, each with the real package; one that is not installed is skipped.

scripts/constraints-frameworks.txt has versions of all of them that go together, beside no COMET.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.document import ROOT

pytest.importorskip("onnxruntime", reason="mbr-esd-small needs onnxruntime")
pytest.importorskip("tokenizers", reason="mbr-esd-small needs tokenizers")

PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^## (\S+)\n[^#]*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
PAIRS = [
    ("The shop opens at nine.", "Der Laden öffnet um neun."),
    ("The shop closes on Monday after the meeting of all members.", "Ja"),
]


def example(heading: str, package: str) -> dict[str, Any]:
    """The names of an example, if its package is here."""
    pytest.importorskip(package, reason=f"{package} is not installed; it may need an environment without COMET")
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(EXAMPLES[heading], heading, "exec"), names)
    return names


def are_in_order(good: float, bad: float) -> None:
    assert 0 <= bad < good <= 1


def test_every_example_has_at_most_thirty_lines_and_a_test() -> None:
    assert {name: code.count("\n") for name, code in EXAMPLES.items() if code.strip().count("\n") >= 30} == {}
    tested = re.findall(r'example\("(\S+)", ', Path(__file__).read_text(encoding="utf-8"))
    assert sorted(EXAMPLES) == sorted(tested)


def test_pandas() -> None:
    names = example("pandas", "pandas")
    frame = names["with_scores"](names["pandas"].DataFrame(PAIRS, columns=["src", "mt"]))
    assert list(frame.columns) == ["src", "mt", "score", "errors"]
    are_in_order(*frame.score)
    assert all(isinstance(one, list) for one in frame.errors)


def test_polars() -> None:
    names = example("polars", "polars")
    frame = names["with_scores"](names["polars"].DataFrame(PAIRS, schema=["src", "mt"], orient="row"))
    assert frame.columns == ["src", "mt", "score", "errors"]
    are_in_order(*frame["score"])


def test_torchmetrics() -> None:
    """Also a clone, which `MetricCollection` makes, and a second round."""
    metric = example("torchmetrics", "torchmetrics")["ErrorSpanScore"]().clone()
    values = []
    for source, translation in PAIRS:
        metric.reset()
        metric.update([translation], [source])
        values.append(float(metric.compute()))
    are_in_order(*values)
    metric.reset()
    for source, translation in PAIRS:
        metric.update([translation], [source])
    assert float(metric.compute()) == pytest.approx(sum(values) / 2)


def test_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example("evaluate", "evaluate")
    import evaluate

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "mbr_esd").mkdir()
    (tmp_path / "mbr_esd" / "mbr_esd.py").write_text(EXAMPLES["evaluate"], encoding="utf-8")
    module = evaluate.load(str(tmp_path / "mbr_esd"))
    result = module.compute(predictions=[mt for _, mt in PAIRS], sources=[source for source, _ in PAIRS])
    are_in_order(*result["scores"])
    assert result["score"] == pytest.approx(sum(result["scores"]) / 2)


def test_inspect_ai(tmp_path: Path) -> None:
    """The model of the run gives the two translations."""
    scorer = example("inspect_ai", "inspect_ai")["error_spans"]()
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    outputs = [ModelOutput.from_content("mockllm/model", mt) for _, mt in PAIRS]
    for one in outputs:
        one.usage = ModelUsage()  # or the mock would fetch a tokenizer to count them
    samples = [Sample(input=f"Translate: {source}", metadata={"source": source}) for source, _ in PAIRS]
    model = get_model("mockllm/model", custom_outputs=outputs)
    [log] = eval(
        Task(dataset=samples, scorer=scorer), model=model, log_dir=str(tmp_path), display="none", max_samples=1
    )
    assert log.status == "success", log.error
    scores = [sample.scores["error_spans"] for sample in log.samples]
    are_in_order(*(one.value for one in scores))
    assert [one.answer for one in scores] == [mt for _, mt in PAIRS]
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(sum(one.value for one in scores) / 2)


def test_lighteval() -> None:
    metric = example("lighteval", "lighteval")["mbr_esd"]
    from lighteval.metrics import apply_metric
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    docs = [Doc(query="Translate.", choices=[""], gold_index=0, specific={"source": source}) for source, _ in PAIRS]
    scores = [one["mbr_esd"] for one in apply_metric([ModelResponse(text=[mt]) for _, mt in PAIRS], docs, [metric])]
    are_in_order(*scores)
    assert metric.get_corpus_aggregations()["mbr_esd"](scores) == pytest.approx(sum(scores) / 2)


def test_lm_evaluation_harness(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(workdir / "cache"))
    lines = "".join(json.dumps({"source": source}) + "\n" for source, _ in PAIRS)
    Path("test.jsonl").write_text(lines, encoding="utf-8")
    task = example("lm-evaluation-harness", "lm_eval")["task"]
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM

    class Translator(LM):  # type: ignore[misc]
        def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
            return [next(mt for source, mt in PAIRS if source in one.args[0]) for one in requests]

        def loglikelihood(self, requests: list[Any], **_: Any) -> Any: ...

        def loglikelihood_rolling(self, requests: list[Any], **_: Any) -> Any: ...

    results = simple_evaluate(Translator(), tasks=[task], bootstrap_iters=0)
    scores = [one["mbr_esd"] for one in results["samples"]["translation"]]
    are_in_order(*scores)
    assert results["results"]["translation"]["mbr_esd,none"] == pytest.approx(sum(scores) / 2)


def test_trl(tmp_path: Path) -> None:
    """One step of GRPO."""
    reward = example("TRL", "trl")["error_span_reward"]
    from datasets import Dataset
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import GRPOConfig, GRPOTrainer

    from tests.helpers.made_tokenizer import byte_level_tokenizer

    sources, translations = ([pair[side] for pair in PAIRS] for side in (0, 1))
    are_in_order(*reward(translations, source=sources))
    messages = [[{"role": "assistant", "content": one}] for one in (*translations, "")]
    *scores, blank = reward(messages, source=[*sources, "Yes"], prompts=["a"])
    are_in_order(*scores)
    assert blank == 0
    tokenizer = byte_level_tokenizer()
    tokenizer.pad_token = tokenizer.eos_token
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, pad_token_id=0, bos_token_id=None, eos_token_id=0,
    )  # fmt: skip
    trainer = GRPOTrainer(
        LlamaForCausalLM(config), reward, processing_class=tokenizer,
        train_dataset=Dataset.from_list([{"prompt": f"German: {one}", "source": one} for one in sources]),
        args=GRPOConfig(
            output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=2, bf16=False,
            max_completion_length=8, use_cpu=True, report_to=[], save_strategy="no", logging_steps=1,
        ),
    )  # fmt: skip
    trainer.train()
    logged = [one for one in trainer.state.log_history if "reward" in one]
    assert trainer.state.global_step == 1
    assert 0 <= logged[0]["reward"] <= 1
    assert "rewards/error_span_reward/mean" in logged[0]
