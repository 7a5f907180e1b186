"""The weights of the small model's score, fitted on people's ratings."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from fit_score import cells, fitted


def test_the_weights_that_made_the_ratings_are_found() -> None:
    rng = np.random.default_rng(0)
    z, length = -rng.uniform(0, 2, 200), rng.uniform(0, 4, 200)
    rows = np.column_stack([z, length, -0.3 + 0.5 * z - 0.4 * length])
    assert fitted(rows) == pytest.approx([-0.3, 0.5, -0.4])
    assert fitted(rows, 0.5) == pytest.approx([-0.3, 0.5, -0.4])
    assert fitted(rows, 1.0)[1] == 1.0
    assert cells(rows, (-0.3, 0.5, -0.4)) == ["1.000", "0.00"]
    assert float(cells(rows, (0.0, 1.0, 0.0))[0]) < 0.9
