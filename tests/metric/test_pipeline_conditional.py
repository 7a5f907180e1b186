"""`score=conditional` from the walk to the score: through the store, through a file, and where counts are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.candidate import Candidate, ExpectedSpans
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.records import read_candidates, read_decisions
from mbr_esd_metric.generation.engine import Generated, Request, Sampling
from mbr_esd_metric.metric.card import ModelCard, with_options
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.metric import Metric
from mbr_esd_metric.metric.pipeline import annotate
from mbr_esd_metric.metric.plan import Segment
from tests.helpers.stub_engine import StubEngine, run_instead

SEGMENTS = [Segment("A cat.", "Die Katze", "line 1"), Segment("A dog.", "Der Hund", "line 2"), Segment("", " ", "3")]
#: Sample i expects i minor errors and one major error, so that its score is -5 - i.
SCORES = [-6.5, -6.5, 0.0]


class Walking(StubEngine):
    """Marks nothing, and says what it expected unless it is an earlier version."""

    walks: ClassVar[bool] = True
    knows: ClassVar[bool] = True
    sampled: ClassVar[int] = 0

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        for request in requests:
            type(self).sampled += request.n
            text = "=".join([*request.translation.replace(" ", "\n ").split("\n"), ""])
            some = [
                Candidate(text, logprob=-1.0 - i, tokens=2, expected=ExpectedSpans(i, 1.0)) for i in range(request.n)
            ]
            yield Generated(
                request.key, request.first, tuple(one if self.knows else replace(one, expected=None) for one in some)
            )


@pytest.fixture
def card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelCard:
    run_instead(Walking, monkeypatch)
    monkeypatch.setattr(Walking, "knows", True)
    monkeypatch.setattr(Walking, "sampled", 0)
    options = f"engine=transformers&format=marked&score=conditional&n=4&store={tmp_path / 'store.sqlite'}"
    return load_card(f"mbr-esd-llama?{options}")


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_the_score_is_that_of_what_was_expected_also_from_the_store(card: ModelCard, rule: str) -> None:
    metric = Metric(with_options(card, {"rule": rule}))
    for _ in range(2):
        found = metric.predict_segments(SEGMENTS)
        assert found.metadata.mqm == pytest.approx(SCORES)
        assert found.metadata.mqm_sd == pytest.approx([1.25**0.5, 1.25**0.5, 0.0])
        assert found.scores[0] == pytest.approx((25 - 6.5) / 25)
        assert "|score:conditional|" in found.metadata.signature
    assert Walking.sampled == 8


def test_one_greedy_answer_has_a_score_as_well(card: ModelCard) -> None:
    (decision,) = annotate(with_options(card, {"rule": "greedy", "n": "1"}), SEGMENTS[:1]).decisions
    assert (decision.mqm, decision.mqm_sd) == (-5.0, 0.0)


def test_a_file_of_candidates_keeps_it(
    card: ModelCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src").write_text("A cat.\n\n")
    Path("mt").write_text("Die Katze\n \n")
    monkeypatch.setattr("mbr_esd_metric.metric.cards.load_card", lambda name: card)
    assert main(["sample", "-s", "src", "-t", "mt", "-o", "c.jsonl", "--quiet"]) == 0
    first, _ = read_candidates("c.jsonl")
    assert tuple(first.columns.expected or ()) == tuple(ExpectedSpans(i, 1.0) for i in range(4))
    decide = ["decide", "c.jsonl", "-o", "d.jsonl", "--quiet", "--score"]
    assert main([*decide, "conditional"]) == 0
    assert [row.mqm for row in read_decisions("d.jsonl")] == pytest.approx([-6.5, 0.0])
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    replayed = load_card("mbr-esd-llama?candidates=c.jsonl&score=conditional&n=4")
    (decision,) = annotate(replayed, [replace(SEGMENTS[0], system="mt")]).decisions
    assert decision.mqm == pytest.approx(-6.5)
    Path("c.jsonl").write_text(Path("c.jsonl").read_text().replace('"expected": [3, 1.0]', '"x": 0'))
    capsys.readouterr()
    Path("d.jsonl").unlink()
    assert main([*decide, "conditional"]) == 1
    said = capsys.readouterr().err
    assert "c.jsonl, line 1, segment '1' of system 'mt': candidate 4 does not say how many error spans" in said
    assert main([*decide, "expected"]) == 0


@pytest.mark.parametrize("options", [{}, {"n": "auto/16"}, {"rule": "mbr-corpus"}])
def test_candidates_from_before_there_were_counts_are_named(card: ModelCard, options: dict[str, str]) -> None:
    card = with_options(card, options)
    Walking.knows = False
    with pytest.raises(InputError, match="line 1: candidate 1 does not say .* score=expected, or sample again"):
        annotate(card, SEGMENTS)
    assert annotate(with_options(card, {"score": "expected"}), SEGMENTS).decisions[0].mqm == 0.0


def test_a_model_that_has_no_marks_is_refused_before_anything_is_sampled(card: ModelCard, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"mbr-esd-llama with format=json does not have; take score=expected, or"):
        annotate(with_options(card, {"format": "json"}), SEGMENTS)
    common = f"engine=transformers&score=conditional&n=4&store={tmp_path / 'store.sqlite'}"
    pool = f"mbr-esd-llama?format=marked&{common}+mbr-esd-gemma2?format=compact&{common}"
    with pytest.raises(OptionError, match="mbr-esd-gemma2 with format=compact"):
        annotate(load_card(pool), SEGMENTS)
    assert not Walking.sampled
