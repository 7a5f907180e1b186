"""A page of the viewer in headless Chromium, and made-up annotations to put into one."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.report.inputs import JudgedColumn, JudgedTable, join
from mbr_esd_metric.report.inputs import JudgedSegment as Rating
from mbr_esd_metric.report.viewer import render_page

#: As few of Chromium's own errands as can be: the log of requests must hold ours alone.
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--js-flags=--expose-gc", "--enable-precise-memory-info"),
)


def page_data(path: Path) -> dict[str, Any]:
    """The data in a page of `mbr-esd report`."""
    (packed,) = re.findall(r"H4sI[\w+/=]{99,}", path.read_text(encoding="utf-8"))
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return data


def browser(profile: Path) -> Any:
    """Headless Chromium with this profile; the test skips where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra: dev)")
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    service = shutil.which("chromedriver")
    if binary is None or service is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(service))


class Page:
    """A report opened from disk."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver = driver
        self._folder = folder

    def open(self, table: JudgedTable, title: str = "A report", width: int = 1280) -> float:
        """Write and open the page; returns the seconds until it is ready."""
        path = self._folder / "report.html"
        path.write_text(render_page(table, title), encoding="utf-8")
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 860, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        # A headless page has no window that could have the focus.
        self.driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self.driver.get("about:blank")
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        start = time.perf_counter()
        self.driver.get(path.as_uri())
        self.wait("return Boolean(window.mbrEsd && mbrEsd.ready)")
        return time.perf_counter() - start

    def js(self, script: str, *args: Any) -> Any:
        return self.driver.execute_script(script, *args)

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)

    def styles(self, selector: str, *names: str) -> list[list[str]]:
        """The computed values of these properties for each element."""
        return self.js(
            "return [...document.querySelectorAll(arguments[0])].map(getComputedStyle)"
            ".map(style => arguments[1].map(name => style[name]))",
            selector,
            list(names),
        )

    def wait(self, condition: str, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not self.js(condition):
            assert time.monotonic() < end, f"waited in vain for: {condition}; the page's log: {self.log()}"
            time.sleep(0.01)

    def frame(self) -> None:
        """Wait until what was asked for is drawn."""
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def set(self, element: str, value: str | float) -> None:
        """Put a value into a form field, as a user would."""
        self.js(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}));"
            "e.dispatchEvent(new Event('change', {bubbles: true}));",
            element,
            str(value),
        )
        self.frame()

    def numbers(self) -> dict[str, Any]:
        """Numbers that the page computed; None for NaN."""
        return json.loads(self.js("return JSON.stringify(mbrEsd.numbers())"))

    def text(self, selector: str) -> str:
        return str(self.js("return document.querySelector(arguments[0]).textContent", selector))

    def texts(self, selector: str) -> list[str]:
        return list(self.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector))

    def log(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that the page asked for since it was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def random_sheet(count: int, systems: int = 4, metrics: tuple[str, ...] = ("metric",)) -> JudgedTable:
    """A person and metrics that are more or less sure. Translations have 20 to 120 characters, some of them outside of
    the basic plane, and up to five spans, overlapping ones among them."""
    rng = random.Random(0)
    texts = []
    for number in range(count):
        words = rng.choices(["Haus", "Straße", "und", "🙂", "läuft", "𝒙", "bald", "sehr,", "weil"], k=20)
        segment, system = divmod(number, systems)
        translation = " ".join(words)[: rng.randint(20, 120)]
        texts.append(Segment(f"source {segment}", translation, str(segment + 1), f"system {system}"))

    def rating(text: Segment, confident: bool) -> Rating:
        spans = []
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 5])):
            start = rng.randrange(len(text.translation))
            end = min(len(text.translation), start + rng.randint(1, 12))
            category = rng.choice(["accuracy/mistranslation", "Fluency/Punctuation", "non-translation", None])
            severity: Severity = rng.choice(["major", "minor"])
            spans.append(ErrorSpan(start, end, severity, category, round(rng.random(), 3) if confident else None))
        return Rating(text, Annotation(spans))

    people = JudgedColumn("human", [rating(text, False) for text in texts], human=True)
    return join([people, *(JudgedColumn(name, [rating(text, True) for text in texts]) for name in metrics)])
