"""The log-likelihood of people's annotations: which answers are compared, and what the table says of them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import log_likelihood
import pytest
from log_likelihood import Likelihood

from mbr_esd_metric.generation.embedded import with_weights
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.sources import build_requests
from mbr_esd_metric.prompting.formats import get_format
from tests.helpers.candidates import answer

TSV = """system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity
A\td\t1\t1\tr1\tone\t<v>alpha</v> beta gamma\tAccuracy/Mistranslation\tMajor
A\td\t1\t1\tr2\tone\talpha beta <v>gamma</v>\tStyle\tMinor
A\td\t2\t2\tr1\ttwo\tdelta epsilon\tNo-error\tNo-error
A\td\t3\t3\tr1\tthree\tnobody sampled this\tNo-error\tNo-error
"""
ERROR, NOTHING = answer("alpha", severity="minor"), answer()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "ratings.tsv").write_text(TSV, encoding="utf-8")
    records = []
    for number, (source, text) in enumerate((("one", "alpha beta gamma"), ("two", "delta epsilon"))):
        drawn = [(NOTHING, -1.0), *[(ERROR if number == 0 else NOTHING, -5.0)] * 3]
        candidates = [{"text": answer, "logprob": logprob} for answer, logprob in drawn]
        records.append(json.dumps({"id": str(number), "src": source, "mt": text, "candidates": candidates}))
    (tmp_path / "candidates.jsonl").write_text("\n".join(records) + "\n", encoding="utf-8")
    return str(tmp_path / "ratings.tsv"), str(tmp_path / "candidates.jsonl")


def answers_of(files: tuple[str, str]) -> list[log_likelihood.Answer]:
    requested = partial(build_requests, load_card("mbr-esd-demo"), {})
    return log_likelihood.answers_of(*files, requested, get_format("json"), "softf1")


def test_people_map_mbr_and_nobody_are_compared(files: tuple[str, str]) -> None:
    answers = answers_of(files)
    assert {answer.by for answer in answers} == {"human", "no error", "MAP", "MBR-softf1"}
    first = {answer.by: answer for answer in answers[2:5]}
    assert (first["MAP"].text, first["MBR-softf1"].text) == (NOTHING, ERROR)
    # The first rater's answer is likelier than all else, the second one's and those of the second segment are not.
    likelihoods = [Likelihood(10, -float(at + 1)) for at in range(len(answers))]
    table = log_likelihood.table(answers, likelihoods, "softf1")
    rows = {next(iter(row.values())): {column.key: value for column, value in row.items()} for row in table}
    assert (rows["human"]["answers"], rows["human"]["likelier"], rows["MAP"]["likelier"]) == (3, None, 0)
    assert rows["MAP"]["log_likelihood"] == pytest.approx(-(4 + 8) / 2)
    assert rows["human"]["similarity"] < 1  # the two raters; the second segment has one


@pytest.mark.model
def test_a_sampled_answer_is_as_likely_as_the_engine_says(files: tuple[str, str]) -> None:
    """Within rounding: what the grammar forbids has hardly any probability after a few tokens of this answer."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import torch

    from mbr_esd_metric.generation.pretrained import load_merged

    (first, *_) = answers_of(files)
    options = with_weights(load_card("mbr-esd-demo").engine_options)
    (likelihood,) = log_likelihood.likelihoods_of(options, [first])
    model, tokenizer = load_merged(options)
    model.set_attn_implementation("eager")
    prompt, tokens = log_likelihood._tokens(tokenizer, first)
    total = 0.0
    with torch.inference_mode():
        for at, token in enumerate(tokens):
            logits = model(torch.tensor([prompt + tokens[:at]])).logits[0, -1].float()
            total += float(logits.log_softmax(0)[token])
    assert likelihood.tokens == len(tokens)
    assert likelihood.value == pytest.approx(total, abs=0.05 * abs(total) + 0.2)  # bfloat16
