"""Import of human ratings, or a task's test set, into mt-metrics-eval's layout.

As in WMT, the gold score "mqm" is minus the penalties of all rows of a rater, including the source side, averaged over
the raters of a segment; error spans are written for each rater, or merged if each translation has one rater. The gold
score "esa" is the mean of the raters' scores; the first rating of each translation is also "esa-human1", the standard
gold of WMT25, the second "esa-human2" and so on; ratings without a score count as "mqm". A task's test set has no gold;
the task's system names and segment numbers are stored for submissions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from mbr_esd_metric.adapters.esa_files import SourceSegment, TestSetTexts, read_esa
from mbr_esd_metric.adapters.mqm_tsv import carry_span, check_same_text
from mbr_esd_metric.adapters.ratings import MqmError, Rating, RatingData
from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.layout import (
    EVERY_SYSTEM,
    Layout,
    check_reference_name,
    info_of,
    one_line,
    reference_name,
)
from mbr_esd_metric.adapters.wmt.rating_files import write_ratings
from mbr_esd_metric.adapters.wmt.submissions import read_items
from mbr_esd_metric.adapters.wmt.test_set import load_test_set
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import file_name, plain_name
from mbr_esd_metric.files.streams import json_text, whole_file
from mbr_esd_metric.messages import number_of

_LP = re.compile(r"\w+-\w+")
_FIX = "change it with --rename OLD=NEW"
#: The toolkit's name for the merged ratings of all raters.
_MERGED = "merged"
#: System -> ratings of each segment.
_Cells: TypeAlias = Mapping[str, Sequence[Sequence[Rating]]]
#: (Kind of item, its treatment) -> count.
_Counts: TypeAlias = Counter[tuple[str, str]]
#: Name of scores -> their ratings, and name of a set of error spans -> its ratings.
_Gold: TypeAlias = tuple[dict[str, _Cells], dict[str, _Cells]]


@dataclass(frozen=True, slots=True)
class Target:
    """A new test set, in one language pair, of a data folder.

    Attributes:
        references: the systems that are references; by default, those called ref, refA, refB and so on. "ref" is
            renamed to the test set's standard reference.
        rename: old -> new system names. In other names, white space and slashes become underscores.
        weights: MQM weights of the gold scores, "google" as WMT's, or "paper".
        overwrite: replace the texts and human scores of a test set and language pair.
    """

    data: str | Path
    test_set: str
    lp: str
    references: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    weights: str = "google"
    overwrite: bool = False

    def layout(self) -> Layout:
        """The layout, after checking that no data would be lost."""
        if not _LP.fullmatch(self.lp):
            raise OptionError(f"a language pair is two language codes such as 'en-de', not {self.lp!r}")
        layout = Layout(Path(self.data).expanduser(), self.test_set, self.lp)
        if layout.source().exists() and not self.overwrite:
            raise InputError(f"{layout.source()} is already there; choose another test set, or add --overwrite")
        if stale := layout.metric_files():
            folders = " and ".join(dict.fromkeys(str(path.parent) for path in stale))
            raise InputError(
                f"{folders}: scores of the texts that would be replaced ({stale[0].name} ...); move them away or "
                "delete them, and score the new texts with: mbr-esd wmt score"
            )
        return layout

    def names(self, systems: Iterable[str]) -> dict[str, str]:
        """System name in the file -> name in the layout."""
        known = sorted(set(systems))
        for old in self.rename:
            if old not in known:
                raise OptionError(f"no system {old!r} to rename; there are: {', '.join(known)}")
        names = {old: self.rename.get(old, "_".join(old.replace("/", " ").split())) for old in known}
        standard = reference_name(self.test_set, self.lp)
        if standard and "ref" in set(known) - {*self.rename, *self.references} and standard not in names.values():
            names["ref"] = standard
        for old, name in names.items():
            file_name(name, "system (see --rename)", ".txt")
            if list(names.values()).count(name) > 1:
                raise InputError(f"system {old!r}: another system is already named {name!r}; {_FIX}")
        return names

    def references_among(self, systems: Sequence[str]) -> tuple[str, ...]:
        """The systems that are references, under their new names."""
        for name in self.references:
            if name not in systems:
                raise OptionError(f"reference {name!r} is not among the systems: {', '.join(systems)}")
        usual = [system for system in systems if re.fullmatch("ref[A-Za-z0-9_]*", system)]
        references = tuple(system for system in systems if system in (self.references or usual))
        for name in references:
            check_reference_name(name, _FIX)
        return references


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported test set; `notes` are changes and omissions in addition to the reader's report."""

    layout: Layout
    references: tuple[str, ...]
    summary: str
    notes: tuple[str, ...]


