"""Prints the size of the package: lines, modules, options, words, and the code that is executed and loaded to score a
segment.

python scripts/size.py                 # this checkout; fails if a limit is exceeded
python scripts/size.py --base v1.2     # compared with another git revision
"""

from __future__ import annotations

import argparse
import inspect
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
MODEL = "meta-llama/Llama-3.3-70B-Instruct"
#: Row -> its limit.
LIMITS = {
    "package: lines": 35_500,
    "package: modules": 210,
    "options of all verbs": 145,
    "options in a model's name": 34,
    "prediction: lines loaded": 9_200,
    "score, fresh: files entered": 54,
    "score, fresh: functions entered": 310,
    "score, stored: files entered": 49,
    "score, stored: functions entered": 255,
    "score, stored: lines loaded": 9_500,
    "score, stored: requests": 0,
    "tests: lines": 24_700,
    "scripts: lines": 6_050,
    "docs: words": 25_700,
    "evidence: words": 12_500,
}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", metavar="REV", help="a git revision to compare with")
    args = parser.parse_args()
    now = sizes(ROOT)
    before = None
    if args.base:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "archive", args.base], cwd=ROOT, check=True, capture_output=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as files:
                files.extractall(folder)
            before = sizes(Path(folder))
    print(table(now, before))
    past = [name for name, limit in LIMITS.items() if now[name] > limit]
    if past:
        print(f"limit exceeded; the limits are in {Path(__file__).name}: {', '.join(past)}", file=sys.stderr)
    return 1 if past and before is None else 0


def table(now: dict[str, int], before: dict[str, int] | None) -> str:
    """The table as text, with the limits."""
    names = list(dict.fromkeys([*(before or {}), *now]))
    width = max(map(len, names))
    head = f"{'':<{width}}" + (f"{'before':>9}" if before else "") + f"{'now':>9}{'limit':>9}"
    lines = [head]
    for name in names:
        row = f"{name:<{width}}" + (_number(before.get(name)) if before else "")
        row += _number(now.get(name)) + (f"{LIMITS[name]:>9,}" if name in LIMITS else "")
        lines.append(row.rstrip())
    return "\n".join(lines)


def _number(value: int | None) -> str:
    return f"{'-' if value is None else format(value, ','):>9}"


def sizes(root: Path) -> dict[str, int]:
    """All rows of the table for a checkout."""
    package = sorted((root / PACKAGE).rglob("*.py"))
    rows = {"package: lines": sum(map(_lines, package)), "package: modules": len(package)}
    for folder in sorted(path.name for path in (root / PACKAGE).iterdir() if any(path.rglob("*.py"))):
        inside = [path for path in package if path.relative_to(root / PACKAGE).parts[0] == folder]
        rows[f"  {folder}: lines"], rows[f"  {folder}: modules"] = sum(map(_lines, inside)), len(inside)
    rows |= _measured(root)
    for folder in ("tests", "scripts"):
        files = list((root / folder).rglob("*.py"))
        rows[f"{folder}: lines"], rows[f"{folder}: modules"] = sum(map(_lines, files)), len(files)
    pages = [root / "README.md", *(p for p in (root / "docs").rglob("*.md") if "evidence" not in p.parts)]
    pages = [page for page in pages if page.name != "command-line.md"]  # generated from the parsers
    for name, texts in (("docs", pages), ("evidence", (root / "docs" / "evidence").glob("*.md"))):
        rows[f"{name}: words"] = sum(len(text.read_text(encoding="utf-8").split()) for text in texts)
    return rows


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _measured(root: Path) -> dict[str, int]:
    """The measures that import the package of a checkout, each in a separate process; all use the same server."""
    rows: dict[str, int] = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Chat)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(root), "MBR_ESD_CACHE": cache, "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"MBR_ESD_STORE": f"{cache}/store.sqlite"}
        environment |= {"MBR_ESD_SERVER": f"http://127.0.0.1:{server.server_port}/v1"}
        command = [sys.executable, "-P"] if sys.version_info >= (3, 11) else [sys.executable]
        for name in ("options", "prediction", "score, fresh", "score, stored"):
            measure = name.partition(",")[0]
            code = f"import runpy; runpy.run_path({str(__file__)!r})[{'_' + measure!r}]()"
            requests = _Chat.requests
            done = subprocess.run([*command, "-c", code], cwd=cache, env=environment, capture_output=True, text=True)
            if done.returncode:
                print(done.stderr.strip(), file=sys.stderr)
                raise SystemExit(f"{root}: the {measure} cannot be measured")
            counts = json.loads(done.stdout.splitlines()[-1])
            if name == "options":
                rows |= counts
            else:
                counts["requests"] = _Chat.requests - requests
                rows |= {f"{name}: {row}": count for row, count in counts.items()}
    server.shutdown()
    return rows


