"""Several annotations of the same translations side by side, from files and test sets; the content of a file tells its
kind. And a metric's scores of translations that people rated, with whether these are without error.

An *input* is what one metric or one rater says about some translations. Inputs come from different files with
different names for segments; `files.records` says how they are joined.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import TypeVar

import numpy as np

from mbr_esd_metric.adapters.file_kinds import kind_of_input
from mbr_esd_metric.adapters.rating_formats import read_mqm
from mbr_esd_metric.adapters.ratings import Rating
from mbr_esd_metric.adapters.wmt.layout import base_name
from mbr_esd_metric.adapters.wmt.rating_files import SpanSet
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import Annotation, fold_severity, mqm_score, unit_score
from mbr_esd_metric.core.decision import CandidateColumns, Candidates
from mbr_esd_metric.core.decision_problem import Hypotheses
from mbr_esd_metric.core.kernels import AnnotationTable, Floats
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.decoding.file import decided_records, file_options
from mbr_esd_metric.decoding.options import DecisionOptions
from mbr_esd_metric.decoding.segment import read_annotations
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, labelled, unknown
from mbr_esd_metric.files.judged import JudgedSegment, read_judged
from mbr_esd_metric.files.paths import NamedPath, tell_apart
from mbr_esd_metric.files.records import Join, read_decided
from mbr_esd_metric.metaeval.error_free import ESA_THRESHOLD, ScoredTranslation, gold_labels, lowest_error_free
from mbr_esd_metric.prompting.parse import Invalid


@dataclass(frozen=True, slots=True)
class JudgedColumn:
    """What one metric or one human rater says of segments; in a table None for rows that it does not have. A metric of
    a test set has its full name, and its base name."""

    name: str
    judged: Sequence[JudgedSegment | None]
    human: bool = False
    base: str = ""


def column_named(columns: Sequence[JudgedColumn], name: str, kind: str = "column") -> JudgedColumn:
    """The column with this name, or the only one with this base name, as in `TestSet.find_metrics`. Raises
    `OptionError` if there is none, or several; `kind` is for messages."""
    called = [one for one in columns if name == one.name] or [one for one in columns if name == one.base]
    if len(called) > 1:
        raise OptionError(f"{kind} {name!r}: there are {' and '.join(one.name for one in called)}; name one in full")
    if not called:
        raise unknown(kind, name, [each for one in columns for each in (one.name, one.base) if each])
    return called[0]


@dataclass(frozen=True, slots=True)
class AnnotationCount:
    """One distinct annotation among a segment's candidates: how often, and its best log-probability."""

    annotation: Annotation
    count: int
    logprob: float | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """The candidates of one segment: numbers of valid, distinct and invalid ones, and the most frequent annotations.

    `runs` are (characters, candidates that mark them, candidates that mark them as major), from the first character to
    the last; their widths sum to the length of the translation.
    """

    segment: Segment
    valid: int
    distinct: int
    invalid: int
    runs: Sequence[tuple[int, int, int]]
    annotations: Sequence[AnnotationCount]


@dataclass(frozen=True, slots=True)
class CandidateInput:
    """The candidates that one model sampled; in a table None for rows that it does not have."""

    name: str
    distributions: Sequence[Distribution | None]


#: What an input says of one row.
_Entry = TypeVar("_Entry", JudgedSegment, Distribution)


@dataclass(frozen=True, slots=True)
class JudgedTable:
    """Translations as rows, metrics and raters as columns; `notes` say what was repaired and what stands alone."""

    rows: Sequence[Segment]
    columns: Sequence[JudgedColumn]
    candidates: Sequence[CandidateInput]
    notes: Sequence[str] = ()


