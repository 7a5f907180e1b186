"""The folder layout of mt-metrics-eval v2: where each file is, and how texts and scores are read and written.

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
    DATA/TEST_SET/task/LP.documents                           what is known of documents, such as WMT26's (our addition)

`rating_files` reads and writes error spans, and `test_set` checks that files fit together. What reads a file raises
`InputError` with the file and the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import file_name
from mbr_esd_metric.files.streams import numbered_lines, write_whole
from mbr_esd_metric.files.untrusted import finite, parse_strict_json

#: How the toolkit marks a segment that a system did not translate.
NO_TRANSLATION = "[No translation supplied]"
ScoreLevel = Literal["sys", "domain", "doc", "seg"]


def default_data() -> Path:
    """The folder into which the toolkit's own download puts its data."""
    return Path.home() / ".mt-metrics-eval" / "mt-metrics-eval-v2"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one test set and language pair.

    The class, and every method that takes a name, refuse a name that leads out of its folder (`InputError`).
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
        text, json_lines = (self.root / "sources" / f"{self.lp}{suffix}" for suffix in (".txt", ".jsonl"))
        return json_lines if json_lines.is_file() and not text.is_file() else text

    def references(self) -> dict[str, Path]:
        """Reference name -> file, sorted by name."""
        files = _texts((self.root / "references").glob(f"{self.lp}.*.*"), f"{self.lp}.", "reference")
        for name, path in files.items():
            check_reference_name(name, path)
        return files

    def reference(self, name: str) -> Path:
        """Where the text file of a reference goes."""
        return self.root / "references" / file_name(f"{self.lp}.{name}", "reference", ".txt")

    def outputs(self) -> dict[str, Path]:
        """System name -> file of its translations, sorted by name."""
        return _texts((self.root / "system-outputs" / self.lp).glob("*.*"), "", "system")

    def task(self, kind: Literal["systems", "segments", "documents"]) -> Path:
        """The file with a task's names of the systems, numbers of the segments, or documents (our addition)."""
        return self.root / "task" / f"{self.lp}.{kind}"

    def output(self, system: str) -> Path:
        """Where the text file of a system's translations goes."""
        return self.root / "system-outputs" / self.lp / file_name(system, "system", ".txt")

    def human_scores(self, name: str, level: ScoreLevel) -> Path:
        """Human scores of that name, such as "mqm"."""
        return self.root / "human-scores" / file_name(f"{self.lp}.{name}", "human score", f".{level}.score")

    def human_score_names(self) -> tuple[str, ...]:
        """Names, such as "mqm", of the human scores of segments, sorted."""
        return tuple(self._human(".seg.score"))

    def human_ratings(self) -> dict[str, Path]:
        """Name of a set of human ratings, such as "mqm.rater1" -> file, sorted by name."""
        return self._human(".seg.rating")

    def _human(self, suffix: str) -> dict[str, Path]:
        paths = sorted((self.root / "human-scores").glob(f"{self.lp}.*{suffix}"))
        return {path.name.removeprefix(f"{self.lp}.").removesuffix(suffix): path for path in paths}

    def human_rating(self, name: str) -> Path:
        """Human ratings of that name, such as "mqm.rater1"."""
        return self.root / "human-scores" / file_name(f"{self.lp}.{name}", "human rating", ".seg.rating")

    def metrics(self, level: ScoreLevel = "seg") -> tuple[str, ...]:
        """Full names, such as "BLEU-refA", of the metrics that have scores at that level, sorted."""
        suffix = f".{level}.score"
        paths = (self.root / "metric-scores" / self.lp).glob(f"*{suffix}")
        return tuple(sorted(path.name.removesuffix(suffix) for path in paths))

    def metric_files(self) -> list[Path]:
        """Every file of scores, error spans and signatures of metrics, sorted."""
        kinds = ("metric-scores", "metric-ratings")
        return [path for kind in kinds for path in sorted((self.root / kind / self.lp).glob("[!.]*"))]

    def metric_scores(self, name: str, level: ScoreLevel) -> Path:
        """Scores of a metric given by its full name."""
        return self.root / "metric-scores" / self.lp / file_name(name, "metric", f".{level}.score")

    def metric_signature(self, name: str) -> Path:
        """One line that says what the scores of a metric depend on (our addition)."""
        return self.root / "metric-scores" / self.lp / file_name(name, "metric", ".signature")

    def metric_rating(self, name: str) -> Path:
        """Error spans of a metric given by its full name."""
        return self.root / "metric-ratings" / self.lp / file_name(name, "metric", ".seg.rating")


