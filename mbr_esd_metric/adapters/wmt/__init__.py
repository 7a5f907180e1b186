"""WMT meta-evaluation data in the folder layout of google-research/mt-metrics-eval (v2)."""

from mbr_esd_metric.adapters.wmt.layout import TEST_SETS, TestSetInfo
from mbr_esd_metric.adapters.wmt.rating_files import SpanSet
from mbr_esd_metric.adapters.wmt.test_set import StoredMetric, TestSet, load_test_set

__all__ = ["TEST_SETS", "SpanSet", "StoredMetric", "TestSet", "TestSetInfo", "load_test_set"]
