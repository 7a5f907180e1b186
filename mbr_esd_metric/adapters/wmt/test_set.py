"""Reads and checks one test set and direction: systems, texts, gold scores, ratings, metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mbr_esd_metric.adapters.wmt.layout import (
    Layout,
    Rating,
    default_data,
    packed_file,
    read_documents,
    read_ratings,
    read_scores,
    read_text,
)
from mbr_esd_metric.adapters.wmt.system_choice import SystemChoice
from mbr_esd_metric.adapters.wmt.test_sets import TestSetInfo, gold_there, info_of
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, unknown

Array = npt.NDArray[np.float64]
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Ratings:
    """One set of error spans over the test set: a rater's, several raters' merged, or a metric's.

    Attributes:
        name: such as "mqm.merged", "mqm.rater3" or "XCOMET-src".
        annotations: system -> for each segment its spans, None if it is unrated.
        raters: system -> for each segment who rated it, None if nobody did.
    """

    name: str
    annotations: Mapping[str, tuple[Annotation | None, ...]]
    raters: Mapping[str, tuple[str | None, ...]]

    def of(self, systems: Sequence[str], segments: int) -> list[list[Annotation | None]]:
        """The annotations, systems x segments, in this order; systems without an entry are unrated."""
        unrated: tuple[Annotation | None, ...] = (None,) * segments
        return [list(self.annotations.get(system, unrated)) for system in systems]


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
    scores: Array
    ratings: Ratings | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TestSet:
    """Data for a test set and one direction, systems sorted by name (the order matters slightly to SPA).

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
        strict: whether error spans that do not fit are an error, or cut and noted.
        lenient: whether a system without a metric's scores counts as 0, and is noted, or is an error.
        notes: what was repaired.
    """

    layout: Layout
    info: TestSetInfo
    systems: tuple[str, ...]
    sources: tuple[str, ...]
    documents: tuple[tuple[str, str], ...]
    references: Mapping[str, tuple[str | None, ...]]
    outputs: Mapping[str, tuple[str | None, ...]]
    gold: Array
    ratings: tuple[Ratings, ...]
    strict: bool = False
    lenient: bool = False
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The test set, such as "wmt24"."""
        return self.layout.test_set

    @property
    def direction(self) -> str:
        """Such as "en-de"."""
        return self.layout.direction

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
                f"{self.layout.human_rating('*')}: no human ratings of {self.name} {self.direction}; "
                "import them with: mbr-esd wmt import-mqm"
            )
        return tuple(by_name[name] for name in choose_ratings(by_name, self.info.gold, names))

    def metric_names(self) -> tuple[str, ...]:
        """Full names of the stored metrics that can be compared: see `left_out` for the others. Sorted."""
        return tuple(name for name in self.layout.metrics() if self.why_not(name) is None)

    def left_out(self) -> dict[str, str]:
        """Full name of each stored metric that is not in `metric_names` -> a line that says why."""
        segments = self.layout.metrics()
        why = {name: self.why_not(name) for name in segments}
        why |= {name: "it has no scores of segments" for name in self.layout.metrics("sys") if name not in segments}
        why |= {name: f"{file} is packed; unpack it" for name, file in self.layout.packed_metrics().items()}
        return {
            name: f"{name} is left out in {self.direction}: {reason}" for name, reason in sorted(why.items()) if reason
        }

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
            OptionError: a name that no metric has.
        """
        there = self.metric_names()
        found = {name: self.metrics_named(name) for name in names}
        for name, metrics in found.items():
            if not metrics:
                known = {*there, *(base_name(full)[0] for full in there)}
                raise unknown(f"metric of {self.name} {self.direction}", name, known)
        return tuple(dict.fromkeys(full for metrics in found.values() for full in metrics)) if names else there

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
        if name not in self.layout.metrics():
            raise unknown(f"metric of {self.name} {self.direction}", name, self.layout.metrics())
        path = self.layout.metric_scores(name, "seg")
        stored = read_scores(path)
        _check_blocks(path, stored, self.outputs, self.segments)
        notes: list[str] = []
        scores = np.zeros((len(self.systems), self.segments))
        for row, system in enumerate(self.systems):
            if system not in stored:
                if not self.lenient:
                    raise InputError(
                        f"{path}: no scores for system {system}; complete the file, or count 0 with --lenient"
                    )
                notes.append(f"{name} has no scores for {system} in {self.direction}: counted as 0")
                continue
            for column, (line, score) in enumerate(stored[system]):
                if score is None:
                    raise InputError(f"{path}, line {line}: a metric has a score for every segment")
                scores[row, column] = score
        rating_path = self.layout.metric_rating(name)
        ratings = None
        if rating_path.is_file():
            reader = _RatingsReader(self.outputs, self.systems, strict=self.strict, human=False)
            ratings = reader.read(name, rating_path)
            notes += reader.notes(f"{name}, {self.direction}")
        return StoredMetric(name, scores, ratings, tuple(notes))


def load_test_set(
    data: str | Path | None,
    test_set: str,
    direction: str,
    *,
    reference: str | None = None,
    gold: str | None = None,
    strict: bool = False,
    lenient: bool = False,
    choice: SystemChoice = SystemChoice(),  # noqa: B008
    blind: bool = False,
) -> TestSet:
    """Read a test set and direction of an mt-metrics-eval data folder; check that its files fit together.

    Args:
        data: the folder that holds the test sets; None for the folder of the toolkit's download.
        test_set: such as "wmt24".
        direction: such as "en-de".
        reference: the standard reference, if it differs from the table's (`MQM_TEST_SETS`).
        gold: the name of the gold scores, if it differs from the table's.
        strict: whether error spans that end past their translation, or are empty, are an error; else they are cut
            or left out, and a note says how many.
        lenient: whether a metric's missing systems count as 0, as in the toolkit; else they are an error.
        choice: which systems are evaluated.
        blind: whether gold may be missing, as before a task has ended; nothing is rated then.

    Raises:
        InputError: a file is missing, malformed or does not fit the others; names the file and the line.
    """
    layout = Layout(Path(data).expanduser() if data is not None else default_data(), test_set, direction)
    info = info_of(test_set, direction)
    info = replace(info, standard_reference=reference or info.standard_reference, gold=gold or info.gold)
    if gold:
        info = replace(info, system_gold=None)
    _check_folders(layout)
    notes: list[str] = []
    if not gold and not layout.human_scores(info.gold, "seg").is_file():
        instead = gold_there(layout.human_score_names("seg"))
        if instead is not None:
            notes.append(f"no gold scores {info.gold} in {direction}: {instead} take their place")
            info = replace(info, gold=instead, system_gold=None)
    sources = _texts(layout.source(), "source", None)
    documents = read_documents(layout.documents)
    _check_count(layout.documents, len(documents), len(sources))
    references = {n: _texts(p, "target", len(sources)) for n, p in layout.references().items()}
    outputs = {n: _texts(p, "hypothesis", len(sources)) for n, p in layout.outputs().items()}
    if not outputs:
        raise InputError(f"{layout.output('*').parent}: no system outputs; give one .txt file a system")
    there = ", ".join(references) or "none"
    if reference is not None and reference not in references:
        raise InputError(
            f"{layout.root / 'references'}: no reference {reference!r} for {direction}; there are: {there}; "
            "name it with --reference"
        )
    usual = info.standard_reference
    if usual not in references:
        # Error spans and metrics without a reference need none.
        info = replace(info, standard_reference=next(iter(references)) if len(references) == 1 else None)
        if usual is not None:
            only = info.standard_reference
            instead = f"{only} takes its place" if only else "no metric with a reference is compared"
            notes.append(f"no reference {usual} in {direction} (there are: {there}): {instead}")
    if blind and not layout.human_scores(info.gold, "seg").is_file():
        systems = tuple(system for system in outputs if choice.takes(system, info, references))
        gold_scores = np.full((len(systems), len(sources)), np.nan)
    else:
        systems, gold_scores = _gold(layout, info, outputs, references, len(sources), choice)
    # A merged set has the single raters' spans again: the notes count those that are evaluated.
    files = layout.human_ratings()
    evaluated = choose_ratings(files, info.gold)
    reader, others = (_RatingsReader(outputs, systems, strict=strict, human=True) for _ in range(2))
    ratings = tuple((reader if name in evaluated else others).read(name, path) for name, path in files.items())
    return TestSet(
        layout,
        info,
        systems,
        tuple(text or "" for text in sources),
        tuple(documents),
        references,
        outputs,
        gold_scores,
        ratings,
        strict,
        lenient,
        (*notes, *reader.notes(f"people, {direction}")),
    )


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
    """A metric's full name without the reference, and whether it uses one. This pair names it in every direction."""
    base, _, reference = metric.rpartition("-")
    return base, reference != "src"


