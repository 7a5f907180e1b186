"""The paper's tables: which rows they have, and what they are called. The paper's figures are in `paper_figures`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mbr_esd_metric.decoding.options import DecisionOptions

#: The paper's models: how their candidate files are named -> (title, billions of parameters).
MODELS: Mapping[str, tuple[str, float]] = {
    "llama": ("Llama 3.3 70B", 70.6),
    "gemma2": ("Gemma 2 27B", 27.2),
    "phi4": ("Phi 4 14B", 14.7),
    "mistral": ("Mistral Large 123B", 122.6),
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
        one = self.options.decided_by.candidates == "one"
        return f"{self.model}-greedy" if self.model and one else self.model

    @property
    def options(self) -> DecisionOptions:
        """How the row is decided."""
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
    title = MODELS[model][0]
    rows = [RowSpec(f"{title} greedy", model, "greedy", samples=1)]
    for size in _MAIN_SIZES:
        methods = (("MAP", "map", "softf1"), ("majority", "majority", "softf1"), *((n, "mbr", u) for n, u in _MBR))
        rows += [RowSpec(sized(f"{title} {n}", size), model, rule, utility, size) for n, rule, utility in methods]
    return [*rows, RowSpec(f"{title} MBR-SoftDice", model, "mbr", "softdice")]


_LLAMA = MODELS["llama"][0]
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
