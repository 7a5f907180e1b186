"""Candidates in every answer format go through every command that reads candidates, with the same results."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.files.records import CandidateRecord, read_candidates, write_records
from mbr_esd_metric.prompting.formats import FORMATS, get_format
from tests.helpers.command import Command
from tests.helpers.pages import page_data
from tests.helpers.wmt_folder import SYSTEMS, write_folder

WHERE = "--test-set data/made --lp en-de"
#: Those about the translation alone. Answers about both sides are compared over another text, and so decided otherwise.
OTHERS = [name for name in FORMATS.builtin if name != "json" and not get_format(name).both_sides]
N = 16
Run = Callable[[str, str], tuple[str, str]]


def word_of(rng: random.Random, text: str) -> Annotation:
    """At most one word; none that is part of another, "und" of "Hund"."""
    words = [word for word in text.split() if text.count(word) == 1]
    if rng.random() < 0.4 or not words:
        return Annotation()
    start = text.index(word := rng.choice(words))
    return Annotation([ErrorSpan(start, start + len(word), "major" if rng.random() < 0.5 else "minor")])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test set in `data`, its texts, and FORMAT.jsonl for every format; in "mixed" each record has the next one."""
    work = tmp_path_factory.mktemp("answers")
    write_folder(work / "data")
    test_set = load_test_set(work / "data", "made", "en-de")
    rng = random.Random(1)
    records: dict[str, list[CandidateRecord]] = {kind: [] for kind in ("json", *OTHERS, "mixed")}
    for system in test_set.systems:
        for number, (source, text) in enumerate(zip(test_set.sources, test_set.outputs[system], strict=True), 1):
            annotations, logprobs = [word_of(rng, text) for _ in range(N)], [-rng.random() * 9 for _ in range(N)]
            for kind, made in records.items():
                name = ("json", *OTHERS)[len(made) % (1 + len(OTHERS))] if kind == "mixed" else kind
                answers, lost = zip(*(get_format(name).answer(one, text) for one in annotations), strict=True)
                assert not any(lost)
                form = None if name == "json" else name
                columns = CandidateColumns(answers, tuple(logprobs), (False,) * N, format=form)
                made.append(CandidateRecord(Segment(source, text, str(number), system), columns))
    for kind, made in records.items():
        write_records(work / f"{kind}.jsonl", made)
    for name, lines in {"src": test_set.sources, **test_set.outputs}.items():
        (work / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return work


@pytest.fixture
def out(folder: Path, monkeypatch: pytest.MonkeyPatch, mbr_esd: Command) -> Run:
    """Runs a command in the folder; what it prints on both streams, with the name of the candidates' file left out."""
    monkeypatch.chdir(folder)

    def run(kind: str, words: str) -> tuple[str, str]:
        result = mbr_esd(words.replace("KIND", kind))
        padding = " {2,}|-{3,}" if words.startswith("compare") else "$^"  # columns are as wide as names of files
        texts = (re.sub(padding, "  ", text) for text in (result.out, result.err))
        printed, noted = (re.sub(rf"\b{kind}\b|(?<=candidates:)\w+", "KIND", text) for text in texts)
        return printed, noted

    return run


@pytest.mark.parametrize(
    "words",
    [
        "decide KIND.jsonl -o KIND.decided.jsonl",
        f"oracle KIND.jsonl {WHERE} --rules mbr-corpus",
        f"oracle KIND.jsonl {WHERE} --sizes {N}",
        "compare KIND.jsonl",
        "show KIND.jsonl -n 9",
        "report OURS=KIND.jsonl -o KIND.html",
    ],
)
def test_every_command_reads_every_format(words: str, out: Run, folder: Path) -> None:
    # What json gives no value or none: a category, and corrections; and the digest of the file.
    different = re.compile(
        r'"category": ("[^"]*"|null)|"corrected": "[^"]*", |, "(correction|reason)": "[^"]*"|, "agreement": [0-9.]+'
        r'|, "signature": "[^"]*"'
        r"|  other/other|\n    instead  .*|\n  corrected  .*"
    )
    results = []
    for kind in ("json", *OTHERS, "mixed"):
        printed = out(kind, words)
        if words.startswith("report"):
            results.append(page_data(folder / f"{kind}.html")["candidates"])
            assert set(results[-1][0]["n"]) == {N}
        elif words.startswith("decide"):
            results.append(different.sub("", (folder / f"{kind}.decided.jsonl").read_text(encoding="utf-8")))
        else:
            results.append([different.sub("", text) for text in printed])
    for result in results:
        assert result == results[0], words


def test_a_model_with_candidates_reads_their_format(out: Run, folder: Path) -> None:
    """Without `format=` in the model name."""
    texts = f"-s src.txt -t {' '.join(f'{system}.txt' for system in SYSTEMS)}"
    for kind in ("json", *OTHERS):
        model = f"{texts} --model mbr-esd-demo?candidates=KIND.jsonl&n={N}"
        _, signature = out(kind, f"score {model} --verbose")
        assert ("|format:KIND|" in signature) == (kind != "json")
        out(kind, f"sample {model} -o KIND.again.jsonl --quiet")
        formats = {record.columns.format for record in read_candidates(folder / f"{kind}.again.jsonl")}
        assert formats == {None if kind == "json" else kind}


def test_pairs_are_in_the_format_of_the_candidates(out: Run, folder: Path, mbr_esd: Command) -> None:
    printed, _ = out("compact", "distill pairs en-de=KIND.jsonl -o KIND.pairs")
    assert "|f:KIND|" in printed
    row = json.loads((folder / "compact.pairs" / "train.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert row["chosen"][0]["content"] != row["rejected"][0]["content"]
    message = mbr_esd("distill pairs mixed.jsonl -o mixed.pairs", status=1).err
    assert f"have the format {OTHERS[0]}, but pairs have json" in message
    message = mbr_esd(f"score -s src.txt -t A.txt --model mbr-esd-demo?candidates=mixed.jsonl&n={N}", status=1).err
    assert "mixed.jsonl has candidates in several formats" in message
