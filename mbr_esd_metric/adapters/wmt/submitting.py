"""Writes a stored metric as a submission to one of WMT's tasks, and reads a submission as a stored metric."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from mbr_esd_metric._version import __version__
from mbr_esd_metric.adapters.wmt.layout import read_scores
from mbr_esd_metric.adapters.wmt.meta_info import SystemChoice
from mbr_esd_metric.adapters.wmt.rating_files import fitted, read_ratings
from mbr_esd_metric.adapters.wmt.scoring import EVERY_SYSTEM, write_metric
from mbr_esd_metric.adapters.wmt.submissions import SUBMISSION_FORMATS, About, SubmissionRow
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import EMPTY, Annotation
from mbr_esd_metric.core.mqm import mqm_score
from mbr_esd_metric.errors import InputError, OptionError, number_of, unknown
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.metaeval.error_free_model import ErrorFreeModel, Judged

#: Where this package's own scores lie: Score(E).
_OWN_RANGE = (-25.0, 0.0)


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of reading a submission into a test set.

    Attributes:
        name: the metric's full name.
        systems, translations: their numbers.
        spans: whether it has error spans.
        left_out: rows of systems or segments that the test set lacks.
        without: unrated translations of its systems that the submission has nothing on.
        repeated: spans that repeat another of the same place and severity; they are kept.
        dropped: what could not be kept, and how often (`submissions.Row.dropped`).
    """

    name: str
    systems: int
    translations: int
    spans: bool
    left_out: int
    without: int = 0
    repeated: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        """What the user has to know, a line each."""
        said = []
        if self.without:
            said.append(f"{number_of(self.without, 'unrated translation')} without an answer")
        if self.repeated:
            said.append(
                f"{number_of(self.repeated, 'span')} repeat others: kept; f1-wmt25-corpus and MPP count them, measures "
                "of sets do not"
            )
        said += [f"{count} left out: {reason}" for reason, count in self.dropped.items()]
        return said


def write_submission(
    path: str | Path,
    form: str,
    test_sets: Sequence[TestSet],
    metric: str | None,
    about: About,
    *,
    raters: str | None = None,
    rated: bool = False,
    score_range: tuple[float, float] | None = None,
    choice: SystemChoice = EVERY_SYSTEM,
    error_free: ErrorFreeModel | None = None,
) -> int:
    """Write a metric's, or people's, annotations of the translations, except the standard reference.

    Args:
        path: file or folder, as the format has it.
        form: a name of `submissions.SUBMISSION_FORMATS`.
        test_sets: one or several language pairs.
        metric: full or base name of a stored metric, in all of them; None for people.
        about: what the format says of the model.
        raters: which set of human ratings, where people's gold is written; the scores are gold's.
        rated: only translations that have a gold score; of people, those that the raters rated.
        score_range: lowest and highest score, which become 0 and 100 in WMT26's format; by default those of this
            package's models where there are error spans.
        choice: which systems are written.
        error_free: what says which translations are without error, from the scores as they are stored.

    Returns:
        The number of rows written.

    Raises:
        InputError: the metric's files do not fit, or it lacks the error spans that the format has.
        OptionError: an unknown format, metric or set of ratings, or a metric with a variant with and one without
            reference; scores whose range is not known, or that are outside of it; no translation is left.
    """
    if form not in SUBMISSION_FORMATS:
        raise unknown("format", form, SUBMISSION_FORMATS)
    rows: list[SubmissionRow] = []
    systems: dict[tuple[str, str], float] = {}
    for test_set in test_sets:
        given = _of_people(test_set, raters) if metric is None else _of_metric(test_set, metric)
        if SUBMISSION_FORMATS[form].spans and given.ratings is None:
            raise InputError(f"{given.name} has no error spans in {test_set.lp}, and {form} is made of them")
        here = list(_rows(test_set, given, choice, rated=rated or metric is None))
        rows += here
        for system in dict.fromkeys(row.system for row in here):
            own = [row.score for row in here if row.system == system and row.score is not None]
            systems[test_set.lp, system] = given.systems.get(system, sum(own) / max(1, len(own)))
    if not rows:
        raise OptionError(f"{metric or 'gold'} has no translation of the chosen systems; choose others")
    if error_free is not None:
        rows = _with_error_free(rows, error_free)
    if form == "wmt26":
        rows = list(_to_hundred(rows, score_range))
    SUBMISSION_FORMATS[form].write(Path(path), rows, replace(about, systems=systems, gold=metric is None))
    return len(rows)


