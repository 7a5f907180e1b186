"""What changed since an older file, a folder of them, or a revision of git."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mbr_esd_metric.adapters.documents.changes import changed_from, older_files
from mbr_esd_metric.adapters.documents.document import Document, Selection
from mbr_esd_metric.adapters.documents.reading import read_document
from mbr_esd_metric.errors import InputError, MbrEsdError

HEAD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nLanguage: de\\n"\n\n'
XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="de" original="a"><body><trans-unit id="1">'
    '<source>Delete it?</source><target state="{}">Lösche es?</target></trans-unit></body></file></xliff>'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def strings(path: str, **texts: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(texts, indent=1), encoding="utf-8")


def changed(old: str, *paths: str, source: str | None = None, every: bool = False) -> list[Document]:
    documents = [read_document(path, Selection(every), source=source) for path in paths]
    with older_files(old, documents) as older:
        return [changed_from(one, older, Selection(every), old) for one in documents]


def keys(documents: list[Document]) -> list[list[str]]:
    return [[unit.key for unit in one.units] for one in documents]


def git(*words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_an_older_file_leaves_the_source_as_it_is() -> None:
    """A key that was missing before is not missing anew."""
    strings("en.json", a="One more", b="Two", c="Three", d="Four")
    strings("de.json", a="Eins", b="Zwo", d="")
    strings("old.json", a="Eins", b="Zwei", d="")
    [document] = changed("old.json", "de.json", source="en.json")
    assert keys([document]) == [["b"]]
    assert document.missing == ()
    assert document.others == {"a": "unchanged since old.json"}


@pytest.mark.parametrize("below", ["", "app/"])
def test_a_folder_of_older_files(below: str) -> None:
    """They have their paths there, or these without the folders that all have in common. One that is not there is new;
    an older source counts."""
    for language, text in (("de", "Eins"), ("fr", "Un"), ("it", "Uno")):
        strings(f"app/{language}.json", a=text, b="Zwei")
        if language != "it":
            strings(f"old/{below}{language}.json", a=text, b="Zwo" if language == "de" else "Zwei")
    strings("app/en.json", a="One", b="Two")
    paths = ("app/de.json", "app/fr.json", "app/it.json")
    assert keys(changed("old", *paths, source="app/en.json")) == [["b"], [], ["a", "b"]]
    strings(f"old/{below}en.json", a="Once", b="Two")
    assert keys(changed("old", *paths, source="app/en.json")) == [["a", "b"], ["a"], ["a", "b"]]


def test_a_revision_of_git() -> None:
    """Either text counts; new files are judged whole, and so are those whose source is new."""
    strings("app/en.json", a="One", b="Two", c="Three")
    strings("app/de.json", a="Eins", b="Zwei")
    Path("po").mkdir()
    Path("po/de.po").write_text(HEAD + 'msgid "One"\nmsgstr "Eins"\n', encoding="utf-8")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    assert keys(changed("git:HEAD", "app/de.json", source="app/en.json")) == [[]]
    strings("app/en.json", a="One more", b="Two", c="Three", d="Four")
    strings("app/fr.json", a="Un")
    [german, french] = changed("git:HEAD", "app/de.json", "app/fr.json", source="app/en.json")
    assert keys([german, french]) == [["a"], ["a"]]
    assert [one.key for one in german.missing] == ["d"]
    assert [one.key for one in french.missing] == ["b", "c", "d"]
    Path("po/de.po").write_text(HEAD + 'msgid "One"\nmsgstr "Ein"\n', encoding="utf-8")
    assert keys(changed("git:HEAD", "po/de.po")) == [[""]]


@pytest.mark.parametrize("every", [False, True])
def test_what_was_not_ready_is_changed_once_it_is(every: bool) -> None:
    """A run over the older file left it out, unless that took all units."""
    unit = 'msgid "Delete it?"\nmsgstr "Lösche es?"\n'
    for name, flag in (("old.po", "#, fuzzy\n"), ("new.po", "")):
        Path(name).write_text(HEAD + flag + unit, encoding="utf-8")
    for name, state in (("old.xlf", "needs-translation"), ("new.xlf", "final")):
        Path(name).write_text(XLIFF.format(state), encoding="utf-8")
    for ending in ("po", "xlf"):
        [document] = changed(f"old.{ending}", f"new.{ending}", every=every)
        assert len(document.units) == (not every)
        [document] = changed(f"new.{ending}", f"new.{ending}")
        assert document.units == ()


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("git:nowhere", "unknown revision nowhere; give a revision that `git rev-parse` knows there"),
        ("git:-x", "give a revision that"),
        ("empty", "empty has no older version of app/de.json; give its files the same names as the new ones"),
        ("app/en.json", "--changed-from app/en.json is one file for 2 documents; give a folder, or git:REF"),
        ("git:HEAD", "git:HEAD:"),
    ],
)
def test_older_versions_that_cannot_be_read(old: str, message: str, folder: Path) -> None:
    Path("empty").mkdir()
    for language in ("en", "de", "fr"):
        strings(f"app/{language}.json", a="One")
    Path("app/de.json").write_text("{", encoding="utf-8")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    strings("app/de.json", a="One")
    with pytest.raises(MbrEsdError) as raised:
        changed(old, "app/de.json", "app/fr.json", source="app/en.json")
    assert message in str(raised.value)
    assert isinstance(raised.value, InputError) or old.endswith(".json")
    assert "/tmp" not in str(raised.value).replace(str(folder), "")


def test_a_folder_without_git(folder: Path) -> None:
    strings("app/de.json", a="One")
    with pytest.raises(InputError, match=r"not a git repository"):
        changed("git:HEAD", "app/de.json", source="app/de.json")
