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
    <!-- docs: needs NAME [NAME ...] -->    is skipped where that is missing: see `NEEDS`
    <!-- docs: fails -->                    every command of the block exits with another status than 0
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def _module(*names: str) -> Callable[[], bool]:
    return lambda: all(importlib.util.find_spec(name) is not None for name in names)


def data_folder() -> Path:
    """Where the human annotations are, as everywhere in the tests."""
    return Path(os.environ.get("MBR_ESD_DATA", ROOT.parent / "shared" / "data"))


#: What a block may need -> whether it is here.
NEEDS: Mapping[str, Callable[[], bool]] = {
    "comet": _module("comet"),
    "transformers": _module("torch", "transformers", "outlines_core"),
    "matplotlib": _module("matplotlib"),
    "trl": _module("trl"),
    "data": lambda: (data_folder() / "mqm").is_dir(),
    "model": lambda: bool(os.environ.get("MBR_ESD_TEST_MODEL")) and _module("torch", "transformers", "outlines_core")(),
}


@dataclass(frozen=True)
class Block:
    """A fenced block that is run.

    Attributes:
        line: of its fence in the document.
        language: "console" or "python".
        text: what stands in it.
        before: commands that the reader does not see.
        needs: names in `NEEDS`.
        not_run: why it is not run, or None.
        fails: whether its commands must fail.
    """

    document: Path
    line: int
    language: str
    text: str
    before: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    not_run: str | None = None
    fails: bool = False

    @property
    def name(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    @property
    def missing(self) -> str | None:
        """Why it cannot be run here, or None."""
        if self.not_run is not None:
            return self.not_run
        absent = [name for name in self.needs if not NEEDS[name]()]
        return f"needs {', '.join(absent)}, not here" if absent else None


class DocumentError(AssertionError):
    """A document breaks the convention, or shows what is not so."""


#: A comment on the blocks below it, or a fenced block.
_PART = re.compile(
    r"<!-- docs: (?P<note>.*?) -->|^ *(?P<ticks>`{3,}) *(?P<language>\w*)[^\n]*\n(?P<text>.*?)^ *(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)


def blocks_of(document: Path) -> list[Block]:
    """The blocks of a document that are run or say why not.

    Raises:
        DocumentError: a block in bash, an unknown comment or need, a console block without a command.
    """
    blocks: list[Block] = []
    notes: list[str] = []
    content = document.read_text(encoding="utf-8")
    for part in _PART.finditer(content):
        line, language = content.count("\n", 0, part.start()) + 1, part["language"]
        if part["note"]:
            notes.append(part["note"])
        elif language in ("bash", "sh", "shell"):
            raise DocumentError(f"{document}:{line}: write commands as a console block, with $ before each")
        elif language in ("console", "python"):
            text = textwrap.dedent(part["text"]).removesuffix("\n")
            blocks.append(_block(document, line, language, text, notes))
            notes = []
    return blocks


def _block(document: Path, line: int, language: str, text: str, notes: list[str]) -> Block:
    values: dict[str, list[str]] = {"not run:": [], "needs": [], "run": [], "fails": []}
    for note in notes:
        kind = next((kind for kind in values if note.startswith(kind)), None)
        if kind is None:
            raise DocumentError(f"{document}:{line}: what does the comment {note!r} mean? see {__name__}")
        values[kind].append(note.removeprefix(kind).strip())
    needs = " ".join(values["needs"]).split()
    if unknown := set(needs) - set(NEEDS):
        raise DocumentError(f"{document}:{line}: unknown need {', '.join(unknown)}; there are: {', '.join(NEEDS)}")
    not_run = next(iter(values["not run:"]), None)
    if language == "console" and not_run is None and not text.startswith("$ "):
        raise DocumentError(f"{document}:{line}: a console block begins with a command, '$ ...'")
    return Block(document, line, language, text, tuple(values["run"]), tuple(needs), not_run, bool(values["fails"]))


def steps_of(text: str) -> list[tuple[str, str | None]]:
    """The commands of a console block, each with the output shown below it, None where there is none."""
    steps: list[tuple[list[str], list[str]]] = []
    for line in text.split("\n"):
        if line.startswith("$ "):
            steps.append(([line[2:]], []))
        elif steps[-1][0][-1].endswith("\\") and not steps[-1][1]:
            steps[-1][0].append(line)
        else:
            steps[-1][1].append(line)
    return [("\n".join(c), "\n".join(o) if any(o) else None) for c, o in steps]


def same_output(shown: str, real: str) -> bool:
    """Whether `real` is what the document shows; see the convention for dots."""
    pattern = ""
    for line in shown.strip("\n").split("\n"):
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*"
        else:
            pattern += r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, re.sub(r"[ \t]+\n", "\n", real.strip("\n") + "\n")) is not None


@dataclass
class Session:
    """One document on its way: a shell, a Python namespace, a folder."""

    document: Path
    folder: Path
    done: int = 0
    _shell: subprocess.Popen[str] | None = None
    _names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__docs__"})

    def __post_init__(self) -> None:
        for name in ("docs", "scripts"):
            (self.folder / name).symlink_to(ROOT / name)

    def run(self, block: Block) -> None:
        """Run one block.

        Raises:
            DocumentError: a command fails, or its output is not as shown.
        """
        for command in block.before:
            self._command(command, None, block)
        if block.language == "console":
            for command, output in steps_of(block.text):
                self._command(command, output, block)
        else:
            self._python(block)

    def close(self) -> None:
        if self._shell is not None:
            self._shell.kill()
            self._shell.wait()

    def _command(self, command: str, shown: str | None, block: Block) -> None:
        status, output = self.shell(command)
        if (status != 0) != block.fails:
            raise DocumentError(f"{block.name}: $ {command}\nexits with {status}:\n{output}")
        if shown is not None and not same_output(shown, output):
            raise DocumentError(f"{block.name}: $ {command}\nshown:\n{shown}\nreal:\n{output}")

    def shell(self, command: str, seconds: float = 900) -> tuple[int, str]:
        """Exit status and output of a command in the document's shell."""
        if self._shell is None:
            environment = {
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "MBR_ESD_DATA": str(data_folder()),
                "MBR_ESD_STORE": str(self.folder / "store.sqlite"),
                "NO_COLOR": "1",
                "COLUMNS": "100",
            }
            self._shell = subprocess.Popen(
                ["bash", "--norc"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=self.folder,
                env=environment,
            )
        shell, end = self._shell, "--end-of-command--"
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"{{\n{command}\n}} </dev/null\nprintf '\\n%s %d\\n' {end} $?\n")
        shell.stdin.flush()
        watch = threading.Timer(seconds, shell.kill)
        watch.start()
        lines: list[str] = []
        try:
            for line in shell.stdout:
                if line.startswith(end):
                    return int(line.split()[1]), "".join(lines)
                lines.append(line)
        finally:
            watch.cancel()
        self._shell = None
        raise DocumentError(f"$ {command}\nends the shell, or takes longer than {seconds:.0f} s:\n{''.join(lines)}")

    def _python(self, block: Block) -> None:
        with contextlib.ExitStack() as back:
            back.callback(os.chdir, Path.cwd())
            os.chdir(self.folder)
            if ">>>" not in block.text:
                exec(compile(block.text, block.name, "exec"), self._names)
                return
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            test = doctest.DocTestParser().get_doctest(
                block.text + "\n", self._names, block.name, str(block.document), block.line
            )
            report = io.StringIO()
            result = doctest.DocTestRunner(optionflags=flags).run(test, out=report.write, clear_globs=False)
            self._names.update(test.globs)
            if result.failed:
                raise DocumentError(report.getvalue())


def documents() -> list[Path]:
    """README, CONTRIBUTING, CHANGELOG, everything in docs, and the architecture page."""
    at_root = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*at_root, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "mbr_esd_metric" / "README.md"]
