"""Another package adds a part of each kind, without an edit here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mbr_esd_metric.core.rules import Rule
from mbr_esd_metric.core.similarities import SIMILARITIES
from mbr_esd_metric.errors import OptionError, PluginError
from mbr_esd_metric.generation.engine import ENGINES
from mbr_esd_metric.plugins import Catalog

ROOT = Path(__file__).parents[1]
CANDIDATES = ROOT / "docs" / "examples" / "candidates.jsonl"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package was installed to."""
    pytest.importorskip("setuptools", reason="builds a package")
    folder = tmp_path_factory.mktemp("plugin")
    offline = ["--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--quiet"]
    # Built from a copy: setuptools leaves files beside what it builds.
    source = folder / "source"
    shutil.copytree(Path(__file__).parent / "plugin_package", source)
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(folder / "site"), str(source)]
    subprocess.run(command, check=True)
    return folder / "site"


def command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python in a process that finds what is installed in this folder."""
    paths = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *words], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
    )


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def mbr_esd(site: Path, *words: str) -> str:
    done = command(site, "-m", "mbr_esd_metric", *words)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    return done.stdout


def test_models_list_what_was_added(installed: Path) -> None:
    models = mbr_esd(installed, "models", "mbr-esd-llama")
    assert f"engine that runs the model: {', '.join(['auto', *ENGINES.builtin, 'example-first-word'])}\n" in models
    assert f": {', '.join([*SIMILARITIES.builtin, 'example-jaccard'])}, or a mean such as" in models
    assert "; example-longest: the most error spans" in models
    checked = mbr_esd(installed, "models", "--check")
    assert "engine=example-first-word marks the first word, without a model" in checked
    for added in (
        "engine example-first-word",
        "similarity example-jaccard",
        "rule example-longest",
        "format bracketed",
        "check example-forbidden-word",
        "statistic example-close",
        "verb example-count",
    ):
        assert f"the {added} comes from mbr-esd-example-plugin 1.2" in checked
    assert "  example-first-word works here" in checked


#: What is done with a file of candidates, in one process; every word is split at blanks.
READING = """\
wmt import human.tsv --test-set data/tiny --lp en-de
sample -s src.txt -t mt.txt --model mbr-esd-demo?candidates=c.jsonl&n=4 --quiet -o sampled.jsonl
decide sampled.jsonl -o decided.jsonl
show decided.jsonl sampled.jsonl
wmt score --test-set data/tiny --lp en-de --model P=mbr-esd-demo?candidates=c.jsonl&n=4
leaderboard --test-set data/tiny --lp en-de --view spans --metric P
leaderboard --test-set data/tiny --lp en-de --statistics example-close spa
oracle c.jsonl --test-set data/tiny --lp en-de --rules majority
compare c.jsonl
annotate export decided.jsonl sampled.jsonl --lp en-de -o campaign.json
distill pairs c.jsonl -o pairs
report decided.jsonl sampled.jsonl -o report.html
"""


def test_every_verb_reads_the_format(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each marks what the answers of the other package's format mark."""
    monkeypatch.chdir(tmp_path)
    example = CANDIDATES.parent
    for name in ("src.txt", "mt.txt"):
        Path(name).write_bytes((example / name).read_bytes())
    head, *rated = (example / "human.tsv").read_text(encoding="utf-8").splitlines()
    second = ["mt2" + row.removeprefix("mt") for row in rated]
    Path("human.tsv").write_text("\n".join([head, *rated, *second]) + "\n", encoding="utf-8")
    segments = records(CANDIDATES)
    for segment in segments:
        word = segment["mt"].split()[1]
        texts = ["fine", f"major[{word}]", f"major[{word}]", "Ufer"]
        segment |= {"format": "bracketed", "candidates": [{"text": text, "logprob": -1.0} for text in texts]}
    Path("c.jsonl").write_text("".join(json.dumps(segment) + "\n" for segment in segments), encoding="utf-8")
    script = (
        "import sys; from mbr_esd_metric.cli.main import main\n"
        "for words in sys.argv[1].splitlines():\n"
        "    print('>', words, flush=True)\n"
        "    assert main(words.split()) == 0, words\n"
    )
    done = command(installed, "-c", script, READING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {record["format"] for record in records(Path("sampled.jsonl"))} == {"bracketed"}
    assert {(len(row["error_spans"]), row["invalid"]) for row in records(Path("decided.jsonl"))} == {(1, 1)}
    outputs = {part.split("\n", 1)[0].split()[0]: part for part in done.stdout.split("> ")[1:]}
    assert "within a point" in outputs["leaderboard"]
    assert "0.8000" in outputs["compare"]
    assert '"major[' in "".join(path.read_text(encoding="utf-8") for path in Path("pairs").glob("*.jsonl"))


def test_score_with_the_engine(installed: Path, tmp_path: Path) -> None:
    src, mt, out = tmp_path / "src.txt", tmp_path / "mt.txt", tmp_path / "out.json"
    src.write_text("one two\nthree\n", encoding="utf-8")
    mt.write_text("eins zwei\ndrei\n", encoding="utf-8")
    decision = "rule=example-longest&utility=example-jaccard"
    model = f"mbr-esd-demo?engine=example-first-word&n=4&{decision}"
    mbr_esd(installed, "score", "-s", str(src), "-t", str(mt), "--model", model, "--to_json", str(out))
    (rows,) = json.loads(out.read_text(encoding="utf-8")).values()
    assert [[error["text"] for error in row["errors"]] for row in rows] == [["eins"], ["drei"]]
    assert mbr_esd(installed, "example-count", str(out)) == f"{mt} 2\n"
    assert "example-count" in mbr_esd(installed, "--help")
    assert "example-close" in mbr_esd(installed, "leaderboard", "--help")


def test_a_check_marks_translations(installed: Path) -> None:
    code = (
        "from mbr_esd_metric import Candidate, decide\n"
        "mt = 'Never utilize this.'\n"
        "decision = decide([Candidate(annotation=[])], mt, source='Nie dies benutzen.', checks='true')\n"
        "print([(one.category, mt[one.start:one.end]) for one in decision.annotation], decision.mqm)"
    )
    done = command(installed, "-c", code)
    assert done.stdout == "[('check/example-forbidden-word', 'utilize')] -5.0\n", done.stderr


def offer(folder: Path, package: str, *lines: str) -> None:
    """A package's metadata with the entry points of these rules, as pip leaves it."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("\n".join(["[mbr_esd_metric.rules]", *lines]) + "\n", encoding="utf-8")


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_of_a_plugin_names_it(tmp_path: Path, workers: int) -> None:
    (tmp_path / "raising_plugin.py").write_text(
        "from mbr_esd_metric.core.rules import SegmentRule\n"
        "class Raising(SegmentRule):\n    name, description = 'raising', 'x'\n"
        "    def choose(self, problem):\n        return {}['nothing']\n",
        encoding="utf-8",
    )
    offer(tmp_path, "raising", "raising = raising_plugin:Raising")
    words = ["decide", str(CANDIDATES), "-o", str(tmp_path / "out"), "--rule", "raising"]
    code = (
        "import sys; from mbr_esd_metric.decoding import file; from mbr_esd_metric.cli.main import main;"
        f"file.workers_for = lambda _: {workers}; sys.exit(main(sys.argv[1:]))"
    )
    done = command(tmp_path, "-c", code, *words)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "'nothing'" in done.stderr
    assert done.stderr.endswith("raised in the rule 'raising' of raising 1.0\n")


def test_a_wrong_offer_is_an_error_by_name_and_a_warning_in_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "wrong_plugin.py").write_text(
        "from mbr_esd_metric.core.rules import SegmentRule\n"
        "class Lacking(SegmentRule):\n    name = 'lacking'\n"
        "class Other(SegmentRule):\n    name = 'other'\n    def choose(self, problem):\n        return 0\n",
        encoding="utf-8",
    )
    others = (f"{name} = wrong_plugin:Other" for name in ("renamed", "mbr", "other"))
    offered = ("lacking = wrong_plugin:Lacking", "module = json:dumps", "absent = no_such_package:Rule", *others)
    offer(tmp_path, "wrong", *offered)
    monkeypatch.syspath_prepend(str(tmp_path))
    catalog = Catalog("rule", "rules", "mbr_esd_metric.core.rules", Rule)
    assert {"lacking", "renamed", "module", "other"} <= set(catalog.names())
    assert caplog.messages == ["wrong 1.0 offers the rule 'mbr', which is there already"]
    for name, why in (
        ("lacking", "it lacks choose"),
        ("renamed", "not called 'renamed'"),
        ("module", "not a subclass"),
    ):
        with pytest.raises(PluginError, match=why):
            catalog.get(name)
    with pytest.raises(OptionError, match="did you mean 'lacking'"):
        catalog.get("laking")
    rules = catalog.all()
    assert len(caplog.messages) == 5
    assert (rules["other"].name, rules["mbr"].__module__) == ("other", "mbr_esd_metric.core.rules")
    assert "renamed" not in rules
    assert catalog.all() == rules
    assert len(caplog.messages) == 5, "and warns no second time"
