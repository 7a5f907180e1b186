"""The viewer: one HTML file with its data, style and program. It loads nothing.

The page's content security policy names the hashes of its one style sheet and one program: the browser runs nothing
else, whatever is in the data, and opens no connection.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.mqm import MqmWeights
from mbr_esd_metric.report.calibration_tables import calibration_html
from mbr_esd_metric.report.payload import encode_payload, payload
from mbr_esd_metric.report.rating_table import RatingTable


def render_page(sheet: RatingTable, title: str, weights: str | MqmWeights = "paper") -> str:
    """The page as one self-contained HTML document."""
    style = _asset("viewer.css")
    script = _program()
    parts = {
        "title": html.escape(title),
        "version": __version__,
        "style": style,
        "style_hash": _hash(style),
        "script": script,
        "script_hash": _hash(script),
        "calibration": calibration_html(sheet),
        "data": encode_payload(payload(sheet, weights)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda hole: parts[hole[1]], _asset("viewer.html"))


#: The parts of the page's program, in order; together they are one function.
_SCRIPTS = ("measures.js", "data.js", "segments.js", "overview.js", "page.js")


def _program() -> str:
    return '(() => {\n"use strict";\n' + "\n".join(_asset(name) for name in _SCRIPTS) + "})();\n"


def _asset(name: str) -> str:
    return (files("mbr_esd_metric.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
