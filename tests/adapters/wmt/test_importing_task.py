"""A task's test set before there is gold: into the layout, scored, and back in the task's own names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.importing import Target, import_task, read_task
from mbr_esd_metric.errors import InputError
from tests.helpers.command import Command

SYSTEMS = ("Gemini 3.1 Pro", "ONLINE/B")


def wmt26(path: Path) -> Path:
    lines = []
    for document, domain, count in (("d2", "news", 2), ("d1 x", "speech", 3)):
        for place in range(count):
            lines.append(
                {
                    "item_id": f"official_###_eng_Latn_###_deu_Latn_###_{domain}_###_{document}_###_{place}",
                    "src": f"{document} {place}",
                    "ref": {"text": f"ref {place}", "type": "postedit"},
                    "hyps": {system: f"{system} says {place}" for system in SYSTEMS},
                }
            )
    lines.append({**lines[0], "item_id": "challenge_###_en_###_de_###_x_###_y_###_0"})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def wmt25(path: Path) -> Path:
    header = "doc_id segment_id source_lang target_lang set_id system_id source_segment hypothesis_segment"
    rows = [[*header.split(), "reference_segment", "domain_name", "method"]]
    for system in SYSTEMS:
        for number, document in ((4, "a"), (5, "a"), (9, "b")):
            row = [document, str(number), "cs", "uk_UA", "official", system, f"s{number}", f"{system} {number}"]
            rows.append([*row, "NaN", "news", "ESA"])
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_wmt26_from_the_test_set_to_a_submission(tmp_path: Path, mbr_esd: Command) -> None:
    test, path = wmt26(tmp_path / "mteval-test26.jsonl"), tmp_path / "out.jsonl"
    where = f"--test-set {tmp_path}/wmt26 --lp eng_Latn-deu_Latn"
    written = mbr_esd("wmt import", test, f"--test-set {tmp_path}/wmt26").out
    assert "3 systems (references: refA), 5 segments in 2 documents" in written
    with pytest.raises(InputError, match="no such gold scores"):
        load_test_set(tmp_path, "wmt26", "eng_Latn-deu_Latn")
    blind = load_test_set(tmp_path, "wmt26", "eng_Latn-deu_Latn", blind=True)
    assert blind.systems == ("Gemini_3.1_Pro", "ONLINE_B")
    assert np.isnan(blind.gold).all()
    mbr_esd("wmt score", where, "--model empty --quiet")
    mbr_esd("wmt submit", where, "--task wmt26 --metric empty -o", path)
    items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    names = [json.loads(line)["item_id"] for line in test.read_text(encoding="utf-8").splitlines()][:-1]
    # White space in a document's name cannot be kept in the layout.
    assert [item["item_id"] for item in items] == [one.replace("d1 x", "d1_x") for one in names]
    assert items[0]["task2_pred"] == dict.fromkeys(SYSTEMS, 100.0)
    assert "10 translations by 2 systems" in mbr_esd("wmt import", path, where, "--name back").out


@pytest.mark.parametrize(
    ("errors", "faults"),
    [
        # What is left out, and a span without characters.
        (((0, 3, "minor", "style"), (4, 4, "major", "other")), {"omission": "minor", "instruction_fault": None}),
        (
            ((0, 2, "minor", "instruction_fault"), (2, 3, "major", "instruction fault/register")),
            {"omission": None, "instruction_fault": "major"},
        ),
        ((), {"omission": "major", "instruction_fault": None}),
    ],
)
def test_spans_of_wmt26_come_back(
    tmp_path: Path, errors: tuple[tuple[Any, ...], ...], faults: dict[str, str | None], mbr_esd: Command
) -> None:
    test = wmt26(tmp_path / "mteval-test26.jsonl")
    where = f"--test-set {tmp_path}/wmt26 --lp eng_Latn-deu_Latn"
    mbr_esd("wmt import", test, where)
    keys = ("start", "end", "severity", "category")
    first = {"errors": [dict(zip(keys, error, strict=True)) for error in errors], **faults}
    second = {"errors": [], "omission": None, "instruction_fault": None}
    predicted = {
        "task1_pred": dict(zip(SYSTEMS, (first, second), strict=True)),
        "task2_pred": dict(zip(SYSTEMS, (60.0, 0.0), strict=True)),
        "task3_pred": dict(zip(SYSTEMS, (0, 1), strict=True)),
    }
    names = [json.loads(line)["item_id"] for line in test.read_text(encoding="utf-8").splitlines()[:-1]]
    path, back = tmp_path / "theirs.jsonl", tmp_path / "back.jsonl"
    path.write_text("".join(json.dumps({"item_id": name, **predicted}) + "\n" for name in names), encoding="utf-8")
    mbr_esd("wmt import", path, where, "--name theirs")
    mbr_esd("wmt submit", where, "--task wmt26 --metric theirs --range 0 100 -o", back)
    for line in back.read_text(encoding="utf-8").splitlines():
        assert {key: value for key, value in json.loads(line).items() if key != "item_id"} == predicted


def test_wmt25_keeps_the_tasks_numbers(tmp_path: Path, mbr_esd: Command) -> None:
    test, path = wmt25(tmp_path / "mteval-task2-test25.tsv"), tmp_path / "predictions.tsv"
    where = f"--test-set {tmp_path}/wmt25 --lp cs-uk_UA"
    mbr_esd("wmt import", test, where)
    mbr_esd("wmt score", where, "--model empty --quiet")
    mbr_esd("wmt submit", where, "--task wmt25-task2 --metric empty -o", path)
    header, *rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    expected = [line.split("\t") for line in test.read_text(encoding="utf-8").splitlines()]
    assert [header[:11], *(row[:11] for row in rows)] == expected
    assert {tuple(row[11:]) for row in rows} == {("-1", "-1", "no-error")}
    mbr_esd("wmt import", path, where, "--name back")


def test_what_is_no_test_set_is_refused(tmp_path: Path) -> None:
    segments = read_task(wmt26(tmp_path / "test.jsonl"))
    with pytest.raises(InputError, match="there are: eng_Latn-deu_Latn"):
        import_task(segments, Target(tmp_path, "wmt26", "en-de"))
    import_task(segments, Target(tmp_path, "wmt26", "eng_Latn-deu_Latn"))
    with pytest.raises(InputError, match="--overwrite"):
        import_task(segments, Target(tmp_path, "wmt26", "eng_Latn-deu_Latn"))
    import_task(segments, Target(tmp_path, "wmt26", "eng_Latn-deu_Latn", overwrite=True))
    for line, message in (('{"src": "x"}', "no 'item_id'"), ("", "no official segment")):
        (tmp_path / "bad.jsonl").write_text(f"{line}\n", encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_task(tmp_path / "bad.jsonl")
