"""Downloads the public human annotations that some tests and documentation pages use.

    python scripts/human_data.py FOLDER

Writes ``FOLDER/mqm`` (two tables of google/wmt-mqm-human-evaluation, Apache-2.0) and ``FOLDER/wmt_qe_2023`` (the test
set of WMT23's quality estimation task 2 with its gold, WMT-QE-Task/wmt-qe-2023-data), about 20 MB. Files are
downloaded from pinned commits, and each table is verified by the SHA-256 of its text. Existing files are verified and
kept.
Afterwards::

    export MBR_ESD_DATA=FOLDER

It only uses the standard library. These files must not be committed to the repository.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import sys
import tarfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HUMAN = "google/wmt-mqm-human-evaluation/7fadea281aff8db61cc72fc3d469a4dca78b82a6"
TASK = "WMT-QE-Task/wmt-qe-2023-data/74efc0840000563004b248fb615d0252d7602576"
SIDE_BY_SIDE = "sxs_mqm_generalMT2023_ende.3ratingsPerSegment.tsv"


@dataclass(frozen=True)
class Table:
    """A table: its local file, the remote files, the function that converts them, and the SHA-256 of its text."""

    path: str
    sources: tuple[str, ...]
    make: Callable[..., bytes]
    sha256: str


def _without_metadata(archive: bytes) -> bytes:
    """The nine columns about the translation; the tenth is a log of the rater's clicks."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        member = files.extractfile(SIDE_BY_SIDE)
        assert member is not None
        header, *rows = member.read().decode("utf-8").split("\n")
    header = header.replace("docSegId", "doc_seg_id").replace("globalSegId", "global_seg_id")
    return "\n".join("\t".join(row.split("\t")[:9]) for row in (header, *rows)).encode("utf-8")


def _gold_with_sources(gold: bytes, sources: bytes) -> bytes:
    """The en-de rows with their source texts, with the columns of the task's training data."""
    texts = sources.decode("utf-8").split("\n")
    rows = ["lp\tsid\tsource\ttarget\tstart_ids\tend_ids\terrors"]
    for line in gold.decode("utf-8").split("\n"):
        pair, *fields = line.split("\t")
        if pair == "en-de":
            _, number, *rest = fields
            rows.append("\t".join([pair, number, texts[int(number)], *rest]))
    return "\n".join([*rows, ""]).encode("utf-8")


TABLES = (
    Table(
        "mqm/mqm_ted_ende.tsv",
        (f"{HUMAN}/ted/ende/mqm_ted_ende.tsv",),
        bytes,
        "3952dc904997dda31c03421243862cb8a093f9a712fd90dc97b9709b4bb387b3",
    ),
    Table(
        "mqm/sxs_mqm_generalMT2023_ende.3raters.tsv",
        (f"{HUMAN}/generalMT2023/ende/{SIDE_BY_SIDE}.tar.gz",),
        _without_metadata,
        "33222c7027efe65968164e904bccc58d72046924195e7e6afc5ebb9cf1987b10",
    ),
    Table(
        "wmt_qe_2023/2023_en-de_test.tsv.gz",
        (
            f"{TASK}/gold_labels/hallucinations_gold_T2_header.tsv",
            f"{TASK}/test_data_2023/task2/en-de/test.ende.final.src",
        ),
        _gold_with_sources,
        "476e2fabc46978a8984b9f99ca41fdfcf9128a7bd8b97fbcb60fb83081476291",
    ),
)


def fetch(folder: Path, base: str) -> None:
    """Write all missing tables.

    Args:
        folder: the folder; created if it does not exist.
        base: the URL before OWNER/NAME/COMMIT/PATH.

    Raises:
        OSError: a file cannot be downloaded; the message has its URL.
        ValueError: a table differs from the published one; it is not written.
    """
    for table in TABLES:
        path = folder / table.path
        if path.is_file():
            content = path.read_bytes()
            text = gzip.decompress(content) if path.suffix == ".gz" else content
        else:
            text = table.make(*(_read(f"{base}/{source}") for source in table.sources))
            content = gzip.compress(text, mtime=0) if path.suffix == ".gz" else text
        digest = hashlib.sha256(text).hexdigest()
        if digest != table.sha256:
            raise ValueError(f"{path}: its text has the SHA-256 {digest}, not {table.sha256}; remove it and try again")
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_name(f"{path.name}.new")
            new.write_bytes(content)
            os.replace(new, path)


def _read(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            return bytes(reply.read())
    except OSError as error:
        raise OSError(f"cannot fetch {address}: {error}") from error


def main(words: list[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Download the public human annotations (about 20 MB).")
    parser.add_argument("folder", type=Path, help="the output folder, for MBR_ESD_DATA")
    parser.add_argument(
        "--base", default="https://raw.githubusercontent.com", help="a mirror, or file:///FOLDER (default: %(default)s)"
    )
    args = parser.parse_args(words)
    try:
        fetch(args.folder, args.base.rstrip("/"))
    except (OSError, ValueError) as error:
        sys.exit(f"human_data.py: error: {error}")
    print(f"export MBR_ESD_DATA={args.folder.resolve()}")


if __name__ == "__main__":
    main()
