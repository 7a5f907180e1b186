"""Candidates as the authors' released code writes them (`*.gen.json`): one object
``{system: [[[text, logprob, mt, src], ...], ...]}``, a list of segments a system.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mbr_esd_metric.errors import InputError
from mbr_esd_metric.files.json_stream import JsonStream
from mbr_esd_metric.files.streams import open_binary


def released_items(path: str | Path) -> Iterator[tuple[str, int, Any]]:
    """(system, number from 1, candidates) of each segment, in order; memory is that of one segment.

    Raises:
        InputError: names the file and the place where it is not such an object.
    """
    with open_binary(path) as file:
        text = JsonStream(path, file)
        text.expect("{")
        if text.accept("}"):
            return
        while True:
            system = text.value()
            if not isinstance(system, str):
                raise InputError(f"{path}: give an object with a list of segments a system")
            text.expect(":")
            text.expect("[")
            number = 0
            if not text.accept("]"):
                while True:
                    number += 1
                    yield system, number, text.value()
                    if not text.accept(","):
                        break
                text.expect("]")
            if not text.accept(","):
                break
        text.expect("}")


def released_segment(candidates: object) -> tuple[str, str, tuple[str, ...], tuple[Any, ...]]:
    """Source, translation, texts and log-probabilities of one segment's candidates; the latter are not checked.

    Raises:
        InputError: they are no list of ``[text, logprob, mt, src]`` of one translation.
    """
    if not isinstance(candidates, list) or not candidates:
        raise InputError("give a list of [text, logprob, mt, src] that is not empty")
    for place, item in enumerate(candidates, 1):
        if not isinstance(item, list) or len(item) != 4 or not all(isinstance(item[i], str) for i in (0, 2, 3)):
            raise InputError(f"candidate {place} is not [text, logprob, mt, src]")
        if item[2:] != candidates[0][2:]:
            raise InputError(f"candidate {place} has another mt or src than candidate 1")
    mt, src = candidates[0][2:]
    return src, mt, tuple(item[0] for item in candidates), tuple(item[1] for item in candidates)