@dataclass(frozen=True, slots=True)
class _Given:
    """What is written of one language pair: for each system its segments' scores and spans, and its own score."""

    name: str
    scores: Mapping[str, Sequence[float | None]]
    ratings: Mapping[str, Sequence[Annotation | None]] | None
    systems: Mapping[str, float]
    human: bool = False


def _of_metric(test_set: TestSet, metric: str) -> _Given:
    names = test_set.metrics_named(metric) or test_set.find_metrics([metric])  # the second raises
    if len(names) > 1:
        raise OptionError(f"--metric {metric}: there are {' and '.join(names)}; name one of them in full")
    (name,) = names
    layout = test_set.layout
    scores = {s: [v for _, v in row] for s, row in read_scores(layout.metric_scores(name, "seg")).items()}
    ratings = None
    if layout.metric_rating(name).is_file():
        read = read_ratings(layout.metric_rating(name))
        ratings = {s: [r.both if r else None for _, r in row] for s, row in read.items()}
    systems = {}
    if layout.metric_scores(name, "sys").is_file():
        stored = read_scores(layout.metric_scores(name, "sys"))
        systems = {s: row[0][1] for s, row in stored.items() if row[0][1] is not None}
    return _Given(name, scores, ratings, systems)


def _of_people(test_set: TestSet, raters: str | None) -> _Given:
    sets = test_set.human_ratings([raters] if raters else ()) if test_set.ratings else ()
    if len(sets) > 1:
        names = ", ".join(ratings.name for ratings in sets)
        raise OptionError(f"there are several sets of human ratings in {test_set.lp} ({names}); name one")
    gold = read_scores(test_set.layout.human_scores(test_set.info.gold, "seg"))
    scores = {s: [v for _, v in row] for s, row in gold.items()}
    return _Given("gold", scores, sets[0].annotations if sets else None, {}, True)


def _rows(test_set: TestSet, given: _Given, choice: SystemChoice, *, rated: bool) -> Iterator[SubmissionRow]:
    reference = test_set.references.get(test_set.info.standard_reference or "")
    gold = dict(zip(test_set.systems, test_set.gold, strict=True))
    places = _places(test_set)
    calls, labels = _task_names(test_set)
    kind = test_set.info.gold.split("-")[0].upper()
    for index, (system, number) in enumerate(_order(test_set)):
        unrated = system not in gold or math.isnan(gold[system][number])
        if system not in given.scores or (rated and unrated):
            continue
        if not choice.takes(system, test_set.info, test_set.references):
            continue
        text = test_set.outputs[system][number]
        spans = given.ratings[system][number] if given.ratings and system in given.ratings else None
        if given.human and given.ratings is not None and spans is None:
            continue  # rated, but not by these
        yield SubmissionRow(
            test_set.lp,
            calls.get(system, system),
            *places[number],
            None if spans is None else fitted(spans, len(text or "")),
            given.scores[system][number],
            test_set.documents[number][0],
            test_set.sources[number],
            text,
            reference[number] if reference else None,
            kind,
            number,
            index,
            labels[number],
        )


def _task_names(test_set: TestSet) -> tuple[dict[str, str], list[str | None]]:
    """The task's name of each system, and its number of each segment, if the folder has them."""
    systems, segments = test_set.layout.task("systems"), test_set.layout.task("segments")
    calls = {}
    if systems.is_file():
        calls = dict(line.split("\t", 1) for _, line in numbered_lines(systems))
    labels: list[str | None] = [None] * test_set.segments
    if segments.is_file():
        labels = [line for _, line in numbered_lines(segments)]
        if len(labels) != test_set.segments:
            raise InputError(f"{segments}: {len(labels)} lines, but {test_set.segments} source segments")
    return calls, labels


def _places(test_set: TestSet) -> list[tuple[str, int]]:
    """The document of each segment, and its place in it."""
    seen: Counter[str] = Counter()
    places = []
    for _, document in test_set.documents:
        places.append((document, seen[document]))
        seen[document] += 1
    return places


def _with_error_free(rows: Sequence[SubmissionRow], model: ErrorFreeModel) -> list[SubmissionRow]:
    """The rows, with whether each is without error; one without a translation is not."""
    judged = [Judged(row.score or 0.0, row.spans, len(row.translation or ""), row.lp) for row in rows]
    said = model.clean(judged).tolist()
    return [replace(row, clean=clean and bool(row.translation)) for row, clean in zip(rows, said, strict=True)]


def _to_hundred(rows: Sequence[SubmissionRow], given: tuple[float, float] | None) -> Iterator[SubmissionRow]:
    low, high = given or _OWN_RANGE
    if given is None and any(row.spans is None for row in rows):
        raise OptionError("WMT26's scores go from 0 to 100; say where the metric's lie: --range LOW HIGH")
    for row in rows:
        if row.score is None or not low <= row.score <= high:
            raise OptionError(f"a score of {row.score} is not within {low:g} and {high:g}; give --range LOW HIGH")
        yield replace(row, score=100 * (row.score - low) / (high - low))


