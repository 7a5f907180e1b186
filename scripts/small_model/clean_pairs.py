"""Clean parallel texts from post-edits: sources with human-corrected translations.

    python scripts/small_model/clean_pairs.py MLQE-PE --lp en-de --part dev -o pairs.jsonl

The folder is that of `post_edits.py`. Its texts are tokenised, and are detokenised here. A line of the output is
``{"lp", "source", "translation", "links"}``; links are positions of aligned words in the source and in the translation,
``[[[0, 3], [0, 5]], ...]``, available if the machine translation was not corrected and its alignment is in the data.
Pairs with implausible length ratios are omitted.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from spoilt import Pair

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.paths import check_output
from mbr_esd_metric.files.streams import read_segments, write_whole

_WITHOUT_BLANKS = re.compile("[\u1000-\u109f\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_CLOSING = re.compile(r"[,.;:!?%)\]}…]+|[»”’]")
_ENGLISH_ENDINGS = re.compile(r"['’](s|t|m|d|re|ve|ll|S|T)|n't")
#: Minimum and maximum ratio of the lengths of translation and source, in characters; the same for Chinese translations.
_LENGTHS, _INTO_CHINESE = (0.55, 1.9), (0.12, 0.8)


def detokenised(tokens: Sequence[str], language: str) -> tuple[str, list[tuple[int, int]]]:
    """The text of these tokens, and the position of each."""
    text, places, quoted, glued = "", [], False, True
    for token in tokens:
        blank, glued = not glued, token in ("(", "[", "{", "«", "„", "¿", "¡")
        if _CLOSING.fullmatch(token) or (language == "en" and _ENGLISH_ENDINGS.fullmatch(token)):
            blank = False
        if token == '"':
            blank, glued, quoted = blank and not quoted, not quoted, not quoted
        if token == "“":
            blank, glued = blank and language != "de", language != "de"
        if token == "@-@":
            token, blank, glued = "-", False, True
        if language == "ro" and len(token) > 1:
            blank, glued = blank and not token.startswith("-"), token.endswith("-")
        if text and (_WITHOUT_BLANKS.match(text[-1]) or _WITHOUT_BLANKS.match(token[0])):
            blank = False
        text += " " if blank and text else ""
        places.append((len(text), len(text) + len(token)))
        text += token
    return text, places


def pairs(folder: Path, lp: str, part: str) -> Iterator[Pair]:
    """The clean pairs of a language pair.

    Raises:
        InputError: the folder does not contain them.
    """
    place = folder / f"{lp}-{part}"
    if not (place / f"{part}.pe").is_file():
        raise InputError(f"{place}: no {part}.pe; unpack the archives of data/post-editing in {folder}")
    source, target = lp.split("-")
    columns = [read_segments(place / f"{part}.{name}") for name in ("src", "mt", "pe")]
    aligned = place / f"{part}.src-mt.alignments"
    columns.append(read_segments(aligned) if aligned.is_file() else [""] * len(columns[0]))
    low, high = _INTO_CHINESE if target == "zh" else _LENGTHS
    for original, machine, person, links in zip(*columns, strict=True):
        if len(original.split()) < 3 or len(person.split()) < 2:
            continue
        text, places = detokenised(original.split(), source)
        translation, after = detokenised(person.split(), target)
        if text == translation or not low < len(translation) / len(text) < high:
            continue
        known: list[tuple[tuple[int, int], tuple[int, int]]] = []
        if machine.split() == person.split():
            numbers = [tuple(map(int, link.split("-"))) for link in links.split()]
            known = [(places[i], after[j]) for i, j in numbers if i < len(places) and j < len(after)]
        yield Pair(text, translation, lp, tuple(known))


def read_pairs(path: str | Path) -> list[Pair]:
    """The pairs in a file written by this script."""
    clean = []
    for line in read_segments(path):
        value = json.loads(line)
        links = tuple(((a, b), (c, d)) for (a, b), (c, d) in value["links"])
        clean.append(Pair(value["source"], value["translation"], value["lp"], links))
    return clean


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="MLQE-PE", help="folder of the unpacked archives")
    parser.add_argument("--lp", required=True, nargs="+", help="language pairs, such as en-de")
    parser.add_argument("--part", default="train", help="train, dev or test20 (default: train)")
    parser.add_argument("-o", "--output", required=True, help="JSON lines")
    args = parser.parse_args()
    check_output(args.output)
    clean = [pair for lp in args.lp for pair in pairs(args.folder, lp, args.part)]
    values = ({"lp": p.lp, "source": p.source, "translation": p.translation, "links": p.links} for p in clean)
    write_whole(args.output, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))
    print(f"{args.output}: {len(clean)} pairs")


if __name__ == "__main__":
    main()