def references_of(metric: str, references: Sequence[str]) -> set[str | None]:
    """The references that a metric's full name says it used; none for "src", all for "all"."""
    used = metric.rsplit("-", 1)[-1]
    if used == "src":
        return set()
    return set(references) if used == "all" else set(used.split("."))


def _check_folders(layout: Layout) -> None:
    if not layout.root.is_dir():
        sets = sorted(path.name for path in layout.data.glob("*") if path.is_dir())
        there = f"there are {', '.join(sets)}" if sets else "the data folder is empty or missing"
        if "sources" in sets:
            raise InputError(
                f"{layout.root}: no such test set; {layout.data} is a test set itself: --data is the folder above it"
            )
        raise InputError(
            f"{layout.root}: no such test set; {there}; say where the data is with --data; the "
            "published test sets come with mt-metrics-eval: mtme --download"
        )
    if not layout.source().is_file():
        if packed := packed_file(layout.source()):
            raise InputError(f"{packed}: files of a test set are plain text; unpack it")
        files = (layout.root / "sources").glob("*.[tj][xs]*")
        there = ", ".join(sorted({path.name.split(".")[0] for path in files})) or "none"
        raise InputError(f"{layout.source()}: no such file; directions of {layout.test_set}: {there}")


def _texts(path: Path, field: str, count: int | None) -> tuple[str | None, ...]:
    segments = read_text(path, field)
    if count is not None:
        _check_count(path, len(segments), count)
    elif not segments:
        raise InputError(f"{path}: the file is empty")
    return tuple(segments)


