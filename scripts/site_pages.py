"""Pages of the documentation site that are not in ``docs/``: architecture, contributing, changelog, and the reference.

``mkdocs.yml`` names this file as a hook. Links to files outside ``docs/`` become links to these pages or to GitHub.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mbr_esd_metric"

#: File in the repository -> page of the site.
PAGES = {
    "mbr_esd_metric/README.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
#: Folder of the package -> heading in the reference, in the order of the architecture page.
FOLDERS = {
    "core": "Annotations, similarities, decisions",
    "prompting": "Prompts, grammars, parsing",
    "files": "Files",
    "decoding": "Decoding",
    "generation": "Engines and the store",
    "metric": "Model cards, runs, the metric",
    "metaeval": "Meta-evaluation",
    "adapters": "COMET, WMT data, MQM tables",
    "scoring": "Scoring of test sets",
    "report": "Tables, plots, the viewer",
    "distill": "Distillation",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    from mkdocs.structure.files import File

    made = {page: (ROOT / source).read_text(encoding="utf-8") for source, page in PAGES.items()}
    made["reference/index.md"] = _public()
    for folder, title in FOLDERS.items():
        made[f"reference/{folder}.md"] = _modules(folder, title)
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_config(config: Any) -> Any:
    """Add the pages of the reference to the navigation."""
    for entry in config["nav"]:
        if "Reference" in entry:
            entry["Reference"] = ["reference/index.md", *({folder: f"reference/{folder}.md"} for folder in FOLDERS)]
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Replace relative links to files outside the site by links to its pages or to the repository. The home page starts
    with the README, up to its first commands."""
    path = page.file.src_uri
    source = next((s for s, made in PAGES.items() if made == path), f"docs/{path}")
    if path != "README.md":
        return _turned(markdown, source, path, config["repo_url"])
    opening = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Choose a model\n")[0]
    markdown = markdown.replace("# Documentation\n", "## All pages\n", 1)
    repository = config["repo_url"]
    return _turned(opening, "README.md", path, repository) + "\n" + _turned(markdown, source, path, repository)


def _turned(markdown: str, source: str, page: str, repository: str) -> str:
    """The text of a file in the repository, with links adapted to a page of the site."""

    def turned(match: re.Match[str]) -> str:
        target, mark, heading = match[1].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in PAGES:
            new = PAGES[path]
        elif path.startswith("docs/"):
            new = path.removeprefix("docs/")
        else:
            return f"]({repository}/blob/main/{path}{mark}{heading})"
        return f"]({posixpath.relpath(new, posixpath.dirname(page))}{mark}{heading})"

    return re.sub(r"\]\(([^)\s]+)\)", turned, markdown)


def _public() -> str:
    """The public names of ``mbr_esd_metric``, with the first line of their docstrings."""
    import mbr_esd_metric

    rows = []
    public = [name for names in mbr_esd_metric._PUBLIC.values() for name in names]
    for name in (*public, *(one for one in mbr_esd_metric.__all__ if one not in public and not one.startswith("_"))):
        about = (getattr(mbr_esd_metric, name).__doc__ or "").strip().split("\n\n")[0]
        rows.append(f"| [`{name}`][{_defined(name)}] | {' '.join(about.split()).replace('|', chr(92) + '|')} |")
    return f"""# Reference

The public names, all importable from `mbr_esd_metric`. The other pages of the reference list all modules by
folder; the [architecture page](../architecture.md) describes the layers.

| name | description |
|---|---|
{chr(10).join(rows)}

::: mbr_esd_metric.errors
"""


def _defined(name: str) -> str:
    """The full name of a public name in the module that defines it, rather than in an ``__init__`` that re-exports
    it."""
    import mbr_esd_metric

    value = getattr(mbr_esd_metric, name)
    return value.__name__ if isinstance(value, ModuleType) else f"{value.__module__}.{name}"


def _modules(folder: str, title: str) -> str:
    """All modules of a folder."""
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    modules = [p.parent if p.stem == "__init__" else p.with_suffix("") for p in paths]
    names = [".".join(("mbr_esd_metric", *module.relative_to(PACKAGE).parts)) for module in modules]
    return f"# {title}\n\n" + "\n\n".join(f"::: {name}" for name in names) + "\n"
