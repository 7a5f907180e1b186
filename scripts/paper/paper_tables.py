"""The paper's tables (arXiv 2512.07540) on a WMT data folder: ours, the paper's figure, and the difference.

    python scripts/paper/paper_tables.py [TABLE ...] --test-set data/wmt24 --candidates FOLDER

docs/paper-tables.md says what each table needs. A dagger beside one of our values is the paper's: better than MAP and
majority voting of the same candidates, p < .05, in every language pair (PERM-BOTH for SPA and acc_eq*, paired bootstrap
for measures of error spans). If a row cannot be computed, it says what is missing: which candidates, for how many
segments; which human error spans; or which stored metric.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from paper_candidates import Matrix, PaperCandidates, no_human
from paper_figures import EMPTY_ROW, MBR_SOFTF1, PAPER, TABLES, TITLES, RowSpec, edit_name, sweep_name, xcomet_name
from synthetic import EDITS, SEVERITY_NAMES, decline_ratio, rated

from mbr_esd_metric.adapters.wmt import SpanSet, StoredMetric, TestSet, load_test_set
from mbr_esd_metric.adapters.wmt.layout import base_name, default_data
from mbr_esd_metric.cli.shared_options import folder_and_name
from mbr_esd_metric.metaeval import lambda_sweep
from mbr_esd_metric.metaeval.leaderboard import LeaderboardSettings, compute_leaderboard
from mbr_esd_metric.metaeval.metric_set import Key, MetricEntry, MetricSet
from mbr_esd_metric.metaeval.significance import UNITS, Units
from mbr_esd_metric.metaeval.spans import LAMBDAS, AnnotationMatrix
from mbr_esd_metric.report.leaderboard_table import measure_title, row_name
from mbr_esd_metric.report.tables import DAGGER, TABLE_FORMATS, Cell, Column, Table, blocks, render_all

_MEASURES = {
    "spa": ("SPA", 3),
    "acc_eq": ("acc_eq*", 3),
    "softf1": ("SoftF1", 3),
    "f1": ("F1", 3),
    "softdice-corpus": ("SoftDice corpus", 3),
}
_EDITED = ("f1", "softf1", "softdice")
_SPAN_MEASURES = ("softf1", "f1", "softdice-corpus")


#: Numbers of spans, which depend on the translations: those of other test sets are not compared.
_COUNTS = ("major", "minor", "edits")


def legible(table: Table, width: int = 120) -> list[Table]:
    """The table in blocks of at most so many characters, without empty columns; what rows lack stands below."""
    last = len(table.columns) - 1
    filled = [
        at
        for at, column in enumerate(table.columns)
        if column.key != "missing" and (at == 0 or any(row[at].value is not None for row in table.rows))
    ]
    lacking: dict[str, list[str]] = {}
    for row in table.rows:
        if table.columns[last].key == "missing" and row[last].value:
            lacking.setdefault(str(row[last].value), []).append(str(row[0].value))
    notes = [*(f"{', '.join(names)}: {what}" for what, names in lacking.items()), *table.notes]
    wrapped = (textwrap.wrap(note, width, subsequent_indent="  ", break_on_hyphens=False) for note in notes)
    narrowed = replace(
        table,
        columns=tuple(table.columns[at] for at in filled),
        rows=tuple(tuple(row[at] for at in filled) for row in table.rows),
        notes=tuple(line for lines in wrapped for line in lines),
    )
    return blocks(narrowed, width)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row's measures, those that can be computed, what the others lack, and its name among the paper's figures."""

    name: str
    values: Mapping[str, float] = field(default_factory=dict)
    missing: str = ""
    paper: str = ""
    human: Sequence[tuple[float, float] | None] = ()
    daggers: frozenset[str] = frozenset()