def join(inputs: Sequence[JudgedColumn], candidates: Sequence[CandidateInput] = ()) -> JudgedTable:
    """Put inputs side by side. Rows are in the order of first appearance, and no row is left out.

    Raises:
        InputError: no input at all, two inputs of one name, or a span that ends past its translation.
    """
    name, times = Counter(one.name for one in inputs).most_common(1)[0] if inputs else ("", 0)
    if times > 1:
        raise InputError(f"two inputs are named {name!r}; name them apart with NAME=FILE")
    for one in inputs:
        for rating in filter(None, one.judged):
            annotation, text = rating.annotation or Annotation(), rating.segment
            with labelled(f"{one.name}, segment {text.label}"):
                annotation.on("translation").check_length(len(text.translation))
                if any(span.end > len(text.source) for span in annotation.on("source")):
                    raise InputError("an omission ends past the source")
    rows: list[Segment] = []
    placed = [_place(one.judged, rows) for one in inputs]
    sampled = [_place(one.distributions, rows) for one in candidates]
    if not rows:
        raise InputError("there is no segment to show; give at least one file with segments")
    inputs_of_row = Counter(row for ratings in placed for row in ratings)
    notes = []
    for one, ratings in zip(inputs, placed, strict=True):
        if (alone := sum(inputs_of_row[row] == 1 for row in ratings)) and len(inputs) > 1:
            notes.append(f"{alone} of the segments of {one.name} are in no other input")
    at = range(len(rows))
    return JudgedTable(
        rows,
        [replace(one, judged=[of.get(row) for row in at]) for one, of in zip(inputs, placed, strict=True)],
        [replace(one, distributions=[of.get(row) for row in at]) for one, of in zip(candidates, sampled, strict=True)],
        notes,
    )


def _place(entries: Sequence[_Entry | None], rows: list[Segment]) -> dict[int, _Entry]:
    """Row -> its entry; new rows are appended, and no two entries of one call share a row."""
    known = Join(((text, row) for row, text in enumerate(rows)), {one.segment.system for one in entries if one})
    taken: dict[int, _Entry] = {}
    for one in filter(None, entries):
        row = next((row for row in known.all_of(one.segment) if row not in taken), len(rows))
        if row == len(rows):
            rows.append(one.segment)
        taken[row] = one.of(rows[row]) if isinstance(one, JudgedSegment) else one
    return taken


def read_table(
    sources: Sequence[NamedPath],
    test_set: TestSet | None = None,
    columns: Sequence[str] = (),
) -> JudgedTable:
    """All inputs side by side; human ratings first. Candidates are decided where no decisions are among the files.

    A test set adds its human ratings, by default the merged ones, or else all; and its metrics, by default those with
    error spans. `columns` names some of either kind.

    Raises:
        InputError: with the file and the line; decisions whose translations are in no other input, or in two inputs
            with different texts.
    """
    inputs, texts, notes = ([], {}, []) if test_set is None else _test_set_inputs(test_set, columns)
    candidates: list[CandidateInput] = []
    kinds = {source.path: kind_of_input(source.path) for source in sources}
    with_decisions = "decisions" in kinds.values()
    if not with_decisions:
        sources = tell_apart(sources)  # else candidates are not a column, and may have the name of their decisions
    from_files: dict[tuple[str, str], Segment] = {}
    for source in tell_apart([source for source in sources if kinds[source.path] == "candidates"]):
        summary, decided = candidate_inputs(source)
        candidates.append(summary)
        if not with_decisions:
            inputs.append(decided)
            continue
        for text in (rating.segment for rating in decided.judged if rating):
            if from_files.setdefault((text.system, text.label), text) != text:
                raise InputError(
                    f"{source.path}: segment {text.label} has another text before it, and decisions name segments by "
                    "system and id only; give ids that differ, or only the candidates of the decisions"
                )
    elsewhere = (
        "no file of candidates and no test set, and decisions do not repeat the translation; give the candidates file "
        "that they were made from as well"
    )
    for source in tell_apart([source for source in sources if kinds[source.path] != "candidates"]):
        if kinds[source.path] == "mqm":
            inputs += mqm_inputs(source)
        elif kinds[source.path] == "comet":
            inputs.append(JudgedColumn(source.label, read_judged(source.path)))
        else:
            inputs.append(JudgedColumn(source.label, read_decided(source.path, texts | from_files, elsewhere)))
    table = join(sorted(inputs, key=lambda one: not one.human), candidates)
    return replace(table, notes=[*notes, *table.notes])


def candidate_inputs(source: NamedPath) -> tuple[CandidateInput, JudgedColumn]:
    """Candidates, with their spans located as for `decide`, and their decisions."""
    distributions = []
    ratings = []
    options = file_options(source.path)
    for record, decision in decided_records(source.path, options):
        text = record.segment
        distributions.append(distribution(text, record.columns, options))
        if decision is None:
            ratings.append(JudgedSegment(text, None, data_warning="no candidate can be read"))
        else:
            ratings.append(JudgedSegment.of_decision(text, decision))
    return CandidateInput(source.label, distributions), JudgedColumn(source.label, ratings)


