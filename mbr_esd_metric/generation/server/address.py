"""Server addresses and their credentials. An address never shows a password or a key.

Credentials are sent only where the user allowed it: ``MBR_ESD_API_KEY`` to the servers of the model name or
of ``MBR_ESD_SERVER``, ``OPENAI_API_KEY`` to OpenAI's own hosts, and the user and password of a URL to that URL.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from mbr_esd_metric.errors import EngineError, hide, masked


@dataclass(frozen=True, slots=True)
class Address:
    """A server's base URL, such as ``http://localhost:8000/v1``: `url` is what messages may show, without user,
    password, query and closing slash. `is_openai` says whether the host is OpenAI's own. The query (Azure needs
    ``api-version``) is sent with every request; `login` is user and password as the value of a header, if any."""

    url: str
    is_openai: bool = False
    query: str = field(default="", repr=False)
    login: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that a user wrote; raises `EngineError`, without a password, if it is not an HTTP(S) URL."""
        try:
            parts = urlsplit(text)
            port, host = parts.port, parts.hostname
        except ValueError:
            parts, port, host = urlsplit(""), None, None
        # A password with a slash would end in the path, and its user be the host: it would be sent and shown.
        misplaced = "@" in parts.path + parts.query + parts.fragment
        if not host or misplaced or parts.scheme not in ("http", "https") or re.search(r"[\s\x00-\x1f\x7f]", text):
            hint = re.sub(r"(?<=[^@/:]):(?!\d+(/|$)|/).*", ":***", shown(text), count=1, flags=re.DOTALL)
            example = "http://localhost:8000/v1, and in a password %2F for /, %3F for ?, %23 for #"
            raise EngineError(f"{hint!r} is not a server address; write for instance {example}")
        name = f"[{host}]" if ":" in host else host
        url = f"{parts.scheme}://{name}{f':{port}' if port is not None else ''}{parts.path.rstrip('/')}"
        login = None
        if parts.username is not None or parts.password is not None:
            pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            login = base64.b64encode(pair.encode()).decode()
            hide(unquote(parts.password or ""), parts.password or "", login)
        if parts.query:
            hide(*(value for name, value in parse_qsl(parts.query) if name != "api-version" and len(value) > 5))
        is_openai = host == "openai.com" or host.endswith(".openai.com")
        return cls(url, is_openai, parts.query, login and f"Basic {login}")

    def __str__(self) -> str:
        return self.url

    def at(self, path: str) -> str:
        """The URL of a path below the base. A path with two leading slashes is resolved from the host's root."""
        base = self.url
        if path.startswith("//"):
            base, path = re.sub(r"/v\d+$", "", base), path[1:]
        mark = "&" if "?" in path else "?"
        return base + path + (f"{mark}{self.query}" if self.query else "")

    def headers(self) -> dict[str, str]:
        """The authorisation header; empty if there is no secret for this address."""
        if self.login is not None:
            return {"Authorization": self.login}
        key = os.environ.get("MBR_ESD_API_KEY")
        if not key and self.is_openai:
            key = os.environ.get("OPENAI_API_KEY")
        return {"Authorization": f"Bearer {key.strip()}"} if key and key.strip() else {}


def shown(text: str) -> str:
    """The text of an address, or of several, as messages may show it: no query, and nothing before the last @ but a
    scheme at the beginning, as a password may hold any character."""
    before, at, rest = text.rpartition("@")
    if at:
        scheme = re.match(r"(https?://)?", text)
        text = f"{scheme[0] if scheme else ''}***" + ("" if re.search(r"[?#]", before) else f"@{rest}")
    return re.sub(r"[?#][^\s,]*", "?***", text)


def excerpt(text: str, most: int = 300) -> str:
    """The text of a server as one line without control characters and keys, cut to `most` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in masked(text)[: 4 * most]).split())
    return line if len(line) <= most else line[:most] + "..."
