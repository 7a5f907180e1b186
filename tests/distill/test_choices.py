"""MBR's choices as annotations to learn from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.distill.choices import choices
from mbr_esd_metric.distill.supervision import Selection, select
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import CandidateRecord, write_records

MARKED = get_format("marked")
TEXT = "Der Hund bellt laut"
ERROR = Annotation([ErrorSpan(4, 8, "major")])


def record(number: int, *annotations: Annotation) -> CandidateRecord:
    """Its answers are in the format of the record, or are none."""
    texts = tuple(MARKED.answer(annotation, TEXT)[0] for annotation in annotations) or ("no answer",)
    columns = CandidateColumns(texts, (None,) * len(texts), (False,) * len(texts), format="marked")
    return CandidateRecord(str(number), f"source {number}", TEXT, columns)


NONE = Annotation([])
RECORDS = [record(0, ERROR, ERROR, NONE), record(1), *(record(i, NONE, NONE, ERROR) for i in range(2, 9))]


def test_the_best_candidate_is_learnt_and_all_are_taken_as_they_come() -> None:
    found = choices(RECORDS, DecisionOptions(), "en-de")
    assert [item.source for item in found] == ["source 0", *(f"source {i}" for i in range(2, 9))]  # 1 has no candidate
    assert [len(item.annotation) for item in found] == [1] + [0] * 7
    majority = choices([record(0, ERROR, NONE, NONE)], DecisionOptions(rule="majority"), "")
    assert (majority[0].lp, majority[0].annotation) == ("", NONE)
    prompt = load_prompt("v1", MARKED.templates)
    drawn = select(found, prompt, Selection(clean_share=None, validation=0.0), MARKED)
    assert (len(drawn.train), drawn.clean) == (8, 7)
    assert {example.answer for example in drawn.train} == {"Der= Hund+ bellt= laut=", "Der= Hund= bellt= laut="}
    only_clean = select(found[1:], prompt, Selection(clean_share=None, validation=0.0), MARKED)
    assert len(only_clean.train) == 7


def test_the_command_distils_into_a_greedy_card(walking_model: Path, tmp_path: Path) -> None:
    write_records(tmp_path / "candidates.jsonl", RECORDS)
    common = ["--answer-format", "marked", "--model", str(walking_model), "--validation", "0"]
    quick = ["--set", "batch_size=4", "per_device=4", "updates=2", "lora_rank=2"]
    output = ["-o", str(tmp_path / "made")]
    assert main(["distill", "sft", "--choices", str(tmp_path / "candidates.jsonl"), *common, *output, *quick]) == 0
    from mbr_esd_metric.metric.cards import load_card

    card = load_card(str(tmp_path / "made"))
    assert (card.decision.rule, card.decision.format, card.n) == ("greedy", "marked", 1)
    assert json.loads((tmp_path / "made" / "trainer_state.json").read_text(encoding="utf-8"))["global_step"] == 2


def test_candidates_in_a_format_that_nothing_says_are_told() -> None:
    silent = [replace(one, columns=replace(one.columns, format=None)) for one in RECORDS]
    assert choices(silent, DecisionOptions(format="marked"), "en-de") == choices(RECORDS, DecisionOptions(), "en-de")
    with pytest.raises(InputError, match="segment '8': .*in the format marked, .* say so with --format marked"):
        choices(silent, DecisionOptions(), "en-de")


def test_nothing_to_learn_from_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["distill", "sft", "-o", str(tmp_path / "made")]) != 0
    assert "nothing to learn from" in capsys.readouterr().err
    with pytest.raises(InputError, match="segment '7': the rule 'map' needs the candidates' log-probabilities"):
        choices([record(7, ERROR, NONE)], DecisionOptions(rule="map"), "")