def distribution(
    text: Segment, candidates: Candidates, options: DecisionOptions = DecisionOptions(), most: int = 8
) -> Distribution:
    """The candidates of one segment in summary, with the `most` most frequent annotations, ties as they appear."""
    length, columns = len(text.translation), CandidateColumns.of(candidates)
    try:
        read = read_annotations(columns, text.translation, options, text.source)
        annotations = [None if isinstance(annotation, Invalid) else annotation for annotation in read]
        hypotheses = Hypotheses(annotations, columns.logprobs)
    except NoValidCandidateError:
        return Distribution(text, 0, 0, len(candidates), [(length, 0, 0)] if length else [], [])
    order = sorted(range(len(hypotheses)), key=lambda h: -hypotheses.counts[h])[:most]
    # An infinite log-probability is unknown.
    logprobs = [one if math.isfinite(one) else None for one in hypotheses.logprobs.tolist()]
    most_frequent = [AnnotationCount(hypotheses.annotations[h], int(hypotheses.counts[h]), logprobs[h]) for h in order]
    valid = int(hypotheses.counts.sum())
    return Distribution(text, valid, len(hypotheses), len(candidates) - valid, _runs(hypotheses, length), most_frequent)


def _runs(hypotheses: Hypotheses, length: int) -> list[tuple[int, int, int]]:
    """(width, candidates that mark these characters, candidates that mark them as major), over the translation."""
    table = AnnotationTable([annotation.on("translation") for annotation in hypotheses.annotations], length)
    counts = hypotheses.counts.astype(np.float64)
    # No candidate marks anything before the first bound or after the last.
    marked, major = ([0, *map(round, (counts @ rows).tolist()), 0] for rows in (table.marked, table.covers[0]))
    widths = np.diff([0, *table.bounds.tolist(), length]).tolist()
    pieces = [piece for piece in zip(widths, marked, major, strict=False) if piece[0]]
    return [(sum(width for width, *_ in same), *key) for key, same in groupby(pieces, itemgetter(1, 2))]


def mqm_inputs(source: NamedPath) -> list[JudgedColumn]:
    """Human MQM: one input for each rater; or, if several raters divided the segments among them, "human 1", "human 2"
    in the order of their names, where the category of each error names the rater."""
    by_text: dict[Segment, list[Rating]] = defaultdict(list)
    for rating in read_mqm(source.path):
        by_text[replace(rating.segment, document="")].append(rating)
    each = max(len(ratings) for ratings in by_text.values())
    divided = len({one.rater for ratings in by_text.values() for one in ratings}) > each
    inputs: dict[str, list[JudgedSegment]] = {}
    for text, ratings in by_text.items():
        for number, rating in enumerate(sorted(ratings, key=lambda one: one.rater), 1):
            name, errors = rating.rater, rating.errors
            if divided or not name:
                name = f"human {number}" if each > 1 else "human"
            if divided:
                errors = tuple(replace(e, category=f"{e.category or ''} ({rating.rater})".strip()) for e in errors)
            annotation = replace(rating, errors=errors).both
            # Errors without characters count in people's scores.
            without_span = [*annotation.unplaced, *(severity for _, severity in annotation.points)]
            mqm = mqm_score(annotation.with_unplaced(without_span)) if annotation.points else None
            inputs.setdefault(name, []).append(JudgedSegment(text, annotation, input_mqm=mqm))
    prefix = f"{source.name} " if source.name else ""
    return [JudgedColumn(prefix + name, inputs[name], human=True) for name in sorted(inputs)]


