"""The weights of the small model's score, fitted on people's ratings."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from fit_score import cells, fitted


def test_the_weights_that_made_the_ratings_are_found() -> None:
    """In two files; the weight of the length is the largest that is nearly as good as the best."""
    rng = np.random.default_rng(0)
    files = []
    for _ in range(2):
        penalty, length = rng.uniform(3, 5, 300), rng.uniform(0, 4, 300)
        files.append(np.column_stack([penalty, length, penalty + 1.5 * length - 2.0]))
    slope, points = fitted(files)
    assert 1.5 <= slope < 2.0
    assert points == pytest.approx(-2.0 - 2 * (slope - 1.5), abs=0.1)
    assert [float(one) for one in cells(files[0], 1.5, -2.0)] == [1.0, 0.0]
    assert float(cells(files[0], 0.0, 0.0)[0]) < 0.7
