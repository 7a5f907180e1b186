"""The hook that torch calls: COMET's commands know our models, and a broken installation harms no other program.

The tests lay out a folder as pip does, with the entry point in the metadata, and import stand-ins of torch and COMET.
"""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What torch's own `__init__` does at its end.
TORCH = """
import os
from importlib.metadata import entry_points
class nn:
    class Module: pass
if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
    for extension in entry_points(group="torch.backends"):
        extension.load()()
"""
#: The part of COMET that matters here, in its order: torch is imported while `comet.models` is half imported.
MODELS = """
import torch
str2model = {"stock": object}
def snapshot_download(repo_id): ...
def load_from_checkpoint(path): ...
"""
#: Whether COMET knows our models, whether the finder still waits, and whether our package was loaded.
LOOK = """
import comet.cli, sys
waits = any("mbr_esd" in type(f).__module__ for f in sys.meta_path)
print("mbr_esd_metric" in comet.models.str2model, waits, "mbr_esd_metric" in sys.modules)
"""
NOTHING = "False False False\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages: ours, and stand-ins of torch and COMET."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "mbr_esd_metric").symlink_to(ROOT / "mbr_esd_metric")
    shutil.copy(ROOT / "mbr_esd_autoload.py", site)
    metadata = site / "mbr_esd_metric-9.9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mbr-esd-metric\nVersion: 9.9\n")
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    (metadata / "entry_points.txt").write_text(f"[torch.backends]{setup['options.entry_points']['torch.backends']}\n")
    for name, text in {"torch": TORCH, "comet": "from .models import load_from_checkpoint\n"}.items():
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(text)
    (site / "comet" / "models.py").write_text(MODELS)
    (site / "comet" / "cli.py").touch()
    return site


def run(site: Path, code: str = LOOK, program: str = "train", **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in an interpreter with that folder and this one's other packages, but without this one's of ours."""
    start = f"import sys; sys.argv = {[program, '--model', 'mbr-esd-demo']!r}\n"
    start += f"sys.path[:] = [{str(site)!r}, *(path for path in sys.path if path not in ('', {str(ROOT)!r}))]\n"
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")}
    env |= {"MBR_ESD_CACHE": str(site / "cache"), **environment}
    return subprocess.run([sys.executable, "-c", start + code], env=env, cwd=site, capture_output=True, text=True)


@pytest.mark.parametrize("content", ["", '"""Error span'], ids=["no model class", "a cut file"])
def test_what_is_half_installed_breaks_no_import_of_torch(site: Path, content: str) -> None:
    package = site / "mbr_esd_metric"
    package.unlink()
    package.mkdir()
    (package / "__init__.py").write_text(content)
    done = run(site)
    assert (done.returncode, done.stdout, done.stderr) == (0, NOTHING, "")
    done = run(site, program="comet-score")
    assert (done.returncode, done.stdout[:11]) == (0, NOTHING[:11])
    assert "mbr-esd-metric is not whole" in done.stderr
    assert "pip install --force-reinstall" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("program", "known"), [("comet-score", True), ("comet-compare", True), ("train", False)])
def test_only_comets_commands_get_our_models(site: Path, program: str, known: bool) -> None:
    done = run(site, program=program)
    assert (done.returncode, done.stdout) == (0, f"{known} False {known}\n"), done.stderr
    for switch in ("MBR_ESD_AUTOLOAD", "TORCH_DEVICE_BACKEND_AUTOLOAD"):
        assert run(site, program=program, **{switch: "0"}).stdout == NOTHING


@pytest.mark.parametrize(
    "order",
    ["comet, mbr_esd_metric", "mbr_esd_metric, comet", "torch, comet, mbr_esd_metric", "comet.models, mbr_esd_metric"],
)
@pytest.mark.parametrize("switch", ["0", "1"])
def test_importing_us_registers_in_every_order(site: Path, order: str, switch: str) -> None:
    code = f"import {order}\nimport mbr_esd_autoload; mbr_esd_autoload.install(everywhere=True){LOOK}"
    assert run(site, code, TORCH_DEVICE_BACKEND_AUTOLOAD=switch).stdout == "True False True\n"
    assert run(site, code, TORCH_DEVICE_BACKEND_AUTOLOAD=switch, MBR_ESD_AUTOLOAD="0").stdout == "False False True\n"


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
    (site / "comet" / "models.py").write_text("import torch\nload_from_checkpoint = 1")
    assert run(site, "import mbr_esd_metric, comet; print(comet.models.load_from_checkpoint)").stdout == "1\n"
