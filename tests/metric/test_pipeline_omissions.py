"""Models that are not asked for omissions: their prompts, grammars, keys in the store and predictions are as ever."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.prompt import load_prompt
from mbr_esd_metric.files.records import write_records
from tests.helpers.candidates import record

SRC, MT = "The big dog barks at night.", "Der Hund, der Hund bellt 🐉."


def test_what_models_of_one_side_are_asked_stays() -> None:
    """Prompt, grammar (free and grounded) and schema as before there were omissions."""
    answers = get_format("json")
    prompt = load_prompt("v1", answers.templates).render(SRC, MT, "en-de")
    asked = [prompt, answers.grammar(MT), answers.grammar(MT, True), answers.schema]
    assert hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16] == "bb73b14417a27052"


def test_predictions_have_omissions_where_the_model_says_them(tmp_path: Path) -> None:
    def predicted(form: str, *texts: str) -> dict[str, object]:
        path = tmp_path / f"{form}.jsonl"
        write_records(path, [record(SRC, MT, *texts, format=form)])
        metric = load_metric(f"mbr-esd-llama?candidates={path}&n={len(texts)}&score=chosen")
        found = metric.predict([{"src": SRC, "mt": MT}], progress_bar=False)
        return {"scores": found.scores, **found.metadata}

    one = predicted("compact", "major <Hund>", "major <Hund>", "none")
    both = predicted("compact-omissions", *["omitted major <at night>"] * 2, "omitted minor <moon>")
    assert set(both) - set(one) == {"omissions", "unplaced"}
    assert "format:compact-omissions" in str(both["signature"])
    assert both["error_spans"] == [[]]
    common = {"severity": "major", "confidence": pytest.approx(2 / 3)}
    assert both["omissions"] == [[{"text": "at night", "start": 18, "end": 26, "category": "omission", **common}]]
    assert (both["mqm"], both["dropped"], both["unplaced"]) == ([-5.0], [1], [1])
    assert one["error_spans"] == [[{"text": "Hund", "start": 4, "end": 8, "category": None, **common}]]
