"""The folder layout of mt-metrics-eval v2: where each file is, and how each kind is read and written.

    DATA/TEST_SET/documents/LP.docs                           domain and document of each segment
    DATA/TEST_SET/sources/LP.txt                              or .jsonl, field "source"
    DATA/TEST_SET/references/LP.NAME.txt                      or .jsonl, field "target"
    DATA/TEST_SET/system-outputs/LP/NAME.txt                  or .jsonl, field "hypothesis"
    DATA/TEST_SET/human-scores/LP.NAME.LEVEL.score            LEVEL: sys, domain, doc, seg; None if unrated
    DATA/TEST_SET/human-scores/LP.NAME.seg.rating             error spans; None if unrated
    DATA/TEST_SET/metric-scores/LP/NAME-REF.LEVEL.score       REF: a reference, "src" or "all"
    DATA/TEST_SET/metric-ratings/LP/NAME-REF.seg.rating       error spans of a metric (our addition)
    DATA/TEST_SET/metric-scores/LP/NAME-REF.signature         what its scores depend on (our addition)
    DATA/TEST_SET/task/LP.systems, LP.segments                names of systems and numbers of segments in the task whose
                                                              test set this is (our addition)

This module reads each file by itself; `mbr_esd_metric.adapters.wmt.test_set` checks that they fit together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mbr_esd_metric.adapters.mqm_tsv import MqmError
from mbr_esd_metric.core.annotation import EMPTY, Annotation, ErrorSpan, Point, Severity, Side, fold_severity
from mbr_esd_metric.elicit.parse import is_omission
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import file_name
from mbr_esd_metric.files.streams import numbered_lines, write_whole
from mbr_esd_metric.files.untrusted import decoded, finite

#: How the toolkit marks a segment that a system did not translate.
NO_TRANSLATION = "[No translation supplied]"
#: Suffixes of compressed files, which neither the toolkit nor this package reads in the folder.
PACKED = (".gz", ".zst")

Level = Literal["sys", "domain", "doc", "seg"]


def default_data() -> Path:
    """The folder into which the toolkit's own download puts its data."""
    return Path.home() / ".mt-metrics-eval" / "mt-metrics-eval-v2"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one test set and language pair.

    The class, and every method that takes a name, refuse a name that leads out of its folder (`InputError`).

    Args:
        data: the folder that holds the test sets.
        test_set: such as "wmt24".
        lp: such as "en-de".
    """

    data: Path
    test_set: str
    lp: str

    def __post_init__(self) -> None:
        file_name(self.test_set, "test set")
        file_name(self.lp, "language pair")

    @property
    def root(self) -> Path:
        """The test set's folder."""
        return self.data / self.test_set

    @property
    def documents(self) -> Path:
        """Domain and document of each segment."""
        return self.root / "documents" / f"{self.lp}.docs"

    def source(self) -> Path:
        """The source file; the text file if there is also a JSON one, or if there is none yet."""
        return _first_file(self.root / "sources", self.lp)

    def references(self) -> dict[str, Path]:
        """Reference name -> file, sorted by name.

        Raises:
            InputError: a name that cannot be used in the names of metric files, or two files for one name.
        """
        found: dict[str, Path] = {}
        prefix = f"{self.lp}."
        for path in sorted((self.root / "references").glob(f"{self.lp}.*.*")):
            name = path.stem.removeprefix(prefix)
            check_reference_name(name, path)
            if name in found:
                raise InputError(f"{path}: {found[name].name} is the same reference; keep one of them")
            found[name] = path
        return found

    def reference(self, name: str) -> Path:
        """Where the text file of a reference goes."""
        return self.root / "references" / file_name(f"{self.lp}.{name}", "reference", ".txt")

    def outputs(self) -> dict[str, Path]:
        """System name -> file of its translations, sorted by name."""
        found: dict[str, Path] = {}
        for path in sorted((self.root / "system-outputs" / self.lp).glob("*.*")):
            if path.suffix not in (".txt", ".jsonl"):
                raise InputError(f"{path}: translations are in .txt or .jsonl files; move it away")
            if path.stem in found:
                raise InputError(f"{path}: {found[path.stem].name} is the same system; keep one of them")
            found[path.stem] = path
        return found

    def task(self, kind: Literal["systems", "segments"]) -> Path:
        """The file with a task's names of the systems, or numbers of the segments (our addition)."""
        return self.root / "task" / f"{self.lp}.{kind}"

    def output(self, system: str) -> Path:
        """Where the text file of a system's translations goes."""
        return self.root / "system-outputs" / self.lp / file_name(system, "system", ".txt")

    def human_scores(self, name: str, level: Level) -> Path:
        """Human scores of that name, such as "mqm"."""
        return self.root / "human-scores" / file_name(f"{self.lp}.{name}", "human score", f".{level}.score")

    def human_score_names(self, level: Level) -> tuple[str, ...]:
        """Names, such as "mqm", of the human scores at that level, sorted."""
        suffix = f".{level}.score"
        paths = sorted((self.root / "human-scores").glob(f"{self.lp}.*{suffix}"))
        return tuple(path.name.removeprefix(f"{self.lp}.").removesuffix(suffix) for path in paths)

    def human_ratings(self) -> dict[str, Path]:
        """Name of a set of human ratings, such as "mqm.rater1" -> file, sorted by name."""
        suffix = ".seg.rating"
        paths = sorted((self.root / "human-scores").glob(f"{self.lp}.*{suffix}"))
        return {path.name.removeprefix(f"{self.lp}.").removesuffix(suffix): path for path in paths}

    def human_rating(self, name: str) -> Path:
        """Human ratings of that name, such as "mqm.rater1"."""
        return self.root / "human-scores" / file_name(f"{self.lp}.{name}", "human rating", ".seg.rating")

    def metrics(self, level: Level = "seg") -> tuple[str, ...]:
        """Full names, such as "BLEU-refA", of the metrics that have scores at that level, sorted."""
        suffix = f".{level}.score"
        paths = (self.root / "metric-scores" / self.lp).glob(f"*{suffix}")
        return tuple(sorted(path.name.removesuffix(suffix) for path in paths))

    def packed_metrics(self) -> dict[str, str]:
        """Full name of each metric whose scores of segments are there compressed alone -> name of that file."""
        suffix, there = ".seg.score", self.metrics()
        files = (self.root / "metric-scores" / self.lp).glob(f"*{suffix}.*")
        found = {path.name.split(suffix)[0]: path.name for path in files if path.suffix in PACKED}
        return {name: file for name, file in found.items() if name not in there}

    def metric_files(self) -> list[Path]:
        """Every file of scores, error spans and signatures of metrics, sorted."""
        kinds = ("metric-scores", "metric-ratings")
        return [path for kind in kinds for path in sorted((self.root / kind / self.lp).glob("[!.]*"))]

    def metric_scores(self, name: str, level: Level) -> Path:
        """Scores of a metric given by its full name."""
        return self.root / "metric-scores" / self.lp / file_name(name, "metric", f".{level}.score")

    def metric_signature(self, name: str) -> Path:
        """One line that says what the scores of a metric depend on (our addition)."""
        return self.root / "metric-scores" / self.lp / file_name(name, "metric", ".signature")

    def metric_rating(self, name: str) -> Path:
        """Error spans of a metric given by its full name."""
        return self.root / "metric-ratings" / self.lp / file_name(name, "metric", ".seg.rating")


