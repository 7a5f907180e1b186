"""The folder layout of mt-metrics-eval v2: file locations, and reading and writing of texts and scores.

    DATA/TEST_SET/documents/LP.docs                           domain and document of each segment
    DATA/TEST_SET/sources/LP.txt                              or .jsonl, field "source"
    DATA/TEST_SET/references/LP.NAME.txt                      or .jsonl, field "target"
    DATA/TEST_SET/system-outputs/LP/NAME.txt                  or .jsonl, field "hypothesis"
    DATA/TEST_SET/human-scores/LP.NAME.LEVEL.score            LEVEL: sys, doc, seg; None if unrated
    DATA/TEST_SET/human-scores/LP.NAME.seg.rating             error spans; None if unrated
    DATA/TEST_SET/metric-scores/LP/NAME-REF.LEVEL.score       REF: a reference, "src" or "all"
    DATA/TEST_SET/metric-ratings/LP/NAME-REF.seg.rating       error spans of a metric (our addition)
    DATA/TEST_SET/metric-scores/LP/NAME-REF.signature         what its scores depend on (our addition)
    DATA/TEST_SET/task/LP.systems, LP.segments                names of systems and numbers of segments in the task whose
                                                              test set this is (our addition)
    DATA/TEST_SET/task/LP.documents                           what is known of documents, such as WMT26's (our addition)

Also contains metadata of WMT's test sets with error spans from mt-metrics-eval (MQM from wmt20 on, ESA from wmt24 on;
wmt26 only has ESA): their gold, the evaluated systems, primary submissions and baselines. `rating_files` reads and
writes error spans, and `test_set` checks the consistency of files. Functions that read files raise `InputError` with
file and line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import file_name
from mbr_esd_metric.files.streams import numbered_lines, write_whole
from mbr_esd_metric.files.untrusted import finite, parse_strict_json, reading

#: The toolkit's marker for a segment that a system did not translate.
NO_TRANSLATION = "[No translation supplied]"
_T = TypeVar("_T")


def default_data() -> Path:
    """The folder of the toolkit's downloaded data."""
    return Path.home() / ".mt-metrics-eval" / "mt-metrics-eval-v2"


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one test set and language pair. Names that lead out of the folder raise `InputError`."""

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
        """The source file; the text file if there is also a JSON file, or if neither exists yet."""
        text = self.root / "sources" / f"{self.lp}.txt"
        return _texts((self.root / "sources").glob(f"{self.lp}.*")).get(self.lp, text)

    def references(self) -> dict[str, Path]:
        """Reference name -> file, sorted by name."""
        files = _texts((self.root / "references").glob(f"{self.lp}.*.*"), f"{self.lp}.")
        for name, path in files.items():
            check_reference_name(name, path)
        return files

    def reference(self, name: str) -> Path:
        """The path of a reference's text file."""
        return self.root / "references" / file_name(f"{self.lp}.{name}", "reference", ".txt")

    def outputs(self) -> dict[str, Path]:
        """System name -> file of its translations, sorted by name."""
        return _texts((self.root / "system-outputs" / self.lp).glob("*.*"))

    def output(self, system: str) -> Path:
        """The path of the text file with a system's translations."""
        return self.root / "system-outputs" / self.lp / file_name(system, "system", ".txt")

    def task(self, kind: Literal["systems", "segments", "documents"]) -> Path:
        """The file with a task's system names, segment numbers, or documents (our addition)."""
        return self.root / "task" / f"{self.lp}.{kind}"

    def human_file(self, name: str, ending: str) -> Path:
        """The file of human scores, such as "mqm", with the extension seg.score, sys.score or doc.score; or of error
        spans of a set, such as "mqm.rater1", with the extension seg.rating."""
        return self.root / "human-scores" / file_name(f"{self.lp}.{name}", "human score", f".{ending}")

    def human_files(self, ending: str) -> dict[str, Path]:
        """Name of human scores or ratings with this extension -> file, sorted by name."""
        paths = sorted((self.root / "human-scores").glob(f"{self.lp}.*.{ending}"))
        return {path.name.removeprefix(f"{self.lp}.").removesuffix(f".{ending}"): path for path in paths}

    def metric_file(self, name: str, ending: str) -> Path:
        """A file of a metric, given by its full name: seg.score, sys.score, seg.rating, or signature, which is one line
        (the last two are our additions)."""
        folder = "metric-ratings" if ending == "seg.rating" else "metric-scores"
        return self.root / folder / self.lp / file_name(name, "metric", f".{ending}")

    def metrics(self, ending: str = "seg.score") -> tuple[str, ...]:
        """Full names, such as "BLEU-refA", of the metrics with such a file, sorted."""
        paths = self.metric_file("*", ending).parent.glob(f"*.{ending}")
        return tuple(sorted(path.name.removesuffix(f".{ending}") for path in paths))

    def metric_files(self) -> list[Path]:
        """All files with scores, error spans and signatures of metrics, sorted."""
        folders = [self.metric_file("*", ending).parent for ending in ("seg.score", "seg.rating")]
        return [path for folder in folders for path in sorted(folder.glob("[!.]*"))]


