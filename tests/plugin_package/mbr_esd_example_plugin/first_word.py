"""A whole engine without a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.generation.engine import Engine, Generated, Request, Sampling


class FirstWord(Engine):
    """Every sample is the same."""

    name: ClassVar[str] = "example-first-word"
    description: ClassVar[str] = "marks the first word, without a model"
    loads_weights: ClassVar[bool] = False

    @property
    def problem(self) -> str | None:
        return None

    @property
    def identity(self) -> Mapping[str, str]:
        return {"engine": self.name}

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        for request in requests:
            word = request.translation.split()[0]
            error = {"error_span": word, "category": "style", "sub_category": "awkward", "severity": "major"}
            sample = Candidate(json.dumps({"errors": [error]}), logprob=-1.0, tokens=1)
            yield Generated(request.key, request.first, (sample,) * request.n)
