"""Decisions for a whole file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from mbr_esd_metric.core.decision import WEIGHTINGS
from mbr_esd_metric.core.rules import rules
from mbr_esd_metric.core.similarities import get_similarity
from mbr_esd_metric.decoding.file import decide_file, decided_records
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.files.records import read_decisions, write_records
from tests.helpers.candidates import answer, record


@pytest.mark.parametrize("rule", ["mbr", "mbr-corpus"])
def test_records_are_decided_as_a_whole_file_is(tmp_path: Path, rule: str) -> None:
    path, out = tmp_path / "candidates.jsonl", tmp_path / "out.jsonl"
    texts = [("Der Hund bellt.", [answer("Hund"), answer("Hund"), answer()]), ("Die Katze.", [answer("Katze"), "none"])]
    write_records(path, [record("A source.", mt, *some) for mt, some in [("", []), *texts]])
    decide_file(path, out, DecisionOptions(rule))
    expected = [(one.annotation, one.score, one.valid) for one in read_decisions(out)]
    records = list(decided_records(path, DecisionOptions(rule)))
    assert [(one.annotation, one.score, one.valid) for _, one in records if one is not None] == expected
    assert [one.segment.translation for one, _ in records] == ["", *(mt for mt, _ in texts)]


@pytest.mark.parametrize("rule", rules(references=False))
def test_decisions_with_one_signature_are_the_same(tmp_path: Path, rule: str) -> None:
    one = record("A source.", "Der Hund bellt laut.", answer("Hund"), answer("Hund"), answer("Hund bellt"), answer())
    columns = replace(one.columns, logprobs=(-3.0, -3.0, -2.0, -1.0), annotators=("A", "A", "B", "C"))
    if rule == "greedy":
        columns = replace(record("", "", answer("Hund")).columns, annotators=("A",))
    write_records(tmp_path / "c.jsonl", [replace(one, columns=columns)])
    decisions: dict[str, object] = {}
    similarities = () if "corpus" in rule else ("f1", "mpp", get_similarity("mpp"))
    for utility, weights in product(("softf1", *similarities), WEIGHTINGS):
        decide_file(tmp_path / "c.jsonl", tmp_path / "out.jsonl", DecisionOptions(rule, utility, weights))
        [line] = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines())
        assert decisions.setdefault(line["signature"], line) == line


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end between opening and reading
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the children of a process are read from /proc")
def test_after_kill_9_no_worker_stays_and_no_output(tmp_path: Path) -> None:
    words = [f"Wort{i}" for i in range(40)]
    slow = record("s", " ".join(words), *(answer(word) for word in words))  # a few seconds for all
    write_records(tmp_path / "c.jsonl", [slow] * 4000)
    code = "from mbr_esd_metric.decoding.file import decide_file; decide_file('c.jsonl', 'out.jsonl', workers=2)"
    killed = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE)
    children, end = Path(f"/proc/{killed.pid}/task/{killed.pid}/children"), time.monotonic() + 300
    while len(workers := [int(child) for child in children.read_text(encoding="ascii").split()]) < 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    while any(map(_running, workers)):
        assert time.monotonic() < end, "a worker stayed behind"
        time.sleep(0.05)
    assert not (tmp_path / "out.jsonl").exists()
