"""`mbr-esd sample --grid`, with a stand-in for a server of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from tests.helpers.chat_server import FakeServer

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
FILES = ["-s", "src.txt", "-t", "mt.txt"]
TINY = ["--data", "data", "--test-set", "tiny", "--lp", "en-de"]
GRID = ["--grid", "temperature=.7,1", "rule=mbr,majority"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MBR_ESD_STORE", str(tmp_path / "store.sqlite"))
    for name in ("src.txt", "mt.txt"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    return tmp_path


def test_a_grid_is_planned_sampled_and_tabulated(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["wmt", "import", str(EXAMPLES / "human.tsv"), "--test-set", "tiny", "--lp", "en-de", "-o", "data"]) == 0
    )
    capsys.readouterr()
    with FakeServer("mine") as server:
        words = ["sample", *TINY, "--model", "mbr-esd-server?model=mine&n=8&lp=en-de", "--server", server.url, *GRID]
        assert main([*words, "--dry-run", "-o", "plan.json"]) == 0
        assert not server.bodies
        plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
        assert [(row["temperature"], row["rule"], row["to_sample"]) for row in plan["rows"]] == [
            (".7", "mbr", 32),
            (".7", "majority", 32),
            ("1", "mbr", 32),
            ("1", "majority", 32),
        ]
        told = capsys.readouterr()
        assert "4 settings x 4 segments: 128 candidates, 0 of them stored" in told.out
        assert main([*words, "-o", "grid.json"]) == 0
        assert "4 settings x 4 segments: 128 candidates, 0 of them stored" in capsys.readouterr().err
        asked = len(server.bodies)
        found = json.loads(Path("grid.json").read_text(encoding="utf-8"))
        rows = found["rows"]
        assert [row["sampled"] for row in rows] == [32, 0, 32, 0]
        assert [row["seconds"] is None for row in rows] == [False, True, False, True]
        for row in rows:
            assert row["candidates"] == 32
            assert row["tokens"] > 1
            assert 0 <= row["unmarked"] <= 1
            assert -1 <= row["seg-spearman-none"] <= 1
            assert 0 <= row["softdice-corpus"] <= 1
        # A later run of a setting asks nothing, and gives the scores that the table compared with people's.
        score = ["score", *FILES, "--model", found["models"][2]["model"], "--quiet", "--to_json", "out.json"]
        assert main(score) == 0
        assert len(server.bodies) == asked
    scores = [one["COMET"] for one in json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]]
    leaderboard = ["leaderboard", *TINY, "--metric", "G=out.json", "--statistics", "seg-spearman-none"]
    assert len(set(scores)) > 1
    capsys.readouterr()
    assert main([*leaderboard, "--format", "json"]) == 0
    board = json.loads(capsys.readouterr().out)
    (value,) = [one["en-de"]["seg-spearman-none"] for one in board["rows"]]
    assert value == pytest.approx(rows[2]["seg-spearman-none"])


def test_without_gold_it_says_what_was_lost(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer("mine") as server:
        model = f"mbr-esd-server?model=mine&n=4&lp=en-de&server={server.url}"
        assert main(["sample", *FILES, "--model", model, "--grid", "temperature=.7,1", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "% invalid" in out
    assert "Spearman" not in out


def test_without_a_grid_the_candidates_need_a_file(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", *FILES]) == 1
    assert "say where the candidates go: -o OUT" in capsys.readouterr().err
