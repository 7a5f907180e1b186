"""Fixtures of several folders' tests: the human annotations, and translations taken from them."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from mbr_esd_metric.log import logger
from tests.helpers.command import Command

# Rounding decides ties of SPA's permutation test, here as in mt-metrics-eval, and OpenBLAS's kernels for different
# processors round differently; the golden numbers are those of this one. Set before numpy is imported.
if platform.machine() in ("x86_64", "AMD64"):
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # and the number of threads decides the order of sums

# Property tests take no account of time: the machine may be busy.
settings.register_profile("untimed", deadline=None, max_examples=60)
settings.load_profile("untimed")

#: Files that take longest, by their time: begun first, so that no worker is left alone with one of them at the end.
LONGEST = (
    *("test_miniature.py", "test_vllm.py", "test_docs.py", "test_dialects_real.py", "test_model_class_demo.py"),
    *("test_model_class.py", "test_viewer.py", "test_annotate.py", "test_compatibility.py"),
)
#: What `scripts/test.sh` leaves out without --all, besides real models, vLLM and the browser: a file, or a test's name.
SLOW = {
    "test_a_users_file_is_checked",
    "test_attack",
    "test_command_line.py",
    "test_compatibility.py",
    "test_block",
    "test_faults_lose_and_double_nothing",
    "test_miniature.py",
    "test_model_class.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
    for item in items:
        if item.path.name in SLOW or item.name.split("[")[0] in SLOW or item.path.parent.name == "distill":
            item.add_marker("slow")


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Of each case of `test_cases.py`, whether it is right."""
    words = {"passed": (".", "right"), "failed": ("F", "wrong")}
    if "test_cases.py" in report.nodeid and report.when == "call" and report.outcome in words:
        return (report.outcome, *words[report.outcome])
    return None


@pytest.fixture(autouse=True)
def _store_servers_and_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a store of its own. A port may come again, and with it an address whose dialect is remembered. A
    command shows the log for good. Annotations of a workflow are for tests of these."""
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("MBR_ESD_STORE", str(tmp_path / "store.sqlite"))
    if (files := sys.modules.get("mbr_esd_metric.generation.store")) is not None:
        (files.cache_folder() / "dialects.json").unlink(missing_ok=True)
    before = logger.handlers, logger.propagate, logger.level
    yield
    logger.handlers, logger.propagate, level = before
    logger.setLevel(level)


@pytest.fixture(scope="session")
def mqm_folder() -> Path:
    """The folder with the human annotations; they are not part of the repository."""
    folder = Path(os.environ.get("MBR_ESD_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mqm"
    if not folder.is_dir():
        pytest.skip(f"no human annotations in {folder}; python scripts/human_data.py fetches them for MBR_ESD_DATA")
    return folder


@pytest.fixture(scope="session")
def bio_mqm(mqm_folder: Path) -> Path:
    """The biomedical annotations (amazon-science/bio-mqm-dataset), which `scripts/human_data.py` does not fetch."""
    table = mqm_folder / "bio_mqm_en-de_de-en.jsonl.gz"
    if not table.is_file():
        pytest.skip(f"no {table}")
    return table


@pytest.fixture(scope="session")
def ted_pairs(mqm_folder: Path) -> list[tuple[str, str]]:
    """Distinct (source, translation) pairs of the WMT21 TED talks, English to German, in the file's order."""
    from mbr_esd_metric.adapters.mqm_tsv import read_mqm_tsv

    ratings = read_mqm_tsv(mqm_folder / "mqm_ted_ende.tsv").ratings
    return list(dict.fromkeys((rating.segment.source, rating.segment.translation) for rating in ratings))


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mbr_esd(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `mbr-esd WORDS`, which ends with that status, and returns its output. A shell's rules divide texts."""

    def run(*words: object, status: int = 0) -> pytest.CaptureResult[str]:
        from mbr_esd_metric.cli.main import main

        capsys.readouterr()
        argv = [part for word in words for part in (shlex.split(word) if isinstance(word, str) else [str(word)])]
        ended = main(argv)
        output = capsys.readouterr()
        assert ended == status, output.err
        return output

    return run