def take_submission(path: str | Path, form: str, test_set: TestSet, name: str, *, overwrite: bool = False) -> Taken:
    """Read a submission into a test set, as metric scores and error spans.

    A format without scores gives Score(E) of its spans.

    Args:
        path, form: as for `write_submission`.
        test_set: the test set of its translations.
        name: full name of the metric, such as "GemSpanEval-src".
        overwrite: replace a metric of that name.

    Raises:
        InputError: the file has another format, lacks a rated translation of one of its systems, or has another text;
            or the metric is there already.
        OptionError: an unknown format.
    """
    if form not in SUBMISSION_FORMATS:
        raise unknown("format", form, SUBMISSION_FORMATS)
    check_new(test_set, name, overwrite)
    read = SUBMISSION_FORMATS[form].read(Path(path))
    rows = [row for row in read if row.lp == test_set.lp]
    if not rows:
        there = ", ".join(sorted({row.lp for row in read})) or "nothing at all"
        raise InputError(f"{path}: nothing of {test_set.lp}; there is: {there}")
    cells, left_out = _cells(path, rows, test_set)
    if not cells:
        raise InputError(f"{path}: no system of {test_set.name} {test_set.lp}; there are: {_some(rows)}")
    unrated = _unrated(test_set)
    scores: dict[str, list[float | None]] = {}
    spans: dict[str, list[Annotation | None]] = {}
    for system, found in cells.items():
        own = [found.get(number) for number in range(test_set.segments)]
        missing = [
            number + 1 for number, row in enumerate(own) if row is None and number not in unrated.get(system, ())
        ]
        if missing:
            raise InputError(
                f"{path}: nothing on segment {missing[0]} of system {system} (segments missing: {len(missing)})"
            )
        scores[system] = [None if row is None else _submitted(row) for row in own]
        if all(row.spans is not None for row in found.values()):
            spans[system] = [None if row is None else row.spans for row in own]
    dropped = Counter(reason for found in cells.values() for row in found.values() for reason in row.dropped)
    taken = written(test_set, name, f"{form}|submission|v:{__version__}", scores, spans)
    return replace(taken, left_out=left_out, dropped=dropped)


def check_new(test_set: TestSet, name: str, overwrite: bool) -> None:
    """Raises `InputError` where the test set has a metric of this full name, unless it is to be overwritten."""
    stored = test_set.layout.metric_scores(name, "seg")
    if stored.is_file() and not overwrite:
        raise InputError(f"{stored} is already there; choose another --name, or add --overwrite")


def written(
    test_set: TestSet,
    name: str,
    signature: str,
    scores: Mapping[str, Sequence[float | None]],
    spans: Mapping[str, Sequence[Annotation | None]],
) -> Taken:
    """Write a metric, by system, whose system scores are the means of those that it has; what it is, for the user."""
    answered = {system: [score for score in found if score is not None] for system, found in scores.items()}
    means = {system: sum(found) / len(found) for system, found in answered.items()}
    write_metric(test_set.layout, name, signature, scores, spans, means)
    count = sum(map(len, answered.values()))
    every = [annotation for row in spans.values() for annotation in row if annotation is not None]
    return Taken(
        name,
        len(scores),
        count,
        len(spans) == len(scores),
        0,
        len(scores) * test_set.segments - count,
        sum(len(annotation) - len(set(annotation.key)) for annotation in every),
    )


def _submitted(row: SubmissionRow) -> float:
    """A row's score; without one Score(E) of its spans in the translation, which are a set."""
    if row.score is not None:
        return row.score
    spans = (row.spans or EMPTY).on("translation")
    return mqm_score(spans.with_spans(spans))


def _unrated(test_set: TestSet) -> dict[str, set[int]]:
    """System -> the numbers of its segments that have no gold; empty if there is no gold at all yet."""
    path = test_set.layout.human_scores(test_set.info.gold, "seg")
    stored = read_scores(path) if path.is_file() else {}
    return {
        system: {number for number, (_, score) in enumerate(row) if score is None} for system, row in stored.items()
    }


def _some(rows: Sequence[SubmissionRow]) -> str:
    names = sorted({row.system for row in rows})
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")


