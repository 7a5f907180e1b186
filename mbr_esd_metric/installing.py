"""The command that installs what is missing."""

from __future__ import annotations

import json
from contextlib import suppress


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra from where this package came, and what it does to COMET."""
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    name = "mbr-esd-metric"
    url, origin = "", {}
    with suppress(PackageNotFoundError):
        # PEP 610: a file that says where a package came from, if not from an index.
        origin = json.loads(distribution(name).read_text("direct_url.json") or "{}")
        url = origin.get("url", "")
    if url.startswith("file:"):
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        command = f'pip install {editable}"{url2pathname(urlsplit(url).path)}[{extra}]"'
    elif url:
        vcs = origin.get("vcs_info", {})
        where = f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url
        command = f'pip install "{name}[{extra}] @ {where}"'
    else:
        command = f'pip install "{name}[{extra}]"'
    return f"{command} (beside COMET: docs/comet.md)" if extra in ("vllm", "train") else command