def _texts(paths: Iterable[Path], prefix: str = "") -> dict[str, Path]:
    """Name -> file, sorted by name; the text file if there is also a JSON file. Other files are ignored."""
    files: dict[str, Path] = {}
    for path in sorted(paths):
        if path.suffix == ".txt" or (path.suffix == ".jsonl" and not path.with_suffix(".txt").is_file()):
            files[path.stem.removeprefix(prefix)] = path
    return dict(sorted(files.items()))


def check_reference_name(name: str, where: object) -> None:
    """Raise `InputError` for a reference name that is not allowed in names of metric files."""
    if not name or name in ("all", "src") or "-" in name or "." in name:
        raise InputError(f"{where}: {name!r} is not a valid reference name (without dash or dot, not 'all' or 'src')")


def base_name(metric: str) -> tuple[str, bool]:
    """A metric's full name without the reference, and whether it uses one; together, they identify it across language
    pairs."""
    base, _, reference = metric.rpartition("-")
    return base, reference != "src"


def references_of(metric: str, references: Sequence[str]) -> set[str | None]:
    """The references used by a metric, from its full name; none for "src", all for "all"."""
    used = metric.rsplit("-", 1)[-1]
    if used == "src":
        return set()
    return set(references) if used == "all" else set(used.split("."))


def read_text(path: Path, field: str, count: int | None = None) -> tuple[str | None, ...]:
    """The segments of a text file, without trailing white space, or of one field of a JSON lines file; exactly `count`,
    if given. A segment is None if a text file marks it as not translated. As in the toolkit, a byte order mark is a
    character of the first segment of a text file, and counts in human spans."""
    segments: list[str | None] = []
    for number, line in numbered_lines(path, with_mark=path.suffix != ".jsonl"):
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
    return _counted(path, segments, count)


def _counted(path: Path, lines: Sequence[_T], count: int | None) -> tuple[_T, ...]:
    if count is not None and len(lines) != count:
        line = min(len(lines), count) + 1
        raise InputError(f"{path}, line {line}: {len(lines)} lines, but {count} source segments")
    return tuple(lines)


def read_documents(path: Path, count: int) -> tuple[tuple[str, str], ...]:
    """(domain, document) of each of `count` segments."""
    documents: list[tuple[str, str]] = []
    seen: set[str] = set()
    for number, line in numbered_lines(path):
        domain, document = [*(cell.strip() for cell in line.split("\t")), ""][:2]
        if not domain or not document:
            raise InputError(f"{path}, line {number}: give the segment's domain and document, separated by a tab")
        if document in seen and documents[-1][1] != document:
            raise InputError(f"{path}, line {number}: document {document} is not contiguous")
        seen.add(document)
        documents.append((domain, document))
    return _counted(path, documents, count)


def read_blocks(
    path: Path, parse: Callable[[str], tuple[str, _T]], outputs: Mapping[str, Sized] | None = None
) -> dict[str, list[_T]]:
    """System -> its entries, in order; empty if there is no such file.

    Args:
        parse: returns system and entry of a line.
        outputs: if given, each block must belong to one of these systems, and have an entry for each of its
            translations.

    Raises:
        InputError: a malformed line, or a block that does not fit (with the line).
    """
    blocks: dict[str, list[_T]] = {}
    last: dict[str, int] = {}
    for number, line in numbered_lines(path) if path.is_file() else ():
        with reading(f"{path}, line {number}"):
            system, entry = parse(line)
        blocks.setdefault(system, []).append(entry)
        last[system] = number
    if outputs is None:
        return blocks
    for system, entries in blocks.items():
        where = f"{path}, line {last[system]}"
        if system not in outputs:
            raise InputError(f"{where}: the folder has no translations of system {system}")
        if len(entries) != len(outputs[system]):
            raise InputError(
                f"{where}: {len(entries)} entries for system {system}, but {len(outputs[system])} segments"
            )
    return blocks


def read_scores(path: Path, outputs: Mapping[str, Sized] | None = None) -> dict[str, list[float | None]]:
    """System -> its scores, None if missing; for arguments and exceptions, see `read_blocks`."""
    return read_blocks(path, _score, outputs)


