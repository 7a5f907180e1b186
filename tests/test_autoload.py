"""The hook that torch calls: COMET's commands know our models, and a broken installation harms no other program.

The tests lay out a folder as pip does, with the entry point in the metadata, and import stand-ins of torch and COMET.
"""

from __future__ import annotations

import ast
import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: The end of torch's own `__init__`.
TORCH = """
import os
class nn:
    class Module: pass
def _import_device_backends():
    from importlib.metadata import entry_points
    for extension in entry_points(group="torch.backends"):
        try:
            extension.load()()
        except Exception as err:
            raise RuntimeError(f"Failed to load the backend extension: {extension.name}.") from err
if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
    _import_device_backends()
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
import comet.cli, sys
print("mbr_esd_metric" in comet.models.str2model, any("mbr_esd" in type(f).__module__ for f in sys.meta_path))
"""


def entry_point() -> str:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return setup["options.entry_points"]["torch.backends"].strip()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: ours, and stand-ins of torch and COMET."""
    monkeypatch.chdir(tmp_path)  # away from the source tree
    site = tmp_path / "site"
    shutil.copytree(ROOT / "mbr_esd_metric", site / "mbr_esd_metric", ignore=_only_code)
    shutil.copy(ROOT / "mbr_esd_autoload.py", site)
    metadata = site / "mbr_esd_metric-9.9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mbr-esd-metric\nVersion: 9.9\n")
    (metadata / "entry_points.txt").write_text(f"[torch.backends]\n{entry_point()}\n")
    for name, text in {"torch": TORCH, "comet": "from .models import load_from_checkpoint, download_model\n"}.items():
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(text)
    (site / "comet" / "models.py").write_text(MODELS)
    (site / "comet" / "cli.py").touch()
    for name in ("comet-score", "comet-compare", "train"):
        (tmp_path / name).write_text(LOOK)
    return site


def _only_code(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not (Path(folder, name).is_dir() or name.endswith((".py", ".yaml", ".json")))]


def run(site: Path, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in an interpreter with that folder and this one's other packages, but without this one's of ours."""
    start = f"import runpy, sys; sys.argv = {[program, *arguments]!r}; "
    start += f"sys.path[:] = [{str(site)!r}, *(path for path in sys.path if path not in ('', {str(ROOT)!r}))]\n"
    script = site.parent / program
    start += f"runpy.run_path({str(script)!r}, run_name='__main__')" if script.exists() else program
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")}
    env["MBR_ESD_CACHE"] = str(site / "cache")
    return subprocess.run(
        [sys.executable, "-c", start], env={**env, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("harm", ["no model class", "a cut file"])
def test_what_is_half_installed_breaks_no_import_of_torch(site: Path, harm: str) -> None:
    package = site / "mbr_esd_metric"
    if harm == "no model class":
        (package / "adapters" / "comet" / "model_class.py").unlink()
    else:
        (package / "__init__.py").write_text('"""Error span')
    done = run(site, "train", "--model", "mbr-esd-demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "False False\n", "")
    done = run(site, "comet-score", "--model", "mbr-esd-demo")
    assert (done.returncode, done.stdout) == (0, "False False\n")
    assert "mbr-esd-metric is not whole" in done.stderr
    assert "pip install --force-reinstall" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("program", "registered"), [("comet-score", True), ("comet-compare", True), ("train", False), (LOOK, False)]
)
def test_only_comets_commands_get_our_models(site: Path, program: str, registered: bool) -> None:
    done = run(site, program)
    assert (done.returncode, done.stdout) == (0, f"{registered} False\n"), done.stderr
    assert run(site, program, MBR_ESD_AUTOLOAD="0").stdout == "False False\n"
    assert run(site, program, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout == "False False\n"


@pytest.mark.parametrize(
    "order",
    ["comet, mbr_esd_metric", "mbr_esd_metric, comet", "torch, comet, mbr_esd_metric", "comet.models, mbr_esd_metric"],
)
@pytest.mark.parametrize("switch", ["0", "1"])
def test_importing_us_registers_in_every_order(site: Path, order: str, switch: str) -> None:
    code = f"import {order}\nimport mbr_esd_autoload; mbr_esd_autoload.install(everywhere=True){LOOK}"
    assert run(site, code, TORCH_DEVICE_BACKEND_AUTOLOAD=switch).stdout == "True False\n"
    assert run(site, code, TORCH_DEVICE_BACKEND_AUTOLOAD=switch, MBR_ESD_AUTOLOAD="0").stdout == "False False\n"


def test_functions_imported_before_us_know_our_models(site: Path) -> None:
    code = """
from comet import download_model
import mbr_esd_metric
from pathlib import Path
print(Path(download_model("mbr-esd-demo?n=8"), "checkpoints", "model.ckpt").read_text())
try:
    download_model("somebody/else")
except OSError as error:
    print(error)
"""
    assert run(site, code).stdout.split() == ["mbr-esd-metric", "model:", "mbr-esd-demo?n=8", "no", "network"]


def test_a_process_that_imports_comet_alone_gets_what_python_3_14_dropped(site: Path) -> None:
    """A program of your own, or a process that loads data for it; only where torch calls the hook."""
    (site / "comet" / "models.py").write_text(f"{MODELS}from functools import _HashedSeq\n")
    code = (
        "import functools; vars(functools).pop('_HashedSeq', None); import comet; print(functools._HashedSeq is tuple)"
    )
    assert run(site, code).stdout == "True\n"
    assert "_HashedSeq" in run(site, code, MBR_ESD_AUTOLOAD="0").stderr


def test_a_comet_that_cannot_be_imported_fails_as_without_us(site: Path) -> None:
    (site / "comet" / "models.py").write_text("import torch\nraise ImportError('broken')")
    code = """
import mbr_esd_metric
for _ in range(2):
    try:
        import comet
    except ImportError as error:
        print(error)
"""
    assert run(site, code).stdout == "broken\n" * 2
    # Another package of that name is left alone.
    (site / "comet" / "models.py").write_text("import torch\nload_from_checkpoint = download_model = 1")
    assert run(site, "import mbr_esd_metric, comet; print(comet.models.download_model)").stdout == "1\n"


def test_the_hook_needs_the_standard_library_only_and_less_than_a_millisecond(site: Path) -> None:
    tree = ast.parse((ROOT / "mbr_esd_autoload.py").read_text(encoding="utf-8"))
    modules = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert modules <= sys.stdlib_module_names
    # torch has imported functools, as it has os and sys, when it comes to the hook.
    measure = "import functools, time; t = time.process_time(); import mbr_esd_autoload; mbr_esd_autoload.install(); "
    measure += "print((time.process_time() - t) * 1e3, 'mbr_esd_metric' in sys.modules)"
    # The first run writes the bytecode, as pip does.
    words = [run(site, measure, PYTHONDONTWRITEBYTECODE="").stdout.split() for _ in range(5)]
    assert min(float(cost) for cost, _ in words) < 1.0
    assert words[0][1] == "False"
