"""Claims: one process or thread asks for a request, and what a dead one held is free at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mbr_esd_metric.generation import claims
from mbr_esd_metric.generation.claims import Claims

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks; every claim succeeds there")

HOLDER = """
import sys
from pathlib import Path
from mbr_esd_metric.generation.claims import Claims
with Claims(Path(sys.argv[1])) as claims:
    print(*[int(claims.take(number)) for number in range(1, 2001)], flush=True)
    sys.stdin.readline()
    claims.release(7)
    print("released", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.sqlite"
    path.touch(0o640)
    return path


def holder(store: Path) -> subprocess.Popen[str]:
    found = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert found.stdout is not None
    assert set(found.stdout.readline().split()) == {"1"}
    return found


def test_what_another_process_claimed_is_its_own_until_it_gives_it_up(store: Path) -> None:
    with holder(store) as other, Claims(store) as claims:
        assert other.stdin is not None
        assert other.stdout is not None
        assert not any(claims.take(number) for number in range(1, 2001))
        assert claims.take(2001)
        print(file=other.stdin, flush=True)
        assert other.stdout.readline() == "released\n"
        assert [claims.take(number) for number in (6, 7, 8)] == [False, True, False]
        other.communicate("\n")
        assert claims.take(6)


def test_what_a_killed_process_claimed_is_free_at_once(store: Path) -> None:
    with holder(store) as other, Claims(store) as claims:
        assert not claims.take(3)
        other.send_signal(signal.SIGKILL)
        other.wait()
        began = time.monotonic()
        assert all(claims.take(number) for number in range(1, 2001))
        assert time.monotonic() - began < 30


def test_threads_keep_their_claims_from_one_another(store: Path) -> None:
    with Claims(store) as one:
        assert one.take(1)
        found: list[bool] = []

        def work() -> None:
            with Claims(store) as two:
                found.extend([two.take(1), two.take(2)])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert found == [False, True]
        assert one.take(2)
        with holder_refused(store) as other:
            assert other.wait() == 0, "the other thread's end has given up this one's claims"


def holder_refused(store: Path) -> subprocess.Popen[str]:
    code = (
        "import sys; from pathlib import Path; from mbr_esd_metric.generation.claims import Claims\n"
        "with Claims(Path(sys.argv[1])) as claims: sys.exit(claims.take(1) or claims.take(2))"
    )
    return subprocess.Popen([sys.executable, "-c", code, str(store)], text=True)


def test_the_file_is_gone_when_the_last_has_closed_it_and_as_open_as_the_store(store: Path) -> None:
    file = Path(f"{store}-claims")
    with Claims(store) as claims:
        claims.take(1)
        assert file.stat().st_mode & 0o777 == 0o640
        with holder_refused(store) as other:
            other.wait()
        assert file.exists()
    assert not file.exists()


def test_of_two_that_close_together_one_deletes_the_file(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = claims._lock

    def then_the_other_closes(file: int, number: int) -> bool:
        alone = lock(file, number)
        other.communicate("\n\n")
        return alone

    with holder(store) as other, Claims(store):
        monkeypatch.setattr(claims, "_lock", then_the_other_closes)
    assert other.returncode == 0
    assert not Path(f"{store}-claims").exists()


def test_without_a_file_every_claim_succeeds(tmp_path: Path) -> None:
    for path in (None, tmp_path / "no folder" / "s.sqlite"):
        with Claims(path) as claims:
            assert claims.take(1)
            claims.release(1)
    assert os.listdir(tmp_path) == []
