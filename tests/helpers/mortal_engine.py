"""An engine without a model, for what runs engines in other processes; it is light, as each of them imports it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.generation.engine import Engine, Generated, Request, Sampling


class MortalEngine(Engine):
    """Says a request's key and the number of the sample.

    The prompt "die" ends the process, unless the file exists that the option `model` names; the file is made first. The
    prompt "always" ends it each time.
    """

    name = "mortal"
    description = "a stand-in"

    @property
    def problem(self) -> str | None:
        return None

    @property
    def identity(self) -> Mapping[str, str]:
        return {"engine": self.name}

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        mark = Path(self.options.model)
        for one in requests:
            if one.prompt == "always" or (one.prompt == "die" and not mark.exists()):
                mark.touch()
                time.sleep(1)  # what the process returned before is on its way and would be lost too
                os._exit(1)
            samples = tuple(Candidate(f"{one.key} {i}", logprob=0.0, tokens=1) for i in one.indices)
            yield Generated(one.key, one.first, samples)
