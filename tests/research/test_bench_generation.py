"""The benchmark of generation: it runs, and the client stays cheap.

The bar of 3,000 candidates a second is for a quiet machine; docs/evidence/engines.md has the figures. Processor time
depends less on what else runs: at 3,000 a second on one core, a request of 16 takes 5.3 ms. Twice as much fails here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")


def test_the_client_takes_little_time() -> None:
    path = Path(__file__).parents[2] / "research" / "bench_generation.py"
    spec = importlib.util.spec_from_file_location("bench_generation", path)
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    # Up to three times: what else runs on the machine costs processor time, too.
    measured = [bench.client(300)]
    while len(measured) < 3 and not (measured[-1][0] > 300 and measured[-1][1] < 10.6):
        measured.append(bench.client(300))
    rate, milliseconds = measured[-1]
    assert rate > 300
    assert milliseconds < 10.6
