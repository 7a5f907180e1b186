"""Statements of docs/evidence/similarities.md about the three raters' annotations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rater_tables
from rater_tables import CORPUS_RULES, Item

from mbr_esd_metric.metaeval.calibration import calibration_error
from mbr_esd_metric.metaeval.span_measures import span_measure


@pytest.fixture(scope="module")
def items(mqm_folder: Path) -> list[Item]:
    return rater_tables.read(str(mqm_folder / "sxs_mqm_generalMT2023_ende.3raters.tsv"))


def test_mbr_corpus_beats_every_rule_that_decides_a_segment_at_a_time(items: list[Item]) -> None:
    cases = rater_tables.cases_of(items[::4])[::3]  # two of the three raters, against the third
    measure = span_measure("softdice-corpus")
    reached = {}
    for row, chosen in rater_tables.choices(cases).items():
        scored = rater_tables.scored(cases, chosen)
        sums = np.sum([measure.statistics(predicted, gold, len(item.text)) for item, predicted, gold in scored], axis=0)
        reached[row] = float(measure.value(sums))
    corpus = {rule: reached.pop(rule) for rule in CORPUS_RULES}
    # To mark all that either rater does is no rule for candidates; here it is what mbr-corpus comes down to.
    assert reached.pop("always the union") == pytest.approx(corpus[CORPUS_RULES[0]], abs=1e-4)
    assert len(reached) == 17
    assert min(corpus.values()) > max(reached.values()) + 0.005


def test_confidences_are_right_after_a_map_learnt_on_other_sources(items: list[Item]) -> None:
    before, after = rater_tables.calibrated(rater_tables.cases_of(items), "span")
    assert calibration_error(before) > 0.2
    assert calibration_error(after) < 0.05
