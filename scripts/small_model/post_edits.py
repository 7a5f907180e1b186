"""Error spans from post-edits: words that a post-editor changed are errors.

    python scripts/small_model/post_edits.py MLQE-PE --lp en-de -o mlqe_en-de.tsv

MLQE-PE (github.com/sheffieldnlp/mlqe-pe, CC0) has 9,000 sentences of Wikipedia or Reddit for each of seven language
pairs, each machine-translated, post-edited by one person, and rated from 0 to 100 by others. The folder contains the
unpacked archives of its `data/post-editing` and `data/direct-assessments`. The output has the nine fields of WMT's
quality estimation task, for `mbr-esd distill sft`. Its advantage as training data is the large number of different
sources, which MQM annotations do not have.

A span is a run of tokens (words, single Chinese characters, punctuation) that the correction replaces or removes; runs
with at most one character between them are merged. Translations are omitted if the correction only adds words, so that
there is nothing to mark, or if more than 60% of the characters would be marked, because they were rewritten. The data
have no severities, so the errors of a translation are major if its rating is among the lowest 30% of the translations
with errors, and minor otherwise.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from mbr_esd_metric.adapters.wmt.submissions import write_spans
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan, Severity
from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.files.streams import read_segments, write_whole

_TOKEN = re.compile(r"[\u4e00-\u9fff]|\w+|[^\w\s]")
_COLUMNS = ("original", "translation", "mean")
_MOST_MARKED = 0.6
_SHARE_MAJOR = 0.3

Spans = list[tuple[int, int]]


def changed(translation: str, corrected: str) -> Spans | None:
    """The characters of the translation that the correction changes, half-open and in order.

    Returns:
        The spans; None if the correction only adds words, or changes more than 60% of the characters.
    """
    tokens = list(_TOKEN.finditer(translation))
    matcher = SequenceMatcher(None, [match[0] for match in tokens], _TOKEN.findall(corrected), autojunk=False)
    changes = [change for change in matcher.get_opcodes() if change[0] != "equal"]
    spans: Spans = []
    for _, first, last, _, _ in changes:
        if first == last:
            continue
        start, end = tokens[first].start(), tokens[last - 1].end()
        if spans and start - spans[-1][1] <= 1:
            start = spans.pop()[0]
        spans.append((start, end))
    added_only = bool(changes) and not spans
    return None if added_only or sum(b - a for a, b in spans) > _MOST_MARKED * len(translation) else spans


def examples(folder: Path, lp: str) -> Iterator[tuple[str, str, str, float]]:
    """Source, translation, corrected translation and mean rating of each sentence."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the one with the unpacked archives of MLQE-PE")
    corrections = sorted(folder.glob(f"{lp}-*/*.pe"))
    if not corrections:
        raise InputError(
            f"{folder}: no {lp}-*/*.pe; unpack the archives of data/post-editing there, and give --lp as in "
            "their names, such as en-de"
        )
    for path in corrections:
        part, pair = path.stem, lp.replace("-", "")
        table = next(iter(sorted(folder.glob(f"{lp}*/{part}.{pair}.df.short.tsv"))), None)
        if table is None:
            raise InputError(f"{folder}: no {part}.{pair}.df.short.tsv; unpack data/direct-assessments there too")
        header, *rows = (line.split("\t") for line in read_segments(table))
        if missing := [name for name in _COLUMNS if name not in header]:
            raise InputError(f"{table}: its first line has no column {missing[0]!r}, only {', '.join(header)}")
        corrected = read_segments(path)
        if len(rows) != len(corrected):
            raise InputError(
                f"{table} has {len(rows)} translations, and {path} has {len(corrected)}; they must go together"
            )
        columns = [header.index(name) for name in _COLUMNS]
        for row, correction in zip(rows, corrected, strict=True):
            source, translation, rating = (row[column].strip() for column in columns)
            yield source, translation, correction, float(rating)


def rows(folder: Path, lp: str) -> list[str]:
    """A line of the task's table for each translation that is not omitted."""
    sentences = [
        (source, translation, spans, rating)
        for source, translation, corrected, rating in dict.fromkeys(examples(folder, lp))
        if (spans := changed(translation, corrected)) is not None
    ]
    rated = [rating for *_, spans, rating in sentences if spans]
    limit = np.quantile(rated, _SHARE_MAJOR) if rated else 0.0
    lines = []
    for number, (source, translation, spans, rating) in enumerate(sentences, 1):
        severity: Severity = "major" if rating < limit else "minor"
        columns = write_spans(Annotation([ErrorSpan(start, end, severity) for start, end in spans]))
        lines.append("\t".join(["mt", "post-edits", str(number), "editor", source, translation, *columns]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="MLQE-PE", help="folder of the unpacked archives")
    parser.add_argument("--lp", required=True, help="language pair, such as en-de")
    parser.add_argument("-o", "--output", required=True, help="table; its name holds the language pair")
    args = parser.parse_args()
    if args.lp not in Path(args.output).name:
        parser.error(
            f"--output {args.output}: its name says the language pair to readers; give mlqe_{args.lp}.tsv or the like"
        )
    check_output(args.output)
    lines = rows(args.folder, args.lp)
    write_whole(args.output, "".join(line + "\n" for line in lines))
    clean = sum(line.endswith("no-error") for line in lines)
    print(f"{args.output}: {len(lines)} translations, {clean} of them without a change")


if __name__ == "__main__":
    main()
