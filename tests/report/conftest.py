"""Headless Chromium, and a sheet to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.report.inputs import JudgedTable
from tests.helpers.pages import Page, browser, random_sheet


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Page:
    return Page(chromium, tmp_path)


@pytest.fixture
def sheet() -> JudgedTable:
    return random_sheet(40, metrics=("metric", "another"))
