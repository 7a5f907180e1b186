"""Facts of WMT's test sets with error spans, of mt-metrics-eval's meta information (MQM from wmt20 on, ESA from wmt24
on; wmt26 has ESA alone): their gold, the systems that are evaluated, and the primary submissions and baselines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

#: Which references count as systems: "others" are all except the standard one, "none" is mtme's choice, and "all"
#: includes the standard one.
HumanSystems = Literal["others", "none", "all"]


def is_reference_name(system: str) -> bool:
    """Whether a system is called as references are: ref, refA, refB and so on."""
    return re.fullmatch("ref[A-Za-z0-9_]*", system) is not None


@dataclass(frozen=True, slots=True)
class SystemChoice:
    """Which of the systems that have gold scores are evaluated.

    Attributes:
        only: evaluate exactly these systems; if empty, the other attributes decide.
        exclude: do not evaluate these systems.
        outliers: whether WMT's outliers take part.
        human: which references take part as systems.
    """

    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    outliers: bool = False
    human: HumanSystems = "others"

    def takes(self, system: str, info: TestSetInfo, references: Collection[str]) -> bool:
        """Whether a system is evaluated.

        People's translations are the references, and the systems that are called as references are: a folder may have
        such a system without a file in ``references``.
        """
        if system in self.exclude:
            return False
        if self.only:
            return system in self.only
        if system in info.outliers and not self.outliers:
            return False
        standard = system == info.standard_reference
        if standard or system in references or is_reference_name(system):
            return self.human == "all" or (self.human == "others" and not standard)
        return True


#: References and outliers as well.
EVERY_SYSTEM = SystemChoice(outliers=True, human="all")


@dataclass(frozen=True, slots=True)
class TestSetInfo:
    """Facts about one test set and language pair that its files do not say.

    Attributes:
        standard_reference: the reference that metrics use, which is not evaluated as a system. None: the only
            one that there is.
        gold: name of the gold scores, as in ``human-scores/en-de.mqm.seg.score``.
        outliers: systems that are left out of the evaluation.
    """

    standard_reference: str | None = None
    gold: str = "mqm"
    outliers: frozenset[str] = frozenset()


def _info(reference: str, *outliers: str) -> TestSetInfo:
    return TestSetInfo(reference, "mqm", frozenset(outliers))


#: Test sets with MQM gold: (test set, language pair) -> what the toolkit knows of it.
MQM_TEST_SETS: Mapping[tuple[str, str], TestSetInfo] = {
    ("wmt20", "en-de"): _info("ref", "zlabs-nlp.179", "WMTBiomedBaseline.388", "Online-G.1556"),
    ("wmt20", "zh-en"): _info("ref", "WMTBiomedBaseline.183"),
    ("wmt21.news", "en-de"): _info("refC"),
    ("wmt21.news", "en-ru"): _info("refA"),
    ("wmt21.news", "zh-en"): _info("refB"),
    ("wmt21.tedtalks", "en-de"): _info("refA"),
    ("wmt21.tedtalks", "en-ru"): _info("refA"),
    ("wmt21.tedtalks", "zh-en"): _info("refB"),
    ("wmt22", "en-de"): _info("refA", "M2M100_1.2B-B4"),
    ("wmt22", "en-ru"): _info("refA"),
    ("wmt22", "zh-en"): _info("refA"),
    ("wmt23", "en-de"): _info("refA", "synthetic_ref"),
    ("wmt23", "he-en"): _info("refB"),
    ("wmt23", "zh-en"): _info("refA", "synthetic_ref"),
    ("wmt23.sent", "en-de"): _info("refA"),
    ("wmt24", "en-de"): _info("refB", "MSLC"),
    ("wmt24", "en-es"): _info("refA", "MSLC"),
    ("wmt24", "ja-zh"): _info("refA", "MSLC"),
    ("wmt25", "en-ko_KR"): _info("refA"),
    ("wmt25", "ja-zh_CN"): _info("refA"),
}


#: Test sets whose gold is ESA, in the same form.
ESA_TEST_SETS: Mapping[tuple[str, str], TestSetInfo] = {
    (test_set, lp): TestSetInfo("refA", gold)
    for test_set, gold, lps in (
        ("wmt24", "esa", "cs-uk en-cs en-hi en-is en-ja en-ru en-uk en-zh"),
        (
            "wmt25",
            "esa-human1",
            "cs-de_DE cs-uk_UA en-ar_EG en-bho_IN en-cs_CZ en-et_EE en-is_IS en-it_IT en-ja_JP en-mas_KE en-ru_RU "
            "en-sr_Cyrl_RS en-uk_UA en-zh_CN",
        ),
    )
    for lp in lps.split()
}


def info_of(test_set: str, lp: str) -> TestSetInfo:
    """The table's entry, or the defaults for a set that is not in it."""
    key = (test_set, lp)
    info = MQM_TEST_SETS.get(key) or ESA_TEST_SETS.get(key)
    return info or (TestSetInfo("refA", "esa") if test_set == "wmt26" else TestSetInfo())


def reference_name(test_set: str, lp: str) -> str | None:
    """The name for a reference called "ref": that of the language pair's standard reference.

    If the table has none, it is that of most language pairs of the test set. None for an unknown test set.
    """
    tables = {**MQM_TEST_SETS, **ESA_TEST_SETS}
    names = Counter(info.standard_reference for (name, _), info in tables.items() if name == test_set)
    return info_of(test_set, lp).standard_reference or (names.most_common(1)[0][0] if names else None)


def preferred_gold(names: Collection[str]) -> str | None:
    """The name of gold scores to use among these where the table's is missing, such as "esa" or "esa-human1"; None if
    none is known."""
    for kind in ("mqm", "esa", "da-sqm", "wmt"):
        alike = [kind] if kind in names else sorted(name for name in names if name.startswith(f"{kind}-"))
        if alike:
            return alike[0]
    return None


#: A team's main submission, another of its submissions, or the organisers' own metric.
Status = Literal["primary", "contrastive", "baseline"]

#: Year -> base names of its primary submissions; those of wmt21 and wmt22 include the baselines.
_PRIMARY: Mapping[str, str] = {
    "wmt21": "bleurt-20 COMET-MQM_2021 COMET-QE-MQM_2021 C-SPECpn MEE2 MTEQA OpenKiwi-MQM regEMT YiSi-1 YiSi-2 "
    "BERTScore sentBLEU BLEU chrF Prism TER cushLEPOR(LM) hLEPOR RoBLEURT",
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
_BASELINES: Mapping[str, str] = {
    "wmt23": "BERTscore BLEU BLEURT-20 chrF COMET CometKiwi docWMT22CometDA docWMT22CometKiwiDA f200spBLEU "
    "MS-COMET-QE-22 prismRef prismSrc Random-sysname YiSi-1",
    "wmt24": "BERTScore BLEU BLEURT-20 chrF COMET-22 CometKiwi PrismRefMedium PrismRefSmall spBLEU YiSi-1 "
    "sentinel-cand-mqm sentinel-ref-mqm sentinel-src-mqm",
    "wmt25": "BERTScore BLEU COMET22 COMETKiwi22 YiSi-1 chrF sentinel-cand spBLEU",
}


def metric_status(test_set: str, name: str) -> Status | None:
    """The status of a metric, by its base name, in the task of a test set such as "wmt21.tedtalks"; None for a test set
    of no task whose submissions are known."""
    year = test_set.partition(".")[0]
    if year not in _PRIMARY:
        return None
    if name in _BASELINES.get(year, "").split():
        return "baseline"
    return "primary" if name in _PRIMARY[year].split() else "contrastive"
