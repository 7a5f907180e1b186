"""The stopping rule of `n=auto`, and the pipeline that follows it."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.core.decision_problem import Hypotheses
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import decision_problem
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.metric.adaptive import FIRST, TOLERANCE, cost_of_stopping, settled
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.run import annotate
from mbr_esd_metric.metric.sources import Segment
from tests.helpers.annotations import drawn

TRANSLATION = "Die Katze sass gestern auf der alten Matte vor dem Haus."
EMPTY = Candidate(annotation=Annotation())
MBR = DecisionOptions()


def span(start: int, end: int) -> Candidate:
    return Candidate(annotation=Annotation([ErrorSpan(start, end, "major")]))


def test_agreement_stops_at_once_and_a_draw_does_not() -> None:
    assert settled([EMPTY] * FIRST, TRANSLATION, MBR)
    assert not settled([EMPTY, span(0, 40)] * (FIRST // 2), TRANSLATION, MBR)
    assert not settled([Candidate(text="{")] * FIRST, TRANSLATION, MBR), "stops without a valid candidate"
    # After 16 the choice is one annotation; the next 16 all say another, and win.
    assert not settled([span(4, 9)] * 16 + [span(29, 40)] * 17, TRANSLATION, MBR, tolerance=0.01)


def test_loss_is_that_of_the_bootstrap_written_out() -> None:
    rng = random.Random(3)
    candidates = [Candidate(annotation=drawn(rng, len(TRANSLATION), 1)) for _ in range(24)]
    segment, _ = decision_problem(candidates, TRANSLATION, MBR)
    every = slice(0, len(segment.hypotheses))
    similarities = get_similarity("softf1").matrix(segment.table, every, every)
    hypotheses = Hypotheses([candidate.annotation for candidate in candidates])  # type: ignore[misc]
    chosen = hypotheses.best(similarities @ segment.weights)
    # Dirichlet(counts) over the hypotheses is Dirichlet(1, ..., 1) over the candidates, added up by hypothesis.
    generator = np.random.default_rng(1)
    losses = []
    for _ in range(4000):
        weights = np.zeros(len(hypotheses))
        np.add.at(weights, hypotheses.hypothesis_of_candidate, generator.dirichlet(np.ones(len(candidates))))
        utilities = similarities @ weights
        losses.append(utilities.max() - utilities[chosen])
    assert cost_of_stopping(hypotheses, similarities) >= np.mean(losses) - 4 * np.std(losses) / np.sqrt(400)


def test_the_pipeline_stops_early_and_comes_to_the_same_again() -> None:
    pytest.importorskip("aiohttp")
    from mbr_esd_metric.generation.pretrained import model_name
    from tests.helpers.chat_server import FakeServer

    segments = [Segment(f"source {i}", f"ein Satz mit {i} Fehlern", f"segment {i}") for i in range(6)]
    with FakeServer(model_name(load_card("mbr-esd-demo").engine_options)) as server:
        name = f"mbr-esd-demo?engine=server&server={server.url}"
        annotate(load_card(name + "&n=16"), segments)  # so that what is missing is found in a later round
        adaptive = load_card(name + "&n=auto/64")
        run = annotate(adaptive, segments)
        sent = len(server.bodies)
        assert annotate(load_card(name + "&n=64"), segments).decisions
        assert annotate(adaptive, segments) == run, "more in the store changes an adaptive run"
    counts = [decision.valid + decision.invalid for decision in run.decisions]
    assert {16} < set(counts) <= {16, 32, 64}
    assert sent == sum({16: 1, 32: 2, 64: 4}[count] for count in counts)
    assert run.signature.get("n") == "auto/64"


@pytest.mark.parametrize(
    ("options", "kind"), [("rule=majority", "rule=mbr"), ("utility=softf1+scoresim-mean", "utilities that are means")]
)
def test_auto_is_for_mbr_and_means_alone(options: str, kind: str) -> None:
    with pytest.raises(OptionError, match=f"n=auto is for {kind}"):
        annotate(load_card(f"mbr-esd-demo?n=auto&{options}"), [Segment("a", "b", "c")])


def test_the_goal_is_reached_on_candidates_made_from_raters(mqm_folder: Path) -> None:
    """With the tolerance of `n=auto`: at most 40% of the samples, at most 0.001 SoftF1 lost."""
    raters = mqm_folder / "sxs_mqm_generalMT2023_ende.3raters.tsv"
    script = Path(__file__).parents[2] / "scripts" / "benchmarks" / "bench_adaptive.py"
    options = f"--skip 300 --segments 150 --tolerance {TOLERANCE}".split()
    run = subprocess.run([sys.executable, script, "--raters", raters, *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    row = next(line for line in run.stdout.splitlines() if line.startswith("auto"))
    _, share, _, lost, _, _ = (float(cell.rstrip("%")) for cell in row.split()[3:])
    assert share <= 40
    assert lost <= 0.001
