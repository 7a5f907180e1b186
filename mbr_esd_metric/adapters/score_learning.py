"""A score that is learnt from candidates and from people's ratings of the same translations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from mbr_esd_metric.adapters.human import read_mqm
from mbr_esd_metric.core.learnt_score import LearntScore, mean_expected
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.records import read_candidates


def learn_score(candidates: Iterable[Path], ratings: Sequence[Path]) -> LearntScore:
    """What `LearntScore.fit` learns from the translations that both have, each language pair with the same weight.

    Args:
        candidates: files of candidates that say what the model expected.
        ratings: of people; a language pair that a file does not say is called by the file's name.

    Raises:
        InputError: a file that cannot be read, or no translation that both have.
    """
    people: dict[tuple[str, str], list[float]] = defaultdict(list)
    pair_of: dict[tuple[str, str], str] = {}
    for path in ratings:
        for rating in read_mqm(path):
            if rating.annotation or not rating.errors:
                people[rating.source, rating.target].append(mqm_score(rating.annotation))
                pair_of[rating.source, rating.target] = rating.lp or path.name
    known = {}
    for path in candidates:
        for record in read_candidates(path):
            expected = [one for one in record.columns.expected or () if one is not None]
            if (record.src, record.mt) in people and expected:
                known[record.src, record.mt] = mean_expected(expected)
    if not known:
        raise InputError(
            "no candidate that says what the model expected (format=marked on engine=transformers) is of a translation "
            "with ratings; the texts of both files must be the same"
        )
    counts = Counter(pair_of[texts] for texts in known)
    return LearntScore.fit(
        list(known.values()),
        [sum(people[texts]) / len(people[texts]) for texts in known],
        [1 / counts[pair_of[texts]] for texts in known],
        f"{len(known)} translations: " + ", ".join(f"{count} {pair}" for pair, count in sorted(counts.items())),
    )