def _cells(
    path: str | Path, rows: Sequence[SubmissionRow], test_set: TestSet
) -> tuple[Mapping[str, dict[int, SubmissionRow]], int]:
    """System -> segment's number -> row; and the number of rows for other translations than the test set's."""
    cells: dict[str, dict[int, SubmissionRow]] = {}
    left_out = 0
    calls, labels = _task_names(test_set)
    called = {name: system for system, name in calls.items()}
    meant = _meant(rows, test_set)
    places: dict[tuple[str, int | str], int] = {}
    for number, (document, place) in enumerate(_places(test_set)):
        places[document, labels[number] or place] = number
    by_label = None not in labels
    numbers = {} if by_label else _numbers(rows, test_set)
    for at, row in enumerate(rows):
        if row.document is None:
            system, number = meant.get(at, ("", -1))
        else:
            system = called.get(row.system, "_".join(row.system.replace("/", " ").split()))
            place_of = row.label if by_label and row.label is not None else row.place
            number = numbers.get(at, places.get(("_".join(row.document.split()), place_of), -1))
        if system not in test_set.outputs or number < 0:
            left_out += 1
            continue
        where = f"{path}, line {row.line}" if row.line else str(path)
        text = (test_set.outputs[system][number] or "").rstrip()
        if row.translation is not None and _plain(row.translation) != _plain(text):
            raise InputError(
                f"{where}: another text of system {system}, segment {number + 1}: {row.translation[:60]!r}, and the "
                f"test set has {text[:60]!r}"
            )
        spans = row.spans
        if spans is not None and row.translation is not None:
            spans = _moved(spans, row.translation, text)
        spans = None if spans is None else fitted(spans, len(text))
        if number in cells.setdefault(system, {}):
            raise InputError(f"{where}: a second row for segment {number + 1} of system {system}; leave one out")
        cells[system][number] = replace(row, spans=spans)
    return cells, left_out


def _numbers(rows: Sequence[SubmissionRow], test_set: TestSet) -> dict[int, int]:
    """Row -> its segment, where labels number a language pair's segments from 1; empty where some label does not.

    A submission for the rated translations alone has fewer rows, so that their places say less.
    """
    found = {}
    for at, row in enumerate(rows):
        label = row.label or ""
        number = int(label) - 1 if label.isdecimal() else -1
        if not 0 <= number < test_set.segments:
            return {}
        if row.document is None or "_".join(row.document.split()) != test_set.documents[number][1]:
            return {}
        found[at] = number
    return found


def _order(test_set: TestSet) -> list[tuple[str, int]]:
    """System and segment of each row of a submission without documents."""
    systems = sorted(system for system in test_set.outputs if system != test_set.info.standard_reference)
    return [(system, number) for system in systems for number in range(test_set.segments)]


def _meant(rows: Sequence[SubmissionRow], test_set: TestSet) -> dict[int, tuple[str, int]]:
    """Number of a row of a submission without documents -> system and segment.

    A row says its place in the test set, and is left out if that is none. Where another text is there, as at some
    places of WMT23, the row is for the first place with its text that no other row is for, or else for its own place.
    """
    places = _order(test_set)
    found: dict[int, tuple[str, int]] = {}
    elsewhere: list[int] = []
    for at, row in enumerate(rows):
        if not 0 <= row.place < len(places):
            continue
        system, number = places[row.place]
        if row.translation is None or _plain(row.translation) == _plain(test_set.outputs[system][number] or ""):
            found[at] = places[row.place]
        else:
            elsewhere.append(at)
    free: dict[str, list[tuple[str, int]]] = {}
    taken = set(found.values())
    for system, number in places if elsewhere else ():
        if (system, number) not in taken:
            free.setdefault(_plain(test_set.outputs[system][number] or ""), []).append((system, number))
    for at in elsewhere:
        same = free.get(_plain(rows[at].translation or ""))
        found[at] = same.pop(0) if same else places[rows[at].place]
    return found


def _moved(spans: Annotation, said: str, text: str) -> Annotation:
    """Spans of `said` in `text`, which may have other blanks: each begins and ends with the same characters."""
    if said.rstrip() == text:
        return spans
    solid = [at for at, character in enumerate(text) if not character.isspace()]

    before = list(accumulate((not character.isspace() for character in said), initial=0))

    def start(at: int) -> int:
        return solid[before[at]] if before[at] < len(solid) else len(text)

    def end(at: int) -> int:
        return solid[before[at] - 1] + 1 if before[at] else 0

    moved = [
        replace(span, start=start(span.start), end=end(span.end))
        for span in spans
        if said[span.start : span.end].strip()
    ]
    points = [(start(at), severity) for at, severity in spans.points]
    return Annotation.of_rater(moved).pointing(points).missing(spans.unplaced)


def _plain(text: str) -> str:
    return " ".join(text.split())
