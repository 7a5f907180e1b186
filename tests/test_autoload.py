"""The hook that torch calls: an installation that is half there breaks no `import torch`, and other programs no hair.

The tests lay out a folder as pip does, with the entry point in the metadata, and import a stand-in that ends as torch.
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
MODELS = """
import torch
def snapshot_download(repo_id, cache_dir=None):
    raise OSError("no network")
str2model = {"stock": object}
def load_from_checkpoint(path):
    return str2model
"""
LOOK = """
import logging, sys, warnings
before = sys.excepthook, list(sys.meta_path), list(warnings.filters), set(logging.root.manager.loggerDict)
import comet
after = sys.excepthook, list(sys.meta_path), list(warnings.filters), set(logging.root.manager.loggerDict)
print("clean" if before == after else "changed", "mbr_esd_metric" in comet.models.str2model)
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
    for name, text in {"torch": TORCH, "comet": "from .models import load_from_checkpoint\n"}.items():
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(text)
    (site / "comet" / "models.py").write_text(MODELS)
    for name in ("comet-score", "comet-compare", "train"):
        (tmp_path / name).write_text(LOOK)
    return site


def _only_code(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not (Path(folder, name).is_dir() or name.endswith((".py", ".yaml", ".json")))]


def run(site: Path, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in an interpreter with that folder and this one's other packages, but without this one's of ours."""
    start = f"import runpy, sys; sys.argv = {[program, *arguments]!r}; "
    start += f"sys.path[:] = [{str(site)!r}, *(path for path in sys.path if path not in ('', {str(ROOT)!r}))]; "
    script = site.parent / program
    start += f"runpy.run_path({str(script)!r}, run_name='__main__')" if script.exists() else program
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TORCH_DEVICE_BACKEND_AUTOLOAD")}
    return subprocess.run(
        [sys.executable, "-c", start], env={**env, **environment}, capture_output=True, text=True, check=False
    )


def remove_package(site: Path) -> None:
    shutil.rmtree(site / "mbr_esd_metric")


def remove_stub(site: Path) -> None:
    (site / "mbr_esd_metric" / "adapters" / "comet" / "autoload.py").unlink()


def empty_stub(site: Path) -> None:
    (site / "mbr_esd_metric" / "adapters" / "comet" / "autoload.py").write_text("")


def break_stub(site: Path) -> None:
    (site / "mbr_esd_metric" / "adapters" / "comet" / "autoload.py").write_text("import os\nraise SystemExit(7)\n")


def cut_package(site: Path) -> None:
    (site / "mbr_esd_metric" / "__init__.py").write_text('"""Error span')


HALF = [remove_package, remove_stub, empty_stub, break_stub, cut_package]


@pytest.mark.parametrize("harm", HALF, ids=lambda harm: harm.__name__)
def test_what_is_half_installed_breaks_no_import_of_torch(site: Path, harm: object) -> None:
    harm(site)  # type: ignore[operator]
    done = run(site, "train", "--model", "mbr-esd-demo")
    assert (done.returncode, done.stdout, done.stderr) == (0, "clean False\n", "")
    done = run(site, "comet-score", "--model", "mbr-esd-demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("False\n")
    assert "mbr-esd-metric is not whole" in done.stderr
    assert "pip install --force-reinstall" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "there"),
    [
        (["comet-score", "--model", "mbr-esd-demo?n=4"], True),
        (["comet-compare", "--model=mbr-esd-demo"], True),
        (["comet-score", "--model", "FOLDER"], True),
        (["comet-score", "--model", "somebody/mt-metric"], True),  # it may be a model folder of ours
        (["comet-score", "--model", "Unbabel/XCOMET-XL"], False),
        (["comet-score", "--model", "OTHER"], False),
        (["comet-score", "-s", "mbr-esd-demo", "-t", "a"], False),
        (["train", "--model", "mbr-esd-demo"], False),
    ],
)
def test_comet_knows_us_where_its_command_may_ask_for_us_and_nothing_remains_elsewhere(
    site: Path, words: list[str], there: bool
) -> None:
    for name, said in (("FOLDER", "mbr_esd_metric"), ("OTHER", "unified_metric")):
        Path(name).mkdir()
        Path(name, "hparams.yaml").write_text(f"class_identifier: {said}\n")
    done = run(site, *words)
    assert done.returncode == 0, done.stderr
    changed, known = done.stdout.split()
    assert known == str(there)
    assert there or changed == "clean"
    assert run(site, *words, MBR_ESD_AUTOLOAD="0").stdout == "clean False\n"
    assert run(site, *words, TORCH_DEVICE_BACKEND_AUTOLOAD="0").stdout == "clean False\n"


def test_ctrl_c_while_comet_is_imported_is_one_line(site: Path) -> None:
    (site.parent / "comet-score").write_text("import torch\nraise KeyboardInterrupt\n")
    done = run(site, "comet-score", "--model", "mbr-esd-demo")
    assert (done.returncode, done.stderr) == (130, "\ncomet-score: interrupted\n")
    assert "Traceback" in run(site, "comet-score", "--model", "Unbabel/XCOMET-XL").stderr


def test_comets_own_lines_are_kept_back_under_our_models_alone(site: Path) -> None:
    (site.parent / "comet-score").write_text(
        "import torch, warnings, logging, sys\n"
        "warnings.warn('pkg_resources is deprecated as an API', UserWarning)\nwarnings.warn('another', UserWarning)\n"
        "print(logging.getLogger('lightning_fabric.utilities.seed').level)\n"
    )
    ours = run(site, "comet-score", "--model", "mbr-esd-demo", PYTHONWARNINGS="")
    assert ("pkg_resources" in ours.stderr, "another" in ours.stderr, ours.stdout) == (False, True, "30\n")
    asked = run(site, "comet-score", "--model", "mbr-esd-demo", PYTHONWARNINGS="default")
    assert "pkg_resources" in asked.stderr
    stock = run(site, "comet-score", "--model", "Unbabel/XCOMET-XL", PYTHONWARNINGS="")
    assert ("pkg_resources" in stock.stderr, stock.stdout) == (True, "0\n")


def test_the_hook_costs_other_programs_less_than_a_millisecond(site: Path) -> None:
    # torch has imported functools, as it has os and sys, when it comes to the hook.
    measure = "import functools, time; t = time.process_time(); import mbr_esd_autoload; mbr_esd_autoload.install(); "
    measure += "print((time.process_time() - t) * 1e3, 'mbr_esd_metric' in sys.modules)"
    best = min(
        float(run(site, measure, PYTHONDONTWRITEBYTECODE="").stdout.split()[0]) for _ in range(5)
    )  # the first run writes the bytecode, as pip does
    assert best < 1.0
    assert run(site, measure).stdout.split()[1] == "False"
