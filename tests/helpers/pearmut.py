"""Pearmut in a folder of its own, and a person who clicks in it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest


def pearmut() -> str:
    """The command, or a skip."""
    command = os.environ.get("MBR_ESD_PEARMUT") or shutil.which("pearmut")
    if command is None:
        pytest.skip("pearmut is not installed (scripts/setup_pearmut.sh FOLDER, and set MBR_ESD_PEARMUT)")
    return command


class Server:
    """Pearmut with one campaign."""

    def __init__(self, folder: Path, campaign: Path) -> None:
        self.folder, self._command = folder, pearmut()
        folder.mkdir()
        (folder / "data").mkdir()
        subprocess.run([self._command, "add", str(campaign)], cwd=folder, env=self._env, check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    @property
    def _env(self) -> dict[str, str]:
        return {**os.environ, "PEARMUT_ROOT": str(self.folder)}

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._command, "run", "--port", str(self.port)], cwd=self.folder, env=self._env, stdout=log, stderr=log
            )
        for _ in range(300):
            try:
                with urllib.request.urlopen(self.url("/annotate"), timeout=1):
                    return
            except (URLError, OSError):
                assert self._process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.1)
        raise AssertionError("Pearmut does not answer")

    def kill(self) -> None:
        """End it as a power cut would; its lock stays behind, and goes."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        (self.folder / "data" / ".lock").unlink(missing_ok=True)

    def url(self, path: str) -> str:
        """The address of a page."""
        return f"http://127.0.0.1:{self.port}{path}"


class Person:
    """An annotator in a browser window."""

    def __init__(self, driver: Any, server: Server, campaign: str, name: str) -> None:
        self.driver = driver
        driver.switch_to.new_window("tab")
        self._window = driver.current_window_handle
        self._url = server.url(f"/annotate?campaign_id={campaign}&user_id={name}")
        self.open()

    def open(self) -> None:
        """Load the page anew."""
        self._focus()
        self.driver.get(self._url)
        self._until("return document.querySelectorAll('.output_candidate').length > 0")

    def systems(self) -> list[str]:
        """The names that the browser has for the outputs of the first segment."""
        return list(
            self._run(
                "return [...document.querySelectorAll('.output_block')[0].querySelectorAll("
                "'.output_candidate')].map(e => e.dataset.model)"
            )
        )

    def sources(self) -> list[str]:
        """The sources of the screen."""
        return list(self._run("return [...document.querySelectorAll('.output_src')].map(e => e.textContent)"))

    def mark(self, item: int, system: str, first: int, last: int, severity: str) -> None:
        """Click on the first and the last unit of an error, and on its severity."""
        self._click(self._unit(item, system, first))
        if last != first or not self._special(item, system, first):
            self._click(self._unit(item, system, last))
        self._in_toolbox(item, system, first, f".error_{severity}")

    def delete(self, item: int, system: str, first: int) -> None:
        """Remove the error that begins there."""
        self._in_toolbox(item, system, first, ".error_delete")

    def change(self, item: int, system: str, first: int, severity: str) -> None:
        """Give the error that begins there another severity."""
        self._in_toolbox(item, system, first, f".error_{severity}")

    def score(self, item: int, system: str, value: int) -> None:
        """Move the slider."""
        self._run(
            "const e = arguments[0].querySelector('input[type=range]'); e.value = arguments[1];"
            "for (const name of ['input', 'change']) e.dispatchEvent(new Event(name, {bubbles: true}))",
            self._candidate(item, system),
            value,
        )

    def next(self) -> bool:
        """Send the screen; returns whether there is another one."""
        before = self.driver.find_element("css selector", "#progress .progress_current").text
        self._click(self.driver.find_element("id", "button_next"))
        self._until(
            "const e = document.querySelector('#progress .progress_current');"
            "return document.querySelector('#button_next').value == 'Finished' || (e && e.textContent != arguments[0])",
            before,
        )
        return bool(self._run("return document.querySelector('#button_next').value != 'Finished'"))

    def picture(self, path: Path) -> None:
        """A screenshot."""
        self._focus()
        self.driver.save_screenshot(str(path))

    def _candidate(self, item: int, system: str) -> Any:
        self._focus()
        block = self.driver.find_elements("css selector", ".output_block")[item]
        return block.find_element("css selector", f".output_candidate[data-model='{system}']")

    def _unit(self, item: int, system: str, unit: int) -> Any:
        return self._candidate(item, system).find_element("css selector", f".tgt_char[data-i='{unit}']")

    def _special(self, item: int, system: str, unit: int) -> bool:
        return "special_token" in self._unit(item, system, unit).get_attribute("class")

    def _in_toolbox(self, item: int, system: str, first: int, button: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).move_to_element(self._unit(item, system, first)).perform()
        self._until("return [...document.querySelectorAll('.span_toolbox_parent')].some(e => e.offsetHeight)")
        open_ = [e for e in self.driver.find_elements("css selector", ".span_toolbox_parent") if e.is_displayed()]
        self._click(open_[-1].find_element("css selector", button))

    def _click(self, element: Any) -> None:
        self._focus()
        self._run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def _focus(self) -> None:
        if self.driver.current_window_handle != self._window:
            self.driver.switch_to.window(self._window)

    def _run(self, script: str, *arguments: Any) -> Any:
        self._focus()
        return self.driver.execute_script(script, *arguments)

    def _until(self, script: str, *arguments: Any) -> None:
        for _ in range(200):
            if self._run(script, *arguments):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true in the browser: {script}")
