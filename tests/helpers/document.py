"""Documents whose commands are run: the convention, and what carries it out.

In a fenced block marked ``console``, a line that begins with ``$ `` is a command (one that ends in a
backslash goes on in the next line, indented) and the lines below it are its output, standard error included.
``python`` blocks are run as well; in those with ``>>>`` the values shown are compared. All blocks of a
document share one shell, one Python namespace and one folder, in which `docs` and `scripts` are those of
the repository. Other blocks (``text``, ``json``, none) are not run; ``bash`` and ``sh`` are refused, so that no
command stays untested.

In an output ``...`` stands for anything: alone on a line for any number of lines, in a line for a part of it
(times, paths). A command without output below it must succeed, no more.

Comments above a block say what is special about it; they do not show in the rendered page:

    <!-- docs: not run: REASON -->          for example, it needs four GPUs
    <!-- docs: needs NAME -->               is skipped where that is missing: see `NEEDS`
    <!-- docs: run COMMAND -->              what a reader need not see, before the next block
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: Where the human annotations are, as everywhere in the tests.
DATA = Path(os.environ.get("MBR_ESD_DATA", ROOT.parent / "shared" / "data"))
#: Seconds after which a command of a page is ended.
_LONGEST = 900


def _here(*modules: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in modules)


#: What a block may need -> whether it is here.
NEEDS = {
    "comet": _here("comet"),
    "transformers": _here("torch", "transformers", "outlines_core"),
    "data": (DATA / "mqm").is_dir(),
}


@dataclass(frozen=True)
class Block:
    """A fenced "console" or "python" block: the line of its fence, its text, the commands before it that the reader
    does not see, and why it is not run, or None."""

    document: Path
    line: int
    language: str
    text: str
    before: tuple[str, ...] = ()
    not_run: str | None = None

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


#: A comment on the blocks below it, or a fenced block.
_PART = re.compile(
    r"<!-- docs: (?P<kind>not run:|needs|run) (?P<note>.*?) -->"
    r"|^ *(?P<ticks>`{3,}) *(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)


def blocks_of(document: Path) -> Iterator[Block]:
    """The blocks of a document that are run or say why not; `AssertionError` for one in bash, an unknown comment or
    need, or a console block without a command."""
    content = document.read_text(encoding="utf-8")
    if content.count("<!-- docs:") != sum(part["kind"] is not None for part in _PART.finditer(content)):
        raise AssertionError(f"{document}: a comment means nothing; see {__name__}")
    before: list[str] = []
    not_run = None
    for part in _PART.finditer(content):
        language, where = part["language"], f"{document}:{content.count(chr(10), 0, part.start()) + 1}"
        if part["kind"] == "run":
            before.append(part["note"])
        elif part["kind"] == "needs":
            not_run = None if NEEDS[part["note"]] else f"needs {part['note']}, not here"
        elif part["kind"]:
            not_run = part["note"]
        elif language in ("bash", "sh", "shell"):
            raise AssertionError(f"{where}: write commands as a console block, with $ before each")
        elif language in ("console", "python"):
            text = textwrap.dedent(part["text"]).removesuffix("\n")
            if language == "console" and not_run is None and not text.startswith("$ "):
                raise AssertionError(f"{where}: a console block begins with a command, '$ ...'")
            yield Block(document, int(where.rpartition(":")[2]), language, text, tuple(before), not_run)
            before, not_run = [], None


def _steps(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output shown below it, "" where there is none."""
    steps: list[list[str]] = []
    for line in text.split("\n"):
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif steps[-1][0].endswith("\\") and not steps[-1][1]:
            steps[-1][0] += f"\n{line}"
        else:
            steps[-1][1] += f"{line}\n"
    return [(command, output.strip("\n")) for command, output in steps]


def _same_output(shown: str, real: str) -> bool:
    """Whether `real` is what the document shows; see the convention for dots."""
    pattern = ""
    for line in shown.split("\n"):
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, re.sub(r"[ \t]+\n", "\n", real.strip("\n") + "\n")) is not None


class Session:
    """One document on its way: a shell, a Python namespace, a folder."""

    def __init__(self, folder: Path) -> None:
        self.done = 0
        self._folder = folder
        self._names: dict[str, Any] = {"__name__": "__docs__"}
        for name in ("docs", "scripts"):
            (folder / name).symlink_to(ROOT / name)
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **{"MBR_ESD_DATA": str(DATA), "MBR_ESD_STORE": f"{folder}/store.sqlite", "NO_COLOR": "1", "COLUMNS": "100"},
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._shell = subprocess.Popen(["bash", "--norc"], text=True, cwd=folder, env=environment, **pipes)

    def run(self, block: Block) -> None:
        """Run one block; `AssertionError` if a command fails, or its output is not as shown."""
        steps = [(command, "") for command in block.before]
        for command, shown in [*steps, *(_steps(block.text) if block.language == "console" else [])]:
            status, output = self._run(command)
            if status:
                raise AssertionError(f"{block.name}: $ {command}\nexits with {status}:\n{output}")
            if shown and not _same_output(shown, output):
                raise AssertionError(f"{block.name}: $ {command}\nshown:\n{shown}\nreal:\n{output}")
        if block.language == "python":
            self._python(block)

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()

    def _run(self, command: str) -> tuple[int, str]:
        """Exit status and output of a command in the document's shell."""
        end = "--end-of-command--"
        self._shell.stdin.write(f"{{\n{command}\n}} </dev/null\nprintf '\\n%s %d\\n' {end} $?\n")
        self._shell.stdin.flush()
        watch = threading.Timer(_LONGEST, self._shell.kill)
        watch.start()
        lines: list[str] = []
        try:
            for line in self._shell.stdout:
                if line.startswith(end):
                    return int(line.split()[1]), "".join(lines)
                lines.append(line)
        finally:
            watch.cancel()
        raise AssertionError(f"$ {command}\nends the shell, or takes longer than {_LONGEST} s:\n{''.join(lines)}")

    def _python(self, block: Block) -> None:
        with contextlib.ExitStack() as back:
            back.callback(os.chdir, Path.cwd())
            os.chdir(self._folder)
            if ">>>" not in block.text:
                exec(compile(block.text, block.name, "exec"), self._names)
                return
            parser, name = doctest.DocTestParser(), str(block.document)
            test = parser.get_doctest(block.text + "\n", self._names, block.name, name, block.line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            report = io.StringIO()
            result = runner.run(test, out=report.write, clear_globs=False)
            self._names.update(test.globs)
            if result.failed:
                raise AssertionError(report.getvalue())


def documents() -> list[Path]:
    """README, CONTRIBUTING, CHANGELOG, everything in docs, and the architecture page."""
    at_root = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*at_root, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "mbr_esd_metric" / "README.md"]
