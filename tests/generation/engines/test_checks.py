"""`mbr-esd-checks`: no model, the checks alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mbr_esd_metric import load_metric
from mbr_esd_metric.cli.sample import sample
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.metric.cards import load_card
from mbr_esd_metric.prompting.formats import get_format
from mbr_esd_metric.prompting.languages import language_name
from tests.helpers.command import Command

EMPTY_ANSWER = get_format("json-omissions").answer(EMPTY, "")[0]
SAMPLES = [
    {"src": "Hello %s", "mt": "Hallo"},
    {"src": "3 files in <b>{folder}</b>", "mt": "3 Dateien in <b>{Ordner}</b>"},
    {"src": "Cancel", "mt": "Abbrechen"},
    {"src": "Cancel", "mt": ""},
    {"src": "Cancel", "mt": "Abbrechen"},
]


def test_python() -> None:
    prediction = load_metric("mbr-esd-checks").predict(SAMPLES, progress_bar=False)
    assert prediction.scores == [0.8, 0.8, 1.0, 0.0, 1.0]
    assert [[one["text"] for one in spans] for spans in prediction.metadata.error_spans] == [
        [],
        ["{Ordner}"],
        [],
        [],
        [],
    ]
    assert [one["text"] for one in prediction.metadata.omissions[0]] == ["%s"]
    assert prediction.metadata.valid == [1, 1, 1, 0, 1]
    assert prediction.metadata.signature.startswith("mbr-esd|model:mbr-esd-checks|engine:checks|d:greedy|n:1|")
    assert "lp:" not in prediction.metadata.signature
    assert not prediction.metadata.advice
    one_language = load_metric("mbr-esd-checks?lp=en-de").predict(
        [{"src": "Please close the door when you leave.", "mt": "Por favor, cierra la puerta cuando salgas de casa."}]
    )
    assert one_language.metadata.error_spans[0][0]["category"] == "check/language"


def test_an_unknown_language_code_is_named(caplog: pytest.LogCaptureFixture) -> None:
    language_name.cache_clear()
    load_metric("mbr-esd-checks?lp=en-jp").predict(SAMPLES)
    assert any("unknown language code 'jp'" in one for one in caplog.messages)


def test_a_gate_for_strings(mbr_esd: Command, workdir: Path) -> None:
    """Languages and plural forms come from the file, and the signature has no language."""
    head = 'msgid ""\nmsgstr "Language: de\\nPlural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
    forms = 'msgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] "Eine Datei"\nmsgstr[1] "%d Dateien"\n\n'
    spanish = "Por favor, cierra la puerta cuando salgas de la casa."
    text = f'{head}{forms}msgid "Please close the door when you leave."\nmsgstr "{spanish}"\n'
    (workdir / "de.po").write_text(text, encoding="utf-8")
    run = mbr_esd("score de.po --model mbr-esd-checks --fail-on major --verbose --to_json o.json", status=3)
    assert "segment 2 of de.po (line 9)" in run.err or "2 of de.po" in run.err
    assert "lp:" not in run.err
    rows = json.loads((workdir / "o.json").read_text(encoding="utf-8"))["de.po"]
    assert [[one["category"] for one in row["errors"]] for row in rows] == [[], [], ["check/language"]]
    (workdir / "de.po").write_text(
        text.replace(spanish, "Bitte schließen Sie die Tür, wenn Sie gehen."), encoding="utf-8"
    )
    assert "gate passed" in mbr_esd("score de.po --model mbr-esd-checks --fail-on major").err


def test_neither_torch_nor_a_network_nor_a_store() -> None:
    code = (
        "import socket, sys\n"
        "socket.socket.connect = None\n"
        "from mbr_esd_metric import load_metric\n"
        "load_metric('mbr-esd-checks').predict([{'src': 'Hello %s', 'mt': 'Hallo %s'}], progress_bar=False)\n"
        "print(sorted({'torch', 'transformers', 'httpx', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['sqlite3']")


def test_it_runs_no_other_model() -> None:
    with pytest.raises(EngineError, match=r"it does not run models \(got org/model\); use mbr-esd-checks"):
        load_metric("mbr-esd-model?model=org/model&engine=checks&format=json-omissions").predict(SAMPLES)


def test_its_candidates_are_the_answer_without_an_error() -> None:
    segments = [Segment(one["src"], one["mt"], str(at)) for at, one in enumerate(SAMPLES[:2])]
    stored = [[one.text for one in candidates] for _, candidates in sample(load_card("mbr-esd-checks"), segments)]
    assert stored == [[EMPTY_ANSWER]] * 2