def import_mqm(human: RatingData, target: Target) -> Imported:
    """Import human MQM annotations from `read_mqm` as a test set. Raises `InputError` if the language pair has no
    ratings, a name is not valid for a file, or the test set, or scores of its older texts, already exist; and
    `OptionError` for a reference or renamed system that is not in the data."""
    ratings = [r for r in human if r.lp in (None, target.lp)]
    if not ratings:
        raise InputError(f"{human.path}: no ratings of {target.lp}; there are: {', '.join(human.lps)}")
    counts = Counter({("rating", "of other language pairs: left out"): len(human) - len(ratings)})
    segments, ratings = _segments(_identified(ratings, counts), target.lp, human.path, counts)
    notes = [f"{number_of(count, noun)} {what}" for (noun, what), count in counts.items() if count]
    raters = _rater_names(ratings)

    def gold(cells: _Cells) -> _Gold:
        spans: dict[str, _Cells] = {
            f"mqm.{name}": {s: [[r for r in each if r.rater == rater] for each in row] for s, row in cells.items()}
            for rater, name in raters.items()
        }
        if all(len(each) < 2 for row in cells.values() for each in row):
            spans[f"mqm.{_MERGED}"] = cells  # one rater per translation: together, they form a complete set
        return {"mqm": cells}, spans

    return _import(segments, ratings, target, gold, notes)


def import_texts(texts: TestSetTexts, target: Target) -> Imported:
    """Import ESA annotations from `read_esa` or `read_wmt26_esa`, or texts from `read_task`, as a test set. Raises the
    exceptions of `import_mqm`."""
    if target.lp not in texts.lps:
        raise InputError(f"nothing of {target.lp}; there are: {', '.join(texts.lps)}")
    segments = [segment for segment in texts.segments if segment.lp == target.lp]
    ratings = [one for data in texts.human for one in data if one.lp == target.lp]
    if len({one.score is None for one in ratings}) > 1:
        raise InputError("some annotations have a score and some have none; import ESA and MQM separately")
    kind = "mqm" if ratings and ratings[0].score is None else "esa"
    waves = max((len(each) for each in _by_translation(ratings).values()), default=0)

    def gold(cells: _Cells) -> _Gold:
        scores = {kind: cells} if waves else {}
        spans = {f"{kind}.{_MERGED}": cells} if waves == 1 else {}
        if waves > 1 or info_of(target.test_set, target.lp).gold == f"{kind}-human1":
            for wave in range(waves):
                name = f"{kind}-human{wave + 1}"
                scores[name] = spans[f"{name}.{_MERGED}"] = {
                    system: [each[wave : wave + 1] for each in row]
                    for system, row in cells.items()
                    if any(len(each) > wave for each in row)
                }
        return scores, spans if any(one.marked for one in ratings) else {}

    counts = Counter(one.reason for data in texts.human for one in data.left_out if one.lp == target.lp)
    notes = [f"{number_of(count, 'time')}: {reason}" for reason, count in sorted(counts.items())]
    notes += [f"up to {waves} annotations a translation"] if waves > 1 else []
    return _import(segments, ratings, target, gold, notes, texts.documents.get(target.lp, ()))


def read_task(path: str | Path) -> TestSetTexts:
    """The official segments of a task's test set, in file order: from mteval-task*-test25.tsv (WMT25), one row per
    segment and system, or mteval-test26.jsonl (WMT26), one segment per line; plain or compressed."""
    path = Path(path)
    of_wmt26 = plain_name(path).endswith(".jsonl")
    segments = tuple(read_items(path, _wmt26) if of_wmt26 else read_esa([path], rated=False).segments)
    if not segments:
        raise InputError(f"{path}: no official segment in this file")
    return TestSetTexts(segments)


def _wmt26(item: Mapping[str, Any], lp: str, domain: str, document: str, place: str) -> list[SourceSegment]:
    outputs = {str(system): str(text) for system, text in item["hyps"].items()}
    reference = (item.get("ref") or {}).get("text")
    if reference:
        outputs["refA"] = str(reference)
    return [SourceSegment(lp, domain, document, place, str(item["src"]), outputs)]