def packed_file(path: Path) -> Path | None:
    """The compressed form of a file, which neither the toolkit nor this package reads; None if there is none."""
    return next((packed for suffix in PACKED if (packed := path.with_name(path.name + suffix)).is_file()), None)


@dataclass(frozen=True, slots=True)
class Rating:
    """The stored error spans of one translation, and who marked them.

    Attributes:
        annotation: the target side's spans, major and minor; a stored score in [0, 1] is a span's confidence. Errors
            without characters are its points.
        rater: None if the line names nobody; the name of the file then tells.
        omissions: spans of the source's side that say what the translation leaves out: those whose category says so, as
            others are errors of the source itself. Omissions without a place are its `unplaced`.
    """

    annotation: Annotation
    rater: str | None
    omissions: Annotation = EMPTY

    @property
    def both(self) -> Annotation:
        """Annotation and omissions in one."""
        if self.omissions.clean:
            return self.annotation
        spans = Annotation.of_rater([*self.annotation, *self.omissions])
        return spans.pointing(self.annotation.points).missing(self.omissions.unplaced)


def check_reference_name(name: str, where: object) -> None:
    """Raise `InputError` for a reference name that the names of metric files cannot carry."""
    if not name or name in ("all", "src") or "-" in name or "." in name:
        raise InputError(
            f"{where}: {name!r} is no name of a reference: without dash and dot, and neither 'all' nor 'src'"
        )


