"""Files with keys, with errors as comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.document import Checked
from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from tests.adapters.documents.keys.test_pair import FILES

ERROR = Checked(Annotation([ErrorSpan(0, 3, "major", "accuracy -- */ -->\n")]), 0.5)
CLEAN = Checked(Annotation(), 1.0)


@pytest.mark.parametrize(
    ("source", "target", "comment"),
    [
        ("values/strings.xml", "values-de/strings.xml", '    <!-- mbr-esd: major, accuracy - - * / - -> : "Noc" -->'),
        ("config/en.yml", "config/de.yml", '  # mbr-esd: major, accuracy - - * / - -> : "Hal"'),
        ("messages.properties", "messages_de.properties", '# mbr-esd: major, accuracy - - * / - -> : "Sch"'),
        ("en.lproj/Localizable.strings", "de.lproj/Localizable.strings",
         '/* mbr-esd: major, accuracy - - * / - -> : "Häf" */'),
        ("Strings.resx", "Strings.de.resx", '  <!-- mbr-esd: major, accuracy - - * / - -> : "Spe" -->'),
    ],
)  # fmt: skip
def test_errors_are_comments_before_their_entries(tmp_path: Path, source: str, target: str, comment: str) -> None:
    """Every unit has one; marked again without errors, the file is as it was."""
    document = read_document(FILES / target, source=FILES / source)
    out = tmp_path / Path(target).name
    document.mark([ERROR] * len(document.units), out)
    encoding = "utf-16" if target.endswith(".strings") else "utf-8" if "prop" not in target else "iso-8859-1"
    lines = out.read_text(encoding=encoding).splitlines()
    assert comment in lines[: document.units[0].line]
    assert sum("mbr-esd:" in line for line in lines) >= len(document.units) - 1
    again = read_document(out, source=FILES / source)
    translations = [[(one.key, one.segment.translation) for one in read.units] for read in (again, document)]
    assert translations[0] == translations[1]
    again.mark([CLEAN] * len(again.units), tmp_path / f"clean{out.suffix}")
    if not target.endswith(".strings"):  # two entries on a line have their comments between them
        assert (tmp_path / f"clean{out.suffix}").read_bytes() == (FILES / target).read_bytes()