def _texts(paths: Iterable[Path], prefix: str, what: str) -> dict[str, Path]:
    """Name -> file, sorted by name."""
    files: dict[str, Path] = {}
    for path in sorted(paths):
        name = path.stem.removeprefix(prefix)
        if path.suffix not in (".txt", ".jsonl"):
            raise InputError(f"{path}: texts are in .txt or .jsonl files; move it away")
        if name in files:
            raise InputError(f"{path}: {files[name].name} is the same {what}; keep one of them")
        files[name] = path
    return files


def check_reference_name(name: str, where: object) -> None:
    """Raise `InputError` for a reference name that the names of metric files cannot carry."""
    if not name or name in ("all", "src") or "-" in name or "." in name:
        raise InputError(f"{where}: {name!r} is no name of a reference: no dash, no dot, not 'all' or 'src'")


def read_text(path: Path, field: str) -> list[str | None]:
    """The segments of a text file, without white space at their ends, or of one field of a JSON lines file.

    A segment is None if a text file says that there is no translation.
    """
    segments: list[str | None] = []
    for number, line in numbered_lines(path):
        if path.suffix != ".jsonl":
            text = line.rstrip()
            segments.append(None if text == NO_TRANSLATION else text)
            continue
        try:
            value = parse_strict_json(line, writable=True)[field]
        except (InputError, KeyError, TypeError):
            raise InputError(f"{path}, line {number}: no JSON object with the field {field!r}") from None
        if value is not None and not isinstance(value, str):
            raise InputError(f"{path}, line {number}: {field!r} is {type(value).__name__}, not a text")
        segments.append(value)
    return segments


def read_documents(path: Path) -> list[tuple[str, str]]:
    """(domain, document) of each segment."""
    documents: list[tuple[str, str]] = []
    seen: set[str] = set()
    for number, line in numbered_lines(path):
        domain, document = [*(cell.strip() for cell in line.split("\t")), ""][:2]
        if not domain or not document:
            raise InputError(f"{path}, line {number}: give domain and document of the segment, with a tab between them")
        if document in seen and documents[-1][1] != document:
            raise InputError(f"{path}, line {number}: document {document} is not in one piece")
        seen.add(document)
        documents.append((domain, document))
    return documents


def read_scores(path: Path) -> dict[str, list[tuple[int, float | None]]]:
    """System -> (line, score) of each of its entries, in order; None if there is no score."""
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


def score_rows(path: Path) -> dict[str, list[float | None]]:
    """System -> its scores, as of `read_scores`; empty if there is no such file."""
    stored = read_scores(path) if path.is_file() else {}
    return {system: [score for _, score in entries] for system, entries in stored.items()}


def write_text(path: Path, segments: Iterable[str | None]) -> None:
    """Write one segment a line; a line end inside a text becomes a space, so that offsets stay valid."""
    write_lines(path, (NO_TRANSLATION if text is None else one_line(text) for text in segments))


def one_line(text: str) -> str:
    """`text` with line ends as spaces, of the same length."""
    return text.replace("\n", " ").replace("\r", " ")


def write_documents(path: Path, documents: Iterable[tuple[str, str]]) -> None:
    """Write domain and document of each segment; white space in a name becomes an underscore."""
    write_lines(path, ("\t".join("_".join(name.split()) for name in pair) for pair in documents))


def write_scores(path: Path, scores: Mapping[str, Sequence[float | None] | Mapping[str, float | None]]) -> None:
    """Write a block of scores for each system, sorted by name; a mapping has one for each domain, which lines name.

    Numbers are written so that they read back exactly.
    """
    lines = []
    for system in sorted(scores):
        block = scores[system]
        named = (
            [(f"{domain}\t{system}", score) for domain, score in sorted(block.items())]
            if isinstance(block, Mapping)
            else [(system, score) for score in block]
        )
        lines += [f"{name}\t{None if score is None else repr(float(score))}" for name, score in named]
    write_lines(path, lines)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a file and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(f"{line}\n" for line in lines))
