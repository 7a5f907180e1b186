"""A task's test set before there is gold: into the layout, scored, and back in the task's own names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.importing import Target, import_task, read_task
from mbr_esd_metric.cli.main import main
from mbr_esd_metric.errors import InputError, MbrEsdError

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


def test_wmt26_from_the_test_set_to_a_submission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    test = wmt26(tmp_path / "mteval-test26.jsonl")
    data = str(tmp_path / "data")
    where = ["--test-set", f"{data}/wmt26", "--lp", "eng_Latn-deu_Latn"]
    assert main(["wmt", "import", str(test), "--test-set", f"{data}/wmt26"]) == 0
    assert "3 systems (references: refA), 5 segments in 2 documents" in capsys.readouterr().out
    with pytest.raises(MbrEsdError, match="no such gold scores"):
        load_test_set(data, "wmt26", "eng_Latn-deu_Latn")
    blind = load_test_set(data, "wmt26", "eng_Latn-deu_Latn", blind=True)
    assert blind.systems == ("Gemini_3.1_Pro", "ONLINE_B")
    assert np.isnan(blind.gold).all()
    assert main(["wmt", "score", *where, "--model", "empty", "--quiet"]) == 0
    path = tmp_path / "out.jsonl"
    assert main(["wmt", "submit", *where, "--task", "wmt26", "--metric", "empty", "-o", str(path)]) == 0
    items = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    given = [json.loads(line)["item_id"] for line in test.read_text(encoding="utf-8").splitlines()][:-1]
    # White space in a document's name cannot be kept in the layout.
    assert [item["item_id"] for item in items] == [one.replace("d1 x", "d1_x") for one in given]
    assert set(items[0]["task2_pred"]) == set(SYSTEMS)
    assert items[0]["task2_pred"][SYSTEMS[0]] == 100.0
    take = ["wmt", "import", str(path), *where, "--name", "back"]
    assert main(take) == 0
    assert "10 translations by 2 systems" in capsys.readouterr().out


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
    tmp_path: Path, errors: tuple[tuple[Any, ...], ...], faults: dict[str, str | None]
) -> None:
    test = wmt26(tmp_path / "mteval-test26.jsonl")
    where = ["--test-set", f"{tmp_path}/data/wmt26", "--lp", "eng_Latn-deu_Latn"]
    assert main(["wmt", "import", str(test), *where[:2]]) == 0
    keys = ("start", "end", "severity", "category")
    first = {"errors": [dict(zip(keys, error, strict=True)) for error in errors], **faults}
    second = {"errors": [], "omission": None, "instruction_fault": None}
    predicted = {
        "task1_pred": dict(zip(SYSTEMS, (first, second), strict=True)),
        "task2_pred": dict(zip(SYSTEMS, (60.0, 0.0), strict=True)),
        "task3_pred": dict(zip(SYSTEMS, (0, 1), strict=True)),
    }
    names = [json.loads(line)["item_id"] for line in test.read_text(encoding="utf-8").splitlines()[:-1]]
    path, back = tmp_path / "given.jsonl", tmp_path / "back.jsonl"
    path.write_text("".join(json.dumps({"item_id": name, **predicted}) + "\n" for name in names), encoding="utf-8")
    assert main(["wmt", "import", str(path), *where, "--name", "theirs"]) == 0
    submit = ["wmt", "submit", *where, "--task", "wmt26", "--metric", "theirs", "--range", "0", "100"]
    assert main([*submit, "-o", str(back)]) == 0
    for line in back.read_text(encoding="utf-8").splitlines():
        assert {key: value for key, value in json.loads(line).items() if key != "item_id"} == predicted


def test_wmt25_keeps_the_tasks_numbers(tmp_path: Path) -> None:
    test = wmt25(tmp_path / "mteval-task2-test25.tsv")
    data = str(tmp_path / "data")
    where = ["--test-set", f"{data}/wmt25", "--lp", "cs-uk_UA"]
    assert main(["wmt", "import", str(test), "--test-set", f"{data}/wmt25"]) == 0
    assert main(["wmt", "score", *where, "--model", "empty", "--quiet"]) == 0
    path = tmp_path / "predictions.tsv"
    assert main(["wmt", "submit", *where, "--task", "wmt25-task2", "--metric", "empty", "-o", str(path)]) == 0
    written = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    asked = [line.split("\t") for line in test.read_text(encoding="utf-8").splitlines()]
    assert [row[:11] for row in written] == asked
    assert {tuple(row[11:]) for row in written[1:]} == {("-1", "-1", "no-error")}
    assert main(["wmt", "import", str(path), *where, "--name", "back"]) == 0


def test_what_is_no_test_set_is_refused(tmp_path: Path) -> None:
    segments = read_task(wmt26(tmp_path / "test.jsonl"))
    with pytest.raises(InputError, match="there are: eng_Latn-deu_Latn"):
        import_task(segments, Target(tmp_path, "wmt26", "en-de"))
    import_task(segments, Target(tmp_path, "wmt26", "eng_Latn-deu_Latn"))
    with pytest.raises(InputError, match="--overwrite"):
        import_task(segments, Target(tmp_path, "wmt26", "eng_Latn-deu_Latn"))
    import_task(segments, Target(tmp_path, "wmt26", "eng_Latn-deu_Latn", overwrite=True))
    (tmp_path / "bad.jsonl").write_text('{"src": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="no 'item_id'"):
        read_task(tmp_path / "bad.jsonl")
    (tmp_path / "none.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="no official segment"):
        read_task(tmp_path / "none.jsonl")