def _options() -> None:
    """Prints the number of options of each verb, including its subcommands, and of model names."""
    from mbr_esd_metric.cli.verbs import VERBS
    from mbr_esd_metric.decoding.options import FIELDS
    from mbr_esd_metric.metric.card import OPTIONS

    counts: dict[str, int] = {}
    for name, verb in VERBS.all().items():
        parser = argparse.ArgumentParser(prog=name)
        verb.functions()[0](parser)
        counts[f"  {name}: options"] = sum(_options_of(one) for one in _parsers(parser))
    in_a_name = {"options in a model's name": len(OPTIONS) + len(FIELDS)}
    print(json.dumps({"options of all verbs": sum(counts.values()), **counts, **in_a_name}))


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _parsers(one)


def _options_of(parser: argparse.ArgumentParser) -> int:
    return sum(bool(action.option_strings) and action.dest != "help" for action in parser._actions)


class _Chat(BaseHTTPRequestHandler):
    """A chat server in which every second answer contains an error."""

    requests = 0

    def do_GET(self) -> None:
        self._reply({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "vllm"}]})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        error = {"error_span": "Ufer", "category": "accuracy", "sub_category": "mistranslation", "severity": "major"}
        choices = [
            {
                "index": index,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": json.dumps({"errors": [error][: index % 2]})},
                "logprobs": {"content": [{"token": "x", "logprob": -0.5}]},
            }
            for index in range(request.get("n", 1))
        ]
        usage = {"prompt_tokens": 1, "completion_tokens": len(choices), "total_tokens": 1 + len(choices)}
        self._reply({"object": "chat.completion", "model": MODEL, "choices": choices, "usage": usage})

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def _reply(self, content: dict[str, Any]) -> None:
        _Chat.requests += 1
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _prediction() -> None:
    """Prints the part of the package that is loaded for a prediction of a model on a server."""
    from mbr_esd_metric import load_metric

    load_metric("mbr-esd-llama?engine=server&n=16&lp=en-de").predict([{"src": "A text.", "mt": "Ein Text."}])
    print(json.dumps(_loaded()))


def _score() -> None:
    """Prints the files and functions of the package that `mbr-esd score` executes for a segment, and the lines that it
    loads."""
    import mbr_esd_metric
    from mbr_esd_metric.cli.main import main

    root = str(Path(mbr_esd_metric.__file__).parent)
    entered: set[tuple[str, int]] = set()

    def profile(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        function = code.co_flags & inspect.CO_OPTIMIZED and code.co_name[0] != "<"  # excludes class bodies and lambdas
        if event == "call" and function and code.co_filename.startswith(root):
            entered.add((code.co_filename, code.co_firstlineno))

    for name, text in (("s", "The bank closed."), ("t", "Das Ufer schloss.")):
        Path(name).write_text(text, encoding="utf-8")
    threading.setprofile(profile)
    sys.setprofile(profile)
    status = main(["score", "-s", "s", "-t", "t", "--model", "mbr-esd-llama?engine=server&n=16&lp=en-de"])
    sys.setprofile(None)
    if status:
        raise SystemExit(status)
    counts = {"files entered": len({file for file, _ in entered}), "functions entered": len(entered)}
    print(json.dumps(counts | _loaded()))


def _loaded() -> dict[str, int]:
    files = [module.__file__ for name, module in sys.modules.items() if name.split(".")[0] == PACKAGE]
    return {"lines loaded": sum(_lines(Path(file)) for file in files if file), "modules loaded": len(files)}


if __name__ == "__main__":
    sys.exit(main())
