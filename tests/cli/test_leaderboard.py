"""From human annotations to a leaderboard, on real data: import, score, rank, print.

Four segments of six outputs of the WMT21 TED talks; candidates of the demo model under MAP, majority and three
MBR utilities; BLEU, chrF and the empty annotation.

`golden/leaderboard_ted.json` has the leaderboard as printed; `tests/metaeval` compares its statistics with the toolkit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv
from mbr_esd_metric.cli.main import main
from tests.helpers.command import Command

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN: dict[str, Any] = json.loads((FOLDER / "leaderboard_ted.json").read_text("utf-8"))
TEST_SET, LP = "wmt21.tedtalks", "en-de"
SYSTEMS = ("Facebook-AI", "Nemo", "Online-W", "UEdin", "eTranslation", "ref")
SEGMENTS = ("29", "87", "93", "251")
#: Candidates as offsets, so that no text of the annotations is in the repository; the file says what sampled them.
STORED = FOLDER / "ted_candidates.json"
WHERE = f"--test-set {{}}/{TEST_SET} --lp {LP}"
RULES = {
    "map": "rule=map",
    "majority": "rule=majority",
    "mbr-softf1": "utility=softf1",
    "mbr-f1": "utility=f1",
    "mbr-softdice": "utility=softdice",
}


def write_tsv(mqm_folder: Path, path: Path) -> Path:
    """The rows of these systems and segments."""
    header, *lines = (mqm_folder / "mqm_ted_ende.tsv").read_text(encoding="utf-8").split("\n")
    rows = [line for line in lines if line and line.split("\t")[0] in SYSTEMS and line.split("\t")[3] in SEGMENTS]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def write_candidates(mqm_folder: Path, path: Path) -> Path:
    """The stored candidates as a file that a model takes."""
    ratings = read_mqm_tsv(write_tsv(mqm_folder, path.with_suffix(".tsv")))
    texts = {(r.segment.label, r.segment.system): r.segment for r in ratings}
    lines = []
    for item in json.loads(STORED.read_text(encoding="utf-8"))["segments"]:
        one = texts[item["segment"], item["system"]]
        candidates = [{"text": _answer(spans, one.translation), "logprob": each} for spans, each in item["candidates"]]
        texts_of = {"src": one.source, "mt": one.translation, "candidates": candidates}
        lines.append(json.dumps({"id": item["segment"], "system": item["system"], **texts_of}) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _answer(spans: list[list[Any]] | None, translation: str) -> str:
    """An answer with these errors; one that cannot be parsed for None."""
    if spans is None:
        return '{"errors": ['
    errors = [
        {"error_span": translation[start:end], "category": category, "sub_category": "", "severity": severity}
        for start, end, severity, category in spans
    ]
    return json.dumps({"errors": errors}, ensure_ascii=False)


@pytest.fixture(scope="module")
def data(mqm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder made by the commands that a user types."""
    folder = tmp_path_factory.mktemp("ted")
    tsv, candidates = write_tsv(mqm_folder, folder / "ted.tsv"), write_candidates(mqm_folder, folder / "ted.jsonl")
    where = WHERE.format(folder).split()
    assert main(["wmt", "import", str(tsv), *where]) == 0
    score = ["wmt", "score", *where, "--quiet", "--model"]
    assert main([*score, "BLEU", "chrF", "empty"]) == 0
    for name, options in RULES.items():
        model = f"mbr-esd-demo?candidates={candidates}&n=8&{options}"
        assert main([*score, f"{name}={model}"]) == 0
    return folder


def board(data: Path, mbr_esd: Command, *words: str) -> str:
    return mbr_esd("leaderboard --k 200", WHERE.format(data), *words).out


def test_the_leaderboard_as_printed(data: Path, mbr_esd: Command) -> None:
    lines = board(data, mbr_esd, "--metric", *RULES, "BLEU chrF empty --against map,majority").splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("leaderboard|"))
    shown, golden = ([one.split() for one in of if not one.startswith("--")] for of in (lines[:end], GOLDEN["printed"]))
    assert shown == golden
    signatures = dict(line.split(": ", 1) for line in lines[end:] if ": " in line)
    for rule in RULES:
        rule_name = rule if rule in ("map", "majority") else "mbr"
        assert f"|d:{rule_name}|n:8|" in signatures[rule]
        assert "|candidates:" in signatures[rule]
