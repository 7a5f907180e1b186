"""Primary, contrastive and baseline metrics of WMT's metrics tasks."""

from __future__ import annotations

import pytest

from mbr_esd_metric.adapters.wmt.meta_info import Status, metric_status


@pytest.mark.parametrize(
    ("test_set", "name", "status"),
    [
        ("wmt24", "XCOMET", "primary"),
        ("wmt24", "MetricX-24", "contrastive"),
        ("wmt23.sent", "COMET", "baseline"),
        # Before wmt23 the task does not tell baselines from primary submissions.
        ("wmt21.tedtalks", "BLEU", "primary"),
        ("wmt26", "BLEU", None),
    ],
)
def test_what_a_metric_was(test_set: str, name: str, status: Status | None) -> None:
    assert metric_status(test_set, name) == status
