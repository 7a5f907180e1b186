"""The summary of a run, and its advice where the scores tell little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.metric.metric import Metric, Prediction
from mbr_esd_metric.metric.summary import summary
from tests.helpers.candidates import answer, record

CLEAN = answer()
TRANSLATIONS = ("Der Hund schlief im Garten.", "Die Katze trank Milch.", "Das Ufer war leer.")


def predicted(
    folder: Path, texts: Sequence[Sequence[str]], cut: Sequence[Sequence[bool]] | None = None, options: str = ""
) -> Prediction:
    """The prediction over these candidates of each translation."""
    path = folder / "candidates.jsonl"
    records = [record(f"Source {i}.", mt, *texts[i]) for i, mt in enumerate(TRANSLATIONS)]
    if cut:
        columns = [replace(one.columns, truncated=tuple(flags)) for one, flags in zip(records, cut, strict=True)]
        records = [replace(one, columns=some) for one, some in zip(records, columns, strict=True)]
    write_records(path, records)
    card = load_card(f"mbr-esd-phi4?candidates={path}&n={len(texts[0])}{options}")
    samples = [{"src": f"Source {i}.", "mt": mt} for i, mt in enumerate(TRANSLATIONS)]
    return Metric(card).predict(samples, progress_bar=False)


def test_equal_scores_get_advice_that_tells_the_segments_apart(tmp_path: Path) -> None:
    texts = [
        [CLEAN] * 3 + [answer("Hund")],
        [CLEAN] * 2 + [answer("Katze"), answer("Milch", severity="minor")],
        [CLEAN] * 4,
    ]
    run = predicted(tmp_path, texts)
    assert run.scores == [1.0] * 3
    (line,) = run.metadata.advice
    assert "all 3 segments have the score 1.0000: 3 decisions have no error span, and 9 of 12 candidates say" in line
    assert "score=expected takes the mean over the candidates, which mark 0.00 to 0.50 error spans a segment" in line
    assert len(set(predicted(tmp_path, texts, options="&score=expected").scores)) == 3
    # The expected score is no help where no candidate marks anything.
    (line,) = predicted(tmp_path, [[CLEAN] * 4] * 3).metadata.advice
    assert "score=expected" not in line
    assert "take a larger one" in line


def test_most_spans_dropped(tmp_path: Path) -> None:
    texts = [
        [answer("Hund")] * 2 + [answer("Wolf", "Fuchs")] * 2,
        [answer("Katze", severity="minor")] * 3 + [answer("Maus")],
        [CLEAN, *[answer("Strand")] * 3],
    ]
    run = predicted(tmp_path, texts)
    assert run.metadata.summary == "of 13 error spans 8 not found in the translation"
    (line,) = run.metadata.advice
    assert line.startswith("most error spans that candidates marked are not in the translation")
    assert "grounded=true" in line


def test_most_candidates_cut(tmp_path: Path) -> None:
    texts = [[CLEAN, answer("Hund"), "{", "{"], [answer("Milch"), "{", "{", "{"], [CLEAN, "{", "{", "{"]]
    cut = [[text == "{" for text in row] for row in texts]
    run = predicted(tmp_path, texts, cut)
    assert run.metadata.summary.startswith("of 12 candidates 8 cut at max_tokens")
    (line,) = run.metadata.advice
    assert line.startswith("most candidates were cut at max_tokens")
    assert "max_tokens=4096 or format=compact" in line
    (line,) = predicted(tmp_path, texts).metadata.advice
    assert line.startswith("most candidates are cut or could not be read")


def test_scores_that_differ_need_no_advice(tmp_path: Path) -> None:
    texts = [[answer("Hund")] * 4, [CLEAN] * 4, [answer("Ufer", severity="minor")] * 4]
    assert predicted(tmp_path, texts).metadata.advice == []


def test_the_published_distilled_model_is_to_have_its_authors_prompt(tmp_path: Path) -> None:
    prompt = tmp_path / "authors.txt"
    prompt.write_text("{source_seg} {target_seg}", encoding="utf-8")
    advice = [
        summary(load_card(f"mbr-esd-llama{name}"), None, [], []).advice
        for name in ("-distill", f"-distill?prompt={prompt}", "")
    ]
    assert [len(lines) for lines in advice] == [1, 0, 0]
    assert "give prompt=FILE" in advice[0][0]


def test_advice_says_what_was_counted(tmp_path: Path) -> None:
    """Spans that are not found are no silence, and equal scores are no "no error"."""
    for candidates, clean, dropped in (([answer("Wolf"), CLEAN], 3, 3), ([answer("Wolf")] * 2, 0, 6)):
        run = predicted(tmp_path, [candidates] * 3).metadata
        (line,) = run.advice
        assert line.endswith(f" {clean} of 6 candidates say that there is no error")
        assert run.summary == f"of {dropped} error spans {dropped} not found in the translation"
    texts = [[answer(mt[:3], severity="minor")] * 2 for mt in TRANSLATIONS]
    (line,) = predicted(tmp_path, texts).metadata.advice
    assert line == "all 3 segments have the score 0.9600: 0 of the decisions and 0 of 6 candidates mark no error"


def test_spans_that_are_not_copied_exactly_are_counted(tmp_path: Path) -> None:
    texts = [[answer("Hund\u00a0schlief"), answer("Wolf")], [CLEAN] * 2, [CLEAN] * 2]
    run = predicted(tmp_path, texts)
    assert [span["text"] for span in run.metadata.error_spans[0]] == ["Hund schlief"]
    assert run.metadata.summary == (
        "of 2 error spans 1 not found in the translation, 1 found with other "
        "blanks, quotation marks, hyphens or accents"
    )
