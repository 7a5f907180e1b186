"""`mbr-esd sample`, with stored candidates in place of a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.files.records import read_candidates
from tests.helpers.chat_server import FakeServer

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TINY = ["--test-set", "data/tiny", "--lp", "en-de"]
MODEL = f"mbr-esd-demo?engine=replay&candidates={EXAMPLES / 'candidates.jsonl'}&n=8"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MBR_ESD_STORE", str(tmp_path / "store.sqlite"))
    for name in ("src.txt", "mt.txt"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    return tmp_path


def test_what_is_written_is_what_was_sampled(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--quiet"]
    assert main(["sample", *arguments, "-o", "out.jsonl.gz"]) == 0
    assert capsys.readouterr().out == "out.jsonl.gz: 4 segments, 8 candidates each\n"
    written, given = list(read_candidates("out.jsonl.gz")), list(read_candidates(EXAMPLES / "candidates.jsonl"))
    assert [(r.system, r.id) for r in written] == [("mt", r.id) for r in given]
    assert [(r.src, r.mt, r.columns) for r in written] == [(r.src, r.mt, r.columns) for r in given]
    assert main(["decide", "out.jsonl.gz", "-o", "decisions.jsonl"]) == 0


def test_files_of_one_name_are_systems_of_two(files: Path) -> None:
    for folder in ("a", "b"):
        (files / folder).mkdir()
        (files / folder / "mt.txt").write_bytes((files / "mt.txt").read_bytes())
    arguments = ["-s", "src.txt", "-t", "a/mt.txt", "b/mt.txt", "--model", MODEL, "--quiet"]
    assert main(["sample", *arguments, "-o", "out.jsonl"]) == 0
    assert [r.system for r in read_candidates("out.jsonl")] == ["a/mt"] * 4 + ["b/mt"] * 4


def test_an_empty_translation_has_no_error(files: Path) -> None:
    (files / "src.txt").write_text("Nothing.\n", encoding="utf-8")
    (files / "mt.txt").write_text("\n", encoding="utf-8")
    assert main(["sample", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--quiet", "-o", "out.jsonl"]) == 0
    (record,) = read_candidates("out.jsonl")
    assert record.texts == ('{"errors": []}',) * 8


def test_the_rated_translations_of_a_test_set(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    human = str(EXAMPLES / "human.tsv")
    assert main(["wmt", "import", human, "--test-set", "data/tiny", "--lp", "en-de"]) == 0
    sample = ["sample", *TINY, "--model", MODEL, "--quiet", "-o", "out.jsonl"]
    assert main(sample) == 0
    assert [(r.system, r.id) for r in read_candidates("out.jsonl")] == [("mt", str(i)) for i in range(1, 5)]
    for path in Path("data/tiny/human-scores").iterdir():
        path.rename(path.with_name(path.name.replace(".mqm.", ".other.")))
    assert main(sample) == 0  # the only gold there is


def test_as_many_as_needed_is_at_most(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = MODEL.replace("n=8", "n=auto/8")
    assert main(["sample", "-s", "src.txt", "-t", "mt.txt", "--model", model, "--quiet", "-o", "out.jsonl"]) == 0
    assert capsys.readouterr().out == "out.jsonl: 4 segments, at most 8 candidates each\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "out.jsonl"], "say what to sample"),
        (["-s", "src.txt", "-t", "mt.txt", "-o", "no/out.jsonl"], "the folder does not exist"),
        (["-s", "src.txt", "-t", "mt.txt", "./mt.txt", "-o", "out.jsonl"], "-t ./mt.txt is given twice"),
        (["--test-set", "tiny", "-o", "out.jsonl"], "give its language pair with --lp"),
        (["-t", "mt.txt", *TINY, "-o", "out.jsonl"], "--translations changes nothing with --test-set; leave it out"),
    ],
)
def test_wrong_use(files: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_failing_run_leaves_its_bar_once_and_messages_on_lines_of_their_own(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr("mbr_esd_metric.files.streams.LINE_PAUSE", 0.0)  # a bar as on a terminal
    with FakeServer("served", dialect="openai", refuse="not today") as server:
        model = f"mbr-esd-llama?model=served&n=2&lp=en-de&dialect=openai&server={server.url}"
        assert main(["sample", "-s", "src.txt", "-t", "mt.txt", "--model", model, "-o", "out.jsonl"]) == 1
    # A terminal shows of each line what was written last.
    shown = [line.rpartition("\r")[2] for line in capsys.readouterr().err.split("\n")[:-1]]
    assert [line.split(":")[0] for line in shown] == ["mbr-esd", "sampling", "mbr-esd sample"]
    assert "left out: top_k=10" in shown[0]
    assert "of mt.txt: the server refuses the request (400 not today)" in shown[2]


def test_candidates_that_were_cut_are_counted_with_the_fix(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def cut(value: dict[str, list[dict[str, object]]], number: int) -> object:
        for choice in value["choices"][:3]:
            choice["finish_reason"] = "length"
        return value

    with FakeServer("mine", dialect="llamacpp", spoil=cut) as server:
        model = f"mbr-esd-server?server={server.url}&n=8&seed=3"
        arguments = ["-s", "src.txt", "-t", "mt.txt", "--model", model, "--quiet", "-o", "out.jsonl"]
        assert main(["sample", *arguments]) == 0
    found = sum(flag for record in read_candidates("out.jsonl") for flag in record.columns.truncated)
    assert found >= 12
    said = capsys.readouterr().err
    assert f"{found} of 32 candidates were cut at max_tokens=512" in said
    assert "give max_tokens=1024, or format=compact" in said
