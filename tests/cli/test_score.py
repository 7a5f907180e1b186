"""`mbr-esd score` over stored candidates: the whole path but for the model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mbr_esd_metric.cli.main import main
from mbr_esd_metric.cli.score_inputs import read_document_names
from mbr_esd_metric.files.streams import json_text

SOURCES = ["The bank closed.", "He left.", ""]
TRANSLATIONS = ["Das Ufer schloss.", "Er ging.", ""]


def _answer(*spans: tuple[str, str]) -> str:
    errors = [
        {"error_span": text, "category": "accuracy", "sub_category": "mistranslation", "severity": severity}
        for text, severity in spans
    ]
    return json.dumps({"errors": errors}, ensure_ascii=False)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MBR_ESD_STORE", str(tmp_path / "store.sqlite"))
    Path("src.txt").write_text("".join(f"{line}\n" for line in SOURCES), encoding="utf-8")
    Path("mt.txt").write_text("".join(f"{line}\n" for line in TRANSLATIONS), encoding="utf-8")
    texts = [
        [_answer(("Ufer", "major")), _answer(("Das Ufer", "major")), _answer(("Ufer", "major"))],
        [_answer(), _answer(), _answer(("ging", "minor"))],
    ]
    with Path("candidates.jsonl").open("w", encoding="utf-8") as file:
        for number, candidates in enumerate(texts):
            record = {
                "id": str(number),
                "src": SOURCES[number],
                "mt": TRANSLATIONS[number],
                "candidates": [{"text": text, "logprob": -1.0 - i} for i, text in enumerate(candidates)],
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return tmp_path


MODEL = "mbr-esd-demo?engine=replay&candidates=candidates.jsonl&n=3"


def test_the_language_pair_is_short_for_that_of_the_model(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--model", "mbr-esd-llama", "--dry-run"]
    assert main([*words, "--lp", "en-de"]) == 0
    assert main([*words, "--lp", "en-qq"]) == 1
    assert "'en-qq'" in capsys.readouterr().err


def test_scores_spans_and_json_have_the_form_of_comet_score(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--to_json", "out.json", "--quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "mt.txt\tSegment 1\tscore: 0.8000",
        "mt.txt\tSegment 2\tscore: 1.0000",
        "mt.txt\tSegment 3\tscore: 1.0000",
        "mt.txt\tscore: 0.9333",
        "Predictions saved in: out.json.",
    ]
    rows = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]
    assert rows[0]["COMET"] == pytest.approx(0.8)
    (span,) = rows[0]["errors"]
    assert {k: span[k] for k in ("text", "start", "end", "severity", "category")} == {
        "text": "Ufer",
        "start": 4,
        "end": 8,
        "severity": "major",
        "category": "accuracy/mistranslation",
    }
    assert span["confidence"] == pytest.approx(1.0)
    assert rows[1]["errors"] == []  # not left out: a metric that finds no error anywhere has error spans


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda: Path("mt.txt").write_text("Er ging.\n"), "mt.txt has 1 lines and src.txt has 3"),
        (lambda: Path("mt.txt").write_text(""), "mt.txt is empty"),
        (lambda: Path("mt.txt").write_bytes(b"Er ging.\n\xfcber\n"), "mt.txt, line 2: byte 0xfc is not UTF-8"),
        (lambda: Path("mt.txt").unlink(), "mt.txt: no such file"),
        (lambda: Path("candidates.jsonl").unlink(), "candidates.jsonl"),
    ],
)
def test_bad_input_is_one_line_with_the_fix(
    files: Path, capsys: pytest.CaptureFixture[str], change: Callable[[], object], part: str
) -> None:
    change()
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--quiet"]) == 1
    err = capsys.readouterr().err
    assert part in err
    assert err.count("\n") == 1


def test_a_file_of_candidates_is_replayed_unless_another_engine_is_named(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--quiet", "--model"]
    assert main([*words, MODEL]) == 0
    shown = capsys.readouterr().out
    assert main([*words, "mbr-esd-demo?candidates=candidates.jsonl&n=3"]) == 0
    assert capsys.readouterr().out == shown
    assert main([*words, "mbr-esd-demo?candidates=candidates.jsonl&engine=server"]) == 1
    assert "candidates=candidates.jsonl changes nothing with engine=server" in capsys.readouterr().err
    assert main([*words, MODEL, "--dry-run"]) == 1
    assert "a dry run changes nothing with engine=replay" in capsys.readouterr().err


def test_crlf_and_byte_order_mark_change_nothing(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--quiet"])
    plain = capsys.readouterr().out
    for name in ("src.txt", "mt.txt"):
        text = Path(name).read_text(encoding="utf-8")
        Path(name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--quiet"])
    assert capsys.readouterr().out == plain


def test_a_segment_without_valid_candidate_is_named_and_not_scored(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("candidates.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(text[1])
    record["candidates"] = [{"text": "{", "logprob": -1.0}]
    Path("candidates.jsonl").write_text(text[0] + "\n" + json.dumps(record) + "\n", encoding="utf-8")
    model = MODEL.replace("n=3", "n=1")
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", model, "--quiet"]) == 1
    err = capsys.readouterr().err
    assert "line 2 of mt.txt" in err
    assert "invalid=empty" in err
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", model + "&invalid=empty", "--quiet"]) == 0


@pytest.mark.parametrize("again", ["mt.txt", "./mt.txt", "same.txt"])
def test_a_file_given_twice_is_refused(files: Path, again: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("same.txt").symlink_to("mt.txt")
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", again, "--model", MODEL]) == 1
    assert f"-t {again} is given twice; name each file of translations once" in capsys.readouterr().err


def test_the_signature_goes_to_standard_error(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL]
    assert main([*words, "--verbose"]) == 0
    assert re.search(r"^mbr-esd\|candidates:.*\|mqm:paper\|", capsys.readouterr().err, re.MULTILINE)
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^mbr-esd\|candidates:\w{8}\|d:mbr\|n:\d+\|u:softf1\|v:[^|]+$", err, re.MULTILINE)
    assert "of 7 candidates 0 could not be read; of 4 error spans 0 not found in the translation" in err
    assert "mbr-esd|" not in out


def test_a_blank_translation_gets_the_lowest_score_and_is_counted(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It scored 1.0000 in silence."""
    Path("mt.txt").write_text("Das Ufer schloss.\n\n\n", encoding="utf-8")
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL, "--to_json", "out.json"]) == 0
    said = capsys.readouterr()
    assert "mt.txt\tSegment 2\tscore: 0.0000" in said.out
    assert (
        "pairs that look wrong: 1 blank translation (line 2 of mt.txt), 1 blank source (line 3 of mt.txt); blank "
        "translations get the lowest score" in said.err
    )
    rows = json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"]
    assert [row.get("data_warning") for row in rows] == [None, "blank translation", "blank source"]
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--model", f"{MODEL}&blank=skip", "--to_json", "out.json"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "mt.txt\tscore: 0.9000" in said.out
    assert json.loads(Path("out.json").read_text(encoding="utf-8"))["mt.txt"][1]["COMET"] is None