def _identified(ratings: Sequence[Rating], counts: _Counts) -> list[Rating]:
    """Ratings in which document and segment identify the source text. This is not the case in bio-MQM: documents are
    named after systems, and segment numbers recur with different sources. There, equal sources become one segment.
    """
    named = [r for r in ratings if r.segment.system]
    counts["rating", "of a system without a name: left out"] = len(ratings) - len(named)
    sources: dict[tuple[str, str], set[str]] = {}
    for one in (rating.segment for rating in named):
        sources.setdefault((one.document, one.label), set()).add(one.source)
    if all(len(texts) == 1 for texts in sources.values()):
        return named
    places: dict[str, tuple[str, str]] = {}
    for one in (rating.segment for rating in named):
        places.setdefault(one.source, (one.document, str(len(places) + 1)))
    counts["source", "each taken as one segment, as documents and numbers do not name the segments"] = len(places)
    renamed = []
    for rating in named:
        document, label = places[rating.segment.source]
        renamed.append(replace(rating, segment=replace(rating.segment, document=document, label=label)))
    return renamed


def _segments(
    ratings: Sequence[Rating], lp: str, path: Path, counts: _Counts
) -> tuple[list[SourceSegment], list[Rating]]:
    """The segments of ratings, with the first spelling of each translation, and each rater's first rating."""
    segments: dict[tuple[str, str], SourceSegment] = {}
    first: dict[tuple[str, str, str], Rating] = {}
    kept: dict[tuple[str, str, str, str], Rating] = {}
    for rating in ratings:
        rated = rating.segment
        key, system = (rated.document, rated.label), rated.system
        segment = segments.setdefault(key, SourceSegment(lp, "all", *key, rated.source))
        text = segment.outputs.setdefault(system, rated.translation)
        before = first.setdefault((*key, system), rating)
        if text != rated.translation:
            counts["rating", "of another spelling of a translation: the first one is kept"] += 1
            what = f"system {system} for segment {rated.label} of {rated.document}"
            check_same_text(path, what, text, before.line, rated.translation, rating.line)
        judgment = (*key, system, rating.rater)
        if judgment in kept:
            counts["rating", "by a rater who had rated the same translation: the first is kept"] += 1
        else:
            errors = tuple(_carried(error, rated.translation, text) for error in rating.errors)
            kept[judgment] = replace(rating, segment=replace(rated, translation=text), errors=errors, score=None)
    missing = len(segments) * len({r.segment.system for r in ratings}) - len(first)
    counts["translation", "not in the annotations: written as not supplied"] = missing
    return list(segments.values()), list(kept.values())


def _carried(error: MqmError, text: str, into: str) -> MqmError:
    """An error transferred to another spelling of its translation. An ambiguous span loses its position."""
    if error.side != "translation" or text == into:
        return error
    place = carry_span(error.start, error.end, text, into)
    return replace(error, side=None, start=0, end=0) if place is None else replace(error, start=place[0], end=place[1])


def _by_translation(ratings: Iterable[Rating]) -> dict[tuple[str, str, str], list[Rating]]:
    """(Document, segment number, system) -> the ratings of this translation, in order."""
    cells: dict[tuple[str, str, str], list[Rating]] = defaultdict(list)
    for one in ratings:
        cells[one.segment.document, one.segment.label, one.segment.system].append(one)
    return cells


def _rater_names(ratings: Iterable[Rating]) -> dict[str, str]:
    """Rater -> file name."""
    names: dict[str, str] = {}
    for rater in dict.fromkeys(one.rater for one in ratings):
        name = "_".join(rater.split())
        file_name(name, "rater", ".seg.rating")
        if name == _MERGED or name in names.values():
            raise InputError(f"rater {rater!r} has the same file as others, {name!r}; change the name in the table")
        names[rater] = name
    return names


def ordered(segments: Iterable[SourceSegment]) -> list[SourceSegment]:
    """The segments, sorted by number if all have one; documents stay contiguous."""
    listed = list(segments)
    if all(segment.number.isdecimal() for segment in listed):
        listed.sort(key=lambda segment: int(segment.number))
    first = {name: at for at, name in enumerate(dict.fromkeys(segment.document for segment in listed))}
    return sorted(listed, key=lambda segment: first[segment.document])


