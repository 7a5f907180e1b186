"""Blank translations: nothing but white space, of a source that is not. No candidate is needed to judge one.

Nothing of the source is there, so the translation is one critical error. No span can say so, as there is no character
to mark. The paper's convention (SoftF1 at L = 0) takes it for a translation without an error instead.
"""

from __future__ import annotations

import math

from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.core.decision import Decision
from mbr_esd_metric.core.mqm import unit_score, weights_of
from mbr_esd_metric.decoding.options import DecisionOptions


def is_blank(source: str, translation: str) -> bool:
    """Whether nothing is translated although there is something to translate."""
    return not translation.strip() and bool(source.strip())


def blank_decision(source: str, translation: str, options: DecisionOptions) -> Decision | None:
    """The decision for a blank translation: no span, no candidate. None for every other, which its candidates decide.

    Its score is the lowest (`blank=worst`) or NaN (`skip`: it is left out). With `perfect`, candidates decide, which
    find nothing to mark.
    """
    if options.blank == "perfect" or not is_blank(source, translation):
        return None
    mqm = math.nan if options.blank == "skip" else weights_of(options.mqm).floor
    return Decision(None, EMPTY, unit_score(mqm, options.mqm), mqm, (), math.nan, 0, 0, 0)