def _check_count(path: Path, lines: int, segments: int) -> None:
    if lines != segments:
        raise InputError(f"{path}, line {min(lines, segments) + 1}: {lines} lines, but {segments} source segments")


def _check_blocks(
    path: Path,
    blocks: Mapping[str, Sequence[tuple[int, _T]]],
    outputs: Mapping[str, object],
    segments: int,
) -> None:
    """Check that every block of (line, entry) belongs to a known system and has an entry for each segment."""
    for system, entries in blocks.items():
        where = f"{path}, line {entries[-1][0]}"
        if system not in outputs:
            raise InputError(f"{where}: the folder has no translations of system {system}")
        if len(entries) != segments:
            raise InputError(f"{where}: {len(entries)} entries for system {system}, but {segments} segments")


def _gold(
    layout: Layout,
    info: TestSetInfo,
    outputs: Mapping[str, object],
    references: Collection[str],
    segments: int,
    choice: SystemChoice,
) -> tuple[tuple[str, ...], Array]:
    path = layout.human_scores(info.gold, "seg")
    if not path.is_file():
        there = ", ".join(layout.human_score_names("seg"))
        mend = "choose with --gold" if there else "import human ratings first: mbr-esd wmt import-mqm, or import-esa"
        raise InputError(f"{path}: no such gold scores; there are: {there or 'none'}; {mend}")
    stored = read_scores(path)
    _check_blocks(path, stored, outputs, segments)
    rated = [system for system in sorted(stored) if any(score is not None for _, score in stored[system])]
    systems = tuple(system for system in rated if choice.takes(system, info, references))
    if not systems:
        raise InputError(
            f"{path}: of the systems with a gold score ({', '.join(rated) or 'none'}) none is evaluated; choose with "
            "--systems, --exclude, --outliers and --human"
        )
    scores = [[np.nan if score is None else score for _, score in stored[system]] for system in systems]
    return systems, np.array(scores, dtype=np.float64)


