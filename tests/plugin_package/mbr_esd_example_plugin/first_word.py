"""The engine `first-word`: no model, an answer that marks the first word of every translation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from mbr_esd_metric.core.candidate import Candidate
from mbr_esd_metric.generation.engine import Engine, EngineOptions, Generated, Request, Sampling


class FirstWord(Engine):
    """Every sample is the same."""

    name: ClassVar[str] = "first-word"
    description: ClassVar[str] = "marks the first word, without a model"
    loads_weights: ClassVar[bool] = False

    def __init__(self, options: EngineOptions) -> None:
        pass

    @classmethod
    def problem(cls, options: EngineOptions) -> str | None:
        return None

    @classmethod
    def identity(cls, options: EngineOptions) -> Mapping[str, str]:
        return {"engine": cls.name}

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        for request in requests:
            word = request.translation.split()[0]
            error = {"error_span": word, "category": "style", "sub_category": "awkward", "severity": "major"}
            sample = Candidate(json.dumps({"errors": [error]}), logprob=-1.0, tokens=1)
            yield Generated(request.key, request.first, (sample,) * request.n)
