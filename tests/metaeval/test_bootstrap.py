"""The paired bootstrap over segments, against a plain one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.metaeval import paired_bootstrap


def test_it_resamples_segments_with_all_their_systems() -> None:
    rng = np.random.default_rng(5)
    a = rng.random((3, 40))
    b = a + rng.normal(0.02, 0.1, size=a.shape)
    a[:, 7] = b[:, 7] = np.nan
    a[0, 8] = b[0, 8] = np.nan
    found = paired_bootstrap(a, b, k=20_000, seed=1)
    kept = np.delete(np.arange(40), 7)
    draws = rng.integers(0, 39, size=(4000, 39))
    deltas = [float(np.nanmean(b[:, kept[d]]) - np.nanmean(a[:, kept[d]])) for d in draws]
    plain = float(np.mean(np.array(deltas) <= 0))
    assert found.delta == pytest.approx(np.nanmean(b) - np.nanmean(a))
    assert abs(found.p_value - plain) < 4 * math.sqrt(plain * (1 - plain) / 4000)
    assert found.low == pytest.approx(np.quantile(deltas, 0.025), abs=0.003)
    assert found.high == pytest.approx(np.quantile(deltas, 0.975), abs=0.003)
    assert paired_bootstrap(a, b, seed=3) == paired_bootstrap(a, b, seed=3)


def test_it_knows_better_worse_and_equal() -> None:
    rng = np.random.default_rng(6)
    a = rng.random(60)
    assert paired_bootstrap(a, a + 0.1).p_value == 0.0
    assert paired_bootstrap(a, a - 0.1).p_value == 1.0
    equal = paired_bootstrap(a, a)
    assert (equal.p_value, equal.delta, equal.low, equal.high) == (1.0, 0.0, 0.0, 0.0)


def test_its_inputs_are_checked() -> None:
    a = np.array([[0.1, np.nan]])
    with pytest.raises(InputError, match="a and b are not evaluated on the same translations"):
        paired_bootstrap(a, [[0.1, 0.2]])
    with pytest.raises(InputError, match="a and b are not evaluated on the same translations"):
        paired_bootstrap(a, [[0.1]])
    with pytest.raises(InputError, match="no rated translation"):
        paired_bootstrap([[np.nan]], [[np.nan]])
    with pytest.raises(OptionError, match="at least one resample"):
        paired_bootstrap(a, a, k=0)


def test_it_resamples_instances_as_the_paper_does() -> None:
    rng = np.random.default_rng(7)
    a = rng.random((3, 30))
    b = a + rng.normal(0.02, 0.1, size=a.shape)
    a[0, 8] = b[0, 8] = np.nan
    found = paired_bootstrap(a, b, k=20_000, seed=1, units="instance")
    gains = (b - a)[~np.isnan(a)]
    deltas = gains[rng.integers(0, len(gains), size=(20_000, len(gains)))].mean(axis=1)
    assert found.low == pytest.approx(np.quantile(deltas, 0.025), abs=0.002)
    assert found.high == pytest.approx(np.quantile(deltas, 0.975), abs=0.002)