class _RatingsReader:
    """Reads sets of error spans that fit a test set. Those of systems that are not evaluated are not checked.

    Args:
        outputs: every system -> its translations.
        systems: those that are evaluated.
        strict: whether a span that does not fit is an error.
        human: whether people marked the spans.
    """

    def __init__(
        self, outputs: Mapping[str, tuple[str | None, ...]], systems: Sequence[str], *, strict: bool, human: bool
    ) -> None:
        self._outputs, self._systems, self._strict, self._human = outputs, set(systems), strict, human
        self._cut = self._left_out = self._rated = 0

    def read(self, name: str, path: Path) -> Ratings:
        """The set in a file.

        Raises:
            InputError: what `read_ratings` raises, blocks that do not fit, and if strict a span that does not.
        """
        stored = read_ratings(path, human=self._human)
        _check_blocks(path, stored, self._outputs, len(next(iter(self._outputs.values()))))
        annotations: dict[str, tuple[Annotation | None, ...]] = {}
        for system, entries in stored.items():
            lengths = [len(text or "") for text in self._outputs[system]]
            annotations[system] = tuple(
                None if rating is None else self._fitted(system, rating, length, f"{path}, line {line}")
                for (line, rating), length in zip(entries, lengths, strict=True)
            )
        raters = {s: tuple((r.rater or name) if r else None for _, r in entries) for s, entries in stored.items()}
        return Ratings(name, annotations, raters)

    def notes(self, whose: str) -> tuple[str, ...]:
        """One line if spans were cut or left out while reading; otherwise nothing."""
        said = []
        if self._cut:
            said.append(f"{self._cut} end past the translation and are cut there")
        if self._left_out:
            said.append(f"{self._left_out} begin past it or have no characters and are no spans")
        return (f"error spans of {whose} in {self._rated} translations: {', '.join(said)}",) if said else ()

    def _fitted(self, system: str, rating: Rating, length: int, where: str) -> Annotation:
        if system not in self._systems:
            return rating.annotation
        if self._strict:
            try:
                rating.annotation.check_length(length)
            except InputError as error:
                raise InputError(f"{where}: system {system}: {error}; without --strict it is cut") from None
            if rating.annotation.points:
                raise InputError(f"{where}: system {system}: an empty error span; without --strict it is left out")
        self._rated += 1
        self._left_out += len(rating.annotation.points) + sum(span.start >= length for span in rating.annotation)
        self._cut += sum(span.start < length < span.end for span in rating.annotation)
        return fitted(rating.annotation, length, human=self._human)


def fitted(annotation: Annotation, length: int, *, human: bool) -> Annotation:
    """The spans that begin inside a text of that length, cut at its end.

    A span that begins at the end of the text has no character left, and becomes a point. `human` keeps two equal spans.
    """
    if all(span.end <= length for span in annotation) and all(at <= length for at, _ in annotation.points):
        return annotation
    inside = [replace(span, end=min(span.end, length)) for span in annotation if span.start < length]
    points = [point for point in annotation.points if point[0] <= length]
    points += [(length, span.severity) for span in annotation if span.start == length]
    return (Annotation.of_rater(inside) if human else Annotation(inside)).pointing(points)
