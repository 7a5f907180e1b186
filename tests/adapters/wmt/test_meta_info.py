"""Primary, contrastive and baseline metrics of WMT's metrics tasks."""

from __future__ import annotations

import pytest

from mbr_esd_metric.adapters.wmt.meta_info import Status, metric_status


@pytest.mark.parametrize(
    ("test_set", "pairs", "name", "status"),
    [
        ("wmt24", ["en-de"], "XCOMET", "primary"),
        ("wmt24", ["en-de"], "BLEU", "baseline"),
        ("wmt24", ["en-de"], "MetricX-24", "contrastive"),
        ("wmt25", ["en-ko_KR"], "spBLEU", "baseline"),
        ("wmt23.sent", ["en-de"], "COMET", "baseline"),
        # Before wmt23 the task does not tell baselines from primary submissions.
        ("wmt22", ["en-ru"], "BLEU", "primary"),
        ("wmt21.tedtalks", ["en-de"], "cushLEPOR(LM)", "primary"),
        ("wmt21.tedtalks", ["en-ru"], "cushLEPOR(LM)", "contrastive"),
        ("wmt21.news", ["en-ru", "zh-en"], "RoBLEURT", "primary"),
        ("made", ["en-de"], "BLEU", None),
        ("wmt26", ["eng_Latn-deu_Latn"], "BLEU", None),
    ],
)
def test_what_a_metric_was(test_set: str, pairs: list[str], name: str, status: Status | None) -> None:
    assert metric_status(test_set, pairs, name) == status