def _score(line: str) -> tuple[str, float | None]:
    try:
        system, word = line.split()
        return system, None if word == "None" else finite(word)
    except (ValueError, InputError):
        raise InputError(f"give a system and its score (a number or None), not {line!r}") from None


def write_text(path: Path, segments: Iterable[str | None]) -> None:
    """Write one segment per line; line ends inside a text become spaces, so that offsets stay valid."""
    write_lines(path, (NO_TRANSLATION if text is None else one_line(text) for text in segments))


def one_line(text: str) -> str:
    """`text` with line ends replaced by spaces, with the same length."""
    return text.replace("\n", " ").replace("\r", " ")


def write_documents(path: Path, documents: Iterable[tuple[str, str]]) -> None:
    """Write domain and document of each segment; white space in a name becomes an underscore."""
    write_lines(path, ("\t".join("_".join(name.split()) for name in pair) for pair in documents))


def write_scores(path: Path, scores: Mapping[str, Sequence[float | None]]) -> None:
    """Write a block of scores for each system, sorted by name. Numbers are written without loss of precision."""
    lines = (
        f"{system}\t{None if score is None else repr(float(score))}"
        for system in sorted(scores)
        for score in scores[system]
    )
    write_lines(path, lines)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a file, creating its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, "".join(f"{line}\n" for line in lines))


@dataclass(frozen=True, slots=True)
class SystemChoice:
    """The selection of evaluated systems among those with gold scores. References count as systems.

    Attributes:
        only: evaluate exactly these systems; if empty, the other attributes apply.
        exclude: do not evaluate these systems.
        outliers: whether to evaluate WMT's outliers.
        standard: whether to evaluate the standard reference.
    """

    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    outliers: bool = False
    standard: bool = False

    def takes(self, system: str, info: TestSetInfo) -> bool:
        """Whether a system is evaluated."""
        if self.only or system in self.exclude:
            return system in self.only and system not in self.exclude
        return (self.outliers or system not in info.outliers) and (self.standard or system != info.standard_reference)


#: Includes the standard reference and outliers.
EVERY_SYSTEM = SystemChoice(outliers=True, standard=True)


@dataclass(frozen=True, slots=True)
class TestSetInfo:
    """Metadata of one test set and language pair that its files do not contain.

    Attributes:
        standard_reference: the reference that metrics use, which is not evaluated as a system. None for the only
            reference.
        gold: name of the gold scores, as in ``human-scores/en-de.mqm.seg.score``.
        outliers: systems excluded from the evaluation.
    """

    standard_reference: str | None = None
    gold: str = "mqm"
    outliers: frozenset[str] = frozenset()


#: (Test set, language pair) -> the toolkit's metadata; those with MQM gold come first.
TEST_SETS: Mapping[tuple[str, str], TestSetInfo] = {
    (test_set, lp): TestSetInfo(reference, gold, frozenset(outliers.split()))
    for test_set, gold, reference, outliers, lps in (
        ("wmt20", "mqm", "ref", "zlabs-nlp.179 WMTBiomedBaseline.388 Online-G.1556", "en-de"),
        ("wmt20", "mqm", "ref", "WMTBiomedBaseline.183", "zh-en"),
        ("wmt21.news", "mqm", "refC", "", "en-de"),
        ("wmt21.news", "mqm", "refA", "", "en-ru"),
        ("wmt21.news", "mqm", "refB", "", "zh-en"),
        ("wmt21.tedtalks", "mqm", "refA", "", "en-de en-ru"),
        ("wmt21.tedtalks", "mqm", "refB", "", "zh-en"),
        ("wmt22", "mqm", "refA", "M2M100_1.2B-B4", "en-de"),
        ("wmt22", "mqm", "refA", "", "en-ru zh-en"),
        ("wmt23", "mqm", "refA", "synthetic_ref", "en-de zh-en"),
        ("wmt23", "mqm", "refB", "", "he-en"),
        ("wmt23.sent", "mqm", "refA", "", "en-de"),
        ("wmt24", "mqm", "refB", "MSLC", "en-de"),
        ("wmt24", "mqm", "refA", "MSLC", "en-es ja-zh"),
        ("wmt25", "mqm", "refA", "", "en-ko_KR ja-zh_CN"),
        ("wmt24", "esa", "refA", "", "cs-uk en-cs en-hi en-is en-ja en-ru en-uk en-zh"),
        ("wmt25", "esa-human1", "refA", "", "cs-de_DE cs-uk_UA en-ar_EG en-bho_IN en-cs_CZ en-et_EE en-is_IS en-it_IT"),
        ("wmt25", "esa-human1", "refA", "", "en-ja_JP en-mas_KE en-ru_RU en-sr_Cyrl_RS en-uk_UA en-zh_CN"),
    )
    for lp in lps.split()
}