def read_text(path: Path, field: str) -> list[str | None]:
    """The segments of a text file, without white space at their ends, or of one field of a JSON lines file.

    A segment is None if a text file says that there is no translation.

    Raises:
        InputError: no such file, or a line that is no JSON object with that field; names the line.
    """
    segments: list[str | None] = []
    for number, line in numbered_lines(path):
        if path.suffix != ".jsonl":
            text = line.rstrip()
            segments.append(None if text == NO_TRANSLATION else text)
            continue
        try:
            value = decoded(line, writable=True)[field]
        except (InputError, KeyError, TypeError):
            raise InputError(f"{path}, line {number}: no JSON object with the field {field!r}") from None
        if value is not None and not isinstance(value, str):
            raise InputError(f"{path}, line {number}: {field!r} is {type(value).__name__}, not a text")
        segments.append(value)
    return segments


def read_documents(path: Path) -> list[tuple[str, str]]:
    """(domain, document) of each segment.

    Raises:
        InputError: a line without two words, or a document that is not in one piece; names the line.
    """
    documents: list[tuple[str, str]] = []
    seen: set[str] = set()
    for number, line in numbered_lines(path):
        words = line.split()
        if len(words) < 2:
            raise InputError(f"{path}, line {number}: give the domain and the document of the segment")
        domain, document = words[0], words[1]
        if document in seen and documents[-1][1] != document:
            raise InputError(f"{path}, line {number}: document {document} is not in one piece")
        seen.add(document)
        documents.append((domain, document))
    return documents


def read_scores(path: Path) -> dict[str, list[tuple[int, float | None]]]:
    """System -> (line, score) of each of its entries, in order; None if there is no score.

    Raises:
        InputError: a line that is not a system and a number or None; names the line.
    """
    scores: dict[str, list[tuple[int, float | None]]] = {}
    for number, line in numbered_lines(path):
        words = line.split()
        try:
            system, word = words
            score = None if word == "None" else finite(word)
        except (ValueError, InputError):
            raise InputError(
                f"{path}, line {number}: give a system and its score (a number or None), not {line!r}"
            ) from None
        scores.setdefault(system, []).append((number, score))
    return scores


def read_domain_scores(path: Path) -> dict[str, dict[str, float | None]]:
    """Domain -> system -> score; None if there is no score.

    Raises:
        InputError: a line that is not a domain, a system and a number or None; names the line.
    """
    scores: dict[str, dict[str, float | None]] = {}
    for number, line in numbered_lines(path):
        words = line.split()
        try:
            domain, system, word = words
            scores.setdefault(domain, {})[system] = None if word == "None" else finite(word)
        except (ValueError, InputError):
            raise InputError(
                f"{path}, line {number}: give a domain, a system and its score (a number or None), not {line!r}"
            ) from None
    return scores


def read_ratings(path: Path) -> dict[str, list[tuple[int, Rating | None]]]:
    """System -> (line, rating) of each of its entries, in order; None if a segment is unrated.

    Spans that are repeated are kept.

    Raises:
        InputError: a line that is not a system, a rating and perhaps a rater, separated by tabs; names the line.
    """
    ratings: dict[str, list[tuple[int, Rating | None]]] = {}
    for number, line in numbered_lines(path):
        cells = line.strip().split("\t")
        if len(cells) not in (2, 3):
            raise InputError(f"{path}, line {number}: {len(cells)} columns; give system, rating and perhaps rater")
        rater = cells[2] if len(cells) == 3 else None
        try:
            rating = None if cells[1] == "None" else _rating(cells[1], rater)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, InputError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{path}, line {number}: not a rating in JSON ({reason})") from None
        ratings.setdefault(cells[0], []).append((number, rating))
    return ratings


def write_text(path: Path, segments: Iterable[str | None]) -> None:
    """Write one segment a line; a line end inside a text becomes a space, so that offsets stay valid."""
    _write(path, (NO_TRANSLATION if text is None else one_line(text) for text in segments))


def one_line(text: str) -> str:
    """`text` with line ends as spaces, of the same length."""
    return text.replace("\n", " ").replace("\r", " ")


