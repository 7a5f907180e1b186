"""What a verb refuses: one line that names file, line or option and the fix, and no file is touched."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from tests.helpers.command import Command

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
MODEL = "--model mbr-esd-demo?candidates=candidates.jsonl&n=8"
TEXTS = "-s src.txt -t mt.txt"
SCORE = f"score {TEXTS} {MODEL}"
TINY = "--test-set data/tiny --lp en-de"
HYPOTHESES = "data/tiny/system-outputs/en-de/mt.txt"
AN_INPUT = "is an input file and would be overwritten; write to another file"
NO_FOLDER = "the folder does not exist"
XLIFF = """<xliff version="1.2"><file source-language="en-GB" target-language="de" original="o"><body>
<trans-unit id="a"><source>The bank closed.</source><target>Das Ufer schloss.</target></trans-unit>
</body></file></xliff>
"""
FILES: dict[str, bytes] = {
    "one.txt": b"Er ging.\n",
    "empty.txt": b"",
    "latin.txt": b"Er ging.\n\xfcber\n",
    "marked.txt": "Er ging.\n\n\n".encode("utf-16"),
    "unmarked.txt": "Er ging.\n\n\n".encode("utf-16-be"),
    "apart.docs": b"a\nb\na\nb\n",
    "unnamed.docs": b"a\n\nb\n\n",
    "other.docs": b'{"x": 1}\n' * 4,
    "other.jsonl": b'{"x": 1}\n{"x": 2}\n',
    "project.xlf": XLIFF.encode(),
    "bare.xlf": XLIFF.replace(' target-language="de"', "").encode(),
    "prompt.txt": b"{source}\n{translation}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("refused")
    for name in ("src.txt", "mt.txt", "candidates.jsonl", "human.tsv"):
        shutil.copy(EXAMPLES / name, path)
    for name in ("train.jsonl", "odd.png"):
        shutil.copy(EXAMPLES / "candidates.jsonl", path / name)
    for name, content in FILES.items():
        (path / name).write_bytes(content)
    (path / "same.txt").symlink_to("mt.txt")
    (path / "link").symlink_to("candidates.jsonl")
    assert main(["wmt", "import", f"{path}/human.tsv", "--test-set", f"{path}/data/tiny", "--lp", "en-de"]) == 0
    return path


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # an input is not written over
        ("decide candidates.jsonl -o ./candidates.jsonl", AN_INPUT),
        ("decide candidates.jsonl -o link", AN_INPUT),
        (f"sample {TEXTS} {MODEL} -o src.txt", AN_INPUT),
        (f"sample {TEXTS} {MODEL} -o candidates.jsonl", AN_INPUT),
        (f"{SCORE} --to_json mt.txt", AN_INPUT),
        ("score project.xlf -o project.xlf", AN_INPUT),
        ("report human.tsv mine=candidates.jsonl -o candidates.jsonl", AN_INPUT),
        (f"report {TINY} -o {HYPOTHESES}", AN_INPUT),
        (f"sample {TINY} {MODEL} -o {HYPOTHESES}", AN_INPUT),
        (f"oracle odd.png {TINY} --plot odd", AN_INPUT),
        (f"oracle odd.png {TINY} --plot odd.svg", AN_INPUT),
        ("distill pairs train.jsonl -o .", AN_INPUT),
        # nor is begun what cannot be written
        (f"sample {TEXTS} {MODEL} -o no/out.jsonl", NO_FOLDER),
        (f"sample {TEXTS} {MODEL} -o .", "is a folder; give the name of a file"),
        *(
            (words.format(output), f"{output} cannot be a folder: ")
            for output in ("human.tsv", "human.tsv/deeper")
            for words in ("distill pairs c -o {}", "distill sft human.tsv -o {}", "wmt import x --test-set {}/tiny")
        ),
        (f"oracle absent.jsonl {TINY} --plot c.pdf", "c.pdf: plots are written as .png and .svg"),
        (f"leaderboard --view lambda-sweep --metric absent.jsonl {TINY} --plot c.pdf", "c.pdf: plots are written as"),
        (f"leaderboard {TINY} --k -1", "--k -1: must be a number of resamples, or 0"),
        ("score -s src.txt -t src.txt --model=", "a model name must be a text such as 'mbr-esd-small', got ''"),
        ("sample -s src.txt -t src.txt -o c.jsonl --model=", "a model name must be a text"),
        ("score -s src.txt -t src.txt --model=?lp=en-de", "a model name must be a text"),
        # texts
        (f"score -s src.txt -t one.txt {MODEL}", "one.txt has 1 line and src.txt has 4"),
        (f"score -s src.txt -t empty.txt {MODEL}", "empty.txt is empty"),
        (f"score -s src.txt -t latin.txt {MODEL}", "latin.txt, line 2: byte 0xfc is not UTF-8"),
        (f"score -s src.txt -t absent.txt {MODEL}", "absent.txt: no such file"),
        (f"score -s src.txt -t marked.txt {MODEL}", "marked.txt looks like UTF-16, not UTF-8; convert the file"),
        (f"score -s src.txt -t unmarked.txt {MODEL}", "unmarked.txt looks like UTF-16"),
        *(
            (f"{verb} -s src.txt -t mt.txt {again} {MODEL}", f"-t {again} is given twice; name each file")
            for verb, again in (("score", "./mt.txt"), ("score", "same.txt"), ("sample -o out.jsonl", "./mt.txt"))
        ),
        ("score -s src.txt", "specify a source file with -s and translations with -t"),
        (f"{SCORE} -o z", "-o has no effect with plain text files"),
        (f"{SCORE} --documents one.txt", "one.txt has 1 line and src.txt has 4"),
        (f"{SCORE} --documents apart.docs", "apart.docs, line 3: document a is not contiguous"),
        (f"{SCORE} --documents unnamed.docs", "unnamed.docs, line 2: no document id"),
        (f"{SCORE} --documents other.docs", "other.docs, line 1: no 'doc_id' in this line"),
        ("score project.xlf -s x -t y", "contains sources and translations; remove -s and -t"),
        ("score project.xlf --documents x", "--documents x has no effect with project.xlf"),
        ("score project.xlf -o out.csv", "-o out.csv: must end in .xlf, as project.xlf does"),
        ("score project.xlf --lp en-fr", "unit o/a is en-de, not en-fr"),
        (f"score bare.xlf {MODEL}", "bare.xlf does not specify the languages of all units; specify them with --lp"),
        ("score bare.xlf --lp de-en", "bare.xlf: unit o/a is en-?, not de-en; give one that fits"),
        (f"score bare.xlf --lp de-en {MODEL}&prompt=prompt.txt", "not de-en"),
        ("show other.jsonl", 'has neither "candidates" nor "error_spans" in one line'),
        ("show A=", "A=: no such file"),
        ("sample -o out.jsonl", "specify what to sample"),
        ("sample --test-set tiny -o out.jsonl", "specify its language pair with --lp"),
        (f"sample -t mt.txt {TINY} -o out.jsonl", "--translations has no effect with --test-set; remove it"),
        # models and decisions
        (f"score {TEXTS} --model mbr-esd-demo?candidates=absent", "absent"),
        (f"score {TEXTS} --model mbr-esd-llama --dry-run --lp german", "not 'german'"),
        (f"score {TEXTS} --model mbr-esd-llama --dry-run --lp en-de/x", "not 'en-de/x'"),
        (f"{SCORE}&engine=server", "engine=server has no effect with candidates=candidates.jsonl"),
        (f"sample {TEXTS} -o out {MODEL.replace('n=8', 'n=auto')}", "n=auto: must be a whole number from 1 to 65536"),
        (f"{SCORE} --dry-run", "a dry run has no effect with candidates=candidates.jsonl"),
        (f"{SCORE} --corrected out.txt", "--corrected out.txt: this model writes no corrections; use format=json-c"),
        (
            f"score {TEXTS} src.txt --corrected out.txt --model mbr-esd-llama?format=json-corrections",
            "takes one system; specify one file",
        ),
        ("decide candidates.jsonl -o out --rule mrb", "error: --rule mrb: unknown rule 'mrb'; did you mean 'mbr'"),
        ("decide candidates.jsonl -o out --rule oracle", "--rule oracle needs human annotations"),
        (
            "decide candidates.jsonl -o out --rule mbr-corpus --utility softf1",
            "--utility softf1 has no effect with --rule mbr-corpus",
        ),
        ("decide candidates.jsonl -o out --utility softf2", "softf1"),
        ("decide candidates.jsonl -o out --format compct", "unknown format 'compct'; did you mean 'compact'"),
        *(
            (f"decide candidates.jsonl -o out --{option} w", "'w'")
            for option in ("weights", "invalid", "mqm", "location")
        ),
        ("models mbr-esd-lama", "unknown model 'mbr-esd-lama'; did you mean 'mbr-esd-llama'"),
        ("models mbr-esd-lama", "mbr-esd-server?model=NAME&server=URL"),
        ("oracle --test-set no-data/t --lp en-de -- mbr", "no such test set"),
    ],
)
def test_what_is_refused_is_one_line_and_touches_no_file(
    folder: Path, words: str, message: str, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command
) -> None:
    monkeypatch.chdir(folder)
    before = _contents(folder)
    line = mbr_esd(words, status=1).err.splitlines()[-1]
    assert message in line
    assert line.startswith(f"mbr-esd {words.split()[0]}")
    assert "mrb" not in words or "oracle" not in line
    assert _contents(folder) == before


def test_where_nothing_may_be_written_is_said_before_the_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "out cannot be written: no write permission" in mbr_esd("decide absent.jsonl -o out", status=1).err


@pytest.mark.parametrize("words", ["oracle", "leaderboard --view lambda-sweep --metric"])
def test_whether_a_plot_can_be_drawn_is_looked_at_first(
    folder: Path, words: str, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = mbr_esd(words, "absent.jsonl", TINY, "--plot curve.png", status=1).err
    assert "plotting needs the package 'matplotlib'" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("scor -s src.txt", "unknown verb 'scor'; did you mean 'score'"),
        ("wmt improt", "unknown verb 'improt'; did you mean 'import'?"),
        ("compare x --table jsn", "unknown value of --table 'jsn'; did you mean 'json'?"),
        ("score -s s -t t --modle x", "unrecognized arguments: --modle; did you mean --model?"),
        ("sample -s s -t t -o o --seed 1", "--seed 1; seed is an option of a model: --model 'NAME?seed=...'"),
        ("score -s s -t t --rule map", "; rule is an option of a model: --model 'NAME?rule=...'"),
        ("wmt score --test-set t --lp en-de --model m --modell x", "--modell x; did you mean --model?"),
        ("decide c -o o --zzz", "unrecognized arguments: --zzz\n"),
        (
            "oracle --test-set no-data/t --lp en-de mbr",
            "required: CANDIDATES; --lp takes all following arguments: put CANDIDATES first, or after --",
        ),
        ("oracle", "required: CANDIDATES, --test-set, --lp\n"),
    ],
)
def test_wrong_usage_names_the_nearest_verb_or_option(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words.split())
    assert message in capsys.readouterr().err
