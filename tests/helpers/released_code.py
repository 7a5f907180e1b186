"""The decisions of the code that the authors of the paper released, including every tie: a plain reference.

It differs from the paper (and from `decoding.decide`) in these points:

* An answer that cannot be read counts as "no error", as candidate and as support.
* ScoreSim takes the candidate whose score is nearest to the mean score.
* The score counts errors as written (one given twice counts twice), with minor ``Fluency``/``Punctuation`` at -0.1 and
  ``Non-translation!`` at -25.
* The MBR mean leaves the candidate itself out. A candidate is as similar to itself as can be, so this changes no
  choice, only the utilities.
* SoftF1 is not clipped where severities overlap; it is 0 if P + R <= 0.
* Ties go to the lower index, whatever the log-probability, and are ties of floating-point sums in the order of the
  candidates; sums that are equal but for rounding are therefore formed here in that order as well.

The released code also reads texts with a key given twice or with NaN.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbr_esd_metric.core.annotation import EMPTY, SEVERITIES, Annotation, ErrorSpan
from mbr_esd_metric.core.decision_problem import TIE, Hypotheses
from mbr_esd_metric.core.kernels import BETA, EPS, GAMMA, AnnotationTable, Floats, products
from mbr_esd_metric.elicit.parse import KEYS


def decide_released(
    candidates: Sequence[tuple[str, float]], translation: str, rule: str = "mbr", utility: str = "softf1"
) -> tuple[int, float]:
    """Index and score of the released code's decision for one segment.

    Args:
        candidates: text and log-probability of each.
        translation: t.
        rule: "mbr" or "map".
        utility: "softf1", "f1" or "scoresim".
    """
    read = [_read(text, translation) for text, _ in candidates]
    scores = [score for score, _ in read]
    if rule == "map":
        chosen = max(range(len(candidates)), key=lambda i: candidates[i][1])
    elif utility == "scoresim":
        mean = sum(scores) / len(scores)
        nearness = [-abs(score - mean) for score in scores]
        chosen = nearness.index(max(nearness))
    else:
        folded = Hypotheses([annotation for _, annotation in read])
        table = AnnotationTable(folded.annotations, len(translation))
        _, chosen = _leave_one_out(table, folded, _soft_f1(table) if utility == "softf1" else _f1(table))
    return chosen, scores[chosen]


def _read(text: str, translation: str) -> tuple[float, Annotation]:
    """Score and annotation; those of no error for a text that cannot be read."""
    try:
        errors: Any = json.loads(text)["errors"]
        if any(key not in error for error in errors for key in KEYS):
            return 0.0, EMPTY
        fields = [[error[key] for key in KEYS] for error in errors]
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0.0, EMPTY
    score, spans = 0.0, []
    for span_text, category, sub_category, severity in fields:
        if not all(isinstance(name, str) for name in (category, sub_category, severity)):
            return 0.0, EMPTY
        if not isinstance(span_text, str) or not span_text or span_text not in translation:
            continue
        folded = SEVERITIES.get(severity.lower())
        if folded == "major":
            score += -25.0 if category.capitalize() == "Non-translation!" else -5.0
        elif folded == "minor":
            punctuation = (category.capitalize(), sub_category.capitalize()) == ("Fluency", "Punctuation")
            score += -0.1 if punctuation else -1.0
        if folded is not None:
            start = translation.index(span_text)
            spans.append(ErrorSpan(start, start + len(span_text), folded, f"{category}/{sub_category}"))
    return max(score, -25.0), Annotation(spans)


def _soft_f1(table: AnnotationTable) -> Floats:
    """Unclipped SoftF1 of all pairs, every operation in the released code's order."""
    everyone = slice(0, len(table))
    norms = table.norms
    distance = norms[:, None] + norms - 2 * table.shared(everyone, everyone)
    precision = 1.0 - distance / (table.length + norms[:, None] + EPS)
    recall = 1.0 - distance / (table.length + norms + EPS)
    return _harmonic(2.0 * precision * recall, precision + recall)


def _f1(table: AnnotationTable) -> Floats:
    """Character F1 of all pairs, every operation in the released code's order."""
    everyone = slice(0, len(table))
    both = table.major * table.minor
    parts = np.concatenate([table.marked, table.major, table.minor, both], axis=1)
    steps = (GAMMA, BETA - GAMMA, BETA - GAMMA, GAMMA - BETA)
    credit = products((parts, np.concatenate([step * table.widths for step in steps])), everyone, everyone)
    size = (table.marked @ table.widths).astype(np.float64)
    per_character = credit / np.maximum(size, 1)
    recall, precision = per_character, per_character.T
    result = _harmonic(2 * recall * precision, recall + precision)
    result[np.ix_(size == 0, size == 0)] = 1.0
    return result


def _harmonic(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def _leave_one_out(table: AnnotationTable, folded: Hypotheses, similarity: Floats) -> tuple[list[float], int]:
    """Mean similarity of each candidate to the others, and the first candidate with the highest."""
    n = len(folded.of)
    if n == 1:
        return [math.nan], 0
    # Candidates with the same characters marked share the utility of the first of them.
    marks = np.concatenate([table.major, table.minor], axis=1)
    first: dict[bytes, int] = {}
    stands = [first.setdefault(row.tobytes(), h) for h, row in enumerate(marks)]
    own = similarity[np.arange(len(folded)), np.arange(len(folded))]
    mean = (similarity @ folded.counts - own) / (n - 1)
    near = mean >= mean.max() - TIE
    utility: dict[int, float] = {}
    for h in dict.fromkeys(stands):
        utility[h] = float(mean[h])
        if near[h]:
            row = similarity[h].tolist()
            skip = folded.index[h]
            utility[h] = sum([row[folded.of[j]] for j in range(n) if j != skip]) / (n - 1)
    utilities = [utility[stands[h]] for h in folded.of]
    return utilities, utilities.index(max(utilities))
