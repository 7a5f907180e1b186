"""Statements of docs/evidence/similarities.md about the three raters' annotations."""

from __future__ import annotations

from pathlib import Path

import pytest
import rater_tables
from rater_tables import CORPUS_RULES, Cases

from mbr_esd_metric.metaeval.calibration import calibration_error


@pytest.fixture(scope="module")
def cases(mqm_folder: Path) -> Cases:
    """Two of three raters, against the third."""
    rated = rater_tables.read(str(mqm_folder / "sxs_mqm_generalMT2023_ende.3raters.tsv"))
    return rater_tables.cases_of(rated, rater_tables.THIRDS)


def test_mbr_corpus_beats_every_rule_that_decides_a_segment_at_a_time(cases: Cases) -> None:
    some = [row[::4] for row in cases[::3]]
    scores = rater_tables.evaluated(some, rater_tables.choices(some), ["softdice-corpus"])
    reached = {row: one.values["softdice-corpus"] for row, one in scores.items()}
    corpus = {rule: reached.pop(rule) for rule in CORPUS_RULES}
    # To mark all that either rater does is not a rule for candidates; here it is what mbr-corpus comes down to.
    assert reached.pop("always the union") == pytest.approx(corpus[CORPUS_RULES[0]], abs=1e-4)
    assert len(reached) == 17
    assert min(corpus.values()) > max(reached.values()) + 0.005


def test_confidences_are_right_after_a_map_learnt_on_other_sources(cases: Cases) -> None:
    before, after = rater_tables.calibrated(cases, "span")
    assert calibration_error(before) > 0.2
    assert calibration_error(after) < 0.05
