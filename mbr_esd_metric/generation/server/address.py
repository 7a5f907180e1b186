"""The address of a server, and the secret that may be sent there. An address never shows a password or a key.

A secret goes only where the user said: ``MBR_ESD_API_KEY`` to the servers of the model name or of ``MBR_ESD_SERVER``,
``OPENAI_API_KEY`` to OpenAI's own hosts, and the user and password of a URL to that URL.
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
    """A server's base URL, such as ``http://localhost:8000/v1``.

    Attributes:
        url: without user, password, query and closing slash: what messages may show.
        host: in lower case.
        query: of the URL as given (Azure needs ``api-version``); it is sent with every request and never shown.
        login: the user and password before the @, as the value of a header; None if there are none.
    """

    url: str
    host: str
    query: str = field(default="", repr=False)
    login: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that a user wrote; raises `EngineError`, without a password, if it is no http or https URL."""
        try:
            parts = urlsplit(text)
            port, host = parts.port, parts.hostname
        except ValueError:
            host = port = None
        if not host or parts.scheme not in ("http", "https") or re.search(r"[\s\x00-\x1f\x7f]", text):
            raise EngineError(f"{_hint(text)!r} is no server address; write for instance http://localhost:8000/v1")
        if "@" in parts.path + parts.query + parts.fragment:
            # A password with a slash would end in the path, and its user be the host: it would be sent and shown.
            raise EngineError(
                f"{_hint(text)!r} is no server address, as an @ comes after its first /, ? or #; write these in a "
                "password as %2F, %3F, %23, and an @ of the path as %40"
            )
        name = f"[{host}]" if ":" in host else host
        url = f"{parts.scheme}://{name}{f':{port}' if port is not None else ''}{parts.path.rstrip('/')}"
        login = None
        if parts.username is not None or parts.password is not None:
            pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            login = "Basic " + base64.b64encode(pair.encode()).decode()
            hide(unquote(parts.password or ""), parts.password or "", login.removeprefix("Basic "))
        hide(*(value for name, value in parse_qsl(parts.query) if name != "api-version"))
        return cls(url, host.lower(), parts.query, login)

    def __str__(self) -> str:
        return self.url

    def at(self, path: str) -> str:
        """The URL of a path below the base. A path with two slashes is taken from the host's root instead."""
        base = self.url
        if path.startswith("//"):
            base, path = re.sub(r"/v\d+$", "", base), path[1:]
        mark = "&" if "?" in path else "?"
        return base + path + (f"{mark}{self.query}" if self.query else "")

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI's own host."""
        return self.host == "openai.com" or self.host.endswith(".openai.com")

    def headers(self) -> dict[str, str]:
        """The authorisation header; empty if there is no secret for this address."""
        if self.login is not None:
            return {"Authorization": self.login}
        key = os.environ.get("MBR_ESD_API_KEY")
        if not key and self.is_openai:
            key = os.environ.get("OPENAI_API_KEY")
        return {"Authorization": f"Bearer {key.strip()}"} if key and key.strip() else {}


def shown(text: str) -> str:
    """The text of an address, or of several, as messages may show it.

    A password may hold any character, so nothing before the last @ is shown but a scheme at the beginning. Of each
    address the query is hidden too, which may hold an @ as well.
    """
    before, at, rest = text.rpartition("@")
    if at:
        rest = "***" if re.search(r"[?#]", before) else rest
        scheme = re.match(r"https?://", text)
        text = f"{scheme[0] if scheme else ''}***@{rest}"
    pieces = re.split(r"([\s,]+)", text)
    return "".join(_without_query(piece) if "://" in piece or at else piece for piece in pieces)


def _without_query(address: str) -> str:
    query = re.search(r"[?#]", address)
    return address if query is None else address[: query.start()] + "?***"


def _hint(text: str) -> str:
    """The part of a text that is no address that may be shown: less than of one, as any part of it may be secret."""
    begin = _without_query(shown(text))
    return re.sub(r"(?<=[^@/:]):(?!\d+(/|$)|/).*", ":***", begin, count=1, flags=re.DOTALL)


def excerpt(text: str, most: int = 300) -> str:
    """The text of a server as one line without control characters and keys, cut to `most` characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in masked(text)[: 4 * most]).split())
    return line if len(line) <= most else line[:most] + "..."
