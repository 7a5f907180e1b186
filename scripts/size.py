"""Prints how large the package is: lines and modules a folder, options, words, and what one prediction loads.

python scripts/size.py                 # of this checkout
python scripts/size.py --base v1.2     # beside another git revision
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "mbr_esd_metric"
#: Row -> the most that it should be.
TARGETS = {
    "package: lines": 30_000,
    "package: modules": 190,
    "options of all verbs": 220,
    "options in a model's name": 34,
    "tests: lines": 22_000,
    "loaded by a prediction: lines": 8_500,
    "docs: words": 20_000,
}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", metavar="REV", help="a git revision to compare with")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    args = parser.parse_args()
    now = sizes(ROOT)
    before = None
    if args.base:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "archive", args.base], cwd=ROOT, check=True, capture_output=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(folder)
            before = sizes(Path(folder))
    if args.json:
        print(json.dumps({"now": now, **({} if before is None else {"before": before})}, indent=2))
    else:
        print(table(now, before))
    return 0


def table(now: dict[str, int | None], before: dict[str, int | None] | None) -> str:
    """The rows as text, with the targets."""
    names = list(dict.fromkeys([*(before or {}), *now])) if before else list(now)
    width = max(map(len, names))
    head = f"{'':<{width}}" + (f"{'before':>9}" if before else "") + f"{'now':>9}{'at most':>9}"
    lines = [head]
    for name in names:
        row = f"{name:<{width}}" + (_number(before.get(name)) if before else "")
        row += _number(now.get(name)) + (f"{TARGETS[name]:>9,}" if name in TARGETS else "")
        lines.append(row.rstrip())
    return "\n".join(lines)


def _number(value: int | None) -> str:
    return f"{'-' if value is None else format(value, ','):>9}"


def sizes(root: Path) -> dict[str, int | None]:
    """Every row of the table for one checkout; None where it cannot be measured."""
    rows: dict[str, int | None] = {}
    package = sorted((root / PACKAGE).rglob("*.py"))
    rows["package: lines"], rows["package: modules"] = sum(map(_lines, package)), len(package)
    for folder in sorted(path.name for path in (root / PACKAGE).iterdir() if any(path.rglob("*.py"))):
        inside = [path for path in package if path.relative_to(root / PACKAGE).parts[0] == folder]
        rows[f"  {folder}: lines"], rows[f"  {folder}: modules"] = sum(map(_lines, inside)), len(inside)
    for measure in ("options", "names", "loaded"):
        rows |= _measured(root, measure)
    tests = list((root / "tests").rglob("*.py"))
    rows["tests: lines"], rows["tests: modules"] = sum(map(_lines, tests)), len(tests)
    pages = [root / "README.md", *(p for p in (root / "docs").rglob("*.md") if "evidence" not in p.parts)]
    rows["docs: words"] = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    return rows


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _measured(root: Path, measure: str) -> dict[str, int | None]:
    """A measure that imports the checkout's package, in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(root), "MBR_ESD_CACHE": cache, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
        code = f"import runpy; runpy.run_path({str(__file__)!r})[{'_' + measure!r}]()"
        done = subprocess.run([*command, "-c", code], cwd=cache, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        raise SystemExit(f"{root}: the {measure} cannot be counted")
    counts: dict[str, int | None] = json.loads(done.stdout.splitlines()[-1])
    return counts


def _options() -> None:
    """Prints the number of options of every verb, those of the verbs below it included, from their parsers."""
    import importlib

    from mbr_esd_metric import cli
    from mbr_esd_metric.cli.main import VERBS

    counts: dict[str, int] = {}
    for verb, (module, _) in VERBS.items():
        parser = argparse.ArgumentParser(prog=verb)
        if hasattr(cli, "functions_of"):
            cli.functions_of(module)[0](parser)
        else:  # an older revision
            importlib.import_module(f"{PACKAGE}.cli.{module}").configure(parser)
        counts[f"  {verb}: options"] = sum(_options_of(one) for one in _parsers(parser))
    print(json.dumps({"options of all verbs": sum(counts.values()), **counts}))


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _parsers(one)


def _options_of(parser: argparse.ArgumentParser) -> int:
    return sum(bool(action.option_strings) and action.dest != "help" for action in parser._actions)


def _names() -> None:
    """Prints the number of options that a model's name takes."""
    from mbr_esd_metric.metric.card import options_help

    print(json.dumps({"options in a model's name": len(options_help().splitlines())}))


class _Chat(BaseHTTPRequestHandler):
    """A chat server whose every answer is "no errors"."""

    def do_GET(self) -> None:
        self._reply({"object": "list", "data": [{"id": "model", "object": "model", "owned_by": "vllm"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        choices = [
            {
                "index": index,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": '{"errors": []}'},
                "logprobs": {"content": [{"token": "x", "logprob": -0.5}]},
            }
            for index in range(request.get("n", 1))
        ]
        usage = {"prompt_tokens": 1, "completion_tokens": len(choices), "total_tokens": 1 + len(choices)}
        self._reply({"object": "chat.completion", "model": "model", "choices": choices, "usage": usage})

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def _reply(self, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _loaded() -> None:
    """Prints the lines and modules of the package that a model of a server loads until it has predicted."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Chat)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    from mbr_esd_metric import load_metric

    name = f"mbr-esd-server?server=http://127.0.0.1:{server.server_port}/v1&model=model&n=2&lp=en-de"
    load_metric(name).predict([{"src": "A text.", "mt": "Ein Text."}])
    server.shutdown()
    loaded = {name: module for name, module in sys.modules.items() if name.split(".")[0] == PACKAGE}
    lines = sum(_lines(Path(module.__file__)) for module in loaded.values() if module.__file__)
    print(json.dumps({"loaded by a prediction: lines": lines, "loaded by a prediction: modules": len(loaded)}))


if __name__ == "__main__":
    sys.exit(main())
