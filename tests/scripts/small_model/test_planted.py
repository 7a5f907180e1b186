"""Planted errors: each kind makes one error, where it says."""

from __future__ import annotations

import random
from collections import Counter

from planted import PLANTED_KINDS, Planter
from spoilt import Pair

SOURCE = "The government did not talk to Angela Merkel about the new rules on 14 May because she was unwell."
TEXT = "Die Regierung hat am 14. Mai nicht mit Angela Merkel über die neuen Regelungen gesprochen, weil sie krank war."
#: Names that stand in the source as well, and words with the endings of those above.
NAMES = " ".join(f"{c}anesand" for c in "BDFGHKLMNPRSTVWZ")
MORE = " ".join(f"{c}önigen {c}artung {c}erden {c}ichten {c}ungen" for c in "BDFGHKLMNPRSTVWZ")


def clean(translation: str, source: str = "x") -> Pair:
    return Pair(source, translation, "en-de")


def test_one_error_is_planted_where_it_says() -> None:
    item, kinds = clean(TEXT, SOURCE), Counter[str]()
    planter = Planter([item, clean(f"Wort {NAMES}", NAMES), clean(f"Wort {MORE}")])
    for seed in range(300):
        made = planter.plant(item, random.Random(seed))
        assert made is not None
        text = made.text
        kinds[made.kind] += 1
        assert text != TEXT
        assert TEXT.startswith(text[: made.start].rstrip())
        if made.kind in ("negation", "omission"):
            assert text[made.start : made.end] in TEXT, "the word before what is gone"
            assert len(text) < len(TEXT)
        else:
            assert TEXT.endswith(text[made.end :])
    assert set(kinds) == set(PLANTED_KINDS)
    assert min(kinds["omission"], kinds["negation"]) > max(kinds["order"], kinds["form"], kinds["number"])
