"""What the candidate store keeps beside some samples, each kind in a table of its own."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mbr_esd_metric.core.candidate import ExpectedSpans, TokenLogprobs


@dataclass(frozen=True, slots=True)
class Beside:
    """What is kept beside some samples, in a table of its own.

    So older stores, which lack the table, can still be read, and older versions can read a store that has it.

    Attributes:
        table, column: where it is kept.
        attribute: of a sample.
        what: its name in messages.
        pack, unpack: value to bytes, and back.
    """

    table: str
    column: str
    attribute: str
    what: str
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]

    @property
    def create(self) -> str:
        """The statement that makes the table."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self.table} (request INTEGER NOT NULL, number INTEGER NOT NULL, "
            f"{self.column} BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (request, number)) WITHOUT ROWID"
        )


def _packed(tokens: TokenLogprobs) -> bytes:
    """The sizes, then the log-probabilities, in four bytes each."""
    count = len(tokens.sizes)
    return struct.pack(f"<{count}I{count}f", *tokens.sizes, *tokens.logprobs)


def _unpacked(packed: bytes) -> TokenLogprobs:
    count = len(packed) // 8
    values = struct.unpack(f"<{count}I{count}f", packed)
    return TokenLogprobs(values[:count], values[count:])


_COUNTS, _MEASURED = struct.Struct("<2d"), struct.Struct("<2ddId")


def _packed_spans(spans: ExpectedSpans) -> bytes:
    """Minor and major ones alone where nothing else is known, as stores had them first."""
    if not (spans.missing or spans.words or spans.surprisal):
        return _COUNTS.pack(spans.minor, spans.major)
    return _MEASURED.pack(spans.minor, spans.major, spans.missing, spans.words, spans.surprisal)


def _unpacked_spans(packed: bytes) -> ExpectedSpans:
    return ExpectedSpans(*(_COUNTS if len(packed) == _COUNTS.size else _MEASURED).unpack(packed))


#: Token log-probabilities of single answers, and the numbers of error spans that were expected along walks.
BESIDE = (
    Beside("by_token", "sizes_logprobs", "token_logprobs", "tokens", _packed, _unpacked),
    Beside("expected", "minor_major", "expected", "expected error spans", _packed_spans, _unpacked_spans),
)


def sum_of(key: str, number: int, packed: bytes) -> int:
    """CRC-32 of a row of `BESIDE` and the sample that it belongs to."""
    return zlib.crc32(packed, zlib.crc32(f"{key}|{number}|".encode("utf-8", "surrogatepass")))