def _import(
    segments: Sequence[SourceSegment],
    ratings: Sequence[Rating],
    target: Target,
    gold: Callable[[_Cells], _Gold],
    notes: Sequence[str],
    documents: Sequence[Mapping[str, Any]] = (),
) -> Imported:
    layout, listed = target.layout(), ordered(segments)
    names = target.names(system for segment in listed for system in segment.outputs)
    systems = tuple(sorted(set(names.values())))
    references = target.references_among(systems)
    notes = list(notes)
    if names.get("ref", "ref") != "ref" and "ref" not in target.rename:
        notes.append(f"system ref is called {names['ref']}, as the standard reference of the test set")
    rated = _by_translation(ratings)
    rows = {name: [rated.get((s.document, s.number, old), []) for s in listed] for old, name in names.items()}
    cells = {name: row for name, row in rows.items() if any(row)}
    with TemporaryDirectory() as folder:
        new = replace(layout, data=Path(folder))
        files.write_documents(new.documents, ((segment.domain, segment.document) for segment in listed))
        for old, name in names.items():
            texts = [segment.outputs.get(old) for segment in listed]
            files.write_text(new.output(name), texts)
            if name in references:
                files.write_text(new.reference(name), texts)
        scores, spans = gold(cells)
        for name, ratings_of in scores.items():
            _write_scores(new, name, ratings_of, target.weights)
        for name, ratings_of in spans.items():
            _write_ratings(new, name, ratings_of)
        if not cells:
            files.write_lines(new.task("systems"), (f"{name}\t{old}" for old, name in sorted(names.items())))
            files.write_lines(new.task("segments"), (segment.number for segment in listed))
        if documents:
            files.write_lines(new.task("documents"), map(json_text, documents))
        files.write_text(new.source(), (segment.source for segment in listed))
        _replace(layout, new, [segment.source for segment in listed])
    raters = {one.rater for one in ratings if one.rater}
    by_people = f", {number_of(len(ratings), 'rating')} by {number_of(len(raters), 'rater')}" if ratings else ""
    summary = (
        f"{layout.test_set} {layout.lp} in {layout.data}: {number_of(len(systems), 'system')} "
        f"(references: {', '.join(references) or 'none'}), {number_of(len(listed), 'segment')} in "
        f"{number_of(len({segment.document for segment in listed}), 'document')}{by_people}"
    )
    return Imported(layout, references, summary, tuple(notes))


def _write_scores(layout: Layout, gold: str, cells: _Cells, weights: str) -> None:
    scores = {
        system: [_mean([one.mqm(weights) if one.score is None else one.score for one in each]) for each in row]
        for system, row in cells.items()
    }
    files.write_scores(layout.human_file(gold, "seg.score"), scores)
    files.write_scores(layout.human_file(gold, "sys.score"), {system: [_mean(row)] for system, row in scores.items()})


def _mean(scores: Sequence[float | None]) -> float | None:
    numbers = [score for score in scores if score is not None]
    return sum(numbers) / len(numbers) if numbers else None


def _write_ratings(layout: Layout, name: str, cells: _Cells) -> None:
    """Write the error spans of the first rating of each translation."""
    ratings, raters = {}, {}
    for system, row in cells.items():
        ratings[system] = [each[0].errors if each and each[0].marked else None for each in row]
        raters[system] = ["_".join(each[0].rater.split()) if each else "" for each in row]
    write_ratings(layout.human_file(name, "seg.rating"), ratings, raters)


def _replace(layout: Layout, new: Layout, sources: Sequence[str]) -> None:
    """Replace older files of a test set with the new ones, after checking that they can be read."""
    try:
        test_set = load_test_set(new.data, layout.test_set, layout.lp, blind=True, choice=EVERY_SYSTEM)
        if test_set.sources != tuple(one_line(source).rstrip() for source in sources):
            raise InputError(f"{new.source()}: a source is not read back as it was written")
    except InputError as error:
        why = str(error).replace(str(new.data), str(layout.data))
        raise InputError(
            f"the data cannot be stored in mt-metrics-eval's layout ({why}); nothing is imported"
        ) from None
    old = [layout.source(), layout.documents, *layout.references().values(), *layout.outputs().values()]
    scores = layout.root / "human-scores"
    for path in (*old, *scores.glob(f"{layout.lp}.*.score"), *scores.glob(f"{layout.lp}.*.rating")):
        path.unlink(missing_ok=True)
    # The source is last, because its presence marks a complete test set.
    made = [path for path in new.root.rglob("*") if path.is_file()]
    for path in sorted(made, key=lambda path: path == new.source()):
        place = layout.root / path.relative_to(new.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(place) as file:
            file.write(path.read_bytes())
