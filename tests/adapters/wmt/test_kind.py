"""The kind of a file, from its first record, and the question of a command where the file does not say it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt.kind import IMPORT_KINDS, kind_of_import
from mbr_esd_metric.errors import InputError, OptionError
from tests.helpers.command import Command

_WMT25 = "doc_id\tsegment_id\tsource_lang\ttarget_lang\tset_id\tsystem_id"
_TEXTS = "source_segment\thypothesis_segment\treference_segment\tdomain_name\tmethod"
_SPANS = "start_indices\tend_indices\terror_types"
#: What a file begins with -> its kind.
BEGINNINGS = [
    ("system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\tcomment", "mqm"),
    (json.dumps({"lp": "de-en", "system": "A", "rater": "1", "src": "a", "mt": "b", "errors": []}), "mqm"),
    ("mt_system\tdoc_id\tseg_id\tannotator_id\tsource\ttarget\tstart_ids\tend_ids\terrors", "qe"),
    ("lp\tsid\tsource\ttarget\tstart_ids\tend_ids\terrors", "qe"),
    ("A\td\t1\tr\tdog\tHund\t-1\t-1\tno-error", "qe"),
    (json.dumps({"doc_id": "en-cs_#_news_#_d_#_1", "src_text": "a", "tgt_text": {}, "scores": {}}), "esa"),
    (json.dumps({"langs": "en-cs", "src": "a", "tgt": "b", "esa_spans": [], "esa_score": 90}), "esa"),
    ("\t".join((_WMT25, _TEXTS, _SPANS, "overall")), "esa"),
    (json.dumps({"item_id": "official_###_en_###_de_###_n_###_d_###_0", "src": "a", "hyps": {"A": "b"}}), "task"),
    ("\t".join((_WMT25, _TEXTS)), "task"),
    (json.dumps({"item_id": "official_###_en_###_de_###_n_###_d_###_0", "task1_pred": {}}), "wmt26"),
    ("\t".join(f'"{name}"' for name in f"{_WMT25}\t{_TEXTS}".split("\t")), "task"),
    (f"{_WMT25}\tdomain_name\tmethod\toverall", "wmt25-task1"),
]


@pytest.mark.parametrize(("beginning", "kind"), BEGINNINGS)
def test_a_file_says_what_it_is(beginning: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(beginning + "\n", encoding="utf-8")
    assert kind_of_import(path) == kind
    assert kind in IMPORT_KINDS


def test_error_spans_of_wmt25_are_people_or_a_metric(tmp_path: Path) -> None:
    path = tmp_path / "predictions.tsv"
    path.write_text("\t".join((_WMT25, _TEXTS, _SPANS)) + "\n", encoding="utf-8")
    assert kind_of_import(path, submission=True) == "wmt25-task2"
    with pytest.raises(OptionError, match=r"--name NAME .* --kind esa"):
        kind_of_import(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("some words\n", r"file: its first line is of no form that is known; .*--kind mqm \| qe"),
        ("one\ntwo\nthree\nfour\n", "no form that is known"),
        ("A\t0.5\n", "file: two columns, as a system and its score"),
        ("", "file: the file is empty"),
        ("{]\n", "file, line 1"),
    ],
)
def test_a_file_of_no_known_form_is_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        kind_of_import(tmp_path / "file")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--name X", "--name changes nothing with {}, which is mqm"),
        ("--texts .", "--texts changes nothing with {}, which is mqm"),
        ("", "{} does not say its language pair; give it with --lp"),
        ("--kind wmt26", "name its metric with --name"),
        ("{}", "one file of mqm is imported at a time"),
        ("--lp en-de --rename A", "--rename A: write OLD=NEW"),
    ],
)
def test_what_does_not_belong_to_a_kind_is_refused(words: str, message: str, tmp_path: Path, mbr_esd: Command) -> None:
    path = tmp_path / "mqm.tsv"
    rows = [BEGINNINGS[0][0], "A\td\t1\t1\tr\tdog\tHund\tNo-error\tNo-error\t"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    err = mbr_esd("wmt import", path, words.format(path), f"--test-set {tmp_path}/data/t", status=1).err
    assert message.format(path) in err
