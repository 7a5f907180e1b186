"""The imports point one way (the picture is in mbr_esd_metric/README.md)."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mbr_esd_metric

PACKAGE = Path(mbr_esd_metric.__file__).parent
TESTS = Path(__file__).parent
#: Folder -> the folders that it may import besides itself. Imports inside functions count as well. Every folder may
#: import `BELOW`.
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "prompting": {"core"},
    "checks": {"core", "prompting"},
    "files": {"core", "prompting"},
    "decoding": {"core", "prompting", "checks", "files"},
    "generation": {"core", "prompting", "files", "decoding"},
    "metric": {"core", "prompting", "checks", "files", "decoding", "generation"},
    "metaeval": {"core", "files", "decoding"},
    "adapters": {"core", "prompting", "checks", "files", "decoding", "generation", "metric", "metaeval"},
    "scoring": {"core", "prompting", "files", "decoding", "generation", "metric", "adapters"},
    "report": {"core", "prompting", "files", "decoding", "metric", "metaeval", "adapters"},
    "distill": {"core", "prompting", "files", "decoding", "generation", "metric", "adapters"},
}
#: Modules at the root that every folder may import: they import nothing of the package.
BELOW = {"cores", "errors", "installing", "log", "messages", "plugins", "_version"}
ROOT = {*BELOW, "__init__", "__main__"}
FOLDERS = {*MAY_IMPORT, "cli"}


@cache
def _imported(path: Path) -> set[str]:
    """The package's modules that a file imports, such as "core.decision"."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        modules |= {name.removeprefix("mbr_esd_metric.") for name in names if name.startswith("mbr_esd_metric.")}
    return modules


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_imports_point_one_way(folder: str) -> None:
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        wrong = {name.split(".")[0] for name in _imported(path)} - MAY_IMPORT[folder] - {folder, *BELOW}
        assert not wrong, f"{path.relative_to(PACKAGE)} imports {sorted(wrong)}"


def test_every_module_has_a_layer() -> None:
    assert {p.stem for p in PACKAGE.glob("*.py")} == ROOT
    assert {p.parent.name for p in PACKAGE.glob("*/__init__.py")} == FOLDERS


def test_no_module_is_long() -> None:
    """CONTRIBUTING promises it to readers."""
    lines = {str(path.relative_to(PACKAGE)): path.read_text("utf-8").count("\n") for path in PACKAGE.rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > 500} == {}


def test_no_files_import_one_another_in_a_circle() -> None:
    """Imports inside functions count too: what needs one another belongs in one file."""
    modules = {".".join(p.relative_to(PACKAGE).with_suffix("").parts): p for p in sorted(PACKAGE.rglob("*.py"))}
    modules = {name.removesuffix(".__init__"): p for name, p in modules.items() if name != "__init__"}
    graph = {name: {m for m in _imported(p) if m in modules and m != name} for name, p in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("circle: " + " <- ".join(error.args[1]))


def test_importing_the_package_is_light() -> None:
    """No torch, transformers, comet or pandas, and well under the bar of 0.15 s for the package's own part."""
    code = (
        "import sys, time; t = time.process_time(); import mbr_esd_metric; t = time.process_time() - t;"
        "heavy = {'torch', 'transformers', 'comet', 'pandas', 'numpy', 'scipy'} & set(sys.modules);"
        "print(t, *sorted(heavy))"
    )
    # Processor time, and the best of five: the machine may be busy with other things.
    for _ in range(5):
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        assert out[1:] == []
        if float(out[0]) < 0.15:
            break
    assert float(out[0]) < 0.15


def test_naming_rules_and_similarities_loads_no_numpy() -> None:
    """The verbs' help and the list of models know them by their files' names."""
    code = (
        "import contextlib, io, sys; from mbr_esd_metric.cli.main import main\n"
        "for words in (['decide', '--help'], ['score', '--help'], ['sample', '--help'], ['report', '--help'],"
        " ['distill', '--help'], ['models', 'mbr-esd-llama']):\n"
        "    output = io.StringIO()\n"
        "    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit): main(words)\n"
        "    text = ''.join(output.getvalue().split())  # a line may end behind a hyphen\n"
        "    print(words[0], 'mbr-corpus' in text, 'softdice' in text, 'numpy' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert {line.split()[-1] for line in out} == {"False"}, out
    assert {"decide True True False", "models True True False"} <= set(out)


def test_the_help_loads_no_other_package() -> None:
    code = (
        "import contextlib, sys; from mbr_esd_metric.cli.main import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = {name for name in out.splitlines()[-1].split() if not name.startswith("_")}
    assert loaded <= {"mbr_esd_metric", "mbr_esd_autoload", "mbr_esd_example_plugin"}


@pytest.mark.model
def test_scoring_with_the_small_model_loads_only_what_it_needs(tmp_path: Path) -> None:
    """So a string is scored two seconds after a cold start."""
    for name, text in (("src", "The cat sleeps."), ("mt", "Der Hund schläft.")):
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    code = (
        "import sys; from mbr_esd_metric.cli.main import main\n"
        "assert main(['score', '-s', 'src', '-t', 'mt', '--model', 'mbr-esd-small', '--quiet']) == 0\n"
        "names = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(*sorted(name for name in names if name[0] != '_'))"
    )
    command = [sys.executable, "-c", code]
    *_, loaded = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    light = {"mbr_esd_autoload", "mbr_esd_metric", "filelock", "platformdirs", "tqdm", "yaml", "cython_runtime"}
    checks = {"babel", "number_parser", "py3langid", "pyicumessageformat", "attr", "pytz"}
    assert set(loaded.split()) <= {"numpy", "onnxruntime", "tokenizers"} | light | checks


#: Folders of `tests` that mirror no folder of the package.
OTHER_TESTS = {"docs", "golden", "helpers", "plugin_package"}


@pytest.mark.parametrize(
    "test", [p.relative_to(TESTS) for p in sorted(TESTS.rglob("*.py")) if p.parent != TESTS], ids=lambda path: str(path)
)
def test_tests_mirror_the_package(test: Path) -> None:
    """The tests of FOLDER/FILE.py are in tests/FOLDER/test_FILE.py or test_FILE_TOPIC.py; helpers in tests/helpers."""
    if test.parts[0] in OTHER_TESTS or test.name == "conftest.py":
        return
    assert test.name.startswith("test_"), f"tests/{test}: what several tests import belongs in tests/helpers"
    tested = (TESTS.parent if test.parts[0] == "scripts" else PACKAGE) / test.parent
    stems = {path.stem for path in tested.iterdir()} if tested.is_dir() else set()
    name = test.stem.removeprefix("test_")
    assert any(name == stem or name.startswith(f"{stem}_") for stem in stems), (
        f"tests/{test}: name it tests/FOLDER/test_FILE.py or test_FILE_TOPIC.py, after a file in {tested}"
    )
