"""From ratings to a gate: `calibrate --error-free`, `score --error-free --fail-share`, and WMT26's task 3."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout, write_scores
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan
from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.metaeval.error_free import read_error_free
from tests.helpers.candidates import answer, record
from tests.helpers.command import Command
from tests.helpers.wmt_folder import write_folder


@pytest.fixture
def files(workdir: Path) -> None:
    """A metric's output, and ratings in which errors are rarer the higher its score is. One of them has no error, and a
    score of 84 in the second file."""
    for name in ("out.json", "mqm.jsonl", "esa.jsonl"):
        shutil.copy(Path(__file__).parents[1] / "data" / "metaeval" / name, workdir)


@pytest.mark.usefixtures("files")
def test_it_is_learnt_and_saved(mbr_esd: Command) -> None:
    result = mbr_esd("calibrate out.json --error-free mqm.jsonl --save e.json")
    assert "e.json: fitted to 100 translations of out.json" in result.err
    assert read_error_free("e.json").aim == "mcc"
    again = mbr_esd("calibrate out.json --error-free esa.jsonl --precision 0.8 --save e.json")
    assert read_error_free("e.json").aim == "precision 0.8"
    # 84 of 100 is not without error, although nothing is marked.
    clean, fewer = (int(re.findall(r"(\d+) of 100 rated translations", one.out)[0]) for one in (result, again))
    assert fewer == clean - 1


@pytest.mark.usefixtures("files")
def test_a_score_that_does_not_reach_the_precision_is_a_row(mbr_esd: Command) -> None:
    Path("out.json").write_text(re.sub(r'"COMET": [\d.]+', '"COMET": 0.5', Path("out.json").read_text()))
    printed = mbr_esd("calibrate out.json --error-free mqm.jsonl --precision 0.7 --save e.json").out
    assert "score, threshold: no threshold reaches a precision of 0.7 in at least one fold" in printed
    assert Path("e.json").exists()


@pytest.mark.usefixtures("files")
def test_messages(mbr_esd: Command) -> None:
    for words, message in (
        ("out.json --error-free", "specify a metric's files and --error-free RATINGS"),
        ("out.json --error-free mqm.jsonl --precision 2", "--precision 2.0: must be between"),
        ("out.json mqm.jsonl --precision 0.9", "--precision 0.9 has no effect"),
    ):
        assert message in mbr_esd("calibrate", words, status=1).err


@pytest.mark.usefixtures("files")
def test_a_gate_over_the_share_of_segments(mbr_esd: Command) -> None:
    mbr_esd("calibrate out.json --error-free mqm.jsonl --save e.json")
    Path("src.txt").write_text("one\ntwo\nthree\n")
    Path("mt.txt").write_text("eins\nzwei\n\n")
    write_records("c.jsonl", [record("one", "eins", answer()), record("two", "zwei", answer("zwei"))])
    score = "score -s src.txt -t mt.txt --only_system --model mbr-esd-demo?candidates=c.jsonl&n=1"
    result = mbr_esd(score, "--error-free e.json --fail-share 0.3 --to_json o.json")
    assert "mt.txt\twithout error: 0.3333" in result.out
    assert f"|error-free:{read_error_free('e.json').digest}" in result.err
    assert [row["error_free"] for row in json.loads(Path("o.json").read_text())["mt.txt"]] == [True, False, False]
    message = mbr_esd(score, "--error-free e.json --fail-share 0.9", status=3).err
    assert "mt.txt: 0.3333 of the segments are error-free, less than 0.9" in message
    assert "must be between 0 and 1, and requires --error-free FILE" in mbr_esd(score, "--fail-share 0.9", status=1).err


def test_the_error_free_translations_are_those_of_the_leaderboard(own: Layout, mbr_esd: Command) -> None:
    """An error in the source is one as well: a span there, or only an MQM score below 0."""
    test_set = load_test_set(own.data, "wmt23", "en-de")
    rows = zip(test_set.systems, test_set.gold.tolist(), strict=True)
    scores = {system: [None if math.isnan(score) else 0.0 for score in row] for system, row in rows}
    (human,) = test_set.human_ratings()
    changed = list(human.both["A"])
    assert changed[5] == EMPTY
    counts = []
    for score, annotation in (
        (0.0, EMPTY),
        (-1.0, EMPTY),
        (0.0, Annotation([ErrorSpan(0, 1, "minor", side="source")])),
    ):
        scores["A"][5], changed[5] = score, annotation
        write_scores(own.human_file("mqm", "seg.score"), scores)
        write_ratings(own.human_file("mqm.merged", "seg.rating"), {**human.both, "A": changed})
        where = f"--test-set {own.root} --lp en-de --metric spans"
        both = [mbr_esd(verb, where).out for verb in ("leaderboard --view error-free", "calibrate --error-free")]
        counts.append({int(re.findall(r"(\d+) of \d+ rated translations", printed)[0]) for printed in both})
    assert counts == [{46}, {45}, {45}]


def test_a_test_set_teaches_task_3(tmp_path: Path, mbr_esd: Command) -> None:
    write_folder(tmp_path / "data", "made", "en-de")
    where = f"--test-set {tmp_path}/data/made --lp en-de"
    file, out = tmp_path / "e.json", tmp_path / "t3.jsonl"
    assert "by" in mbr_esd("calibrate", where, "--metric spans --error-free --save", file).out
    submit = f"wmt submit {where} --task wmt26 --metric spans -o {out} --error-free"
    rows = []
    for by in (file, 90):
        mbr_esd(submit, by)
        rows.append([json.loads(line)["task3_pred"] for line in out.read_text().splitlines()])
    assert [list(one) for one in rows[0]] == [list(one) for one in rows[1]]
    assert {value for one in rows[0] for value in one.values()} == {0, 1}
    assert "none.json: " in mbr_esd(submit, "none.json", status=1).err
