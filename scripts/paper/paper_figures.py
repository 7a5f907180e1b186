"""The paper's tables (arXiv 2512.07540): their rows, and the paper's figures as printed.

`paper_figures.json` has every number of them: 119 rows. WMT24, en-de, en-es and ja-zh; means over the language pairs,
spans added up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mbr_esd_metric.decoding.options import DecisionOptions

#: The paper's models: how their candidate files are named -> title.
MODELS: Mapping[str, str] = {
    "llama": "Llama 3.3 70B",
    "gemma2": "Gemma 2 27B",
    "phi4": "Phi 4 14B",
    "mistral": "Mistral Large 123B",
}


@dataclass(frozen=True, slots=True)
class RowSpec:
    """One row: a decision over a model's candidates.

    Attributes:
        name: in the table.
        model: how the candidates file is named; None for the empty annotation, which needs none.
        rule, utility: as `decide` takes them.
        samples: N; the first N candidates of each segment are used.
    """

    name: str
    model: str | None
    rule: str = "mbr"
    utility: str = "softf1"
    samples: int = 256

    @property
    def file(self) -> str | None:
        """Name of the candidates file, without language pair and ending."""
        one = self.options.rule_instance.candidates == "one"
        return f"{self.model}-greedy" if self.model and one else self.model

    @property
    def options(self) -> DecisionOptions:
        """The options of the row's decision."""
        return DecisionOptions(self.rule, self.utility)


EMPTY_ROW = RowSpec("empty", None)
_MBR = (("MBR-ScoreSim", "scoresim"), ("MBR-F1", "f1"), ("MBR-SoftF1", "softf1"))


#: Sizes of the paper's main table; the last is meant where a row says none.
_MAIN_SIZES = (16, 64, 256)


def sized(name: str, size: int) -> str:
    """A row's name with its N, where that is another than the main one."""
    return name if size in (1, _MAIN_SIZES[-1]) else f"{name} N={size}"


def xcomet_name(kind: str, uses_reference: bool) -> str:
    """The row of xCOMET's own score ("Reg"), its spans ("ESD") or the sure ones of them ("ESD-Conf")."""
    return f"XCOMET-{kind} (src+ref)" if uses_reference else f"XCOMET-QE-{kind} (src)"


def sweep_name(metric: str, threshold: float) -> str:
    """The row of a metric without the spans below a confidence."""
    return f"{metric} lambda {threshold:.1f}"


def edit_name(edit: str, clean: bool, severity: str) -> str:
    """The row of edits of one severity, on annotations without or with errors."""
    return f"{edit}, {'no error before' if clean else 'with errors'}, {severity}"


def _mbr(size: int = 256) -> list[RowSpec]:
    return [RowSpec(sized(f"{_LLAMA} {name}", size), "llama", "mbr", utility, size) for name, utility in _MBR]


def _rows_of(model: str) -> list[RowSpec]:
    title = MODELS[model]
    rows = [RowSpec(f"{title} greedy", model, "greedy", samples=1)]
    for size in _MAIN_SIZES:
        methods = (("MAP", "map", "softf1"), ("majority", "majority", "softf1"), *((n, "mbr", u) for n, u in _MBR))
        rows += [RowSpec(sized(f"{title} {n}", size), model, rule, utility, size) for n, rule, utility in methods]
    return [*rows, RowSpec(f"{title} MBR-SoftDice", model, "mbr", "softdice")]


_LLAMA = MODELS["llama"]
_LLAMA_MAP = RowSpec(f"{_LLAMA} MAP", "llama", "map")
MBR_SOFTF1 = RowSpec(f"{_LLAMA} MBR-SoftF1", "llama")

#: Table -> its rows, for the tables whose rows are decisions.
TABLES: Mapping[str, tuple[RowSpec, ...]] = {
    "main": (EMPTY_ROW, *(row for model in MODELS for row in _rows_of(model))),
    "oracle": (
        *_mbr(),
        *(RowSpec(f"{_LLAMA} {name.replace('MBR', 'oracle')}", "llama", "oracle", utility) for name, utility in _MBR),
    ),
    "scalability": tuple(
        RowSpec(f"{_LLAMA} {name} N={size}", "llama", rule, "softf1", size)
        for size in (16, 64, 256, 1024)
        for name, rule in (("MAP", "map"), ("MBR-SoftF1", "mbr"))
    ),
    "distillation": (
        RowSpec(f"{_LLAMA} greedy", "llama", "greedy", samples=1),
        _LLAMA_MAP,
        MBR_SOFTF1,
        RowSpec("distilled, greedy", "llama-distill", "greedy", samples=1),
    ),
    "xcomet": (EMPTY_ROW, _LLAMA_MAP, MBR_SOFTF1),
}

#: Every table's heading, in the order in which they are printed.
TITLES: Mapping[str, str] = {
    "main": "Main results",
    "oracle": "Oracle: MBR whose support is the human annotation",
    "scalability": "Scalability in the number of candidates",
    "span-counts": "Numbers of error spans",
    "xcomet": "Comparison with xCOMET and the other stored metrics",
    "distillation": "Distillation",
    "synthetic": "Synthetic meta-evaluation: decline ratio",
    "lambda": "Confidence sweep",
}

#: (table, row, column).
PaperCell = tuple[str, str, str]

_KEYS = {"SPA": "spa", "acc_eq*": "acc_eq", "SoftF1": "softf1", "F1": "f1"}
_MODELS = {"Llama-3.3-70B-Inst": "llama", "Gemma2-27b-it": "gemma2", "Phi-4": "phi4", "Mistral-Large-Inst": "mistral"}
_METHODS = {"Greedy Search": "greedy", "Majority Voting": "majority", "Distill-Greedy": "distilled, greedy"}


def figures() -> dict[str, Any]:
    """Every table of the paper, as it is printed."""
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def place_of(table: str, row: Mapping[str, Any]) -> tuple[str, str]:
    """(table, row) of ours for a row of the paper's."""
    method = _METHODS.get(row.get("method", ""), row.get("method", ""))
    if table == "main":
        return table, sized(f"{MODELS[_MODELS[row['model']]]} {method}", row["n"])
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
    tables = figures()
    for table, rows in tables.items():
        for row in rows if isinstance(rows, list) else ():
            for key, value in _values(table, row).items():
                yield (*place_of(table, row), key), value
    for name, counts in tables["facts"]["xcomet_spans"].items():
        for key, printed in counts.items():
            yield ("lambda", sweep_name(xcomet_name(*_xcomet(name)), 0.0), key), _number(printed)


#: PaperCell -> the paper's figure.
PAPER: Mapping[PaperCell, float] = dict(_placed())

#: Places that the paper marks as significantly better than MAP and majority voting.
PAPER_DAGGERS: frozenset[PaperCell] = frozenset(
    (*place_of("main", row), _KEYS[name]) for row in figures()["main"] for name in row["dagger"]
)
