"""Server addresses and credentials. The text of an address never contains a password or a key.

Credentials are only sent to these servers: ``MBR_ESD_API_KEY`` to those in the model name or in ``MBR_ESD_SERVER``,
``OPENAI_API_KEY`` to OpenAI's own hosts, and the user and password of a URL to that URL.
"""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.messages import hide, masked


@dataclass(frozen=True, slots=True)
class Address:
    """The base URL of a server, such as ``http://localhost:8000/v1``.

    Attributes:
        url: the URL for messages, without user, password, query and trailing slash.
        is_openai: whether it is a host of OpenAI.
        query: the query, sent with every request (Azure needs ``api-version``).
        login: the user and password as the value of the authorization header, if any.
    """

    url: str
    is_openai: bool = False
    query: str = field(default="", repr=False)
    login: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address. Raises `EngineError`, without the password, if it is not an HTTP(S) URL."""
        try:
            parts = urlsplit(text)
            port, host = parts.port, parts.hostname
        except ValueError:
            parts, port, host = urlsplit(""), None, None
        # A password with an unescaped slash would be parsed as a path, with the user as the host, and so be exposed.
        misplaced = "@" in parts.path + parts.query + parts.fragment
        if not host or misplaced or parts.scheme not in ("http", "https") or re.search(r"[\s\x00-\x1f\x7f]", text):
            hint = re.sub(r"(?<=[^@/:]):(?!\d+(/|$)|/).*", ":***", shown(text), count=1, flags=re.DOTALL)
            example = "http://localhost:8000/v1, and in a password %2F for /, %3F for ?, %23 for #"
            raise EngineError(f"{hint!r} is not a server address; use a form such as {example}")
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
        """The URL of a path relative to the base URL. A path with two leading slashes is relative to the host's
        root."""
        base = self.url
        if path.startswith("//"):
            base, path = re.sub(r"/v\d+$", "", base), path[1:]
        mark = "&" if "?" in path else "?"
        return base + path + (f"{mark}{self.query}" if self.query else "")

    def headers(self) -> dict[str, str]:
        """The authorization header; empty without credentials for this address."""
        if self.login is not None:
            return {"Authorization": self.login}
        key = os.environ.get("MBR_ESD_API_KEY")
        if not key and self.is_openai:
            key = os.environ.get("OPENAI_API_KEY")
        return {"Authorization": f"Bearer {key.strip()}"} if key and key.strip() else {}


def shown(text: str) -> str:
    """The text of one or several addresses for messages: without queries, and without anything before the last @ except
    the scheme, because a password may contain any character."""
    before, at, rest = text.rpartition("@")
    if at:
        scheme = re.match(r"(https?://)?", text)
        text = f"{scheme[0] if scheme else ''}***" + ("" if re.search(r"[?#]", before) else f"@{rest}")
    return re.sub(r"[?#][^\s,]*", "?***", text)


def excerpt(text: str, most: int = 300) -> str:
    """A text from a server as one line, without control characters and keys, truncated to `most` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in masked(text)[: 4 * most]).split())
    return line if len(line) <= most else line[:most] + "..."
