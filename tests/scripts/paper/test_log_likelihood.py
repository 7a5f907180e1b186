"""The log-likelihood of people's annotations: which answers are compared, and what the table says of them."""

from __future__ import annotations

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

DATA = Path(__file__).parents[2] / "data" / "metaeval"
ERROR, NOTHING = answer("alpha", severity="minor"), answer()


def answers_of() -> list[log_likelihood.Answer]:
    """Of two raters, and of four candidates for two of their three segments."""
    requested, files = partial(build_requests, load_card("mbr-esd-demo"), {}), ("raters.tsv", "candidates.jsonl")
    return log_likelihood.answers_of(*(str(DATA / name) for name in files), requested, get_format("json"), "softf1")


def test_people_map_mbr_and_nobody_are_compared() -> None:
    answers = answers_of()
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
def test_a_sampled_answer_is_as_likely_as_the_engine_says() -> None:
    """Within rounding: what the grammar forbids has hardly any probability after a few tokens of this answer."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import torch

    from mbr_esd_metric.generation.pretrained import load_merged

    (first, *_) = answers_of()
    options = with_weights(load_card("mbr-esd-demo").engine_options)
    (likelihood,) = log_likelihood.likelihoods_of(options, [first])
    model, tokenizer = load_merged(options)
    model.set_attn_implementation("eager")
    prompt, tokens = log_likelihood.tokens_of(tokenizer, first)
    total = 0.0
    with torch.inference_mode():
        for at, token in enumerate(tokens):
            logits = model(torch.tensor([prompt + tokens[:at]])).logits[0, -1].float()
            total += float(logits.log_softmax(0)[token])
    assert likelihood.tokens == len(tokens)
    assert likelihood.value == pytest.approx(total, abs=0.05 * abs(total) + 0.2)  # bfloat16
