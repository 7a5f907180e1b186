"""The stub that waits for COMET, against small stand-ins of COMET and torch: every order of import, no harm done."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import mbr_esd_metric.adapters.comet.autoload as autoload

ROOT = Path(autoload.__file__).parents[3]
#: Ends as torch does: with the call of the stub, unless that is switched off.
TORCH = """
import os
class nn:
    class Module: pass
if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
    from importlib.metadata import EntryPoint
    EntryPoint("ours", "mbr_esd_autoload:install", "torch.backends").load()()
"""
#: The part of COMET that matters here, in its order: torch is imported while `comet.models` is half imported.
MODELS = """
import torch
def snapshot_download(repo_id, cache_dir=None, local_files_only=False):
    raise OSError("no network")
str2model = {"stock": object}
def download_model(model, saving_directory=None):
    return snapshot_download(repo_id=model, cache_dir=saving_directory)
def load_from_checkpoint(path):
    return str2model
"""
LOOK = """
import comet.models, sys
print("mbr_esd_metric" in comet.models.str2model, type(comet).__name__)
print(any("mbr_esd" in type(finder).__module__ for finder in sys.meta_path))
"""


@pytest.fixture
def stand_ins(tmp_path: Path) -> Path:
    """A folder with packages `torch` and `comet` for a child's path."""
    for name, text in {"torch": TORCH, "comet/models": MODELS}.items():
        package = tmp_path / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)
    (tmp_path / "comet" / "__init__.py").write_text("from .models import load_from_checkpoint, download_model\n")
    return tmp_path


def child(folder: Path, code: str, **environment: str) -> list[str]:
    """Words that `code` prints in a fresh interpreter that has the stand-ins of `folder`; it must end well."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "MBR_ESD_CACHE": str(folder / "cache"),
        **environment,
    }
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return (run.stdout + run.stderr).split()


ORDERS = {
    "comet, then us": "import comet, mbr_esd_metric",
    "us, then comet": "import mbr_esd_metric, comet",
    "torch first": "import torch, comet, mbr_esd_metric",
    "a submodule first": "import comet.models, mbr_esd_metric",
}


def test_a_process_that_imports_comet_alone_gets_what_python_3_14_dropped(stand_ins: Path) -> None:
    """As a program of your own, or a process that loads data for it; only where torch calls the stub."""
    models = stand_ins / "comet" / "models" / "__init__.py"
    models.write_text(f"{MODELS}from functools import _HashedSeq\n")
    code = "import functools; vars(functools).pop('_HashedSeq', None); import {}; print(functools._HashedSeq is tuple)"
    assert child(stand_ins, code.format("torch, comet")) == child(stand_ins, code.format("comet")) == ["True"]
    with pytest.raises(AssertionError, match="_HashedSeq"):
        child(stand_ins, code.format("comet"), MBR_ESD_AUTOLOAD="0")


@pytest.mark.parametrize("order", ORDERS)
def test_registers_in_every_order_of_import(stand_ins: Path, order: str) -> None:
    assert child(stand_ins, ORDERS[order] + LOOK) == ["True", "module", "False"]


@pytest.mark.parametrize("order", ORDERS)
def test_registers_where_torch_calls_no_stub(stand_ins: Path, order: str) -> None:
    assert child(stand_ins, ORDERS[order] + LOOK, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == ["True", "module", "False"]


@pytest.mark.parametrize("order", ORDERS)
def test_switched_off(stand_ins: Path, order: str) -> None:
    assert child(stand_ins, ORDERS[order] + LOOK, MBR_ESD_AUTOLOAD="0") == ["False", "module", "False"]


def test_functions_imported_before_us_know_our_models(stand_ins: Path) -> None:
    code = """
        from comet import download_model
        import mbr_esd_metric
        from pathlib import Path
        path = Path(download_model("mbr-esd-demo?n=8"), "checkpoints", "model.ckpt")
        print(path.read_text())
        try:
            download_model("somebody/else")
        except OSError as error:
            print(error)
    """
    for switch in "01":
        found = child(stand_ins, code, TORCH_DEVICE_BACKEND_AUTOLOAD=switch)
        assert found == ["mbr-esd-metric", "model:", "mbr-esd-demo?n=8", "no", "network"]


def test_another_package_of_that_name_is_left_alone(stand_ins: Path) -> None:
    (stand_ins / "comet" / "models" / "__init__.py").write_text(
        "import torch\nload_from_checkpoint = download_model = 1"
    )
    assert child(stand_ins, "import mbr_esd_metric, comet; print(sorted(vars(comet.models)))")[-1] == "'torch']"


def test_a_comet_that_cannot_be_imported_fails_as_without_us(stand_ins: Path) -> None:
    (stand_ins / "comet" / "models" / "__init__.py").write_text("import torch\nraise ImportError('broken')")
    code = """
        import mbr_esd_metric, sys
        for _ in range(2):
            try:
                import comet
            except ImportError as error:
                print(error, "comet" in sys.modules)
    """
    assert child(stand_ins, code) == ["broken", "False"] * 2


def test_a_failing_registration_is_a_warning(stand_ins: Path) -> None:
    code = """
        import sys
        sys.modules["mbr_esd_metric.adapters.comet.registration"] = None
        import mbr_esd_metric, comet
        print("imported", comet.download_model.__name__)
    """
    found = child(stand_ins, code)
    assert found[:2] == ["imported", "download_model"]
    assert "could not register its models" in " ".join(found)


def test_the_stub_needs_the_standard_library_only() -> None:
    tree = ast.parse(Path(autoload.__file__).read_text(encoding="utf-8"))
    modules = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert {module.split(".")[0] for module in modules if module} <= sys.stdlib_module_names


def test_installing_twice_leaves_one_finder(stand_ins: Path) -> None:
    code = """
        import sys, mbr_esd_metric
        from mbr_esd_metric.adapters.comet.autoload import install
        install(); install()
        print(sum("mbr_esd" in type(finder).__module__ for finder in sys.meta_path))
    """
    assert child(stand_ins, code) == ["1"]


def test_importing_the_package_is_fast_and_loads_nothing_heavy() -> None:
    """`python -X importtime`: cumulative microseconds of the package itself, under the bar of 0.15 s."""
    best = float("inf")
    for _ in range(3):
        run = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", "import mbr_esd_metric"],
            capture_output=True,
            text=True,
            check=True,
        )
        rows = [line.removeprefix("import time:").split("|") for line in run.stderr.splitlines() if "|" in line]
        names = {name.strip() for *_, name in rows}
        assert not names & {"torch", "transformers", "comet", "pandas", "numpy", "logging"}
        best = min(best, *(float(total) for _, total, name in rows if name.strip() == "mbr_esd_metric"))
    assert best < 150_000
