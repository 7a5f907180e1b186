"""The lambda sweep on the real XCOMET class, with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mbr_esd_metric import Annotation
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.metaeval import Evaluator, lambda_sweep
from tests.helpers.comet_checkpoint import SENTENCES, make_xcomet_checkpoint

SYSTEMS = 3


@pytest.mark.comet
def test_sweep_of_xcomet_spans(tmp_path: Path) -> None:
    comet = pytest.importorskip("comet.models", reason="needs unbabel-comet")
    model = comet.load_from_checkpoint(str(make_xcomet_checkpoint(tmp_path / "xcomet")))
    rng = np.random.default_rng(0)
    texts = [[" ".join(rng.permutation(sentence.split())) for sentence in SENTENCES] for _ in range(SYSTEMS)]
    samples = [{"src": SENTENCES[0], "mt": text, "ref": SENTENCES[1]} for row in texts for text in row]
    output = model.predict(samples, batch_size=8, gpus=0, progress_bar=False)
    found = [Annotation(spans) for spans in output.metadata.error_spans]
    predicted = [found[i * len(SENTENCES) : (i + 1) * len(SENTENCES)] for i in range(SYSTEMS)]
    lengths = np.array([[len(text) for text in row] for row in texts])
    # As raters: the same metric on another day.
    human = [[Annotation(list(cell)[::2]) for cell in row] for row in predicted]
    gold = np.array([[mqm_score(cell) for cell in row] for row in human]) + rng.normal(size=lengths.shape)

    confidences = sorted(span.confidence or 0.0 for cell in found for span in cell)
    assert len(set(confidences)) > 5
    lambdas = (0.0, *np.quantile(confidences, [0.2, 0.5, 0.8]).tolist(), 1.0)
    points = lambda_sweep(Evaluator(gold, [human], lengths), predicted, lambdas)
    unfiltered = Evaluator(gold, [human], lengths).evaluate(predicted)
    assert points[0.0] == unfiltered
    assert unfiltered.major + unfiltered.minor == len(confidences)
    totals = [point.major + point.minor for point in points.values()]
    assert totals == [sum(confidence >= threshold for confidence in confidences) for threshold in lambdas]
    assert totals[0] > totals[1] > totals[2] > totals[3] > totals[4]
    # At 1 only certain spans stay; where there are none, every score is that of "no error".
    assert totals[4] == sum(confidence == 1.0 for confidence in confidences)
