"""The paper's tables (arXiv 2512.07540): their rows, and the paper's figures as printed.

`paper_figures.json` has every number of them, by the names of our rows: 119 rows. WMT24, en-de, en-es and ja-zh; means
over the language pairs, spans added up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
        return DecisionOptions(self.rule, self.utility, location="first")


def xcomet_name(kind: str, uses_reference: bool) -> str:
    """The row of xCOMET's own score ("Reg"), its spans ("ESD") or the sure ones of them ("ESD-Conf")."""
    return f"XCOMET-{kind} (src+ref)" if uses_reference else f"XCOMET-QE-{kind} (src)"


def sweep_name(metric: str, threshold: float) -> str:
    """The row of a metric without the spans below a confidence."""
    return f"{metric} lambda {threshold:.1f}"


def edit_name(edit: str, clean: bool, severity: str) -> str:
    """The row of edits of one severity, on annotations without or with errors."""
    return f"{edit}, {'no error before' if clean else 'with errors'}, {severity}"


_MBR = (("ScoreSim", "scoresim"), ("F1", "f1"), ("SoftF1", "softf1"))


def _rows_of(model: str) -> list[RowSpec]:
    """A model's rows of the main table; a name without an N stands for 256 candidates."""
    title = MODELS[model]
    rows = [RowSpec(f"{title} greedy", model, "greedy", samples=1)]
    for size in (16, 64, 256):
        shown = "" if size == 256 else f" N={size}"
        rows += [RowSpec(f"{title} {n}{shown}", model, n.lower(), samples=size) for n in ("MAP", "majority")]
        rows += [RowSpec(f"{title} MBR-{n}{shown}", model, "mbr", utility, size) for n, utility in _MBR]
    return [*rows, RowSpec(f"{title} MBR-SoftDice", model, "mbr", "softdice")]


_LLAMA = MODELS["llama"]
_LLAMA_MAP = RowSpec(f"{_LLAMA} MAP", "llama", "map")
EMPTY_ROW = RowSpec("empty", None)
MBR_SOFTF1 = RowSpec(f"{_LLAMA} MBR-SoftF1", "llama")

#: Table -> its rows, for the tables whose rows are decisions.
TABLES: Mapping[str, tuple[RowSpec, ...]] = {
    "main": (EMPTY_ROW, *(row for model in MODELS for row in _rows_of(model))),
    "oracle": tuple(
        RowSpec(f"{_LLAMA} {name}-{n}", "llama", rule, utility)
        for name, rule in (("MBR", "mbr"), ("oracle", "oracle"))
        for n, utility in _MBR
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


def _figures() -> dict[str, dict[str, dict[str, Any]]]:
    figures: dict[str, dict[str, dict[str, Any]]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    return figures


#: Table -> row -> measure -> the paper's figure; "daggers" are the measures in which the paper marks it as
#: significantly better than MAP and majority voting.
PAPER = _figures()
