"""A made-up test set in the layout, in two language pairs, and candidates for it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.wmt import TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import Layout
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.files.records import write_records
from mbr_esd_metric.prompting.formats import get_format
from tests.helpers.candidates import record
from tests.helpers.wmt_folder import SYSTEMS, spans, write_folder


def made(folder: Path, lp: str) -> Layout:
    """The same test set in any folder, with a second rater."""
    layout = write_folder(folder, "wmt23", lp)
    outputs, rng = load_test_set(folder, "wmt23", lp).outputs, random.Random(1)
    second = {system: [spans(rng, text or "", 2) for text in outputs[system]] for system in SYSTEMS}
    write_ratings(layout.human_file("mqm.rater2", "seg.rating"), second)
    return layout


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """WMT23's, and "made" of no task and without metrics."""
    folder = tmp_path_factory.mktemp("views")
    for lp in ("en-de", "zh-en"):
        made(folder, lp)
    shutil.rmtree(write_folder(folder, "made").root / "metric-scores")
    return folder


@pytest.fixture(scope="session")
def test_sets(data: Path) -> dict[str, TestSet]:
    return {lp: load_test_set(data, "wmt23", lp) for lp in ("en-de", "zh-en")}


@pytest.fixture
def own(tmp_path: Path) -> Layout:
    """The test set in en-de, which the test may change."""
    return made(tmp_path, "en-de")


@pytest.fixture(scope="session")
def candidates(test_sets: dict[str, TestSet], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight for each translation, the fourth as the merged rater has it."""
    rng, form, records = random.Random(0), get_format("json"), []
    for test_set in test_sets.values():
        for system, human in zip(test_set.systems, *test_set.human(), strict=True):
            for number, text in enumerate(test_set.outputs[system]):
                drawn = [spans(rng, text or "", 2) for _ in range(8)]
                drawn[3] = human[number] or EMPTY
                answers = (form.answer(annotation, text or "")[0] for annotation in drawn)
                records.append(record(test_set.sources[number], text or "", *answers, number=number, system=system))
    path = tmp_path_factory.mktemp("candidates") / "candidates.jsonl"
    write_records(path, records[::-1])
    return path
