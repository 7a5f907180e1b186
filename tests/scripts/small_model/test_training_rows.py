"""Rows that the small model learns from."""

from __future__ import annotations

from pathlib import Path

import pytest
import training_rows

HEADER = "mt_system\tdoc\tseg\trater\tsource\ttarget\tstart_indices\tend_indices\terrors"
#: System, rater, and where the errors begin and end; -1 is none.
RATED = (
    ("a", "strict", "0 0\t1 2\tmajor major"),
    ("b", "strict", "0\t2\tmajor"),
    ("a", "mild", "0\t1\tmajor"),
    ("b", "mild", "-1\t-1\tno-error"),
)


def test_translations_of_a_source_have_the_order_of_the_mean_of_their_raters(tmp_path: Path) -> None:
    path = tmp_path / "2021_de-en.tsv"
    rows = (f"{system}\tdoc\t1\t{rater}\teins\tone {system}\t{errors}\n" for system, rater, errors in RATED)
    path.write_text(f"{HEADER}\n{''.join(rows)}", encoding="utf-8")
    mqm, clean = training_rows.read_mqm_rows(str(path), 1.0)
    [[worse, better]] = mqm.sources
    assert [row.order for row in worse] == pytest.approx([-2, -2]), "one standard deviation of each rater"
    assert [row.order for row in better] == pytest.approx([2, 2])
    assert worse[0].quality == pytest.approx(-(2.3979 + 1.7918) / 2, abs=1e-3)
    assert [one.translation for one in clean] == ["one b"]
    both = training_rows.joined(better[0], worse[1])
    assert (both.translation, both.errors) == ("one b one a", ((0, 2, 2), (6, 7, 2)))


def test_contrasts_of_one_word_weigh_most() -> None:
    """Frequent pairs of words, in either direction, weigh least."""
    pairs = [("Der Hund schläft.", "Die Katze schläft."), ("Sie hat 3 Hunde.", "Sie hat 3 Katzen.")]
    pairs += [(f"Er mag {n}.", f"Sie mag {n}.") for n in "abcd"] + [(f"Sie hat {n}.", f"Er hat {n}.") for n in "efgh"]
    pairs += [("Es ist heiß.", "Es ist sehr heiß.")]
    weights = training_rows.contrast_weights(pairs)
    assert weights[1] > weights[0] == weights[-1] > weights[2]
    assert set(weights[2:-1]) == {weights[2]}
