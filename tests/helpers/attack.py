"""Runs a script of `cases/attacks` with the package as it is: ``python -m tests.helpers.attack SCRIPT``.

Some scripts were written for earlier names of modules and functions, and for an option that is an environment variable.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from mbr_esd_metric.checks.check import errors_of
from mbr_esd_metric.cli import score_inputs
from mbr_esd_metric.prompting import formats, sentences
from tests.helpers import chat_server


def main(path: Path) -> None:
    """Run the script."""
    decoding = ModuleType("checks")
    decoding.checks = errors_of  # type: ignore[attr-defined]
    elicit = ModuleType("formats")
    elicit.get_format = _Format  # type: ignore[attr-defined]
    chat_server.FakeServer = _Server  # type: ignore[misc]
    sys.modules |= {"chat_server": chat_server, "mbr_esd_metric.decoding.checks": decoding}
    sys.modules |= {"mbr_esd_metric.elicit.sentences": sentences, "mbr_esd_metric.elicit.formats": elicit}
    sys.modules["mbr_esd_metric.elicit"] = ModuleType("elicit")
    score_inputs.read_document_names = score_inputs.document_names  # type: ignore[attr-defined]
    script = path.read_text(encoding="utf-8").replace("?store=:memory:", "").replace("&store=:memory:", "")
    exec(compile(script, path, "exec"), {"__name__": "__main__"})


class _Server(chat_server.FakeServer):
    """A server that could be told to refuse every request with a text."""

    @property
    def refuse(self) -> str:
        """The text of the refusal."""
        return ""

    @refuse.setter
    def refuse(self, text: str) -> None:
        body = json.dumps({"error": {"message": text}}).encode()
        self.spoil = lambda reply, number: chat_server.Failure(400, body)


class _Format:
    """An answer format whose parser took a fourth argument."""

    def __init__(self, name: str) -> None:
        self._format = formats.get_format(name)

    def parser(self, translation: str, location: str, source: str, _: bool) -> Any:
        return self._format.parser(translation, location, source)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
