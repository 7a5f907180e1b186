"""Text files, line by line; one writer at a time; bars on a terminal, and a line now and then elsewhere."""

from __future__ import annotations

import codecs
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mbr_esd_metric import log
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files import streams
from mbr_esd_metric.files.paths import check_output, plain_name
from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.files.streams import locked, numbered_lines, read_segments, whole_file, write_whole
from mbr_esd_metric.log import progress_bar


@pytest.mark.parametrize("content", [b"a\rb\n", b"a\n\rb\n", b"a\r\r\n", b"a\n\r", b"a\r", b"a\r\n\r\nb"])
def test_lines_are_those_of_comet_or_refused(tmp_path: Path, content: bytes) -> None:
    """COMET and WMT's toolkit take a carriage return for a line end."""
    path = tmp_path / "lines.txt"
    path.write_bytes(content)
    with path.open(encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    if len(lines) > content.count(b"\n") + (content[-1:] != b"\n"):
        with pytest.raises(InputError, match="a carriage return inside the line"):
            read_segments(path)
    else:
        assert read_segments(path) == lines


def test_other_line_ends_and_marks(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(codecs.BOM_UTF8 + "eins\r\nzwei\x0b\x85\u2028drei\r\nvier".encode())
    assert list(numbered_lines(path)) == [(1, "eins"), (2, "zwei\x0b\x85\u2028drei"), (3, "vier")]


@pytest.mark.parametrize("name", ["a.xz", "a.jsonl.BZ2", "a.zip", "a.tgz", "a.lz4", "a.zstd"])
def test_another_compression_is_no_plain_text(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("a\n")
    written: list[Callable[[Path], object]] = [lambda one: write_whole(one, "a"), lambda one: write_records(one, [])]
    for used in (read_segments, check_output, *written):
        with pytest.raises(InputError, match=r"is not supported; use \.gz"):
            used(path)
    assert path.read_text() == "a\n"


@pytest.mark.parametrize("name", ["a.GZ", "a.json.gz", "a.Zst"])
def test_a_compression_is_read_as_it_is_written_in_any_letters(tmp_path: Path, name: str) -> None:
    if name.lower().endswith(".zst"):
        pytest.importorskip("zstandard")
    write_whole(tmp_path / name, "one\n")
    assert (tmp_path / name).read_bytes() != b"one\n"
    assert read_segments(tmp_path / name) == ["one"]
    assert plain_name(tmp_path / name) == name[: name.rindex(".")]


def test_a_link_to_another_file_is_never_written_through_on_the_way(tmp_path: Path) -> None:
    """The unfinished file has a name that nobody foresees; a link as the output itself stays, its file is replaced."""
    victim, out = tmp_path / "victim", tmp_path / "out.json"
    victim.write_text("kept", encoding="utf-8")
    out.with_name("out.json.part").symlink_to(victim)
    write_whole(out, "new")
    assert (victim.read_text(encoding="utf-8"), out.read_text(encoding="utf-8")) == ("kept", "new")
    link = tmp_path / "link"
    link.symlink_to(out)
    write_whole(link, "newer")
    assert link.is_symlink()
    assert out.read_text(encoding="utf-8") == "newer"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".mbr-esd-")]


def test_what_is_no_regular_file_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    write_whole(pipe, "through the pipe")
    assert reader.communicate()[0] == b"through the pipe"


def test_a_failure_keeps_the_old_file_and_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)

    def stopped() -> None:
        with whole_file(path) as file:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=f"No space left on device: '{path}'"):
        stopped()
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
    assert path.read_text(encoding="utf-8") == "old"
    write_whole(path, "new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_lock_ends_with_its_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    program = (
        "import sys, time\nfrom mbr_esd_metric.files.streams import locked\n"
        "with locked(sys.argv[1], 'x'):\n    print('held', flush=True)\n    time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    monkeypatch.setattr(streams, "WAIT_SECONDS", 0.1)
    with pytest.raises(InputError, match="is writing x"), locked(path, "x"):
        pass
    holder.send_signal(signal.SIGKILL)
    monkeypatch.setattr(streams, "WAIT_SECONDS", 60)
    with locked(path, "x"):  # it may take a moment to end
        pass
    holder.wait()
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_short_work_says_nothing_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown, lines in ((Terminal(), True, True), (io.StringIO(), True, False), (Terminal(), False, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        for _ in progress_bar("reading", iterable=range(3), shown=shown):
            time.sleep(0.1)
        assert ("reading" in stream.getvalue()) is lines


def test_long_work_says_how_far_it_is_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(log, "LINE_PAUSE", 0.2)
    with progress_bar("sampling", "segment", total=10, done=4) as bar:
        for _ in range(5):
            time.sleep(0.1)
            bar.update(1)
    lines = capsys.readouterr().err.splitlines()
    assert "9/10" in lines[-1]
    assert 1 < len(lines) < 5
    assert all(line.startswith("sampling: ") for line in lines)
