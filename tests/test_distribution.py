"""What is published, and by what: the content of the wheel, and the actions of workflows."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from tests.helpers.document import ROOT

WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "action.yml"]


def settings() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def test_the_wheel_has_the_small_model_and_not_the_diary_of_its_training(monkeypatch: pytest.MonkeyPatch) -> None:
    setuptools = pytest.importorskip("setuptools")
    monkeypatch.chdir(ROOT)
    distribution = setuptools.Distribution()
    distribution.parse_config_files(["setup.cfg"])
    command = distribution.get_command_obj("build_py")
    command.ensure_finalized()
    command.manifest_files = {}
    files = {Path(file).name for file in command.find_data_files("mbr_esd_metric", "mbr_esd_metric") if "small" in file}
    assert files == {"README.md", "config.json", "hparams.yaml", "model.onnx", "model.safetensors"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commits(workflow: Path) -> None:
    """A tag can be moved to other code; the comment says which version the commit is."""
    used = re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8"))
    foreign = [one for one in used if not one.startswith("./")]
    assert [one for one in foreign if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_the_systems_that_are_promised_are_tested() -> None:
    """Those of the classifiers; Windows is in neither, and the README says so."""
    promised = set(re.findall(r"Operating System :: (\w+)", settings()["metadata"]["classifiers"]))
    jobs = yaml.safe_load(WORKFLOWS[-2].read_text(encoding="utf-8"))["jobs"].values()
    systems = [job.get("strategy", {}).get("matrix", {}).get("os", [job["runs-on"]]) for job in jobs]
    run_on = {system for some in systems for system in some}
    tested = {"MacOS" if "macos" in one else "POSIX" for one in run_on if "windows" not in one}
    assert promised == tested == {"POSIX", "MacOS"}
    assert "Windows is not tested" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_issue_forms_have_githubs_labels() -> None:
    forms = [yaml.safe_load(path.read_text("utf-8")) for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")]
    assert sorted(label for form in forms for label in form.get("labels", [])) == ["bug", "enhancement"]


def test_changes_stand_under_the_headings_of_keep_a_changelog() -> None:
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:3]
    for version in newest:
        assert [*re.findall(r"^### (.+)$", version, re.MULTILINE)] == ["Added", "Changed", "Removed", "Fixed"]
