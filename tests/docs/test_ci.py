"""The action, the hook, and GitLab's lines: their commands run in a repository of their own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from mbr_esd_metric.files.records import write_records
from tests.cli.test_compare import run_bash
from tests.helpers.candidates import answer, record
from tests.helpers.document import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
AUTHOR = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Repository:
    """A repository whose `origin` has a branch "main", and in which the action's steps run."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.beside = folder / "repository", folder
        self.folder.mkdir()
        self.bash("git init -q -b work")

    def bash(self, line: str, status: int = 0, **variables: str) -> str:
        """Standard error of a line of bash."""
        done = run_bash(line, self.beside, cwd=self.folder, **AUTHOR, **variables)
        assert done.returncode == status, done.stderr
        return done.stderr

    def commit(self, **files: str) -> None:
        """A commit with these contents; "__" in a name is a slash and "_" a dot."""
        for name, content in files.items():
            path = self.folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        self.bash("git add . && git commit -qm change")

    def is_base(self) -> None:
        """Makes the present commit the pull request's target, which only `origin` knows."""
        self.bash("rm -rf ../origin && git clone -q --bare . ../origin && git -C ../origin branch -M main")
        self.bash("git remote get-url origin > ../remote 2>&1 || git remote add origin ../origin")

    def judge(self, files: str, model: str = "mbr-esd-checks", status: int = 0) -> tuple[list[str], str]:
        """The annotations and the summary of the action's last step."""
        (self.folder / "summary.md").unlink(missing_ok=True)
        step = ACTION["runs"]["steps"][-1]
        values = {"files": files, "base": "main", "model": model, "gate": ACTION["inputs"]["gate"]["default"]}
        env = {
            key: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: values[m[1]], one) for key, one in step["env"].items()
        }
        assert step["shell"] == "bash"
        github = {"GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": str(ROOT), "GITHUB_STEP_SUMMARY": "summary.md"}
        err = self.bash(step["run"], status, **github, **env)
        return re.findall("^::.*", err, re.MULTILINE), (self.folder / "summary.md").read_text(encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


@pytest.mark.parametrize("change", ["adds", "mends", "none", "new"])
def test_a_change_of_a_po_file(repository: Repository, tmp_path: Path, change: str) -> None:
    """One that adds an error, one that mends one, one that touches no text, and a file that is new."""
    wrong, right = 'msgid "Open"\nmsgstr "Öffne Feuer"\n', 'msgid "Open"\nmsgstr "Öffne"\n'
    other = '\nmsgid "Close"\nmsgstr "Schließe falsch"\n'
    pairs = (("Open", "Öffne Feuer", "Feuer"), ("Open", "Öffne", None), ("Close", "Schließe falsch", "falsch"))
    records = [record(source, mt, answer(word) if word else answer()) for source, mt, word in pairs]
    write_records(tmp_path / "candidates.jsonl", records)
    changes = {"adds": (right, wrong), "mends": (wrong, right), "none": (wrong, f"# A comment.\n{wrong}")}
    before, after = changes.get(change, ("", right))
    repository.commit(**{"other_po" if change == "new" else "de_po": before + other})
    repository.is_base()
    repository.commit(de_po=after + other)
    model = f"mbr-esd-demo?candidates={tmp_path}/candidates.jsonl&n=1&lp=en-de"
    annotations, summary = repository.judge("de.po", model, status=3 if change in ("adds", "new") else 0)
    assert ["Feuer" in one for one in annotations] == {"adds": [True], "new": [False]}.get(change, [])
    assert ("`falsch`" in summary) == (change == "new")
    assert {"none": "no unit differs from", "new": "2 of 2 units differ from"}.get(change, "1 of 2 units") in summary
    results = json.loads((repository.folder / "mbr-esd" / "1.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    assert len(results) == len(annotations)


SETS = """
-s locales/en.json -t locales/*.json
-s app/res/values/strings.xml -t app/res/values-*/strings.xml

-s en.lproj/Localizable.strings -t *.lproj/Localizable.strings
"""
ANDROID = "<resources>\n  <string name='a'>{}</string>\n  <string name='n'>{}</string>\n</resources>\n"
FILES = {
    "locales__en_json": '{\n  "close": "Close the window before you leave.",\n  "open": "Open it"\n}',
    "locales__de_json": '{\n  "close": "Schließe das Fenster, bevor du gehst."\n}',
    "app__res__values__strings_xml": ANDROID.format("Back", "%d files were removed"),
    "app__res__values-de__strings_xml": ANDROID.format("Zurück", "%d Dateien wurden gelöscht"),
    "en_lproj__Localizable_strings": '"day" = "The shop opens on Monday.";\n',
    "de_lproj__Localizable_strings": '"day" = "Der Laden öffnet am Montag.";\n',
}


def test_three_commits(repository: Repository) -> None:
    """A base in which a key is missing; a commit with four faults in three kinds of files; one that mends them. The key
    that the base lacked already is not named."""
    repository.commit(**FILES)
    repository.is_base()
    repository.commit(
        locales__en_json=FILES["locales__en_json"].replace('"open"', '"new": "New",\n  "open"'),
        locales__de_json=FILES["locales__de_json"].replace(
            "Schließe das Fenster, bevor du gehst", "Close the window before you leave"
        ),
        **{"app__res__values-de__strings_xml": ANDROID.format("Zurück", "Dateien wurden gelöscht")},
        de_lproj__Localizable_strings='"day" = "Der Laden öffnet am Dienstag.";\n',
    )
    annotations, summary = repository.judge(SETS, status=3)
    assert [re.sub(r",(end)?[cC]ol.*?::", "::", one) for one in annotations] == [
        '::error file=locales/de.json,line=2::major, check/copy: "Close the window before you leave." [close]',
        "::warning file=locales/de.json,line=2::missing-key: new (line 3 of locales/en.json) has no translation",
        "::error file=app/res/values-de/strings.xml,line=3::"
        'major, check/placeholder: missing from the translation: "%25d" [n]',
        '::error file=de.lproj/Localizable.strings,line=1::major, check/weekday: "Dienstag" [day]',
    ]
    assert "changed strings" in summary
    repository.is_base()
    repository.commit(**FILES)
    assert repository.judge(SETS)[0] == []


def test_wildcards_must_match(repository: Repository) -> None:
    """A mistyped path leaves no check green."""
    repository.commit(**FILES)
    step = f"bash {ROOT}/docs/examples/changed-strings.sh"
    for files in ("po/*.po", "-s nope.json -t nope/*.json"):
        err = repository.bash(step, 1, FILES=files, BASE="HEAD", MODEL="mbr-esd-checks", GATE="")
        assert f"no match: {files.split()[-1]}" in err


def test_the_action_installs_itself_and_has_a_default_for_all_but_the_files() -> None:
    setup, install, judge = ACTION["runs"]["steps"]
    assert setup["uses"].startswith("actions/setup-python@")
    assert install["run"] == 'python -m pip install --quiet "$GITHUB_ACTION_PATH"'
    assert {name for name, one in ACTION["inputs"].items() if "default" not in one} == {"files"}
    assert set(re.findall(r"inputs\.(\w+)", " ".join(judge["env"].values()))) == set(ACTION["inputs"])
    workflow = yaml.safe_load((ROOT / "docs" / "examples" / "review.yml").read_text(encoding="utf-8"))
    [uses] = [step for step in workflow["jobs"]["review"]["steps"] if "files" in step.get("with", {})]
    assert set(uses["with"]) <= set(ACTION["inputs"])


def blocks() -> list[object]:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    return [yaml.safe_load(one) for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def test_the_hook_and_the_lines_for_gitlab(repository: Repository) -> None:
    """They name a change that is not committed yet, and one against the target."""
    repository.commit(**FILES)
    repository.is_base()
    wrong = FILES["locales__de_json"].replace(
        "Schließe das Fenster, bevor du gehst", "Close the window before you leave"
    )
    (repository.folder / "locales" / "de.json").write_text(wrong, encoding="utf-8")
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    _, config, gitlab = blocks()
    plain, keyed = config["repos"][0]["hooks"]
    assert plain["id"] == keyed["id"] == hook["id"]
    for files, path in ((keyed["files"], "locales/{}.json"), (hook["files"], "po/{}.po")):
        assert re.search(files, path.format("de"))
    assert not re.search(keyed["files"], "locales/en.json")
    command = " ".join([hook["entry"], *keyed["args"], "locales/de.json"])
    assert "locales/de.json, unit close, line 2" in repository.bash(command, status=3)
    script = re.sub(r"pip install \S+ && ", "", "\n".join(gitlab["translations"]["script"]))
    repository.commit()
    assert "locales/de.json, unit close, line 2" in repository.bash(
        script, 3, CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main"
    )


def test_gitlab_needs_five_lines() -> None:
    [*_, gitlab] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(gitlab.splitlines()) <= 6
