"""Every table of human MQM at hand, imported under its test set's name, goes through every analysis."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import write_scores
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.elicit.formats.json import render_answer

TABLES = [
    ("mqm_ted_ende.tsv", "wmt21.tedtalks", "en-de"),
    ("sxs_mqm_generalMT2023_ende.3raters.tsv", "wmt23", "en-de"),
    ("bio_mqm_en-de_de-en.jsonl.gz", "bio", "en-de"),
    ("bio_mqm_en-de_de-en.jsonl.gz", "bio", "de-en"),
]


def words_of(rng: random.Random, text: str) -> Annotation:
    """Up to two words, with confidences."""
    spans = []
    for word in rng.sample(text.split(), min(len(text.split()), rng.randint(0, 2))):
        start = text.index(word)
        spans.append(ErrorSpan(start, start + len(word), rng.choice(["major", "minor"]), None, rng.random()))
    return Annotation(spans)


def write_metric(test_set: TestSet, rng: random.Random) -> None:
    """A metric that marks words at random."""
    spans = {s: [words_of(rng, text or "") for text in texts] for s, texts in test_set.outputs.items()}
    write_scores(
        test_set.layout.metric_scores("words-src", "seg"), {s: list(map(mqm_score, row)) for s, row in spans.items()}
    )
    unsigned: dict[str, list[str | None]] = {s: [None] * test_set.segments for s in spans}
    write_ratings(test_set.layout.metric_rating("words-src"), spans, unsigned)


def write_candidates(test_set: TestSet, path: Path, rng: random.Random) -> None:
    """Three answers a translation, some with an error."""
    keys = ("error_span", "category", "sub_category", "severity")
    with path.open("w", encoding="utf-8") as file:
        for system in test_set.systems:
            for number, text in enumerate(test_set.outputs[system]):
                said = [
                    [dict(zip(keys, (word, "accuracy", "", "minor"), strict=True)) for word in rng.sample(words, most)]
                    for words, most in (((text or "").split(), min(n, len((text or "").split()))) for n in (0, 1, 1))
                ]
                candidates = [{"text": render_answer(errors), "logprob": -rng.random()} for errors in said]
                record = {
                    "id": f"{system}{number}",
                    "system": system,
                    "src": test_set.sources[number],
                    "mt": text or "",
                }
                file.write(json.dumps({**record, "candidates": candidates}) + "\n")


@pytest.mark.parametrize(("table", "name", "lp"), TABLES)
def test_every_analysis_runs(
    table: str, name: str, lp: str, mqm_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (mqm_folder / table).is_file():
        pytest.skip(f"no {mqm_folder / table}")
    rng = random.Random(0)
    where = ["--test-set", f"{tmp_path}/{name}", "--lp", lp]
    assert main(["wmt", "import", str(mqm_folder / table), *where]) == 0
    test_set = load_test_set(tmp_path, name, lp)
    write_metric(test_set, rng)
    candidates = tmp_path / "candidates.jsonl"
    write_candidates(test_set, candidates, rng)
    capsys.readouterr()
    few = ["--measures", "softf1", "mpp-corpus"]
    # Some of the systems, as the test is of what the tables are like; three have different numbers of ratings in bio.
    systems = ["--systems", *test_set.systems[:2], *test_set.systems[-4:]]
    for words in (
        ["leaderboard", "--k", "20", *few, *systems],
        ["leaderboard", "--tasks", "spans", *few, *systems],
        ["lambda-sweep", "--metric", "words-src", *few],
        ["oracle", str(candidates), "--rules", "empty", "mbr", *few],
    ):
        assert main([*words, *where, "--table", "json"]) == 0, words
        shown = json.loads(capsys.readouterr().out)
        assert len(shown["rows"]) >= 2
        numbers = [v for row in shown["rows"] for v in row.get(lp, row).values() if isinstance(v, (int, float))]
        assert numbers
        assert all(value == value for value in numbers)
