"""The decline ratios of `research/synthetic.py` against the annotations that they are of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import synthetic

from mbr_esd_metric.cli.main import main

TSV = """system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity
A\td\t1\t1\tr1\tone\t<v>alpha</v> beta gamma\tAccuracy\tMajor
A\td\t1\t1\tr1\tone\talpha beta <v>gamma</v>\tAccuracy\tMinor
A\td\t2\t2\tr1\ttwo\tdelta epsilon zeta\tNo-error\tNo-error
B\td\t1\t1\tr1\tone\talpha <v>beta</v> gamma\tAccuracy\tMinor
B\td\t2\t2\tr1\ttwo\teta theta iota\tNo-error\tNo-error
"""


def test_every_edit_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mqm.tsv").write_text(TSV, encoding="utf-8")
    where = ["--test-set", "tiny", "--lp", "en-de"]
    assert main(["wmt", "import", str(tmp_path / "mqm.tsv"), *where, "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    monkeypatch.setattr(
        "sys.argv",
        ["synthetic.py", "--data", str(tmp_path), *where, "--similarity", "softf1", "f1", "--table", "json"],
    )
    synthetic.main()
    by_name = {(row["similarity"], row["edit"]): row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert by_name["softf1", "add"]["all"] == by_name["softf1", "delete"]["all"] == 1.0
    assert by_name["f1", "add"]["clean"] < 0.5 < by_name["f1", "add"]["marked"]
    assert by_name["f1", "delete"]["clean"] is None
    assert by_name["f1", "delete"]["edits"] == 3
