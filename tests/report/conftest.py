"""Headless Chromium, and a sheet to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.report.rating_table import RatingInput, RatingTable, join
from tests.helpers.pages import Page, browser, random_ratings, some_texts


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Page:
    return Page(chromium, tmp_path)


@pytest.fixture
def sheet() -> RatingTable:
    """40 translations, a human and two metrics with confidences."""
    texts = some_texts(40)
    return join(
        [
            RatingInput("human", random_ratings(texts, 1, confident=False), human=True),
            RatingInput("metric", random_ratings(texts, 2, confident=True)),
            RatingInput("another", random_ratings(texts, 3, confident=True)),
        ]
    )
