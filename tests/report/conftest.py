"""Headless Chromium, and a sheet to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.report.sheet import Layer, Sheet, join
from tests.helpers.pages import Page, browser, random_opinions, some_texts


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = browser(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def page(chromium: Any, tmp_path: Path) -> Page:
    return Page(chromium, tmp_path)


@pytest.fixture
def sheet() -> Sheet:
    """40 translations, a human and two metrics with confidences."""
    texts = some_texts(40)
    return join(
        [
            Layer("human", random_opinions(texts, 1, confident=False), human=True),
            Layer("metric", random_opinions(texts, 2, confident=True)),
            Layer("another", random_opinions(texts, 3, confident=True)),
        ]
    )
