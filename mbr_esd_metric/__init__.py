"""Error span detection for machine translation by Minimum Bayes Risk decoding (arXiv 2512.07540).

The public names are imported when they are first used: importing the package loads neither torch nor transformers nor
COMET, but it sees to it that COMET, once imported, knows this package's models.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mbr_esd_autoload import install as _install
from mbr_esd_metric._version import __version__ as __version__

if TYPE_CHECKING:
    from mbr_esd_metric import metaeval as metaeval
    from mbr_esd_metric.core.annotation import Annotation as Annotation
    from mbr_esd_metric.core.annotation import ErrorSpan as ErrorSpan
    from mbr_esd_metric.core.annotation import mqm_score as mqm_score
    from mbr_esd_metric.core.corpus_rules import CorpusRule as CorpusRule
    from mbr_esd_metric.core.decision import Candidate as Candidate
    from mbr_esd_metric.core.decision import Decision as Decision
    from mbr_esd_metric.core.rules import SegmentRule as SegmentRule
    from mbr_esd_metric.core.segment import Segment as Segment
    from mbr_esd_metric.core.similarities import Similarity as Similarity
    from mbr_esd_metric.core.similarities.f1 import f1 as f1
    from mbr_esd_metric.core.similarities.mpp import mpp as mpp
    from mbr_esd_metric.core.similarities.scoresim import score_sim as score_sim
    from mbr_esd_metric.core.similarities.softdice import soft_dice as soft_dice
    from mbr_esd_metric.core.similarities.softf1 import soft_f1 as soft_f1
    from mbr_esd_metric.decoding.decide import decide as decide
    from mbr_esd_metric.decoding.decide import decide_corpus as decide_corpus
    from mbr_esd_metric.decoding.decide import decide_many as decide_many
    from mbr_esd_metric.decoding.options import DecisionOptions as DecisionOptions
    from mbr_esd_metric.errors import EngineError as EngineError
    from mbr_esd_metric.errors import InputError as InputError
    from mbr_esd_metric.errors import MbrEsdError as MbrEsdError
    from mbr_esd_metric.errors import NoValidCandidateError as NoValidCandidateError
    from mbr_esd_metric.errors import OptionError as OptionError
    from mbr_esd_metric.errors import StoreError as StoreError
    from mbr_esd_metric.generation.engine import Engine as Engine
    from mbr_esd_metric.metric.metric import Metric as Metric
    from mbr_esd_metric.metric.metric import Prediction as Prediction
    from mbr_esd_metric.metric.metric import load_metric as load_metric
    from mbr_esd_metric.prompting.formats import AnswerFormat as AnswerFormat

#: Module -> the public names that it defines, for the imports at first use; type checkers see those above.
_PUBLIC = {
    "core.annotation": ("Annotation", "ErrorSpan", "mqm_score"),
    "core.decision": ("Candidate", "Decision"),
    "core.corpus_rules": ("CorpusRule",),
    "core.rules": ("SegmentRule",),
    "core.similarities": ("Similarity",),
    "core.similarities.f1": ("f1",),
    "core.segment": ("Segment",),
    "core.similarities.mpp": ("mpp",),
    "core.similarities.scoresim": ("score_sim",),
    "core.similarities.softdice": ("soft_dice",),
    "core.similarities.softf1": ("soft_f1",),
    "decoding.options": ("DecisionOptions",),
    "decoding.decide": ("decide", "decide_corpus", "decide_many"),
    "errors": ("EngineError", "InputError", "MbrEsdError", "NoValidCandidateError", "OptionError", "StoreError"),
    "generation.engine": ("Engine",),
    "metric.metric": ("Metric", "Prediction", "load_metric"),
    "prompting.formats": ("AnswerFormat",),
}

__all__ = sorted(["__version__", "metaeval", *(name for names in _PUBLIC.values() for name in names)])


if not TYPE_CHECKING:  # a type checker would take any name for one of the package

    def __getattr__(name: str) -> Any:
        if name == "metaeval":
            return importlib.import_module("mbr_esd_metric.metaeval")
        for module, names in _PUBLIC.items():
            if name in names:
                globals()[name] = getattr(importlib.import_module(f"mbr_esd_metric.{module}"), name)
                return globals()[name]
        raise AttributeError(f"module 'mbr_esd_metric' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


_install(everywhere=True)