def write_documents(path: Path, documents: Iterable[tuple[str, str]]) -> None:
    """Write domain and document of each segment; white space in a name becomes an underscore."""
    _write(path, ("\t".join("_".join(name.split()) for name in pair) for pair in documents))


def write_scores(path: Path, scores: Mapping[str, Sequence[float | None]]) -> None:
    """Write a block of scores for each system, sorted by name. Numbers are written so that they read back exactly."""
    _write(
        path,
        (
            f"{system}\t{None if score is None else repr(float(score))}"
            for system in sorted(scores)
            for score in scores[system]
        ),
    )


def write_domain_scores(path: Path, scores: Mapping[str, Mapping[str, float | None]]) -> None:
    """Write one line with domain, system and score for each score; `scores` maps a system to its domains."""
    _write(
        path,
        (
            f"{domain}\t{system}\t{None if score is None else repr(float(score))}"
            for system in sorted(scores)
            for domain, score in sorted(scores[system].items())
        ),
    )


def write_ratings(
    path: Path,
    ratings: Mapping[str, Sequence[Annotation | Sequence[MqmError] | None]],
    raters: Mapping[str, Sequence[str | None]],
) -> None:
    """Write a block of ratings for each system, sorted by name.

    Args:
        path: the file.
        ratings: system -> for each segment an annotation of both sides, or the errors that a rater marked (errors
            without a place are left out, because the format cannot hold them; but an omission without a place is an
            empty span of the source), or None if unrated.
        raters: system -> who rated each segment.
    """
    lines = []
    for system in sorted(ratings):
        for rating, rater in zip(ratings[system], raters[system], strict=True):
            if rating is None:
                lines.append(f"{system}\tNone")
                continue
            errors = [_error(error) for error in rating if _has_place(error)]
            if isinstance(rating, Annotation):
                errors += [_error(MqmError(severity, "", "target", at, at)) for at, severity in rating.points]
                errors += [_error(MqmError(severity, "omission", "source")) for severity in rating.unplaced]
            content = json.dumps({"errors": errors})
            lines.append(f"{system}\t{content}" + (f"\t{rater}" if rater else ""))
    _write(path, lines)


def _has_place(error: ErrorSpan | MqmError) -> bool:
    return isinstance(error, ErrorSpan) or error.side is not None


def _error(error: ErrorSpan | MqmError) -> dict[str, Any]:
    confidence = error.confidence if isinstance(error, ErrorSpan) else None
    return {
        "start": error.start,
        "end": error.end,
        "category": _named_omission(error) if isinstance(error, ErrorSpan) else error.category,
        "severity": error.severity,
        # The toolkit takes no whole number where it expects a float.
        "score": None if confidence is None else float(confidence),
        "is_source_error": error.side == "source",
    }


def _named_omission(span: ErrorSpan) -> str | None:
    """A span's category, which says of one in the source that it is no error of the source."""
    if span.side == "translation" or is_omission(span.category):
        return span.category
    return f"{span.category}/omission" if span.category else "omission"


def _rating(text: str, rater: str | None) -> Rating:
    """A stored rating; a score in [0, 1] is a span's confidence."""
    spans: list[ErrorSpan] = []
    points: list[Point] = []
    unplaced: list[Severity] = []
    for error in decoded(text)["errors"]:
        severity, category = fold_severity(error.get("severity") or ""), error.get("category")
        side: Side = "source" if error.get("is_source_error", False) else "translation"
        if severity is None or (side == "source" and not is_omission(category)):
            continue
        if error["start"] == error["end"]:
            if side == "source":
                unplaced.append(severity)
            else:
                points.append((int(error["start"]), severity))
            continue
        score = error.get("score")
        confidence = float(score) if score is not None and 0 <= score <= 1 else None
        spans.append(ErrorSpan(error["start"], error["end"], severity, category, confidence, side))
    both = Annotation.of_rater(spans)
    return Rating(both.on("translation").pointing(points), rater, both.on("source").missing(unplaced))


def _first_file(folder: Path, stem: str) -> Path:
    text, json_lines = folder / f"{stem}.txt", folder / f"{stem}.jsonl"
    return json_lines if json_lines.is_file() and not text.is_file() else text


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(f"{line}\n" for line in lines))
