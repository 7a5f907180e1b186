"""`comet-score` and `comet-compare`, unmodified, with a model of ours: results, and what bad input gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mbr_esd_metric.core.decision import UNSURE
from mbr_esd_metric.errors import RESUME
from mbr_esd_metric.files.judged import read_judged
from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.files.untrusted import parse_strict_json
from tests.helpers.candidates import answer, record
from tests.helpers.chat_server import FakeServer
from tests.helpers.comet_checkpoint import make_checkpoint
from tests.helpers.comet_commands import ERRORS, MODEL, SCORES, SOURCES, TRANSLATIONS, write
from tests.helpers.command import Command

pytestmark = pytest.mark.comet


def written() -> Any:
    """What a command wrote as JSON."""
    return parse_strict_json(Path("out.json").read_text(encoding="utf-8"))


def test_scores_and_spans(comet_command: Command) -> None:
    out = comet_command("score --to_json out.json --print_cache_info").out
    expected = [f"mt.txt\tSegment {i}\tscore: {value:.4f}" for i, value in enumerate(SCORES)]
    assert out.splitlines()[:4] == [*expected, "mt.txt\tscore: 0.9200"]
    rows = written()["mt.txt"]
    texts = zip(SOURCES, TRANSLATIONS, SCORES, strict=True)
    assert [(row["src"], row["mt"], row["COMET"]) for row in rows] == list(texts)
    for row, errors in zip(rows, ERRORS, strict=True):
        assert [(e["text"], e["severity"]) for e in row["errors"]] == errors
        assert all(row["mt"][e["start"] : e["end"]] == e["text"] and e["confidence"] == 1.0 for e in row["errors"])


def test_the_checks_alone(comet_command: Command) -> None:
    write("src.txt", "Hello %s", "Cancel")
    write("mt.txt", "Hallo", "Abbrechen")
    out = comet_command("score --to_json out.json --model mbr-esd-checks").out
    assert out.splitlines()[:2] == ["mt.txt\tSegment 0\tscore: 0.8000", "mt.txt\tSegment 1\tscore: 1.0000"]
    assert [[one["text"] for one in row["omissions"]] for row in written()["mt.txt"]] == [["%s"], []]


def test_the_json_has_the_shape_of_xcomets(comet_command: Command, tmp_path_factory: pytest.TempPathFactory) -> None:
    shapes = []
    for model in (MODEL, make_checkpoint(tmp_path_factory.mktemp("xcomet"))):
        comet_command("score --to_json out.json --model", model)
        [(name, rows)] = written().items()
        assert (name, len(rows)) == ("mt.txt", len(SOURCES))
        spans = [span for row in rows for span in row.get("errors", ())]
        shapes += [{key: type(value) for one in each for key, value in one.items()} for each in (rows, spans)]
    row, span, stock_row, stock_span = shapes
    assert row == {**stock_row, "mqm": float, "model": str, "signature": str}
    assert span == {**stock_span, "category": str}


def test_corrections_and_data_warnings_are_in_the_json(comet_command: Command) -> None:
    write("src.txt", *SOURCES[1:])
    write("mt.txt", TRANSLATIONS[1], "")
    comet_command("score --to_json out.json --model mbr-esd-demo?n=3&candidates=corrections.jsonl")
    [[row, blank]] = written().values()
    assert row["corrected"] == "Sie isst einen Apfel."
    assert "data_warning" not in row
    assert (blank["COMET"], blank["data_warning"]) == (0.0, "blank translation")
    (span,) = row["errors"]
    assert (span["correction"], span["reason"], span["agreement"]) == ("einen", "accusative", 1.0)


def test_an_unsure_segment_is_warned_of_and_marked(comet_command: Command) -> None:
    texts = [answer("isst")[:-1], answer(), answer()]
    write_records("unread.jsonl", [record(*pair, *texts) for pair in zip(SOURCES, TRANSLATIONS, strict=True)])
    said = comet_command("score --quiet --to_json out.json --model mbr-esd-demo?n=3&candidates=unread.jsonl").err
    assert f"{len(SOURCES)} segments {UNSURE} (line 1 of mt.txt, " in said
    assert [row["unsure"] for row in written()["mt.txt"]] == [True] * len(SOURCES)


@pytest.mark.parametrize("gpus", ["0", "2"])
def test_what_a_server_refuses_is_null(comet_command: Command, gpus: str) -> None:
    """NaN is no JSON; and a warning names the system."""
    pytest.importorskip("aiohttp")
    names = ["mt.txt", "b.txt"]
    for name in names:
        write(name, *TRANSLATIONS[:2], "Guten Morgen! " * 1000)
    with FakeServer(context=10_000) as server:
        model = f"mbr-esd-server?server={server.url}&n=2&unit=segment"
        err = comet_command(f"score -t mt.txt b.txt --gpus {gpus} --to_json out.json --model {model}").err
    for rows in written().values():
        assert [row["COMET"] is None for row in rows] == [row["mqm"] is None for row in rows] == [False, False, True]
        assert "maximum context length" in rows[2]["refused"]
        assert "refused" not in rows[0]
    assert all(f"line 3 of {name}" in err for name in names)
    assert [one.input_score is None for one in read_judged(Path("out.json"))] == [False, False, True] * len(names)


def test_compare(comet_command: Command) -> None:
    write("b.txt", *TRANSLATIONS[::-1])
    records = Path("candidates.jsonl").read_text(encoding="utf-8").splitlines()
    turned = zip(SOURCES, reversed(records), strict=True)
    write("candidates.jsonl", *records, *(json.dumps({**json.loads(one), "src": source}) for source, one in turned))
    comet_command("compare -t mt.txt b.txt --to_json out.json --print_cache_info")
    info = written()
    assert info["model"] == MODEL
    for system, expected in zip(info["translations"], (SCORES, SCORES[::-1]), strict=True):
        assert system["scores"] == pytest.approx(expected, abs=1e-6)
    [result] = info["statistical_results"]
    kinds = {name: type(value) for name, value in result["paired_t-test"].items()}
    assert kinds == {"statistic": float, "p_value": float}
    assert "add -t FILE" in error_of(comet_command, "compare -t")
    assert "two systems or more" in error_of(comet_command, "compare")


def error_of(comet_command: Command, *words: object) -> str:
    """The error's line; there is exactly one, and no traceback."""
    err = comet_command(*words, status=1).err
    (line,) = [line for line in err.splitlines() if line.startswith("comet-")]
    assert "Traceback" not in err
    return line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-t two.txt two.txt", "src.txt has 3, two.txt has 2"),
        # COMET would cut sources and translations to the references, although our models do not read them.
        ("-r two.txt", "two.txt has 2"),
        ("-s empty.txt", "empty.txt is empty; give one segment per line"),
        ("-t mark.txt mark.txt", "mark.txt begins with a byte order mark"),
        ("-t latin.txt latin.txt", "latin.txt, line 2: byte 0xfc is not UTF-8"),
        ("-s return.txt", "return.txt, line 1: a carriage return inside the line, at character 4"),
        ("--model mbr-esd-dmo", "did you mean 'mbr-esd-demo'"),
        ("--model mbr-esd-demo?utilty=f1", "did you mean 'utility'"),
        ("--model mbr-esd-demo?engine=server&server=http://127.0.0.1:9/v1", "127.0.0.1:9"),
        ("--to_json no/such/out.json", "the folder does not exist"),
        ("--to_json .", "give the name of a file"),
        ("--to_json out.json.gz", "COMET writes plain JSON; leave .gz out"),
        ("--to_json /dev/full", "No space left on device; sampled candidates are kept"),
        *(
            (f"--to_json {path}", f"{Path(path)} is an input file and would be overwritten; write to another file")
            for path in ("./src.txt", "mt.txt", "ref.txt", "candidates.jsonl")
        ),
    ],
)
def test_what_goes_wrong_is_one_line(comet_command: Command, words: str, message: str) -> None:
    write("ref.txt", *TRANSLATIONS)
    before = {file: file.read_bytes() for file in Path().glob("*.*") if file.is_file()}
    for command in ("score", "compare"):
        line = error_of(comet_command, command, "-t mt.txt mt.txt -r ref.txt", words)
        assert line.startswith(f"comet-{command}: error: ")
        assert message in line
    assert {file: file.read_bytes() for file in before} == before


def test_no_permission_to_write_the_folder_of_the_name(comet_command: Command) -> None:
    Path("cache").write_text("a file where the folder should be")
    assert "choose another folder with --model_storage_path or MBR_ESD_CACHE" in error_of(comet_command, "score")
    comet_command("score --model_storage_path elsewhere")
    assert next(Path("elsewhere").glob("*/checkpoints/model.ckpt")).is_file()


@pytest.mark.parametrize("bug", [False, True])
def test_interrupted_or_a_bug(comet_command: Command, monkeypatch: pytest.MonkeyPatch, bug: bool) -> None:
    error = ZeroDivisionError("a bug") if bug else KeyboardInterrupt()
    monkeypatch.setattr("mbr_esd_metric.metric.metric.Metric.judge", Mock(side_effect=error))
    err = comet_command("score", status=1 if bug else 130).err
    assert ("ZeroDivisionError: a bug" if bug else f"comet-score: interrupted; {RESUME}") in err
    assert ("Traceback" in err) == bug
