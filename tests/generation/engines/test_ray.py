"""`engine=ray` on a Ray of this machine, and on a cluster of several nodes: nodes that join or are lost, reading ahead.

The nodes are real ones of Ray, all on this machine, each with processes of its own.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytest.importorskip("torch")
import ray
from ray.cluster_utils import Cluster

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import EngineOptions, Generated, Request, Sampling
from mbr_esd_metric.generation.engines import ray as module
from mbr_esd_metric.generation.engines.ray import AHEAD, RayEngine
from mbr_esd_metric.generation.engines.transformers import TransformersEngine
from mbr_esd_metric.prompting.formats.json import output_grammar
from tests.helpers.chat_requests import collect
from tests.helpers.mortal_engine import MortalEngine

SAMPLING = Sampling(max_tokens=12)


def test_an_actors_error_is_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RayEngine, "copy", property(lambda self: TransformersEngine(self.options)))
    with pytest.raises(EngineError, match=r"config\.json"):
        list(RayEngine(EngineOptions(model=str(tmp_path))).generate([Request("key", "", "", 1)], Sampling()))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head without room for a copy, and one node with room for one."""
    ray.shutdown()
    folder = tempfile.mkdtemp()  # short, as its sockets need it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)  # so that no other run of Ray finds this cluster
        patch.setenv("RAY_worker_niceness", "0")  # by default all other processes go first
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def stub(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> EngineOptions:
    monkeypatch.setattr(RayEngine, "copy", property(lambda self: MortalEngine(self.options)))
    return EngineOptions(model=str(tmp_path / "died"))


def test_what_is_read_ahead_does_not_grow_with_the_run(stub: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the three copies never find room, which holds up nothing."""
    monkeypatch.setattr(module, "ROWS", 4)
    options = EngineOptions(model=stub.model, concurrency=3)
    read = 0

    def counted() -> Iterator[Request]:
        nonlocal read
        for number in range(400):
            read += 1
            yield Request(f"key{number}", "", "", 16)

    lead, done = 0, 0
    for _ in RayEngine(options).generate(counted(), SAMPLING):
        done += 1
        lead = max(lead, read - done)
    assert done == 400
    assert lead <= 3 * (AHEAD + 1) * 4


def test_a_process_that_dies_gives_its_work_to_another(stub: EngineOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until one batch ends process after process."""
    monkeypatch.setattr(module, "ROWS", 1)
    monkeypatch.setattr(module, "MORE_LOSSES", 0)
    requests = [Request(f"key{i}", {2: "die", 5: "always"}.get(i, ""), "", 20) for i in range(6)]
    parts: list[Generated] = []
    with pytest.raises(EngineError, match="Ray lost 2 replicas in a row: .*; sampled candidates are kept"):
        parts.extend(RayEngine(stub).generate(requests, SAMPLING))
    assert sorted(collect(parts)) == [(f"key{i}", number) for i in range(5) for number in range(20)]
    assert len(parts) == 10


def test_a_node_joins_and_one_is_lost(cluster: Cluster, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All candidates are there, each once, and equal to those of one machine.

    Last in the file: for some seconds Ray gives work to the node that is lost.
    """
    monkeypatch.setattr(module, "ROWS", 1)
    monkeypatch.setattr(RayEngine, "copy", property(lambda self: TransformersEngine(self.options)))
    options = EngineOptions(model=str(tiny), dtype="float32")
    assert RayEngine(options).identity == TransformersEngine(options).identity
    requests = [Request(f"key{i}", f"Say {i}.", output_grammar(), 20, 0, f"segment {i}") for i in range(8)]
    (first,) = cluster.worker_nodes
    parts: list[Generated] = []
    for part in RayEngine(replace(options, concurrency=2)).generate(requests, SAMPLING):
        parts.append(part)
        if len(parts) == 2:  # the second copy waits for this one
            cluster.add_node(num_cpus=1)
        if len(parts) == 4:  # it has batches now
            cluster.remove_node(first, allow_graceful=False)
    spread, whole = collect(parts), collect(TransformersEngine(options).generate(requests, SAMPLING))
    assert len(spread) == 8 * 20
    assert {place: one.text for place, one in spread.items()} == {place: one.text for place, one in whole.items()}
    # What else was in the batch changes the last digits.
    assert [spread[place].logprob for place in whole] == pytest.approx(
        [one.logprob for one in whole.values()], abs=1e-3
    )
