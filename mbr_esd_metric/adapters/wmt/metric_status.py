"""Which metrics of WMT's metrics tasks were primary submissions and which baselines: facts of mt-metrics-eval's meta
information, wmt21 to wmt25. The toolkit's tables mark the others, contrastive submissions, with an asterisk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

#: A team's main submission, another of its submissions, or the organisers' own metric.
Status = Literal["primary", "contrastive", "baseline"]

_WMT21 = (
    "bleurt-20 COMET-MQM_2021 COMET-QE-MQM_2021 C-SPECpn MEE2 MTEQA OpenKiwi-MQM regEMT YiSi-1 YiSi-2 BERTScore "
    "sentBLEU BLEU chrF Prism TER"
)

#: Year -> base names of its primary submissions; those of wmt21 and wmt22 include the baselines.
_PRIMARY: Mapping[str, str] = {
    "wmt21": _WMT21,
    "wmt22": "BERTScore BLEURT-20 BLEU chrF COMET-20 COMET-22 COMETKiwi COMET-QE f200spBLEU "
    "HuaweiTSC_EE_BERTScore_0.3_With_Human HWTSC-Teacher-Sim MATESE-QE MATESE MEE4 metricx_xxl_MQM_2020 MS-COMET-22 "
    "MS-COMET-QE-22 REUSE SEScore UniTE UniTE-src YiSi-1",
    "wmt23": "Calibri-COMET22 Calibri-COMET22-QE cometoid22-wmt22 eBLEU embed_llama GEMBA-MQM KG-BERTScore MaTESe MEE4 "
    "MetricX-23 MetricX-23-QE mre-score-labse-regular mbr-metricx-qe sescoreX tokengram_F XCOMET-Ensemble "
    "XCOMET-QE-Ensemble XLsim",
    "wmt24": "BLCOM_1 bright-qe chrfS damonmonli gemba_esa MEE4 metametrics_mt_mqm_hybrid_kendall "
    "metametrics_mt_mqm_qe_kendall.seg.s MetricX-24-Hybrid MetricX-24-Hybrid-QE XCOMET XCOMET-QE XLsimMqm",
    "wmt25": "EnsembleSlick GEMBA-v2 MetricX-25 Polycand-2 Q_Relative-MQM SEGALE-QE TASER-No-Ref UvA-MT comet-multi "
    "hw-tsc mr7_2_1 rankedCOMET",
}
#: (year, language pair) -> primary submissions of this pair alone.
_OF_PAIR: Mapping[tuple[str, str], str] = {
    ("wmt21", "en-de"): "cushLEPOR(LM)",
    ("wmt21", "en-ru"): "hLEPOR",
    ("wmt21", "zh-en"): "cushLEPOR(LM) RoBLEURT",
}
_BASELINES: Mapping[str, str] = {
    "wmt23": "BERTscore BLEU BLEURT-20 chrF COMET CometKiwi docWMT22CometDA docWMT22CometKiwiDA f200spBLEU "
    "MS-COMET-QE-22 prismRef prismSrc Random-sysname YiSi-1",
    "wmt24": "BERTScore BLEU BLEURT-20 chrF COMET-22 CometKiwi PrismRefMedium PrismRefSmall spBLEU YiSi-1 "
    "sentinel-cand-mqm sentinel-ref-mqm sentinel-src-mqm",
    "wmt25": "BERTScore BLEU COMET22 COMETKiwi22 YiSi-1 chrF sentinel-cand spBLEU",
}


def metric_status(test_set: str, pairs: Sequence[str], name: str) -> Status | None:
    """What a metric was in the task of a test set; None for a test set of no task whose submissions are known.

    Args:
        test_set: such as "wmt21.tedtalks".
        pairs: language pairs; a metric that is primary in one of them is primary.
        name: base name of the metric.
    """
    year = test_set.partition(".")[0]
    if year not in _PRIMARY:
        return None
    if name in _BASELINES.get(year, "").split():
        return "baseline"
    primary = " ".join([_PRIMARY[year], *(_OF_PAIR.get((year, pair), "") for pair in pairs)])
    return "primary" if name in primary.split() else "contrastive"
