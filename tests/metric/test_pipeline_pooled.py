"""Models joined by ``+``: one pool of candidates, each model of the same weight."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.candidate import CandidateColumns
from mbr_esd_metric.core.decision_problem import Hypotheses
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, read_decisions, write_records
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.pipeline import Annotated, annotate
from mbr_esd_metric.metric.plan import Segment
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command
from tests.helpers.stub_engine import StubEngine, run_stub

TRANSLATION = "Der Laden ist zu."


def file(path: Path, *texts: str) -> Path:
    write_records(path, [record("The shop.", TRANSLATION, *texts)])
    return path


def test_weights_are_equal_by_model_and_not_by_candidate() -> None:
    laden, ist = Annotation([ErrorSpan(4, 9, "major")]), Annotation([ErrorSpan(10, 13, "major")])
    folded = Hypotheses([laden, laden, None, laden, ist], None, None, ["a", "a", "a", "a", "b"])
    assert folded.weights().tolist() == [0.5, 0.5]
    assert Hypotheses([laden, laden, laden, ist]).weights().tolist() == [0.75, 0.25]
    drawn = Hypotheses([laden, ist, ist], [-1.0, -1.0, -50.0], ["x", "y", "z"], ["a", "a", "b"])
    assert drawn.weights("model") == pytest.approx(np.array([0.25, 0.75]))


def test_a_pool_is_decided_over_all_candidates(tmp_path: Path, mbr_esd: Command) -> None:
    one = file(tmp_path / "one.jsonl", answer("Laden"), answer("Laden"), answer("Laden"))
    two = file(tmp_path / "two.jsonl", answer("ist"), answer("ist"), answer("Laden", "ist"))
    name = f"mbr-esd-llama?n=3&candidates={one}+mbr-esd-gemma2?n=3&candidates={two}"
    run = annotate(load_card(name), [Segment("The shop.", TRANSLATION, "1")])
    (decision,) = run.decisions
    assert (decision.valid, decision.distinct) == (6, 3)
    assert decision.index == 5, "the one that is near to both models"
    first, second = "mbr-esd-llama", "mbr-esd-gemma2"
    assert decision.models == ((first, second), (second,))
    models = [f"accuracy/mistranslation ({names})" for names in (f"{first}, {second}", second)]
    assert [span.category for span in decision.annotation] == models
    assert "|n:3|" in run.signature
    assert re.search(r"\|candidates:\w+\+\w+\|", run.signature)
    (tmp_path / "src").write_text("The shop.\n")
    (tmp_path / "mt").write_text(f"{TRANSLATION}\n")
    files, out = f"-s {tmp_path}/src -t {tmp_path}/mt --quiet --model", tmp_path / "out"
    assert "score: 0.6000" in mbr_esd("score", files, name).out
    assert "1 segment, 6 candidates each" in mbr_esd("sample", files, name, "-o", out).out
    (sampled,) = read_candidates(out)
    assert sampled.columns.models == (first,) * 3 + (second,) * 3
    mbr_esd("decide", out, "-o", tmp_path / "decided")
    (decided,) = read_decisions(tmp_path / "decided")
    assert (decided.index, decided.annotation) == (5, decision.annotation)
    refused = mbr_esd("decide", out, "-o", tmp_path / "other", "--rule map", status=1).err
    assert "those of several models cannot be" in refused
    refused = mbr_esd("score", files, f"mbr-esd-llama?n=6&candidates={out}", status=1).err
    assert "decide with: mbr-esd decide" in refused


def test_the_models_of_a_file_weigh_the_same(tmp_path: Path) -> None:
    texts = (answer("Laden"), answer("Laden"), answer("ist"))
    columns = CandidateColumns(texts, (None,) * 3, (False,) * 3, models=("a", "a", "b"))
    written = CandidateRecord("1", "s", TRANSLATION, columns)
    write_records(tmp_path / "c", [written])
    (read,) = read_candidates(tmp_path / "c")
    assert read == written
    assert [one.model for one in read.candidates] == list(read.columns.models or ()) == ["a", "a", "b"]
    with pytest.raises(InputError, match="give it for all candidates or for none"):
        CandidateRecord.from_json({**written.to_json(), "candidates": [{"text": "", "model": "a"}, {"text": ""}]})


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Annotated]:
    """Decides over settings of one model, given as options. At temperature 1 it marks one word, below another."""
    run_stub(monkeypatch, lambda request, sampling: answer("Laden" if sampling.temperature == 1 else "ist"))

    def run(*options: str) -> Annotated:
        common = f"engine=server&store={tmp_path / 'store.sqlite'}"
        name = "+".join(f"mbr-esd-phi4?{common}&{one}" for one in options)
        return annotate(load_card(name), [Segment("The shop.", TRANSLATION, "1")])

    return run


def test_a_share_of_the_candidates_is_drawn_at_another_temperature(settings: Callable[..., Annotated]) -> None:
    """All candidates of one model weigh the same, under whichever setting they were drawn; each has keys of its own."""
    run = settings("n=3&temperature=1&rule=majority", "n=1&temperature=0.5&rule=majority")
    (decision,) = run.decisions
    assert StubEngine.temperatures == [1.0, 0.5]
    assert StubEngine.calls() == [(TRANSLATION, 0, 3), (TRANSLATION, 0, 1)]
    assert (decision.valid, decision.distinct) == (4, 2)
    assert [(s.start, s.confidence, s.category) for s in decision.annotation] == [(4, 0.75, "accuracy/mistranslation")]
    assert {"n:3+1", "t:1.0+0.5", "model:microsoft/phi-4"} <= set(run.signature.split("|"))
    (other,) = settings("n=2&temperature=1&rule=majority", "n=4&temperature=0.5&rule=majority").decisions
    assert StubEngine.calls()[2:] == [(TRANSLATION, 1, 3)], "what is stored is not sampled again"
    assert [s.start for s in other.annotation] == [10]


def test_models_of_a_pool_answer_in_different_formats(tmp_path: Path) -> None:
    as_json = file(tmp_path / "json.jsonl", answer("Laden"), answer("Laden"), "no answer", answer("ist"))
    compact = file(tmp_path / "compact.jsonl", "major <Laden>", "none", answer("ist"), "major <Laden>")
    name = f"mbr-esd-llama?n=4&candidates={as_json}+mbr-esd-gemma2?n=4&format=compact&candidates={compact}"
    run = annotate(load_card(name), [Segment("The shop.", TRANSLATION, "1")])
    (decision,) = run.decisions
    assert (decision.valid, decision.invalid) == (6, 2), "one format is read as the other"
    assert [span.start for span in decision.annotation] == [4]
    assert decision.models == (("mbr-esd-llama", "mbr-esd-gemma2"),)
    assert "|format:-+compact|" in run.signature


def test_an_option_at_the_end_is_for_every_model_that_does_not_set_it() -> None:
    """It was ignored by a model with any option of its own: 6,144 candidates were planned in place of 192."""
    card = load_card("mbr-esd-llama?engine=server+mbr-esd-gemma2?n=4+mbr-esd-phi4?temperature=1&n=8&lp=en-de")
    every = (card, *card.others)
    assert [one.n for one in every] == [8, 4, 8]
    assert [one.lp for one in every] == ["en-de"] * 3
    assert [one.engine for one in every] == ["server", "auto", "auto"]
    assert [one.temperature for one in every] == [1.0, 1.0, 1.0]
    pool = load_card("mbr-esd-llama+mbr-esd-gemma2?n=64&utility=softf1+scoresim")
    assert [(one.n, one.name) for one in (pool, *pool.others)] == [(64, "mbr-esd-llama"), (64, "mbr-esd-gemma2")]
    assert str(pool.others[0].decision.utility) == "softf1+scoresim"
    apart = load_card("mbr-esd-llama?n=4+mbr-esd-llama?n=8&candidates=b.jsonl")
    assert [(one.n, one.candidates) for one in (apart, *apart.others)] == [(4, None), (8, "b.jsonl")]
    # Settings of one model have its name, and other weights are numbered.
    twice = load_card("mbr-esd-llama?seed=1+mbr-esd-llama?seed=2")
    assert [one.name for one in (twice, *twice.others)] == ["mbr-esd-llama", "mbr-esd-llama"]
    other = load_card("mbr-esd-llama?seed=1+mbr-esd-llama?seed=2+mbr-esd-llama?adapter=x")
    assert [one.name for one in (other, *other.others)] == ["mbr-esd-llama#1", "mbr-esd-llama#1", "mbr-esd-llama#2"]
