"""The human annotations are fetched, cut to the columns that we read, and checked."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import human_data
import pytest

RATED = "system\tdoc\tdocSegId\tglobalSegId\trater\tsource\ttarget\tcategory\tseverity\tmetadata\t# more"
CUT = RATED.replace("docSegId", "doc_seg_id").replace("globalSegId", "global_seg_id").split("\tmetadata")[0]
ROW = 'a\td\t1\t1\tr\tEin "Wort\t\tMinor\tMinor'
GOLD = (
    "lp\tgold\tsid\tmt\tstart_id\tend_id\terror\n"
    "he-en\tgold\t0\tx\t-1\t-1\tno-error\n"
    "en-de\tgold\t1\tZwei\t0\t4\tmajor\n"
)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small files at the addresses of the real ones, and the sums of what they become."""
    archive, content = io.BytesIO(), f"{RATED}\n{ROW}\t{{}}\n".encode()
    with tarfile.open(fileobj=archive, mode="w:gz") as files:
        member = tarfile.TarInfo(human_data.SIDE_BY_SIDE)
        member.size = len(content)
        files.addfile(member, io.BytesIO(content))
    published = [[b"ted\n"], [archive.getvalue()], [GOLD.encode(), b"One\nTwo\n"]]
    cut = "lp\tsid\tsource\ttarget\tstart_ids\tend_ids\terrors\nen-de\t1\tTwo\tZwei\t0\t4\tmajor\n"
    tables = []
    for table, files, text in zip(human_data.TABLES, published, ("ted\n", f"{CUT}\n{ROW}\n", cut), strict=True):
        for source, content in zip(table.sources, files, strict=True):
            path = tmp_path / "mirror" / source
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        tables.append(human_data.Table(table.path, table.sources, table.make, sha256))
    monkeypatch.setattr(human_data, "TABLES", tables)
    return (tmp_path / "mirror").as_uri()


def test_what_was_published_becomes_the_tables(mirror: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    human_data.main([str(folder), "--base", mirror])
    assert capsys.readouterr().out == f"export MBR_ESD_DATA={folder}\n"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == [t.path for t in human_data.TABLES]
    packed = (folder / "wmt_qe_2023" / "2023_en-de_test.tsv.gz").read_bytes()
    assert gzip.decompress(packed).endswith(b"\tZwei\t0\t4\tmajor\n")
    # What is there is not fetched again; what was changed later is named.
    human_data.main([str(folder), "--base", (tmp_path / "nowhere").as_uri()])
    (folder / "mqm" / "mqm_ted_ende.tsv").write_text("TED\n")
    with pytest.raises(SystemExit, match=r"mqm_ted_ende\.tsv: .*remove it and try again"):
        human_data.main([str(folder), "--base", mirror])


def test_another_text_is_refused_and_nothing_of_it_stays(mirror: str, tmp_path: Path) -> None:
    next((tmp_path / "mirror").rglob("mqm_ted_ende.tsv")).write_text("TED\n")
    with pytest.raises(SystemExit, match=r"mqm_ted_ende\.tsv: its text has the SHA-256 [0-9a-f]{64}, not"):
        human_data.main([str(tmp_path / "data"), "--base", mirror])
    assert not (tmp_path / "data").exists()


def test_the_pinned_sums_are_those_of_the_tables_that_the_tests_use(mqm_folder: Path) -> None:
    human_data.fetch(mqm_folder.parent, "file:///nowhere")
