"""No verb writes over what it reads, nor begins where it cannot write."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import check_output

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TEXTS = ["-s", "src.txt", "-t", "mt.txt", "--model", "mbr-esd-demo?engine=replay&candidates=candidates.jsonl&n=8"]
TINY = ["--test-set", "data/tiny", "--lp", "en-de"]
HYPOTHESES = "data/tiny/system-outputs/en-de/mt.txt"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MBR_ESD_STORE", str(tmp_path / "store.sqlite"))
    for name in ("src.txt", "mt.txt", "candidates.jsonl", "human.tsv"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    for name in ("train.jsonl", "odd.png"):
        (tmp_path / name).write_bytes((EXAMPLES / "candidates.jsonl").read_bytes())
    assert main(["wmt", "import", "human.tsv", *TINY]) == 0
    return tmp_path


@pytest.mark.parametrize(
    ("words", "victim"),
    [
        (["decide", "candidates.jsonl", "-o", "./candidates.jsonl"], "candidates.jsonl"),
        (["sample", *TEXTS, "-o", "src.txt"], "src.txt"),
        (["sample", *TEXTS, "-o", "candidates.jsonl"], "candidates.jsonl"),
        (["score", *TEXTS, "--to_json", "mt.txt"], "mt.txt"),
        (["report", "human.tsv", "mine=candidates.jsonl", "-o", "candidates.jsonl"], "candidates.jsonl"),
        (["report", *TINY, "-o", HYPOTHESES], HYPOTHESES),
        (["sample", *TINY, *TEXTS[4:], "-o", HYPOTHESES], HYPOTHESES),
        (["oracle", "candidates.jsonl", *TINY, "--plot", "candidates.jsonl"], "candidates.jsonl"),
        (["oracle", "odd.png", *TINY, "--plot", "odd"], "odd.png"),
        (["oracle", "odd.png", *TINY, "--plot", "odd.svg"], "odd.png"),
        (["distill", "pairs", "train.jsonl", "-o", "."], "train.jsonl"),
    ],
)
def test_an_input_is_not_written_over(
    files: Path, words: list[str], victim: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(victim).read_bytes()
    assert main(words) == 1
    assert "is an input, which the output would replace; write to another file" in capsys.readouterr().err
    assert Path(victim).read_bytes() == before


@pytest.mark.parametrize("words", [["oracle"], ["lambda-sweep", "--metric"]])
def test_the_ending_of_a_plot_is_looked_at_first(
    files: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "absent.jsonl", *TINY, "--plot", "curve.pdf"]) == 1
    assert "curve.pdf: plots are written as .png and .svg" in capsys.readouterr().err


def test_a_plot_without_matplotlib_is_told_first(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["oracle", "absent.jsonl", *TINY, "--plot", "curve.png"]) == 1
    assert "plotting needs the package 'matplotlib'" in capsys.readouterr().err


def test_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        check_output(tmp_path)
    with pytest.raises(InputError, match="the folder does not exist; make it first"):
        check_output(tmp_path / "no" / "out")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is an input"):
        check_output(tmp_path / "link", [None, tmp_path / "absent", tmp_path / "file"])


@pytest.mark.parametrize(
    "words",
    [
        ["distill", "pairs", "candidates.jsonl", "-o"],
        ["distill", "sft", "human.tsv", "-o"],
        ["wmt", "import", "absent.tsv", "--test-set"],
    ],
)
@pytest.mark.parametrize("output", ["human.tsv", "human.tsv/deeper"])
def test_a_folder_cannot_be_where_a_file_is(
    files: Path, words: list[str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, f"{output}/tiny" if words[0] == "wmt" else output]) == 1
    assert f"{output} cannot be a folder: " in capsys.readouterr().err