def info_of(test_set: str, lp: str) -> TestSetInfo:
    """The table's entry, or the defaults for an unknown test set."""
    default = TestSetInfo("refA", "esa") if test_set == "wmt26" else TestSetInfo()
    return TEST_SETS.get((test_set, lp), default)


def reference_name(test_set: str, lp: str) -> str | None:
    """The name for a reference called "ref": the language pair's standard reference, or else the most frequent one of
    the test set. None for an unknown test set.
    """
    names = Counter(info.standard_reference for (name, _), info in TEST_SETS.items() if name == test_set)
    return info_of(test_set, lp).standard_reference or (names.most_common(1)[0][0] if names else None)


def preferred_gold(names: Collection[str]) -> str | None:
    """The name of the gold scores to use if the table's are missing, such as "esa" or "esa-human1"; None if there are
    several unknown ones."""
    for kind in ("mqm", "esa", "da-sqm", "wmt"):
        alike = [kind] if kind in names else sorted(name for name in names if name.startswith(f"{kind}-"))
        if alike:
            return alike[0]
    return next(iter(names)) if len(names) == 1 else None


#: A team's main submission, another of its submissions, or the organisers' own metric.
Status = Literal["primary", "contrastive", "baseline"]

#: Year -> base names of its primary submissions; those of wmt21 and wmt22 include the baselines.
_PRIMARY: Mapping[str, str] = {
    "wmt21": "bleurt-20 COMET-MQM_2021 COMET-QE-MQM_2021 C-SPECpn MEE2 MTEQA OpenKiwi-MQM regEMT YiSi-1 YiSi-2 "
    "BERTScore sentBLEU BLEU chrF Prism TER cushLEPOR(LM) hLEPOR RoBLEURT",
    "wmt22": "BERTScore BLEURT-20 BLEU chrF COMET-20 COMET-22 COMETKiwi COMET-QE f200spBLEU "
    "HuaweiTSC_EE_BERTScore_0.3_With_Human HWTSC-Teacher-Sim MATESE-QE MATESE MEE4 metricx_xxl_MQM_2020 MS-COMET-22 "
    "MS-COMET-QE-22 REUSE SEScore UniTE UniTE-src YiSi-1",
    "wmt23": "Calibri-COMET22 Calibri-COMET22-QE cometoid22-wmt22 eBLEU embed_llama GEMBA-MQM KG-BERTScore MaTESe MEE4 "
    "MetricX-23 MetricX-23-QE mre-score-labse-regular mbr-metricx-qe sescoreX tokengram_F XCOMET-Ensemble "
    "XCOMET-QE-Ensemble XLsim",
    "wmt24": "BLCOM_1 bright-qe chrfS damonmonli gemba_esa MEE4 metametrics_mt_mqm_hybrid_kendall "
    "metametrics_mt_mqm_qe_kendall.seg.s MetricX-24-Hybrid MetricX-24-Hybrid-QE XCOMET XCOMET-QE XLsimMqm",
    "wmt25": "EnsembleSlick GEMBA-v2 MetricX-25 Polycand-2 Q_Relative-MQM SEGALE-QE TASER-No-Ref UvA-MT comet-multi "
    "hw-tsc mr7_2_1 rankedCOMET",
}
_BASELINES: Mapping[str, str] = {
    "wmt23": "BERTscore BLEU BLEURT-20 chrF COMET CometKiwi docWMT22CometDA docWMT22CometKiwiDA f200spBLEU "
    "MS-COMET-QE-22 prismRef prismSrc Random-sysname YiSi-1",
    "wmt24": "BERTScore BLEU BLEURT-20 chrF COMET-22 CometKiwi PrismRefMedium PrismRefSmall spBLEU YiSi-1 "
    "sentinel-cand-mqm sentinel-ref-mqm sentinel-src-mqm",
    "wmt25": "BERTScore BLEU COMET22 COMETKiwi22 YiSi-1 chrF sentinel-cand spBLEU",
}


def metric_status(test_set: str, name: str) -> Status | None:
    """The status of a metric, by base name, in the task of a test set such as "wmt21.tedtalks"; None if the task's
    submissions are unknown."""
    year = test_set.partition(".")[0]
    if year not in _PRIMARY:
        return None
    if name in _BASELINES.get(year, "").split():
        return "baseline"
    return "primary" if name in _PRIMARY[year].split() else "contrastive"
