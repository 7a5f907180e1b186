"""Every command and every output in the documents is run; `document.py` has the convention."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mbr_esd_metric.cli.verbs import VERBS, add_verbs
from mbr_esd_metric.decoding.options import FIELDS
from mbr_esd_metric.metric.card import OPTIONS
from tests.helpers.document import ROOT, Block, Session, blocks_of, documents

#: Where the repository's files are on the web, as absolute links name them; setup.cfg has the address.
REPOSITORY_URLS = tuple(
    address + "/"
    for url in re.findall(r"^url = https://github\.com/(.+)$", (ROOT / "setup.cfg").read_text("utf-8"), re.MULTILINE)
    for address in (f"https://github.com/{url}/blob/main", f"https://raw.githubusercontent.com/{url}/main")
)

BLOCKS = [block for document in documents() for block in blocks_of(document)]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Path, Session]]:
    opened: dict[Path, Session] = {}
    yield opened
    for session in opened.values():
        session.close()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block(block: Block, sessions: dict[Path, Session], tmp_path_factory: pytest.TempPathFactory) -> None:
    document = block.document
    if document not in sessions:
        sessions[document] = Session(tmp_path_factory.mktemp(document.stem))
    blocks = [one for one in BLOCKS if one.document == document]
    # A block alone (-k) is run after those above it, which it may build on.
    for at in range(sessions[document].done, blocks.index(block) + 1):
        sessions[document].done = at + 1
        if blocks[at].not_run is None:
            sessions[document].run(blocks[at])
    if block.not_run is not None:
        pytest.skip(block.not_run)


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Links to files of the repository, and to headings of these pages."""
    text = _prose(document)
    for target in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"<img[^>]* src=\"([^\"]+)\"", text):
        local = next((target.removeprefix(url) for url in REPOSITORY_URLS if target.startswith(url)), None)
        if local is None and re.match(r"[a-z]+:", target):
            continue
        path, _, heading = (local or target).partition("#")
        file = ((ROOT if local else document.parent) / path).resolve() if path else document
        assert file.exists(), f"{document}: {target}"
        if heading and file.suffix == ".md":
            assert heading in _anchors(file), f"{document}: {target} has no such heading"


def test_the_readme_works_in_a_clone() -> None:
    """Links to the repository are relative (`scripts/build.sh` makes them absolute), and the files that name
    the repository's address name the same."""
    links = re.findall(r"\]\(([^)\s]+)\)", _prose(ROOT / "README.md"))
    repository = REPOSITORY_URLS[0].removesuffix("/blob/main/")
    assert [target for target in links if repository in target] == []
    for name in ("CITATION.cff", "mkdocs.yml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"https://github\.com/[\w-]*mbr-esd[\w-]*/[\w-]+", text)) == {repository}, name


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert not pages - named, "add these pages to mkdocs.yml"
    for folder in (ROOT / "docs", ROOT / "docs" / "evidence"):
        index = (folder / "README.md").read_text(encoding="utf-8")
        assert [
            page for page in folder.glob("*.md") if f"({page.name})" not in index and page.name != "README.md"
        ] == []


@pytest.fixture(scope="module")
def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("mbr-esd")
    add_verbs(parser, VERBS.all().values())
    return parser


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Sequence[str]]]:
    """The options of all verbs, each by all its names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _options(below)
        elif action.option_strings and action.help != argparse.SUPPRESS:
            yield parser.prog, action.option_strings


def test_every_option_stands_in_some_page(command_line: argparse.ArgumentParser) -> None:
    """By one of its names; what a parser has by itself, as --help, need not."""
    pages = [page for page in (ROOT / "docs").glob("*.md") if page.name != "command-line.md"]  # made from the parsers
    text = "\n".join(page.read_text("utf-8") for page in pages)
    documented = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)) | {"--help"}
    assert [one for one in _options(command_line) if not documented.intersection(one[1])] == []
    # So do the options of a model.
    assert [name for name in OPTIONS if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)] == []


#: A command of a console block, run or not (with the name of a machine before the prompt), or in the prose.
_COMMAND = re.compile(r"^ *\w*\$ (?P<line>(?:.*\\\n)*.*)$|`(?P<prose>mbr-esd [^`]*)`", re.MULTILINE)


def commands_of(document: Path) -> Iterator[list[str]]:
    """The words of each `mbr-esd` command of a page, without what the shell does with it."""
    for match in _COMMAND.finditer(document.read_text(encoding="utf-8")):
        line = match["line"] or match["prose"].replace("\n", " ")
        lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=True)
        lexer.whitespace_split, words = True, []
        for word in [*lexer, ";"]:
            if set(word) <= set("();<>|&"):
                if words and words[0].rpartition("/")[2] == "mbr-esd" and "..." not in words:
                    yield words[1:]
                words = []
            else:
                words.append(word)


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_is_one_that_the_verb_takes(
    document: Path, command_line: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also those that are not run: their options are there. In the prose a command may end before a value."""
    wrong = []
    for verb, *words in filter(None, commands_of(document)):
        if verb in VERBS.names() and words:
            try:
                command_line.parse_args([verb, *words])
            except SystemExit:
                message = capsys.readouterr().err.strip().rpartition("\n")[2]
                if not re.search("required|expected (one|at least one) argument|^$", message):
                    wrong.append(message)
    assert wrong == []


@pytest.mark.parametrize("page", ["docs/walk.md", "mbr_esd_metric/README.md", "CONTRIBUTING.md", "docs/extend.md"])
def test_the_files_that_contributors_are_sent_to_are_there(page: str) -> None:
    named = re.findall(r"`(\w[\w/]*/\w+\.(?:py|sh))`", (ROOT / page).read_text(encoding="utf-8"))
    invented = re.compile(r"NAME|VERB|FOLDER|FILE|jaccard|bracketed|first_word|forbidden_word")
    places = (ROOT, ROOT / "mbr_esd_metric")
    assert [one for one in named if not invented.search(one) and not any((p / one).exists() for p in places)] == []


def test_the_table_of_decision_options_is_whole() -> None:
    table = dict(
        re.findall(r"^\| `--([\w-]+)` \| (.*) \|$", (ROOT / "docs/decide.md").read_text(encoding="utf-8"), re.M)
    )
    flags = {name: name.replace("_", "-") for name in FIELDS}
    assert set(table) == set(flags.values())
    for name, option in FIELDS.items():
        named = set(re.findall(r"`([\w-]+)`", table[flags[name]]))
        named |= {f"{one}-omissions" for one in named if "`-omissions`" in table[flags[name]]}
        assert set((option.metadata["valid"] or tuple)()) <= named, name


def _prose(document: Path) -> str:
    """A document without its fenced blocks."""
    return re.sub(r"^(`{3,}).*?^\1", "", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def _anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-") for heading in headings}