def _test_set_inputs(
    test_set: TestSet, columns: Sequence[str]
) -> tuple[list[JudgedColumn], dict[tuple[str, str], Segment], list[str]]:
    """The inputs of a test set, its translations by system and number, and what was repaired."""
    names = [name for name in columns if name in test_set.layout.human_files("seg.rating")]
    chosen = [name for name in columns if name not in names]
    texts = [
        Segment(source, translation, str(number), system)
        for system in test_set.systems
        for number, (source, translation) in enumerate(zip(test_set.sources, test_set.outputs[system], strict=True), 1)
        if translation is not None
    ]
    human = test_set.human_ratings(names) if names or test_set.ratings else ()
    inputs = [replace(_rated(texts, one, {}), human=True) for one in human]
    stored, repairs = test_set.read_metrics(chosen, partial=True)
    for metric in stored:
        if not chosen and metric.ratings is None:
            continue
        scores = dict(zip(test_set.systems, metric.scores.tolist(), strict=True))
        # Beside people's, `wmt score` writes the MQM scores of its models; the score is that of `mbr-esd score`.
        mqm = metric.ratings is not None and bool(np.nanmin(metric.scores) >= -25 and np.nanmax(metric.scores) <= 0)
        column = _rated(texts, metric.ratings or SpanSet(metric.name, {}), scores, mqm=mqm)
        inputs.append(replace(column, base=base_name(metric.name)[0]))
    return inputs, {(text.system, text.label): text for text in texts}, [*test_set.notes, *repairs]


def _rated(
    texts: Sequence[Segment], ratings: SpanSet, scores: Mapping[str, Sequence[float]], mqm: bool = False
) -> JudgedColumn:
    """The spans of a set and scores beside them, which are `mqm` or not; NaN is none."""
    rated = []
    for text in texts:
        at = int(text.label) - 1
        annotation = ratings.both_of(text.system, at)
        value = scores[text.system][at] if scores else math.nan
        if not math.isnan(value):
            rated.append(JudgedSegment(text, annotation, *((unit_score(value), value) if mqm else (value,))))
        elif annotation is not None:
            rated.append(JudgedSegment(text, annotation))
    return JudgedColumn(ratings.name, rated)


def scored_of_files(metrics: Sequence[str], ratings: Sequence[str]) -> tuple[list[ScoredTranslation], list[bool]]:
    """The translations of one metric's files (``--to_json``) that people rated, in any format of `read_mqm`."""
    people: dict[Segment, list[Rating]] = defaultdict(list)
    for path in ratings:
        for one in read_mqm(path, marked=False):
            people[replace(one.segment, label="", document="")].append(one)
    rows = [row for path in metrics for row in read_judged(Path(path))]
    join = Join(people.items(), {row.segment.system for row in rows})
    translations, labels = [], []
    for row in rows:
        human = next(iter(join.all_of(row.segment)), None)
        if human is not None and row.input_score is not None:
            first, length = human[0], len(row.segment.translation)
            translations.append(
                ScoredTranslation(row.input_score, row.annotation, length, first.lp or "", first.segment.document)
            )
            marked = any(fold_severity(error.severity) is not None for one in human for error in one.errors)
            scores = [one.score for one in human if one.score is not None]
            labels.append(not marked and (not scores or fmean(scores) >= ESA_THRESHOLD))
    if not translations:
        raise InputError(f"no translation of {', '.join(metrics)} is rated in {', '.join(ratings)}")
    return translations, labels


def error_free_labels(test_set: TestSet, raters: Sequence[str] = ()) -> Floats:
    """The `gold_labels` of a test set, from its gold scores and the errors in translation and source that the raters
    (if empty, those of the gold) marked."""
    sets = test_set.human_ratings(raters) if raters or test_set.ratings else ()
    human = [ratings.both_sides(test_set.systems, test_set.segments) for ratings in sets]
    return gold_labels(test_set.gold, human, lowest_error_free(test_set.info.gold))


def scored_of_test_set(test_set: TestSet, metric: str) -> tuple[list[ScoredTranslation], list[bool]]:
    """The rated translations of a test set, with a stored metric."""
    (name, *_) = test_set.find_metrics([metric])
    stored = test_set.metric(name)
    labels = error_free_labels(test_set)
    translations, clean = [], []
    for row, system in enumerate(test_set.systems):
        for number in np.flatnonzero(~np.isnan(labels[row])).tolist():
            annotation = stored.ratings.both_of(system, number) if stored.ratings else None
            length = int(test_set.lengths[row, number])
            document = "/".join(test_set.documents[number])
            translations.append(
                ScoredTranslation(float(stored.scores[row, number]), annotation, length, test_set.lp, document)
            )
            clean.append(bool(labels[row, number]))
    return translations, clean
