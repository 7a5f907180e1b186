"""The edits and decline ratios of `scripts/paper/synthetic.py` against the annotations that they are of."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
import synthetic
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import Declines, Edit, add_error, decline_ratio, delete_error, free_stretches

from mbr_esd_metric import Annotation, ErrorSpan
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.core.annotation import Severity
from mbr_esd_metric.errors import InputError
from tests.helpers.annotations import drawn
from tests.helpers.wmt_folder import write_folder

LENGTH = 30


def test_every_edit_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = write_folder(tmp_path)
    words = f"synthetic.py --test-set {layout.root} --lp en-de --similarity softf1 f1 --table json"
    monkeypatch.setattr("sys.argv", words.split())
    synthetic.main()
    by_name = {(row["similarity"], row["edit"]): row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert by_name["softf1", "add"]["all"] == by_name["softf1", "delete"]["all"] == 1.0
    assert by_name["f1", "add"]["clean"] < 0.5 < by_name["f1", "add"]["marked"]
    assert by_name["f1", "delete"]["clean"] is None
    (human,) = load_test_set(layout.data, "made", "en-de").human()
    assert by_name["f1", "delete"]["edits"] == sum(len(cell) for row in human for cell in row if cell)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_free_stretches_are_the_maximal_runs_of_unmarked_characters(seed: int) -> None:
    annotation = drawn(random.Random(seed), LENGTH)
    marks = "".join("x" if any(s.start <= i < s.end for s in annotation) else " " for i in range(LENGTH))
    assert free_stretches(annotation, LENGTH) == [run.span() for run in re.finditer(" +", marks)]


@pytest.mark.parametrize("edit", ["add", "delete"])
def test_soft_measures_see_every_edit_and_f1_has_its_plateau(edit: Edit) -> None:
    """The paper's finding: SoftF1 always falls; F1 falls once on an empty annotation and then stays at 0."""
    marked = [Annotation([ErrorSpan(3 * i, 3 * i + 2, "minor")]) for i in range(8)]
    originals = [Annotation()] * 100 + marked
    soft, hard, dice = decline_ratio(originals, [120] * 108, edit, ["softf1", "f1", "softdice"], seed=1)
    assert (soft.similarity, soft.edit, soft.of().ratio, dice.of().ratio) == ("softf1", edit, 1.0, 1.0)
    if edit == "add":
        assert hard.of(marked=False).falls == 100
        assert 1 / 6 <= hard.of(marked=False).ratio < 0.19
        assert hard.of(marked=True).ratio == 1.0
    else:
        assert (hard.of(marked=False).edits, hard.of(marked=True).edits) == (0, 8)
        assert math.isnan(hard.of(marked=False).ratio)


@pytest.mark.parametrize(("severity", "other"), [("major", "minor"), ("minor", "major")])
def test_an_edit_counts_for_the_severity_of_its_error(severity: Severity, other: Severity) -> None:
    three = Annotation([ErrorSpan(at, at + 2, severity) for at in (0, 4, 8)])
    (result,) = decline_ratio([three], [LENGTH], "delete", ["softdice"])
    assert [result.of(severity=of, marked=True).edits for of in (severity, other)] == [3, 0]


@pytest.mark.parametrize(("options", "edits"), [({}, 6), ({"edits": 20}, 10)])
def test_at_most_six_edits_each_on_top_of_the_last(options: dict[str, int], edits: int) -> None:
    many = Annotation([ErrorSpan(3 * i, 3 * i + 1, "minor") for i in range(10)])
    (result,) = decline_ratio([many], [LENGTH], "delete", ["scoresim"], **options)
    assert result.of() == Declines(edits, edits)


def test_a_span_marked_twice_is_two_errors() -> None:
    once = [ErrorSpan(2, 6, "minor", "Accuracy"), ErrorSpan(8, 9, "major")]
    twice = Annotation.of_rater([*once, ErrorSpan(2, 6, "minor", "Style")])
    assert (add_error(twice, 12, np.random.default_rng(0)) or Annotation()).count("minor") >= 2
    assert len(delete_error(twice, np.random.default_rng(0)) or ()) == 2
    with pytest.raises(InputError, match=r"annotation 2: error span \[0, 9\)"):
        decline_ratio([[], [ErrorSpan(0, 9, "major")]], [3, 3], "add")
