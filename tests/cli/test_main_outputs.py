"""No verb writes over what it reads, nor begins where it cannot write."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.errors import logger, shown_log
from tests.helpers.command import Command

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
MODEL = "--model mbr-esd-demo?candidates=candidates.jsonl&n=8"
TEXTS = f"-s src.txt -t mt.txt {MODEL}"
TINY = "--test-set data/tiny --lp en-de"
HYPOTHESES = "data/tiny/system-outputs/en-de/mt.txt"


@pytest.fixture
def files(workdir: Path) -> None:
    for name in ("src.txt", "mt.txt", "candidates.jsonl", "human.tsv"):
        shutil.copy(EXAMPLES / name, workdir)
    for name in ("train.jsonl", "odd.png"):
        shutil.copy(EXAMPLES / "candidates.jsonl", name)
    assert main(["wmt", "import", "human.tsv", *TINY.split()]) == 0


@pytest.mark.parametrize(
    ("words", "victim"),
    [
        ("decide candidates.jsonl -o ./candidates.jsonl", "candidates.jsonl"),
        ("decide candidates.jsonl -o link", "candidates.jsonl"),
        (f"sample {TEXTS} -o src.txt", "src.txt"),
        (f"sample {TEXTS} -o candidates.jsonl", "candidates.jsonl"),
        (f"score {TEXTS} --to_json mt.txt", "mt.txt"),
        ("report human.tsv mine=candidates.jsonl -o candidates.jsonl", "candidates.jsonl"),
        (f"report {TINY} -o {HYPOTHESES}", HYPOTHESES),
        (f"sample {TINY} {MODEL} -o {HYPOTHESES}", HYPOTHESES),
        (f"oracle candidates.jsonl {TINY} --plot candidates.jsonl", "candidates.jsonl"),
        (f"oracle odd.png {TINY} --plot odd", "odd.png"),
        (f"oracle odd.png {TINY} --plot odd.svg", "odd.png"),
        ("distill pairs train.jsonl -o .", "train.jsonl"),
    ],
)
def test_an_input_is_not_written_over(files: None, words: str, victim: str, mbr_esd: Command) -> None:
    Path("link").symlink_to("candidates.jsonl")
    before = Path(victim).read_bytes()
    assert "is an input, which the output would replace; write to another file" in mbr_esd(words, status=1).err
    assert Path(victim).read_bytes() == before


@pytest.mark.parametrize("words", ["oracle", "leaderboard --view lambda-sweep --metric"])
def test_whether_a_plot_can_be_drawn_is_looked_at_first(
    files: None, words: str, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command
) -> None:
    message = mbr_esd(words, "absent.jsonl", TINY, "--plot curve.pdf", status=1).err
    assert "curve.pdf: plots are written as .png and .svg" in message
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = mbr_esd(words, "absent.jsonl", TINY, "--plot curve.png", status=1).err
    assert "plotting needs the package 'matplotlib'" in message


@pytest.mark.parametrize(
    "words", ["distill pairs c.jsonl -o {}", "distill sft human.tsv -o {}", "wmt import x.tsv --test-set {}/tiny"]
)
@pytest.mark.parametrize("output", ["human.tsv", "human.tsv/deeper"])
def test_a_folder_cannot_be_where_a_file_is(files: None, words: str, output: str, mbr_esd: Command) -> None:
    assert f"{output} cannot be a folder: " in mbr_esd(words.format(output), status=1).err


def test_notes_are_printed_after_the_library_was_used_without_a_program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger, "handlers", [])  # whatever a command of COMET in an earlier test left there
    logger.info("not printed")
    for _ in range(2):
        with shown_log():
            logger.info("a note")
        logger.info("not printed")
    assert capsys.readouterr().err == "a note\na note\n"
