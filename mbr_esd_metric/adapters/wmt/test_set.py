"""A test set in one language pair: systems, texts, gold scores, ratings and metrics; and its conversion to a
`MetricSet`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.wmt.layout import (
    Layout,
    SystemChoice,
    TestSetInfo,
    base_name,
    default_data,
    info_of,
    preferred_gold,
    read_documents,
    read_scores,
    read_text,
    references_of,
)
from mbr_esd_metric.adapters.wmt.rating_files import SpanSet, choose_ratings, fault_note, read_ratings
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.kernels import Floats
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.messages import first_of
from mbr_esd_metric.metaeval.metric_set import MetricEntry, MetricSet


@dataclass(frozen=True, eq=False)
class StoredMetric:
    """A metric stored in the folder, identified by its full name, such as "XCOMET-refA".

    Attributes:
        scores: evaluated systems x segments, higher is better.
        ratings: its error spans, None if it has none.
        notes: repairs made while reading.
        of_systems: one score per system, if requested and in the folder.
        settings: the model and its signature, if recorded in a file.
    """

    name: str
    scores: Floats
    ratings: SpanSet | None
    notes: tuple[str, ...] = ()
    settings: Settings = Settings()
    of_systems: Floats | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class TestSet:
    """A test set in one language pair; systems are sorted by name, because their order slightly affects SPA.

    Attributes:
        info: standard reference, outliers, name of the gold scores.
        systems: the evaluated systems; by default, all except the standard reference, outliers and systems without
            gold; see `SystemChoice`.
        documents: (domain, document) of each segment.
        references: reference name -> its segments; None for missing texts.
        outputs: every system, evaluated or not -> its translations; None for missing ones.
        gold: evaluated systems x segments, 0 best and negative worse, NaN if unrated.
        ratings: the human ratings, sorted by name.
        notes: what was repaired.
        added: full name -> metric that is not in the folder, or the reason why its file cannot be read.
    """

    layout: Layout
    info: TestSetInfo
    systems: tuple[str, ...]
    sources: tuple[str, ...]
    documents: tuple[tuple[str, str], ...]
    references: Mapping[str, tuple[str | None, ...]]
    outputs: Mapping[str, tuple[str | None, ...]]
    gold: Floats
    ratings: tuple[SpanSet, ...]
    notes: tuple[str, ...] = ()
    added: Mapping[str, StoredMetric | InputError] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"TestSet({self.name} {self.lp}: {len(self.systems)} systems, {self.segments} segments)"

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

    def human_ratings(self, names: Sequence[str] = ()) -> tuple[SpanSet, ...]:
        """The gold spans chosen by `choose_ratings`; raises `InputError` if there are no human ratings."""
        by_name = {ratings.name: ratings for ratings in self.ratings}
        if not by_name:
            raise InputError(
                f"{self.layout.human_file('*', 'seg.rating')}: no human ratings of {self.name} {self.lp}; "
                "import them with: mbr-esd wmt import"
            )
        return tuple(by_name[name] for name in choose_ratings(by_name, self.info.gold, names))

    def human(self, names: Sequence[str] = ()) -> list[list[list[Annotation | None]]]:
        """The spans of each of the `human_ratings`, evaluated systems x segments; empty if there are no human ratings
        and none are requested."""
        sets = self.human_ratings(names) if names or self.ratings else ()
        return [ratings.of(self.systems, self.segments) for ratings in sets]

    def _metrics(self, of_systems: bool) -> dict[str, str]:
        """Full name of each metric, sorted -> the reason why it cannot be compared with the others, or ""."""
        segments = {*self.layout.metrics(), *self.added}
        reasons = {}
        for name in sorted({*segments, *self.layout.metrics("sys.score")}):
            why = self._wrong_reference(name)
            if not why and name not in segments and not of_systems:
                why = "it has no segment scores"
            reasons[name] = why
        return reasons

    def _left_out(self, reasons: Mapping[str, str]) -> list[str]:
        """One line about the metrics omitted for each reason."""
        names: dict[str, list[str]] = {}
        for name, why in reasons.items():
            names.setdefault(why, []).append(name)
        groups = [
            f"{of[0]} is left out in {self.lp}: {why}"
            if len(of) == 1
            else f"{first_of(of)} are left out in {self.lp}: {why.replace('it uses', 'they use')}"
            for why, of in names.items()
        ]
        return [first_of(groups, between="; ")] if groups else []

    def _wrong_reference(self, metric: str) -> str:
        used, standard = references_of(metric, tuple(self.references)), self.info.standard_reference
        if evaluated := sorted(name for name in used if name in self.systems):
            return f"it uses {', '.join(evaluated)}, evaluated as a system here"
        if used <= {standard}:
            return ""
        other = f"the standard reference is {standard}" if standard else "there is no standard reference"
        return f"it uses {', '.join(sorted(name or '' for name in used))}, and {other} (choose with --reference)"

    def find_metrics(self, names: Sequence[str] = (), *, of_systems: bool = False) -> tuple[str, ...]:
        """Full names of the comparable metrics, sorted, optionally only those with the given full or base names; with
        `of_systems`, including metrics that only score systems."""
        reasons = self._metrics(of_systems)
        usable = [name for name, why in reasons.items() if not why]
        chosen: list[str] = []
        for name in names:
            called = [full for full in reasons if name in (full, base_name(full)[0])]
            metrics = [full for full in called if full in usable]
            metrics = [full for full in metrics if full in self.added] or metrics  # a file that has this name
            if not metrics and called:
                raise InputError(*self._left_out({full: reasons[full] for full in called}))
            if not metrics:
                known = {*usable, *(base_name(full)[0] for full in usable)}
                raise unknown(f"metric of {self.name} {self.lp}", name, known)
            chosen += metrics
        return tuple(dict.fromkeys(chosen if names else usable))

    def read_metrics(
        self, names: Sequence[str] = (), *, of_systems: bool = False, with_spans: bool = False, partial: bool = False
    ) -> tuple[list[StoredMetric], list[str]]:
        """The metrics of `find_metrics` with segment scores, and notes about them. Metrics with unreadable files are
        omitted, with a note; so are, with `with_spans`, those without error spans, unless given explicitly. Raises
        `InputError` for an explicitly given metric without spans, or if none of the given metrics can be read. Error
        spans for only some systems are not comparable, and omitted with a note, unless `partial`."""
        metrics: list[StoredMetric] = []
        notes: list[str] = []
        left_out = {
            name: why
            for name, why in ({} if names else self._metrics(of_systems)).items()
            if why and (not with_spans or self.layout.metric_file(name, "seg.rating").is_file())
        }
        for name in self.find_metrics(names, of_systems=of_systems):
            if name not in self.added and not self.layout.metric_file(name, "seg.score").is_file():
                continue
            try:
                metric = self.metric(name, of_systems=of_systems)
            except InputError as error:
                left_out[name] = str(error)
                continue
            if not partial and (why := self._partial_spans(metric)):
                metric = replace(metric, ratings=None, notes=(why,))
                if names and with_spans:
                    raise InputError(why)
                notes += [why] if with_spans else []
            if not with_spans or metric.ratings is not None:
                metrics.append(metric)
                notes += metric.notes
            elif names:
                where = "" if name in self.added else f"{self.layout.metric_file(name, 'seg.rating')}: no such file; "
                raise InputError(f"{where}{name} has no error spans")
        line = self._left_out(left_out)
        if names and line and not metrics and not of_systems:
            raise InputError(*line)
        return metrics, [*line, *notes]

    def _partial_spans(self, metric: StoredMetric) -> str | None:
        """A line about a metric with error spans for only some of the human-rated systems; otherwise None."""
        if metric.ratings is None:
            return None

        def with_spans_of(*sets: SpanSet) -> list[str]:
            return [
                one for one in self.systems if any(cell is not None for of in sets for cell in of.both.get(one, ()))
            ]

        with_spans = with_spans_of(metric.ratings)
        rated = with_spans_of(*self.human_ratings()) if self.ratings else self.systems
        if not with_spans or {*rated} <= {*with_spans}:
            return None
        return (
            f"{metric.name} has error spans of {len(with_spans)} of {len(self.systems)} systems in {self.lp}, and they "
            f"are not compared; --systems {' '.join(with_spans)} compares them"
        )

    def read_metrics_of_systems(self, names: Sequence[str] = ()) -> tuple[dict[str, Floats | None], list[str]]:
        """Full name -> scores of the metrics of `find_metrics` that only score systems, None if a system's score is
        missing; and a line about unreadable files."""
        scores, left_out = {}, {}
        for name in self.find_metrics(names, of_systems=True):
            if name not in self.added and not self.layout.metric_file(name, "seg.score").is_file():
                try:
                    scores[name] = _metric_of_systems(self, name)
                except InputError as error:
                    left_out[name] = str(error)
        return scores, self._left_out(left_out)

    def signature(self, metric: str) -> Signature | None:
        """The signature of a stored metric, or None."""
        if metric in self.added:
            added = self.added[metric]
            return None if isinstance(added, InputError) else added.settings.signature
        if not (path := self.layout.metric_file(metric, "signature")).is_file():
            return None
        return Signature.parse(path.read_text(encoding="utf-8").strip())

    def metric(self, name: str, *, of_systems: bool = False) -> StoredMetric:
        """Read a stored metric. Raises `InputError`, with file and line, if its files do not fit the test set, and
        `OptionError` for an unknown metric."""
        if name in self.added:
            added = self.added[name]
            if isinstance(added, InputError):
                raise added
            return added
        if name not in self.layout.metrics():
            raise unknown(f"metric of {self.name} {self.lp}", name, self.layout.metrics())
        scores = self.scores_of(self.layout.metric_file(name, "seg.score"))
        systems = _metric_of_systems(self, name) if of_systems else None
        if not self.layout.metric_file(name, "seg.rating").is_file():
            return StoredMetric(name, scores, None, of_systems=systems)
        faults: Counter[str] = Counter()
        rows = read_ratings(self.layout.metric_file(name, "seg.rating"), self.outputs)
        ratings = SpanSet.fitting(name, rows, self.outputs, faults, self.systems)
        return StoredMetric(name, scores, ratings, fault_note(f"{name}, {self.lp}", faults), of_systems=systems)

    def scores_of(self, path: Path) -> Floats:
        """The scores in a file of the layout, evaluated systems x segments. Raises `InputError` if a system or the
        score of a rated segment is missing."""
        stored = read_scores(path, self.outputs)
        scores = np.zeros((len(self.systems), self.segments))
        for row, system in enumerate(self.systems):
            if system not in stored:
                raise InputError(f"{path}: no scores for system {system}; score all systems, or leave it out")
            scores[row] = stored[system]  # None becomes NaN
            missing = np.flatnonzero(np.isnan(scores[row]) & ~np.isnan(self.gold[row]))
            if missing.size:
                raise InputError(f"{path}: no score of system {system} for segment {missing[0] + 1}, which is rated")
        return scores


def load_test_set(
    data: str | Path | None,
    test_set: str,
    lp: str,
    *,
    reference: str | None = None,
    gold: str | None = None,
    choice: SystemChoice = SystemChoice(),  # noqa: B008
    blind: bool = False,
) -> TestSet:
    """Read a test set and language pair of an mt-metrics-eval data folder; check that its files fit together.

    Args:
        data: the folder that holds the test sets; None for the folder of the toolkit's download.
        test_set, lp: such as "wmt24" and "en-de".
        reference, gold: the standard reference, and the name of the gold scores; by default those in `TEST_SETS`.
        choice: the evaluated systems.
        blind: whether gold may be missing, as before a task has ended; nothing is rated then.

    Raises:
        InputError: a file is missing, malformed, or inconsistent with others (with file and line).
    """
    layout = Layout(Path(data).expanduser() if data is not None else default_data(), test_set, lp)
    _check_folders(layout)
    notes: list[str] = []
    info = _info(layout, gold, notes)
    sources = read_text(layout.source(), "source")
    if not sources:
        raise InputError(f"{layout.source()}: the file is empty")
    documents = read_documents(layout.documents, len(sources))
    references = {n: read_text(p, "target", len(sources)) for n, p in layout.references().items()}
    outputs = {n: read_text(p, "hypothesis", len(sources)) for n, p in layout.outputs().items()}
    if not outputs:
        raise InputError(f"{layout.output('*').parent}: no system outputs; give one .txt file per system")
    info = replace(info, standard_reference=_standard(layout, info, reference, references, notes))
    if blind and not layout.human_file(info.gold, "seg.score").is_file():
        systems = tuple(system for system in outputs if choice.takes(system, info))
        gold_scores = np.full((len(systems), len(sources)), np.nan)
    else:
        systems, gold_scores = _gold(layout, info, outputs, choice)
    # A merged set repeats the raters' spans, so notes only count the evaluated sets.
    files = layout.human_files("seg.rating")
    evaluated = choose_ratings(files, info.gold)
    faults: Counter[str] = Counter()
    ratings = tuple(
        SpanSet.fitting(name, read_ratings(path, outputs), outputs, faults if name in evaluated else Counter(), systems)
        for name, path in files.items()
    )
    return TestSet(
        layout=layout,
        info=info,
        systems=systems,
        sources=tuple(text or "" for text in sources),
        documents=documents,
        references=references,
        outputs=outputs,
        gold=gold_scores,
        ratings=ratings,
        notes=(*notes, *fault_note(f"people, {lp}", faults, of_people=True)),
    )


def _info(layout: Layout, gold: str | None, notes: list[str]) -> TestSetInfo:
    """The metadata of the test set, with the requested or available gold scores."""
    info = info_of(layout.test_set, layout.lp)
    if gold:
        return replace(info, gold=gold)
    if not layout.human_file(info.gold, "seg.score").is_file():
        instead = preferred_gold(layout.human_files("seg.score"))
        if instead is not None:
            notes.append(f"no gold scores {info.gold} in {layout.lp}: {instead} are used instead")
            return replace(info, gold=instead)
    return info


def _standard(
    layout: Layout, info: TestSetInfo, reference: str | None, references: Collection[str], notes: list[str]
) -> str | None:
    """The standard reference: the requested one, or else the usual one, or else the first."""
    names = ", ".join(references) or "none"
    if reference is not None and reference not in references:
        raise InputError(
            f"{layout.root / 'references'}: no reference {reference!r} for {layout.lp}; there are: {names}; "
            "name it with --reference"
        )
    usual = reference or info.standard_reference
    if usual in references:
        return usual
    # Error spans and metrics without a reference need none.
    first = next(iter(sorted(references)), None)
    if usual is not None:
        instead = f"{first} is used instead" if first else "no metric with a reference is compared"
        notes.append(f"no reference {usual} in {layout.lp} (there are: {names}): {instead}")
    return first


def _check_folders(layout: Layout) -> None:
    if not layout.root.is_dir():
        sets = sorted(path.name for path in layout.data.glob("*") if path.is_dir())
        listing = f"there are {', '.join(sets)}" if sets else f"{layout.data} is empty or missing"
        raise InputError(
            f"{layout.root}: no such test set; {listing}; name its folder, such as --test-set data/wmt24; the "
            "published test sets come with mt-metrics-eval (mtme --download), ratings of your own by mbr-esd wmt import"
        )
    if not layout.source().is_file():
        files = (layout.root / "sources").glob("*.[tj][xs]*")
        pairs = ", ".join(sorted({path.name.split(".")[0] for path in files})) or "none"
        raise InputError(f"{layout.source()}: no such file; language pairs of {layout.test_set}: {pairs}")


def _gold(
    layout: Layout, info: TestSetInfo, outputs: Mapping[str, Sized], choice: SystemChoice
) -> tuple[tuple[str, ...], Floats]:
    path = layout.human_file(info.gold, "seg.score")
    if not path.is_file():
        names = ", ".join(layout.human_files("seg.score"))
        fix = "`mbr-esd leaderboard --gold` takes one" if names else "import human ratings first: mbr-esd wmt import"
        raise InputError(f"{path}: no such gold scores; there are: {names or 'none'}; {fix}")
    stored = read_scores(path, outputs)
    rated = [system for system in sorted(stored) if any(score is not None for score in stored[system])]
    systems = tuple(system for system in rated if choice.takes(system, info))
    if not systems:
        raise InputError(
            f"{path}: of the systems with a gold score ({', '.join(rated) or 'none'}) none is evaluated; name "
            "those that are with --systems"
        )
    return systems, np.array([stored[system] for system in systems], dtype=np.float64)


def metric_set_of(
    test_set: TestSet,
    metrics: Sequence[str] = (),
    raters: Sequence[str] = (),
    *,
    of_systems: bool = False,
    with_spans: bool = False,
) -> MetricSet:
    """The stored metrics, gold scores and human spans, as input of leaderboards, statistics and WMT's tasks.

    Args:
        metrics: full or base names; empty for all.
        raters: sets of human ratings, as for `choose_ratings`.
        of_systems: include system scores, gold scores of documents, and metrics that only score systems.
        with_spans: only metrics with error spans.

    Raises:
        InputError: an inconsistent file, or no metric.
        OptionError: an unknown name.
    """
    layout, gold = test_set.layout, test_set.info.gold
    stored, notes = test_set.read_metrics(metrics, of_systems=of_systems, with_spans=with_spans)
    entries = [
        MetricEntry(
            *base_name(metric.name),
            metric.scores,
            metric.ratings.of(test_set.systems, test_set.segments) if metric.ratings else None,
            test_set.signature(metric.name),
            metric.of_systems,
        )
        for metric in stored
    ]
    if of_systems:
        alone, line = test_set.read_metrics_of_systems(metrics)
        entries += [MetricEntry(*base_name(name), None, of_systems=scores) for name, scores in alone.items()]
        notes += line
    if not entries and metrics:
        raise InputError("; ".join(notes))
    if not entries:
        raise InputError(
            f"{layout.metric_file('*', 'seg.rating')}: no metric of {test_set.lp} has error spans"
            if with_spans
            else f"{layout.metric_file('*', 'seg.score')}: no metric has segment scores; "
            f"score some with: mbr-esd wmt score{''.join(f'; {line}' for line in notes)}"
        )
    documents = tuple(document for _, document in test_set.documents)
    return MetricSet(
        test_set.lp,
        test_set.gold,
        test_set.lengths,
        test_set.human(raters),
        sorted(entries, key=lambda entry: entry.key),
        (*test_set.notes, *notes),
        documents,
        _system_scores(test_set, layout.human_file(gold, "sys.score")) if of_systems else None,
        _stored(test_set, layout.human_file(gold, "doc.score"), len(set(documents))) if of_systems else None,
    )


def _metric_of_systems(test_set: TestSet, name: str) -> Floats | None:
    """A metric's system scores, None if one is missing; raises `InputError` for a score that is not a number."""
    path = test_set.layout.metric_file(name, "sys.score")
    scores = _system_scores(test_set, path)
    if scores is not None and np.isnan(scores).any():
        raise InputError(f"{path}: no score of system {test_set.systems[int(np.isnan(scores).argmax())]}")
    return scores


def _system_scores(test_set: TestSet, path: Path) -> Floats | None:
    stored = _stored(test_set, path, 1)
    return None if stored is None else stored[:, 0]


def _stored(test_set: TestSet, path: Path, count: int) -> Floats | None:
    """Evaluated systems x `count` scores from the folder; None if a system's scores are missing."""
    stored = read_scores(path)
    if not all(system in stored for system in test_set.systems):
        return None
    for system in test_set.systems:
        if len(stored[system]) != count:
            raise InputError(f"{path}: {system} has {len(stored[system])} scores, not {count}")
    return np.array([stored[system] for system in test_set.systems], dtype=np.float64)