def test_a_text_that_utf_8_does_not_hold_is_written_as_json() -> None:
    assert json_text({"a": "\ud800ä"}).isascii()
    assert json_text({"a": "ä"}) == '{"a": "ä"}'


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_named_with_the_right_command(
    files: Path, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mt.txt").write_bytes("".join(f"{line}\n" for line in TRANSLATIONS).encode(encoding))
    assert main(["score", "-s", "src.txt", "-t", "mt.txt", "--model", MODEL]) == 1
    said = capsys.readouterr().err
    assert (
        "mt.txt looks like UTF-16, not UTF-8; convert the file, for instance: iconv -f UTF-16 -t UTF-8 mt.txt" in said
    )


def test_a_prompt_file_that_is_missing_is_named_as_a_file(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--model", "mbr-esd-phi4?prompt=mine.txt&server=http://x/v1"]
    assert main(words) == 1
    assert "mine.txt: there is no such prompt file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "lines",
    [
        ["a", "a", "b"],
        ["news\ta", "news\ta", "news\tb"],
        ['{"doc_id": "a", "src": "x"}', '{"doc_id": "a"}', '{"doc_id": "b"}'],
        [f'{{"item_id": "official_###_en_###_de_###_news_###_{at}"}}' for at in ("a_###_0", "a_###_1", "b_###_0")],
    ],
)  # fmt: skip
def test_documents_are_read_from_every_file_of_wmt(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "documents"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    first, second, third = read_document_names(str(path), "src.txt", 3)
    assert first == second != third


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n", "src.txt has 3, documents has 1"),
        ("a\nb\na\n", "documents, line 3: document a is not in one piece"),
        ("a\n\nb\n", "documents, line 2: no id of a document"),
        ('{"x": 1}\n', "documents, line 1: no 'doc_id' in this line"),
    ],
)
def test_a_file_of_documents_that_does_not_fit_is_refused(
    files: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("documents").write_text(text, encoding="utf-8")
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--model", "mbr-esd-llama", "--dry-run"]
    assert main([*words, "--documents", "documents"]) == 1
    assert message in capsys.readouterr().err


def test_a_document_is_counted_in_the_prompts(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("documents").write_text("a\na\nb\n", encoding="utf-8")
    words = ["score", "-s", "src.txt", "-t", "mt.txt", "--dry-run", "--documents", "documents", "--model"]
    assert main([*words, "mbr-esd-llama"]) == 0
    alone = capsys.readouterr().out
    assert main([*words, "mbr-esd-llama?context=document"]) == 0
    assert capsys.readouterr().out.split("characters")[0] > alone.split("characters")[0]