@dataclass
class Study:
    """Test sets of several language pairs, a folder of candidates, and what is computed from them.

    Attributes:
        test_sets: one for each language pair.
        folder: with MODEL.LP.jsonl (or .jsonl.gz, .jsonl.zst, .gen.json), or None.
        invalid: as for `decide`.
        units: what the bootstrap behind the daggers draws.
    """

    test_sets: Sequence[TestSet]
    folder: Path | None = None
    invalid: str = "drop"
    units: Units = "segment"

    def __post_init__(self) -> None:
        self._human = [
            [r.of(test_set.systems, test_set.segments) for r in test_set.human_ratings()] if test_set.ratings else []
            for test_set in self.test_sets
        ]
        self._sets = [
            MetricSet(t.lp, t.gold, t.lengths, human, ()) for t, human in zip(self.test_sets, self._human, strict=True)
        ]
        self._candidates = PaperCandidates(self.test_sets, self._human, self.folder, self.invalid)

    def table(self, name: str) -> Table:
        """One table, by its key in `TITLES`.

        Raises:
            InputError: a candidates file that is malformed, or a segment without a valid candidate.
        """
        title = f"{TITLES[name]} ({', '.join(f'{t.name} {t.lp}' for t in self.test_sets)})"
        if name == "synthetic":
            return self._synthetic(title)
        if name == "lambda":
            return self._sweep(title)
        if name == "xcomet":
            return self._stored(title)
        if name == "span-counts":
            return self._counts(title)
        rows = list(map(self._decided_row, TABLES[name]))
        if name == "main":
            daggers = self._daggers(TABLES[name])
            rows = [replace(row, daggers=daggers.get(row.name, frozenset())) for row in rows]
        return self._compared(name, title, _MEASURES, rows)

    # ---- rows ---------------------------------------------------------------------------------------------------

    def _decided_row(self, spec: RowSpec) -> _Row:
        """The row's measures, averaged over the language pairs, and numbers of spans; or what is missing."""
        matrices = [self._candidates.predicted(spec, at) for at in range(len(self.test_sets))]
        if missing := [matrix for matrix in matrices if isinstance(matrix, str)]:
            return _Row(spec.name, missing="; ".join(missing))
        return self._of_spans(spec.name, [matrix for matrix in matrices if not isinstance(matrix, str)])

    def _of_spans(self, name: str, matrices: Sequence[AnnotationMatrix], paper: str = "") -> _Row:
        return self._evaluated(name, [MetricEntry.of_spans(name, matrix) for matrix in matrices], paper)

    def _evaluated(self, name: str, entries: Sequence[MetricEntry], paper: str = "") -> _Row:
        """The row of a metric, of which there is an entry for each language pair."""
        sets = [replace(one, entries=[entry]) for one, entry in zip(self._sets, entries, strict=True)]
        board = compute_leaderboard("", sets, LeaderboardSettings(draws=0, measures=_SPAN_MEASURES))
        result = board.rows[0].average
        assert result is not None
        counts = {"major": result.counts.major, "minor": result.counts.minor} if result.counts else {}
        return _Row(name, {**result.values, **counts}, self._unrated if counts else "", paper, board.human)

    def _daggers(self, specs: Sequence[RowSpec]) -> dict[str, frozenset[str]]:
        """Row -> the measures in which it beats MAP and majority voting of the same candidates, everywhere."""
        daggers: dict[str, frozenset[str]] = {}
        for model, samples in dict.fromkeys((s.model, s.samples) for s in specs if s.rule == "map"):
            group = [s for s in specs if (s.model, s.samples) == (model, samples)]
            chosen = {s: [self._candidates.predicted(s, at) for at in range(len(self.test_sets))] for s in group}
            if any(isinstance(matrix, str) for matrices in chosen.values() for matrix in matrices):
                continue
            sets = []
            for at, one in enumerate(self._sets):
                rows = ((spec.name, each[at]) for spec, each in chosen.items())
                entries = [MetricEntry.of_spans(name, matrix) for name, matrix in rows if not isinstance(matrix, str)]
                sets.append(replace(one, entries=entries))
            baselines = tuple(s.name for s in group if s.rule in ("map", "majority"))
            settings = LeaderboardSettings(measures=_SPAN_MEASURES, against=baselines, bootstrap=self.units)
            daggers |= {row.name: row.daggers for row in compute_leaderboard("", sets, settings).rows}
        return daggers

    @property
    def _unrated(self) -> str:
        """The note that human error spans are missing; empty if every language pair has them."""
        where = self._where(map(bool, self._human))
        return no_human(where) if where else ""

    def _where(self, present: Iterable[bool]) -> str:
        """The language pairs in which something is not present."""
        return ", ".join(t.lp for t, is_present in zip(self.test_sets, present, strict=True) if not is_present)

    # ---- tables -------------------------------------------------------------------------------------------------

    def _compared(self, name: str, title: str, measures: Mapping[str, tuple[str, int]], rows: Iterable[_Row]) -> Table:
        """Ours, paper and difference for each measure (heading, digits); in the last column what a row lacks."""
        columns = [Column("row", "")]
        for key, (heading, digits) in measures.items():
            columns += [
                Column(f"{key}_ours", "ours", heading, digits),
                Column(f"{key}_paper", "paper", heading, digits),
                Column(f"{key}_difference", "diff.", heading, digits),
            ]
        columns.append(Column("missing", "missing"))
        language_pairs = [(t.name, t.lp) for t in self.test_sets]
        same = language_pairs == [("wmt24", lp) for lp in ("en-de", "en-es", "ja-zh")]
        body = []
        for row in rows:
            cells, printed = [Cell(row.name)], PAPER[name].get(row.paper or row.name, {})
            for key in measures:
                ours, paper = row.values.get(key), printed.get(key)
                comparable = same or key not in _COUNTS
                difference = None if ours is None or paper is None or not comparable else ours - paper
                marked = Cell(paper, dagger=key in printed.get("daggers", ()))
                cells += [Cell(ours, dagger=key in row.daggers), marked, Cell(difference)]
            body.append((*cells, Cell(row.missing or None)))
        notes = [self._fix] if any("candidates" in str(cells[-1].value) for cells in body) else []
        if any(cell.dagger for cells in body for cell in cells):
            notes.append(
                f"{DAGGER}: better than MAP and majority voting in every language pair, p < 0.05; ours by PERM-BOTH "
                f"and, for error spans, a paired bootstrap over {self.units}s"
            )
        if any(
            "XCOMET-XL-" in str(row[0].value) for row in body if row[1].value is not None and row[2].value is not None
        ):
            notes.append("the paper's xCOMET is XXL, and this one is the smaller XL")
        if not same:
            notes.append("the paper's figures are of wmt24, en-de, en-es and ja-zh")
        repaired = [line for test_set in self.test_sets for line in test_set.notes]
        return Table(title, tuple(columns), tuple(body), (*notes, *repaired))

    @property
    def _fix(self) -> str:
        lp = self.test_sets[0].lp
        return (
            f"Candidates are sampled with: mbr-esd sample --test-set {self._test_set} --lp {lp} "
            f"--model 'mbr-esd-llama?n=256&lp={lp}' -o FOLDER/llama.{lp}.jsonl.gz"
        )

    @property
    def _test_set(self) -> str:
        """The value of --test-set that names the test sets in commands."""
        layout = self.test_sets[0].layout
        return layout.test_set if layout.data == default_data() else shlex.quote(f"{layout.data}/{layout.test_set}")

    def _counts(self, title: str) -> Table:
        """Predicted spans in the rated translations, beside those of the humans."""
        rows = [self._decided_row(row) for row in TABLES["main"] if row.samples in (1, 256)]
        human = next((row.human for row in rows if row.values), ())
        counted = [] if self._unrated else [one for one in human if one]
        totals = dict(zip(("major", "minor"), map(sum, zip(*counted, strict=True)), strict=False))
        rows.insert(0, _Row("human", totals, self._unrated))
        for at, row in enumerate(rows):
            if row.values.get("minor"):
                ratio = row.values["major"] / row.values["minor"]
                rows[at] = replace(row, values={**row.values, "ratio": ratio})
        measures = {"major": ("major", 1), "minor": ("minor", 1), "ratio": ("major / minor", 2)}
        return self._compared("span-counts", title, measures, rows)

    @cached_property
    def _metrics(self) -> dict[Key, list[StoredMetric | None]]:
        """The data folders' metrics, by what names them in every language pair; None if a language pair lacks one."""
        names = [{base_name(full): full for full in t.find_metrics()} for t in self.test_sets]
        return {
            key: [t.metric(of[key]) if key in of else None for t, of in zip(self.test_sets, names, strict=True)]
            for key in dict.fromkeys(key for of in names for key in of)
        }

    def _stored(self, title: str) -> Table:
        """Metrics of the data folders: their own scores, and their error spans where they have any."""
        rows = []
        for key, stored in self._metrics.items():
            if key == (EMPTY_ROW.name, False):  # the first row
                continue
            pairs = [(t, m) for t, m in zip(self.test_sets, stored, strict=True) if m is not None]
            if len(pairs) < len(stored):
                lacking = f"scores in {self._where(m is not None for m in stored)}"
                rows.append(_Row(row_name(key), missing=lacking, paper=_paper_name(key)))
                continue
            spans = [m.ratings.of(t.systems, t.segments) if m.ratings else None for t, m in pairs]
            every = all(matrix is not None for matrix in spans)
            entries = [
                MetricEntry(*key, m.scores, matrix if every else None)
                for (_, m), matrix in zip(pairs, spans, strict=True)
            ]
            row = self._evaluated(row_name(key), entries, _paper_name(key))
            if not every and any(matrix is not None for matrix in spans):
                row = replace(row, missing=f"error spans in {self._where(matrix is not None for matrix in spans)}")
            rows.append(row)
        # A metric that misses something keeps its row; the paper's is printed for each kind that no metric is.
        for kind in ("Reg", "ESD", "ESD-Conf"):
            rows += [_Row(name, missing=fix) for name, fix in self._absent_xcomet(kind, self._metrics)]
        return self._compared("xcomet", title, _MEASURES, [*map(self._decided_row, TABLES["xcomet"]), *rows])

    def _absent_xcomet(self, kind: str, keys: Iterable[Key]) -> list[tuple[str, str]]:
        """The paper's rows of xCOMET of a kind that no metric is, with the reference and without, and what to do.

        Args:
            kind: "Reg", "ESD" or "ESD-Conf".
            keys: of the metrics that take their place where they are of this kind.
        """
        lps = " ".join(t.lp for t in self.test_sets)
        fix = f"mbr-esd wmt score --test-set {self._test_set} --lp {lps} --model Unbabel/XCOMET-XXL"
        seen = {_paper_name(key) for key in keys}
        names = [xcomet_name(kind, uses_reference) for uses_reference in (True, False)]
        return [(name, f"score it with: {fix}") for name in names if name not in seen]

    def _synthetic(self, title: str) -> Table:
        """Decline ratio on the human annotations; needs no model."""
        originals, lengths = [], []
        for test_set in self.test_sets if not self._unrated else ():
            annotations, of = rated(test_set)
            originals += annotations
            lengths += of
        rows: dict[str, dict[str, float]] = {}
        for edit in EDITS:
            results = [] if self._unrated else decline_ratio(originals, lengths, edit, _EDITED)
            for clean in (True, False) if edit == "add" else (False,):
                for severity in SEVERITY_NAMES:
                    values = rows.setdefault(edit_name(edit, clean, severity), {})
                    for result in results:
                        tally = result.of(marked=not clean, severity=severity)
                        values["edits"] = float(tally.edits)
                        if tally.edits:
                            values[result.similarity] = tally.ratio
        measures = {"edits": ("edits", 0), **{name: (measure_title(name), 3) for name in _EDITED}}
        return self._compared(
            "synthetic", title, measures, [_Row(name, values, self._unrated) for name, values in rows.items()]
        )

    def _sweep(self, title: str) -> Table:
        """MBR-SoftF1, and every stored metric whose spans have confidences, without the spans of low confidence."""
        rows: list[_Row] = [self._decided_row(EMPTY_ROW)]
        chosen = [self._candidates.predicted(MBR_SOFTF1, at) for at in range(len(self.test_sets))]
        missing = [matrix for matrix in chosen if isinstance(matrix, str)]
        if missing:
            rows.append(_Row(MBR_SOFTF1.name, missing="; ".join(missing)))
        else:
            rows += self._swept(MBR_SOFTF1.name, "", [matrix for matrix in chosen if not isinstance(matrix, str)])
        swept = []
        for key, stored in self._metrics.items():
            ratings = [m.ratings if m and m.ratings and _confident(m.ratings) else None for m in stored]
            spans = [r.of(t.systems, t.segments) for t, r in zip(self.test_sets, ratings, strict=True) if r]
            if not spans:
                continue
            if len(spans) == len(ratings):
                swept.append(key)
                rows += self._swept(row_name(key), _paper_name(key), spans)
            else:
                where = self._where(r is not None for r in ratings)
                rows.append(_Row(row_name(key), missing=f"error spans with confidences in {where}"))
        for name, fix in self._absent_xcomet("ESD", swept):
            rows += [_Row(sweep_name(name, threshold), missing=fix) for threshold in LAMBDAS]
        measures = {**_MEASURES, "major": ("major", 0), "minor": ("minor", 0)}
        return self._compared("lambda", title, measures, rows)

    def _swept(self, name: str, paper: str, matrices: Sequence[Matrix]) -> list[_Row]:
        """One row for each threshold; a matrix a language pair. `paper` is what the metric is in the paper, if
        anything."""
        swept = list(map(lambda_sweep, matrices))
        return [
            self._of_spans(
                sweep_name(name, threshold),
                [points[threshold] for points in swept],
                sweep_name(paper, threshold) if paper else "",
            )
            for threshold in swept[0]
        ]


