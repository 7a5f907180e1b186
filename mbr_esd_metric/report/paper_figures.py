"""The paper's own figures (arXiv 2512.07540), as printed, by the rows and columns of our tables.

`paper_figures.json` has every number of the paper's tables: 119 rows. WMT24, en-de, en-es and ja-zh; means
over the language pairs, spans added up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from mbr_esd_metric.report.paper_rows import MODELS, edit_name, sized, sweep_name, xcomet_name

#: (table, row, column).
PaperCell = tuple[str, str, str]

_KEYS = {"SPA": "spa", "acc_eq*": "acc_eq", "SoftF1": "softf1", "F1": "f1"}
_MODELS = {"Llama-3.3-70B-Inst": "llama", "Gemma2-27b-it": "gemma2", "Phi-4": "phi4", "Mistral-Large-Inst": "mistral"}
_METHODS = {"Greedy Search": "greedy", "Majority Voting": "majority", "Distill-Greedy": "distilled, greedy"}
_LLAMA = MODELS["llama"][0]


def figures() -> dict[str, Any]:
    """Every table of the paper, as it is printed."""
    text = files("mbr_esd_metric.report").joinpath("paper_figures.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def place_of(table: str, row: Mapping[str, Any]) -> tuple[str, str]:
    """(table, row) of ours for a row of the paper's."""
    method = _METHODS.get(row.get("method", ""), row.get("method", ""))
    if table == "main":
        return table, sized(f"{MODELS[_MODELS[row['model']]][0]} {method}", row["n"])
    if table == "oracle":
        kind, utility = method.split("-")
        return table, f"{_LLAMA} {'MBR' if kind == 'Model' else 'oracle'}-{utility}"
    if table == "scaling":
        return "scalability", f"{_LLAMA} {method} N={row['n']}"
    if table == "spans":
        return "span-counts", "human" if method == "Human" else f"{_LLAMA} {method}"
    if table == "xcomet":
        if method.startswith("Llama-"):
            return table, f"{_LLAMA} {method.removeprefix('Llama-')}"
        return table, xcomet_name(*_xcomet(method))
    if table == "distillation":
        return table, method if method.startswith("distilled") else f"{_LLAMA} {method}"
    if table == "synthetic":
        return table, edit_name(row["operation"].lower(), row["reference"] == "Empty", row["severity"].lower())
    return "lambda", sweep_name(xcomet_name(*_xcomet(row["metric"])), row["lambda"])


def _xcomet(name: str) -> tuple[str, bool]:
    """Kind, and whether a reference is used, of a name such as xCOMET-QE-ESD-Conf."""
    kind = name.removeprefix("xCOMET-")
    return kind.removeprefix("QE-"), not kind.startswith("QE-")


def _values(table: str, row: Mapping[str, Any]) -> dict[str, float]:
    if table == "spans":
        return {key: _number(row[key]) for key in ("major", "minor", "ratio")}
    if table == "synthetic":
        return {"edits": _number(row["edits"]), "f1": row["DR-F1"], "softf1": row["DR-SoftF1"]}
    return {key: row[name] for name, key in _KEYS.items() if row.get(name) is not None}


def _number(printed: str | float) -> float:
    """A number as it is printed: 9.0K is 9000."""
    if isinstance(printed, str) and printed.endswith("K"):
        return round(float(printed.removesuffix("K")) * 1000, 6)
    return float(printed)


def _placed() -> Iterator[tuple[PaperCell, float]]:
    found = figures()
    for table, rows in found.items():
        for row in rows if isinstance(rows, list) else ():
            for key, value in _values(table, row).items():
                yield (*place_of(table, row), key), value
    for name, counts in found["facts"]["xcomet_spans"].items():
        for key, printed in counts.items():
            yield ("lambda", sweep_name(xcomet_name(*_xcomet(name)), 0.0), key), _number(printed)


#: PaperCell -> the paper's figure.
PAPER: Mapping[PaperCell, float] = dict(_placed())

#: Places that the paper marks as significantly better than MAP and majority voting.
PAPER_DAGGERS: frozenset[PaperCell] = frozenset(
    (*place_of("main", row), _KEYS[name]) for row in figures()["main"] for name in row["dagger"]
)
