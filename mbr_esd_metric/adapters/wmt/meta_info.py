"""Facts of WMT's test sets, of mt-metrics-eval's meta information (wmt20 to wmt25; wmt26 has ESA): their gold, which
systems are evaluated, and which metrics were primary submissions and baselines.

Gold is of several kinds: MQM; ESA, error spans with a score from 0 to 100 ("esa"; the first annotation of WMT25,
"esa-human1"); DA-SQM ("da-sqm"); and the direct assessment of earlier years ("wmt", "wmt-appraise", "wmt-raw").
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

#: Which references count as systems: "others" are all except the standard one, "none" is mtme's choice, and "all"
#: includes the standard one.
HumanSystems = Literal["others", "none", "all"]


_REFERENCE = re.compile(r"ref([A-Za-z0-9_]*)")


def is_reference_name(system: str) -> bool:
    """Whether a system is called as references are: ref, refA, refB and so on."""
    return _REFERENCE.fullmatch(system) is not None


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


@dataclass(frozen=True, slots=True)
class TestSetInfo:
    """Facts about one test set and language pair that its files do not say.

    Attributes:
        standard_reference: the reference that metrics use, which is not evaluated as a system. None: the only
            one that there is.
        gold: name of the gold scores, as in ``human-scores/en-de.mqm.seg.score``.
        system_gold: name of the gold scores of systems, if it differs.
        outliers: systems that are left out of the evaluation.
    """

    standard_reference: str | None = None
    gold: str = "mqm"
    outliers: frozenset[str] = frozenset()
    system_gold: str | None = None


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


def _of(gold: str, lps: str, **other: str) -> dict[str, TestSetInfo]:
    """Language pairs with that gold; the standard reference is refA unless `other` names one."""
    return {d: TestSetInfo(other.get(d.replace("-", "_"), "refA"), gold) for d in lps.split()}


def _raw(lps: str, reference: str, **outliers: str) -> dict[str, TestSetInfo]:
    """Language pairs of direct assessment: raw scores of segments, standardised ones of systems."""
    return {
        d: TestSetInfo(reference, "wmt-raw", frozenset(outliers.get(d.replace("-", "_"), "").split()), "wmt-z")
        for d in lps.split()
    }


#: Test sets whose gold is not MQM, in the same form.
OTHER_TEST_SETS: Mapping[tuple[str, str], TestSetInfo] = {
    (test_set, lp): info
    for test_set, infos in (
        (
            "wmt25",
            _of(
                "esa-human1",
                "cs-de_DE cs-uk_UA en-ar_EG en-bho_IN en-cs_CZ en-et_EE en-is_IS en-it_IT en-ja_JP en-mas_KE en-ru_RU "
                "en-sr_Cyrl_RS en-uk_UA en-zh_CN",
            ),
        ),
        ("wmt24", _of("esa", "cs-uk en-cs en-hi en-is en-ja en-ru en-uk en-zh")),
        ("wmt23", _of("da-sqm", "cs-uk de-en en-cs en-ja en-zh ja-en")),
        ("wmt22", _of("wmt", "cs-en de-en ja-en ru-en uk-en", cs_en="refB")),
        ("wmt22", _of("wmt-appraise", "cs-uk en-cs en-hr en-ja en-liv en-uk en-zh liv-en sah-ru uk-cs", en_cs="refB")),
        ("wmt21.news", _raw("en-cs en-ha en-is en-ja en-zh cs-en de-en de-fr fr-de ha-en is-en ja-en ru-en", "refA")),
        ("wmt21.flores", _raw("bn-hi hi-bn xh-zu zu-xh", "refA")),
        (
            "wmt20",
            _raw(
                "cs-en de-en en-cs en-iu en-ja en-pl en-ru en-ta en-zh iu-en ja-en km-en pl-en ps-en ru-en ta-en",
                "ref",
                cs_en="zlabs-nlp.1149 CUNI-DocTransformer.1457",
                de_en="yolo.1052 zlabs-nlp.1153 WMTBiomedBaseline.387",
                en_cs="zlabs-nlp.1151 Online-G.1555",
                en_iu="UEDIN.1281 OPPO.722 UQAM_TanLe.521",
                en_ja="Online-G.1557 SJTU-NICT.370",
                en_pl="Online-Z.1634 zlabs-nlp.180 Online-A.1576",
                en_ta="TALP_UPC.1049 SJTU-NICT.386 Online-G.1561",
                iu_en="NiuTrans.1206 Facebook_AI.729",
                ja_en="Online-G.1564 zlabs-nlp.66 Online-Z.1640",
                pl_en="zlabs-nlp.1162",
                ru_en="zlabs-nlp.1164",
                ta_en="Online-G.1568 TALP_UPC.192",
            ),
        ),
    )
    for lp, info in infos.items()
}

#: Names of gold, in the order of preference if the table's is missing; a name that begins with one of them counts too.
GOLD_NAMES = ("mqm", "esa", "da-sqm", "wmt-appraise", "wmt-raw", "wmt")


def info_of(test_set: str, lp: str) -> TestSetInfo:
    """The table's entry, or the defaults for a set that is not in it."""
    key = (test_set, lp)
    known = MQM_TEST_SETS.get(key) or OTHER_TEST_SETS.get(key)
    return known or (TestSetInfo("refA", "esa") if test_set == "wmt26" else TestSetInfo())


def reference_name(test_set: str, lp: str) -> str | None:
    """What a reference called "ref" should be called: the language pair's standard reference.

    If the table has none, it is that of most language pairs of the test set. None for an unknown test set.
    """
    own = info_of(test_set, lp).standard_reference
    tables = (MQM_TEST_SETS, OTHER_TEST_SETS)
    names = Counter(i.standard_reference for table in tables for (known, _), i in table.items() if known == test_set)
    return own or (names.most_common(1)[0][0] if names else None)


def gold_there(names: Collection[str]) -> str | None:
    """The name of gold scores to use by default among these; None if none is known."""
    for known in GOLD_NAMES:
        found = [known] if known in names else sorted(name for name in names if name.startswith(f"{known}-"))
        if found:
            return found[0]
    return None


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
