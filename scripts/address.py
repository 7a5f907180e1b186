"""The repository's address in every file that names it. `url` in setup.cfg is the one that counts.

python scripts/address.py                                    check that all files name that address
python scripts/address.py https://github.com/OWNER/NAME      set another one everywhere
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("setup.cfg", "CITATION.cff", "mkdocs.yml", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml")
_REPOSITORY = re.compile(r"https://github\.com/([\w-]+)/([\w.-]+)")


def repository(root: Path = ROOT) -> tuple[str, str]:
    """Owner and name of the repository, as setup.cfg says."""
    address = re.search(
        rf"^url = {_REPOSITORY.pattern}$", (root / "setup.cfg").read_text(encoding="utf-8"), re.MULTILINE
    )
    if address is None:
        raise SystemExit("setup.cfg: `url` is no address such as https://github.com/OWNER/NAME")
    return address[1], address[2]


def forms(owner: str, name: str) -> tuple[str, str, str]:
    """The address of the repository, of its raw files, and of its pages, each up to the name."""
    return (
        f"https://github.com/{owner}/{name}",
        f"https://raw.githubusercontent.com/{owner}/{name}",
        f"https://{owner}.github.io/{name}",
    )


def strangers(root: Path = ROOT) -> list[str]:
    """Each line of a file that names a repository of this name with another owner."""
    owner, name = repository(root)
    others = [re.escape(form).replace(re.escape(owner), r"([\w-]+)", 1) for form in forms(owner, name)]
    return [
        f"{file}, line {number}: {match[0]}"
        for file in FILES
        for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), 1)
        for pattern in others
        for match in re.finditer(pattern + r"\b", line)
        if match[1] != owner
    ]


def change(address: str, root: Path = ROOT) -> None:
    """Put another address in place of the present one in all files."""
    new = _REPOSITORY.fullmatch(address.rstrip("/"))
    if new is None:
        raise SystemExit(f"{address} is no address such as https://github.com/OWNER/NAME")
    pairs = list(zip(forms(*repository(root)), forms(new[1], new[2]), strict=True))
    for file in FILES:
        text = (root / file).read_text(encoding="utf-8")
        for old, replacement in pairs:
            text = re.sub(re.escape(old) + r"(?![\w-])", replacement, text)
        (root / file).write_text(text, encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Check, or change."""
    if len(words) > 1 or (words and words[0].startswith("-")):
        print(__doc__)
        return 2
    if words:
        change(words[0])
    for line in strangers():
        print(line)
    return 1 if strangers() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
