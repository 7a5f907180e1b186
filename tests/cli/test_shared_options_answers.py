"""Candidates in every answer format go through every command that reads candidates, with the same results."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, write_records
from mbr_esd_metric.prompting.formats import FORMATS, get_format
from tests.helpers.command import Command
from tests.helpers.pages import page_data
from tests.helpers.wmt_folder import write_folder

WHERE = "--test-set data/made --lp en-de"
#: Each is a file of candidates; in "mixed" every record has another format than the one before it.
#: Those about the translation alone. Answers about both sides are compared over another text, and so decided otherwise.
ALONE = ("json", *(name for name in FORMATS.builtin if name != "json" and not get_format(name).both_sides))
KINDS = (*ALONE, "mixed")
N = 16
#: Kind of candidates and words of a command -> what was printed: files stay, and no command runs twice.
PRINTED: dict[tuple[str, str], tuple[str, str]] = {}


def word_of(rng: random.Random, text: str) -> Annotation:
    """At most one word; none that is part of another, "und" of "Hund"."""
    words = [word for word in text.split() if text.count(word) == 1]
    if rng.random() < 0.4 or not words:
        return Annotation()
    word = rng.choice(words)
    severity: Severity = "major" if rng.random() < 0.5 else "minor"
    return Annotation([ErrorSpan(text.index(word), text.index(word) + len(word), severity)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test set in `data`, its texts, and KIND.jsonl for every kind."""
    work = tmp_path_factory.mktemp("answers")
    write_folder(work / "data")
    test_set = load_test_set(work / "data", "made", "en-de")
    rng = random.Random(1)
    places = [
        (system, number, text or "")
        for system in test_set.systems
        for number, text in enumerate(test_set.outputs[system])
    ]
    annotations = [[word_of(rng, text) for _ in range(N)] for _, _, text in places]
    logprobs = [tuple(-rng.random() * 9 for _ in range(N)) for _ in places]
    for kind in KINDS:
        records = []
        for at, (system, number, text) in enumerate(places):
            name = ALONE[at % len(ALONE)] if kind == "mixed" else kind
            answers, lost = zip(*(get_format(name).answer(one, text) for one in annotations[at]), strict=True)
            assert not any(lost)
            form = None if name == "json" else name
            columns = CandidateColumns(answers, logprobs[at], (False,) * N, format=form)
            records.append(CandidateRecord(f"{number + 1}", test_set.sources[number], text, columns, system))
        write_records(work / f"{kind}.jsonl", records)
    (work / "src.txt").write_text("\n".join(test_set.sources) + "\n", encoding="utf-8")
    for system in test_set.systems:
        lines = [text or "" for text in test_set.outputs[system]]
        (work / f"{system}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return work


@pytest.fixture
def out(folder: Path, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command) -> Callable[[str, str], tuple[str, str]]:
    """Runs a command in the folder; what it prints on both streams, with the name of the candidates' file left out."""
    monkeypatch.chdir(folder)

    def run(kind: str, words: str) -> tuple[str, str]:
        if (kind, words) in PRINTED:
            return PRINTED[kind, words]
        result = mbr_esd(words.replace("KIND", kind))
        printed, noted = (re.sub(rf"\b{kind}\b|(?<=candidates:)\w+", "KIND", text) for text in (result.out, result.err))
        PRINTED[kind, words] = printed, noted
        return printed, noted

    return run


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "json"])
def test_every_command_reads_every_format(kind: str, out: Callable[[str, str], tuple[str, str]], folder: Path) -> None:
    for words in (
        "decide KIND.jsonl -o KIND.decisions.jsonl",
        "decide KIND.jsonl -o KIND.corpus.jsonl --rule mbr-corpus",
        f"oracle KIND.jsonl {WHERE} --rules map mbr mbr-corpus",
        f"oracle KIND.jsonl {WHERE} --sizes 2 {N}",
        "compare KIND.jsonl",
        "show KIND.jsonl -n 9",
        f"calibrate OURS=KIND.decisions.jsonl KIND.jsonl {WHERE}",
    ):
        assert out(kind, words) == out("json", words), words
    # What json gives no value or none: a category, and corrections.
    different = re.compile(
        r'"category": ("[^"]*"|null)|"corrected": "[^"]*", |, "(correction|reason)": "[^"]*"|, "agreement": [0-9.]+'
    )
    for name in ("decisions", "corpus"):
        texts = [(folder / f"{one}.{name}.jsonl").read_text(encoding="utf-8") for one in (kind, "json")]
        assert different.sub("", texts[0]) == different.sub("", texts[1])
    pages = []
    for one in (kind, "json"):
        out(one, "report OURS=KIND.jsonl -o KIND.html")
        pages.append(page_data(folder / f"{one}.html")["candidates"])
    assert pages[0] == pages[1]
    assert set(pages[0][0]["n"]) == {N}


@pytest.mark.parametrize("name", [name for name in ALONE if name != "json"])
def test_a_model_with_candidates_reads_their_format(
    name: str, out: Callable[[str, str], tuple[str, str]], folder: Path
) -> None:
    """Without `format=` in the model name; and a sweep reads what the model wrote."""
    systems = " ".join(f"{system}.txt" for system in load_test_set(folder / "data", "made", "en-de").systems)
    words = f"-s src.txt -t {systems} --model mbr-esd-demo?candidates=KIND.jsonl&n={N}"
    swept = []
    for one in (name, "json"):
        _, signature = out(one, f"score {words} --to_json KIND.out.json --verbose")
        assert ("|format:KIND|" in signature) == (one != "json")
        out(one, f"sample {words} -o KIND.again.jsonl --quiet")
        formats = {record.columns.format for record in read_candidates(folder / f"{one}.again.jsonl")}
        assert formats == {None if one == "json" else one}
        swept.append(out(one, f"leaderboard --view lambda-sweep --metric KIND.out.json {WHERE}"))
    assert swept[0] == swept[1]


def test_a_model_reads_one_format_of_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command) -> None:
    monkeypatch.chdir(folder)
    result = mbr_esd(f"score -s src.txt -t A.txt --model mbr-esd-demo?candidates=mixed.jsonl&n={N}", status=1)
    assert "mixed.jsonl has candidates in several formats" in result.err


def test_pairs_are_in_the_format_of_the_candidates(
    out: Callable[[str, str], tuple[str, str]], folder: Path, mbr_esd: Command
) -> None:
    printed, _ = out("compact", "distill pairs en-de=KIND.jsonl -o KIND.pairs")
    assert "|f:KIND|" in printed
    row = json.loads((folder / "compact.pairs" / "train.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert row["chosen"][0]["content"] != row["rejected"][0]["content"]
    message = mbr_esd("distill pairs mixed.jsonl -o mixed.pairs", status=1).err
    assert "are in the format compact, and the pairs are in json" in message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("compct", "candidates.jsonl, line 2: \"format\": unknown format 'compct'; did you mean 'compact'"),
        (3, 'candidates.jsonl, line 2: "format" is a number'),
    ],
)
def test_an_unknown_format_names_file_and_line(value: object, message: str, folder: Path, mbr_esd: Command) -> None:
    first, second, *_ = (folder / "compact.jsonl").read_text(encoding="utf-8").splitlines()
    path = folder / "candidates.jsonl"
    path.write_text(f"{first}\n{json.dumps({**json.loads(second), 'format': value})}\n", encoding="utf-8")
    for verb in (f"decide -o {folder}/out", f"report -o {folder}/o.html"):
        assert message in mbr_esd(verb, path, status=1).err
