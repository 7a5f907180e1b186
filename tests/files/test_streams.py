"""Text files, line by line."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.streams import numbered_lines, read_segments


@pytest.mark.parametrize("content", [b"a\rb\n", b"a\n\rb\n", b"a\r\r\n"])
def test_a_carriage_return_inside_a_line_is_refused(tmp_path: Path, content: bytes) -> None:
    """COMET and WMT's toolkit read more segments there than we would."""
    path = tmp_path / "lines.txt"
    path.write_bytes(content)
    with path.open(encoding="utf-8") as file:
        assert len(list(file)) > content.count(b"\n")
    with pytest.raises(InputError, match="a carriage return inside the line"):
        read_segments(path)


@pytest.mark.parametrize("content", [b"a\n\r", b"a\r", b"a\r\n\r\nb"])
def test_a_carriage_return_may_end_a_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(content)
    with path.open(encoding="utf-8") as file:
        assert read_segments(path) == [line.strip() for line in file]


def test_other_line_ends_and_marks(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(codecs.BOM_UTF8 + "eins\r\nzwei\x0b\x85\u2028drei\r\nvier".encode())
    assert list(numbered_lines(path)) == [(1, "eins"), (2, "zwei\x0b\x85\u2028drei"), (3, "vier")]
