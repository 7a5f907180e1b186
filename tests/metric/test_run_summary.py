"""The summary of a run, and its advice where the scores tell little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.metric import Metric, Prediction
from mbr_esd_metric.metric.run import summary
from tests.helpers.candidates import answer, record

CLEAN = answer()
TRANSLATIONS = ("Der Hund schlief im Garten.", "Die Katze trank Milch.", "Das Ufer war leer.")


def predicted(folder: Path, texts: Sequence[Sequence[str]], cut: bool = False, options: str = "") -> Prediction:
    """The prediction over these candidates of each translation; a "{" may be cut by the length limit."""
    path = folder / "candidates.jsonl"
    records = [record(f"Source {i}.", mt, *texts[i]) for i, mt in enumerate(TRANSLATIONS)]
    flags = [tuple(cut and text == "{" for text in row) for row in texts]
    columns = [replace(one.columns, truncated=row) for one, row in zip(records, flags, strict=True)]
    write_records(path, [replace(one, columns=some) for one, some in zip(records, columns, strict=True)])
    card = load_card(f"mbr-esd-phi4?candidates={path}&n={len(texts[0])}{options}")
    samples = [{"src": f"Source {i}.", "mt": mt} for i, mt in enumerate(TRANSLATIONS)]
    return Metric(card).predict(samples, progress_bar=False)


MARKED = [
    [CLEAN] * 3 + [answer("Hund")],
    [CLEAN] * 2 + [answer("Katze"), answer("Milch", severity="minor")],
    [CLEAN] * 4,
]
LOST = [
    [answer("Hund")] * 2 + [answer("Wolf", "Fuchs")] * 2,
    [answer("Katze", severity="minor")] * 3 + [answer("Maus")],
    [CLEAN, *[answer("Strand")] * 3],
]
BROKEN = [[CLEAN, answer("Hund"), "{", "{"], [answer("Milch"), "{", "{", "{"], [CLEAN, "{", "{", "{"]]
NOT_FOUND = "not found in the translation"


@pytest.mark.parametrize(
    ("texts", "cut", "line", "advice"),
    [
        ([[answer("Hund")] * 4, [CLEAN] * 4, [answer("Ufer", severity="minor")] * 4], False, "", []),
        (
            MARKED,
            False,
            "",
            [
                "all 3 segments have the score 1.0000: 3 decisions have no error span, and 9 of 12 candidates say that",
                "score=expected takes the mean over the candidates, which mark 0.00 to 0.50 error spans a segment",
            ],
        ),
        # The expected score is no help where no candidate marks anything.
        ([[CLEAN] * 4] * 3, False, "", ["that there is no error; this model finds nothing here: take a larger one"]),
        (LOST, False, f"of 13 error spans 8 {NOT_FOUND}", ["most error spans that candidates marked", "grounded=true"]),
        (
            BROKEN,
            True,
            "of 12 candidates 8 cut at max_tokens",
            ["most candidates were cut at max_tokens", "max_tokens=4096 or format=compact"],
        ),
        (BROKEN, False, "of 12 candidates 8 could not be read", ["most candidates are cut or could not be read"]),
        # Spans that are not found are no silence, and equal scores are no "no error".
        ([[answer("Wolf"), CLEAN]] * 3, False, f"of 3 error spans 3 {NOT_FOUND}", [" 3 of 6 candidates say that"]),
        ([[answer("Wolf")] * 2] * 3, False, f"of 6 error spans 6 {NOT_FOUND}", [" 0 of 6 candidates say that there"]),
        (
            [[answer(mt[:3], severity="minor")] * 2 for mt in TRANSLATIONS],
            False,
            "",
            ["all 3 segments have the score 0.9600: 0 of the decisions and 0 of 6 candidates mark no error"],
        ),
        (
            [[answer("Hund\u00a0schlief"), answer("Wolf")], [CLEAN] * 2, [CLEAN] * 2],
            False,
            f"of 2 error spans 1 {NOT_FOUND}, 1 found with other blanks, quotation marks, hyphens or accents",
            [],
        ),
    ],
)
def test_a_run_says_what_it_lost_and_what_helps(
    tmp_path: Path, texts: list[list[str]], cut: bool, line: str, advice: list[str]
) -> None:
    metadata = predicted(tmp_path, texts, cut).metadata
    assert metadata.summary == line
    assert len(metadata.advice) == bool(advice)
    assert all(part in metadata.advice[0] for part in advice)


def test_the_expected_score_tells_equal_decisions_apart(tmp_path: Path) -> None:
    assert predicted(tmp_path, MARKED).scores == [1.0] * 3
    assert len(set(predicted(tmp_path, MARKED, options="&score=expected").scores)) == 3


def test_the_published_distilled_model_is_to_have_its_authors_prompt(tmp_path: Path) -> None:
    prompt = tmp_path / "authors.txt"
    prompt.write_text("{source_seg} {target_seg}", encoding="utf-8")
    advice = [
        summary(load_card(f"mbr-esd-llama{name}"), None, [], [])[1]
        for name in ("-distill", f"-distill?prompt={prompt}", "")
    ]
    assert [len(lines) for lines in advice] == [1, 0, 0]
    assert "give prompt=FILE" in advice[0][0]
