"""Error span detection for machine translation by Minimum Bayes Risk decoding (arXiv 2512.07540).

The public names are imported when they are first used: importing the package loads neither torch nor transformers nor
COMET, but it sees to it that COMET, once imported, knows this package's models.
"""

from __future__ import annotations

import importlib
from typing import Any

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.comet.autoload import install as _install

#: Public name -> module that defines it.
_PUBLIC = {
    "Annotation": "core.annotation",
    "ErrorSpan": "core.annotation",
    "Candidate": "core.candidate",
    "mqm_score": "core.mqm",
    "score_sim": "core.similarity.scoresim",
    "f1": "core.similarity.f1",
    "soft_f1": "core.similarity.softf1",
    "soft_dice": "core.similarity.softdice",
    "mpp": "core.similarity.mpp",
    "Decision": "core.decision",
    "decide": "decoding.segment",
    "load_metric": "metric.metric",
    "MbrEsdError": "errors",
}

__all__ = ["__version__", "metaeval", *_PUBLIC]


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


_install()
