"""Error span detection for machine translation by Minimum Bayes Risk decoding (arXiv 2512.07540).

The public names are imported when they are first used: importing the package loads neither torch nor transformers nor
COMET, but it sees to it that COMET, once imported, knows this package's models.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mbr_esd_autoload import install as _install
from mbr_esd_metric._version import __version__

if TYPE_CHECKING:
    from mbr_esd_metric import metaeval
    from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
    from mbr_esd_metric.core.candidate import Candidate
    from mbr_esd_metric.core.decision import Decision
    from mbr_esd_metric.core.mqm import mqm_score
    from mbr_esd_metric.core.similarities.f1 import f1
    from mbr_esd_metric.core.similarities.mpp import mpp
    from mbr_esd_metric.core.similarities.scoresim import score_sim
    from mbr_esd_metric.core.similarities.softdice import soft_dice
    from mbr_esd_metric.core.similarities.softf1 import soft_f1
    from mbr_esd_metric.decoding.options import DecisionOptions
    from mbr_esd_metric.decoding.segment import decide, decide_corpus, decide_many
    from mbr_esd_metric.errors import (
        EngineError,
        InputError,
        MbrEsdError,
        NoValidCandidateError,
        OptionError,
        StoreError,
    )
    from mbr_esd_metric.metric.metric import Metric, load_metric

#: Public name -> module that defines it, for the imports at first use; type checkers see those above.
_PUBLIC = {
    "Annotation": "core.annotation",
    "ErrorSpan": "core.annotation",
    "Candidate": "core.candidate",
    "mqm_score": "core.mqm",
    "score_sim": "core.similarities.scoresim",
    "f1": "core.similarities.f1",
    "soft_f1": "core.similarities.softf1",
    "soft_dice": "core.similarities.softdice",
    "mpp": "core.similarities.mpp",
    "Decision": "core.decision",
    "DecisionOptions": "decoding.options",
    "decide": "decoding.segment",
    "decide_corpus": "decoding.segment",
    "decide_many": "decoding.segment",
    "Metric": "metric.metric",
    "load_metric": "metric.metric",
    "EngineError": "errors",
    "InputError": "errors",
    "MbrEsdError": "errors",
    "NoValidCandidateError": "errors",
    "OptionError": "errors",
    "StoreError": "errors",
}

__all__ = [
    "Annotation",
    "Candidate",
    "Decision",
    "DecisionOptions",
    "EngineError",
    "ErrorSpan",
    "InputError",
    "MbrEsdError",
    "Metric",
    "NoValidCandidateError",
    "OptionError",
    "StoreError",
    "__version__",
    "decide",
    "decide_corpus",
    "decide_many",
    "f1",
    "load_metric",
    "metaeval",
    "mpp",
    "mqm_score",
    "score_sim",
    "soft_dice",
    "soft_f1",
]


if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> Any:
        if name == "metaeval":
            return importlib.import_module("mbr_esd_metric.metaeval")
        if name not in _PUBLIC:
            raise AttributeError(f"module 'mbr_esd_metric' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"mbr_esd_metric.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)


_install(everywhere=True)