def _paper_name(key: Key) -> str:
    """Name of a stored metric in the paper's tables, if it is xCOMET in one of its kinds."""
    base, uses_reference = key
    match = re.fullmatch(r"XCOMET(?:-X*L)?(?:-QE)?(?:-(Reg|ESD|ESD-Conf))?", base)
    return xcomet_name(match.group(1) or "Reg", uses_reference) if match else ""


def _confident(ratings: SpanSet) -> bool:
    """Whether there are spans and all have a confidence; one without is neither above nor below a threshold."""
    spans = [span for row in ratings.annotations.values() for a in row if a is not None for span in a]
    return bool(spans) and all(span.confidence is not None for span in spans)


def main() -> None:
    """Print the tables that are named."""
    parser = argparse.ArgumentParser(description="The paper's tables: ours, the paper's figures, the difference.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"{', '.join(TITLES)} (default: all)")
    parser.add_argument("--test-set", default="wmt24", metavar="T", help="as for `mbr-esd leaderboard` (%(default)s)")
    parser.add_argument("--lp", nargs="+", default=["en-de", "en-es", "ja-zh"], metavar="LP", help="the paper's three")
    parser.add_argument("--candidates", type=Path, metavar="FOLDER", help="with one file a model and language pair")
    parser.add_argument("--invalid", choices=["drop", "empty"], default="drop", help="as for `decide` (%(default)s)")
    parser.add_argument(
        "--bootstrap",
        choices=UNITS,
        default="segment",
        help="draws segments, or translations as the paper (%(default)s)",
    )
    parser.add_argument("--table", choices=list(TABLE_FORMATS), default="text", help="of the tables (%(default)s)")
    args = parser.parse_args()
    names = args.tables or list(TITLES)
    if wrong := set(names) - set(TITLES):
        parser.error(f"no table {', '.join(sorted(wrong))}; there are {', '.join(TITLES)}")
    if args.candidates is not None and not args.candidates.is_dir():
        parser.error(f"{args.candidates}: no such folder; give the one that holds the candidates")
    test_sets = [load_test_set(*folder_and_name(args.test_set), lp) for lp in args.lp]
    study = Study(test_sets, args.candidates, args.invalid, args.bootstrap)
    tables = [study.table(name) for name in names]
    if args.table == "text":
        tables = [block for table in tables for block in legible(table)]
    sys.stdout.write(render_all(tables, args.table))


if __name__ == "__main__":
    main()
