"""One test set and language pair: systems, texts, gold scores, ratings, metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.wmt.layout import Layout, read_scores
from mbr_esd_metric.adapters.wmt.meta_info import TestSetInfo
from mbr_esd_metric.adapters.wmt.rating_files import Ratings, RatingsReader, check_blocks
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.metaeval.matrices import FloatMatrix


@dataclass(frozen=True, eq=False)
class StoredMetric:
    """A metric as stored in the folder.

    Attributes:
        name: full name, such as "XCOMET-refA".
        scores: evaluated systems x segments, higher is better.
        ratings: its error spans, None if it has none.
        notes: what was repaired while reading.
    """

    name: str
    scores: FloatMatrix
    ratings: Ratings | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class TestSet:
    """Data for a test set and one language pair, systems sorted by name (the order matters slightly to SPA).

    Attributes:
        layout: its files.
        info: standard reference, outliers, name of the gold scores.
        systems: those that are evaluated: by default all but the standard reference, outliers and systems without
            gold; see `SystemChoice`.
        sources: the source segments.
        documents: (domain, document) of each segment.
        references: reference name -> its segments; None if there is no text.
        outputs: every system, evaluated or not -> its translations; None if it gave none.
        gold: evaluated systems x segments, 0 best and negative worse, NaN if unrated.
        ratings: the human ratings, sorted by name.
        notes: what was repaired.
        added: metrics that are not in the folder, by full name.
    """

    layout: Layout
    info: TestSetInfo
    systems: tuple[str, ...]
    sources: tuple[str, ...]
    documents: tuple[tuple[str, str], ...]
    references: Mapping[str, tuple[str | None, ...]]
    outputs: Mapping[str, tuple[str | None, ...]]
    gold: FloatMatrix
    ratings: tuple[Ratings, ...]
    notes: tuple[str, ...] = ()
    added: Mapping[str, StoredMetric] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The test set, such as "wmt24"."""
        return self.layout.test_set

    @property
    def lp(self) -> str:
        """Such as "en-de"."""
        return self.layout.lp

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len(self.sources)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Evaluated systems x segments: characters of each translation, 0 if there is none."""
        return np.array([[len(text or "") for text in self.outputs[s]] for s in self.systems], np.int64)

    def human_ratings(self, names: Sequence[str] = ()) -> tuple[Ratings, ...]:
        """The gold spans: the named sets, else the merged set if there is one, else every rater's.

        Raises:
            InputError: there are no human ratings at all.
            OptionError: a name that is not there.
        """
        by_name = {ratings.name: ratings for ratings in self.ratings}
        if not by_name:
            raise InputError(
                f"{self.layout.human_rating('*')}: no human ratings of {self.name} {self.lp}; "
                "import them with: mbr-esd wmt import"
            )
        return tuple(by_name[name] for name in choose_ratings(by_name, self.info.gold, names))

    def human(self, names: Sequence[str] = ()) -> dict[str, list[list[Annotation | None]]]:
        """Name of each set of `human_ratings` -> its spans, evaluated systems x segments.

        Empty if there are no human ratings and none are named.
        """
        found = self.human_ratings(names) if names or self.ratings else ()
        return {ratings.name: ratings.of(self.systems, self.segments) for ratings in found}

    def metric_names(self) -> tuple[str, ...]:
        """Full names of the metrics that can be compared: see `left_out` for the others. Sorted."""
        return tuple(name for name in sorted({*self.layout.metrics(), *self.added}) if self.why_not(name) is None)

    def left_out(self) -> dict[str, str]:
        """Full name of each stored metric that is not in `metric_names` -> a line that says why."""
        segments = self.layout.metrics()
        why = {name: self.why_not(name) for name in segments}
        why |= {name: "it has no scores of segments" for name in self.layout.metrics("sys") if name not in segments}
        why |= {name: f"{file} is packed; unpack it" for name, file in self.layout.packed_metrics().items()}
        return {name: f"{name} is left out in {self.lp}: {reason}" for name, reason in sorted(why.items()) if reason}

    def why_not(self, metric: str) -> str | None:
        """Why a metric with segment scores cannot be compared with the others; None if it can."""
        used = references_of(metric, tuple(self.references))
        standard = self.info.standard_reference
        if own := sorted(name for name in used if name in self.systems):
            return f"it uses {', '.join(own)}, evaluated as a system here"
        if used <= {standard}:
            return None
        other = f"the standard reference is {standard}" if standard else "there is no standard reference"
        return f"it uses {', '.join(sorted(name or '' for name in used))}, and {other} (choose with --reference)"

    def metrics_named(self, name: str) -> tuple[str, ...]:
        """Those of `metric_names` that have this full or base name; two where one of them uses a reference."""
        return tuple(full for full in self.metric_names() if name in (full, base_name(full)[0]))

    def find_metrics(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """Those of `metric_names` that have one of these full or base names; all where none is given.

        Raises:
            InputError: a metric that is there but cannot be compared.
            OptionError: a name that no metric has.
        """
        there = self.metric_names()
        found = {name: self.metrics_named(name) for name in names}
        for name, metrics in found.items():
            if not metrics:
                if why := self.why_left_out(name):
                    raise InputError(why)
                known = {*there, *(base_name(full)[0] for full in there)}
                raise unknown(f"metric of {self.name} {self.lp}", name, known)
        return tuple(dict.fromkeys(full for metrics in found.values() for full in metrics)) if names else there

    def why_left_out(self, name: str) -> str:
        """The reasons why metrics of this full or base name are not in `metric_names`; "" where there are none."""
        lines = self.left_out().items()
        return "; ".join(line for full, line in lines if name in (full, base_name(full)[0]))

    def read_metrics(self, names: Sequence[str] = ()) -> tuple[list[StoredMetric], list[str]]:
        """The metrics of `find_metrics`, and what a reader has to know of them, a line each.

        Where none is named, a metric whose files cannot be read is left out with a line that says why.

        Raises:
            InputError: a named metric cannot be read.
            OptionError: a name that no metric has.
        """
        metrics: list[StoredMetric] = []
        notes = [] if names else list(self.left_out().values())
        for name in self.find_metrics(names):
            try:
                metrics.append(self.metric(name))
            except InputError as error:
                if names:
                    raise
                notes.append(f"{name} is left out in {self.lp}: {error}")
            else:
                notes += metrics[-1].notes
        return metrics, notes

    def metrics_with_spans(self, names: Sequence[str] = ()) -> tuple[list[tuple[StoredMetric, Ratings]], list[str]]:
        """The metrics of `read_metrics` that have error spans, and the lines about them.

        Raises:
            InputError: a metric that is named has no error spans.
        """
        metrics, notes = self.read_metrics(names)
        for metric in metrics:
            if names and metric.ratings is None:
                raise InputError(
                    f"{self.layout.metric_rating(metric.name)}: no such file; {metric.name} has no error spans"
                )
        if not names:
            spanless = {name for name in self.left_out() if not self.layout.metric_rating(name).is_file()}
            notes = [note for note in notes if note.partition(" is left out in ")[0] not in spanless]
        return [(metric, metric.ratings) for metric in metrics if metric.ratings is not None], notes

    def signature(self, metric: str) -> str | None:
        """The signature of a stored metric, which says what its scores depend on; None if the folder has none."""
        path = self.layout.metric_signature(metric)
        return path.read_text(encoding="utf-8").strip() if path.is_file() else None

    def metric(self, name: str) -> StoredMetric:
        """Read a stored metric.

        Raises:
            InputError: its files do not fit the test set; names file and line.
            OptionError: no such metric.
        """
        if name in self.added:
            return self.added[name]
        if name not in self.layout.metrics():
            raise unknown(f"metric of {self.name} {self.lp}", name, self.layout.metrics())
        path = self.layout.metric_scores(name, "seg")
        stored = read_scores(path)
        check_blocks(path, stored, self.outputs, self.segments)
        notes: list[str] = []
        scores = np.zeros((len(self.systems), self.segments))
        for row, system in enumerate(self.systems):
            if system not in stored:
                raise InputError(f"{path}: no scores for system {system}; complete the file, or leave the system out")
            for column, (line, score) in enumerate(stored[system]):
                if score is None and not np.isnan(self.gold[row, column]):
                    raise InputError(f"{path}, line {line}: a metric has a score for every segment that is rated")
                scores[row, column] = np.nan if score is None else score
        rating_path = self.layout.metric_rating(name)
        ratings = None
        if rating_path.is_file():
            reader = RatingsReader(self.outputs, self.systems, repeats=True)
            ratings = reader.read(name, rating_path)
            notes += reader.notes(f"{name}, {self.lp}")
        return StoredMetric(name, scores, ratings, tuple(notes))


def choose_ratings(there: Collection[str], gold: str, names: Sequence[str] = ()) -> list[str]:
    """The names of the gold spans: the given ones, else the merged set if there is one, else every rater's.

    If there are spans of several kinds, such as MQM and ESA, those of the same kind as the gold scores count.

    Raises:
        OptionError: a name that is not there.
    """
    for name in names:
        if name not in there:
            raise unknown("set of human ratings", name, there)
    merged = f"{gold}.merged"
    if names or merged in there:
        return list(names) or [merged]
    alike = sorted(name for name in there if name.startswith((f"{gold}.", f"{gold}-")))
    return alike or sorted(there)


def base_name(metric: str) -> tuple[str, bool]:
    """A metric's full name without the reference, and whether it uses one. The two name it in every language pair."""
    base, _, reference = metric.rpartition("-")
    return base, reference != "src"


def references_of(metric: str, references: Sequence[str]) -> set[str | None]:
    """The references that a metric's full name says it used; none for "src", all for "all"."""
    used = metric.rsplit("-", 1)[-1]
    if used == "src":
        return set()
    return set(references) if used == "all" else set(used.split("."))
