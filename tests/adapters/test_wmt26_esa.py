"""WMT26's human evaluation: a small campaign from Pearmut's server, held to what the task's own scripts say of it.

`tests/golden/wmt26.json` is the download of Pearmut 1.1.6, to which four users' answers were posted as its page posts
them: three of five systems at a time (cESA, dynamic assignment) after a tutorial; one user is reset, one fails the
attention check, one answers at random. Its key "theirs" is what the scripts in `humeval` of
wmt-conference/wmt26-general-mt make of that download: the users who are left, each system's mean and number of scores.
That a real `EvalSet` reads the folder and gives the same acc_eq* and correlations of systems was checked with
mt-metrics-eval at 68a481a; its SPA takes no systems of which segments are missing.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.layout import read_scores
from mbr_esd_metric.adapters.wmt26_esa import read_wmt26_esa
from tests.helpers.command import Command
from tests.helpers.refused import refused

LP, CAMPAIGN = "eng_Latn-deu_Latn", "eng_Latn---deu_Latn v3"
GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "wmt26.json").read_text(encoding="utf-8"))


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The release's files, in the current folder; returns the annotations."""
    monkeypatch.chdir(tmp_path)
    Path("data/systems").mkdir(parents=True)
    files = {f"systems/{name}": rows for name, rows in GOLDEN["systems"].items()}
    for name, rows in {**files, "wmt26-genmt": GOLDEN["documents"]}.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        Path(f"data/{name}.jsonl").write_text(text, encoding="utf-8")
    path = Path("annotations.json")
    path.write_text(json.dumps(GOLDEN["annotations"]), encoding="utf-8")
    return path


def test_users_are_those_of_the_tasks_scripts(release: Path) -> None:
    (human,) = read_wmt26_esa(release, "data").human
    assert sorted(filter(None, {one.rater for one in human})) == GOLDEN["theirs"]["users"]
    assert human.lps == (LP,)
    left_out = Counter(item.reason for item in human.left_out)
    assert left_out["user who agrees with the others too little"] == 1
    assert left_out["attention check that was failed"] == 1
    assert left_out["document that nobody rated"] == 2  # or only the user who is left out
    assert left_out["tutorial"] == 5  # zoe saw it again after the reset
    assert left_out["screen that was reset"] > 0


def test_it_becomes_a_test_set_with_the_means_of_the_tasks_scripts(release: Path, mbr_esd: Command) -> None:
    out = mbr_esd("wmt import annotations.json data --test-set out/wmt26").out
    assert f"wmt26 {LP} in out: 5 systems (references: refA)" in out
    test_set = load_test_set("out", "wmt26", LP)
    assert (test_set.info.gold, test_set.info.standard_reference) == ("esa", "refA")
    assert {domain for domain, _ in test_set.documents} == {"news", "software", "speech"}
    gold = read_scores(test_set.layout.human_file("esa", "seg.score"))
    for name, theirs in GOLDEN["theirs"]["systems"].items():
        system = {"Human (from scratch)": "refA", "Bob 2 - 9B": "Bob_2_-_9B"}.get(name, name)
        scores = [score for score in gold[system] if score is not None]
        assert [np.mean(scores), len(scores)] == pytest.approx(theirs)
    segments = read_wmt26_esa(release, "data").segments
    assert list(test_set.sources) == [segment.source.replace("\n", " ").rstrip() for segment in segments]
    rated = [one for each in test_set.human_ratings()[0].both.values() for one in each if one is not None]
    assert any(len(one) for one in rated)
    assert any(one.unplaced for one in rated)
    documents = [json.loads(line) for line in Path(f"out/wmt26/task/{LP}.documents").read_text("utf-8").splitlines()]
    assert len(documents) == len(set(test_set.documents))
    assert {"doc_id", "video"} <= set(documents[0])
    # Nobody sees a video: the transcript is the source.
    assert "well this is what somebody said" in test_set.sources


def test_messages(release: Path, mbr_esd: Command) -> None:
    refused("no rating of cs-de", read_wmt26_esa, release, "data", ["cs-de"])
    refused(r"give the folder with wmt26-genmt.jsonl and systems/\*.jsonl", read_wmt26_esa, release, ".")
    without = mbr_esd("wmt import annotations.json --test-set out/wmt26", status=1).err
    assert "add the folder that contains wmt26-genmt.jsonl after it" in without
    log = json.loads(json.dumps(GOLDEN["annotations"]))
    rated = [entry for entry in log[CAMPAIGN] if entry["user_id"] == "anna" and type(entry.get("item_i")) is int]
    (system, *_) = rated[0]["annotation"][0]
    rated[0]["annotation"][0]["Nobody saw it"] = {"score": 5, "error_spans": []}
    rated[0]["annotation"][0][system]["error_spans"] = [{"start_i": 0, "end_i": 9**9, "severity": "minor"}]
    Path("annotations.json").write_text(json.dumps(log, indent=2), encoding="utf-8")
    (human,) = read_wmt26_esa(release, "data").human
    left_out = Counter(item.reason for item in human.left_out)
    assert left_out["score of a translation that was not shown"] == 1
    assert left_out["error span without a severity, or outside of its translation"] == 1
    rated[0]["item"][0]["item_id"] = "news_###_elsewhere_###_0"
    Path("annotations.json").write_text(json.dumps(log), encoding="utf-8")
    refused("segment news_###_elsewhere_###_0 is not in data/wmt26-genmt.jsonl", read_wmt26_esa, release, "data")
