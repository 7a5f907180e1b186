"""One address of the repository in all files."""

from __future__ import annotations

import shutil
from pathlib import Path

import address
import pytest

ROOT = Path(__file__).parents[2]


def test_all_files_name_the_address_of_setup_cfg() -> None:
    assert address.strangers() == []


def test_a_change_reaches_every_file_and_another_owner_is_named(tmp_path: Path) -> None:
    for file in address.FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    old = address.repository(tmp_path)
    address.change("https://github.com/someone/esd-by-mbr", tmp_path)
    assert address.repository(tmp_path) == ("someone", "esd-by-mbr")
    for file in address.FILES:
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert "someone/esd-by-mbr" in text
        assert not any(form in text for form in address.forms(*old))
    assert "https://someone.github.io/esd-by-mbr/" in (tmp_path / "mkdocs.yml").read_text(encoding="utf-8")
    assert address.strangers(tmp_path) == []
    with (tmp_path / "SECURITY.md").open("a", encoding="utf-8") as file:
        file.write("[stray](https://github.com/other/esd-by-mbr/issues)\n")
    assert len(address.strangers(tmp_path)) == 1


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(SystemExit, match="no address"):
        address.change("github.com/someone")
