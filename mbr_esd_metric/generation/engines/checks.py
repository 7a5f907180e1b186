"""`engine=checks`: no model. Every candidate is "no error", so that decisions only contain errors from the checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mbr_esd_metric.core.annotation import EMPTY
from mbr_esd_metric.core.decision import Candidate
from mbr_esd_metric.errors import EngineError
from mbr_esd_metric.generation.engine import NO_MODEL, Engine, Generated, Request, Sampling
from mbr_esd_metric.prompting.formats import get_format


class NoModel(Engine):
    """The engine of `mbr-esd-checks`."""

    name = NO_MODEL
    description = "no model, the checks alone (mbr-esd-checks)"
    loads_weights = False
    only_format = "json-omissions"

    @property
    def problem(self) -> str | None:
        """A message if a model is specified, because this engine does not run models."""
        if not self.options.model:
            return None
        return f"it does not run models (got {self.options.model}); use mbr-esd-checks"

    @property
    def identity(self) -> Mapping[str, str]:
        """The name of the engine, because all candidates are equal."""
        return {"engine": self.name}

    @property
    def model(self) -> str:
        """The name of the card."""
        return "mbr-esd-checks"

    def load(self) -> None:
        """Raise `EngineError` if a model is specified."""
        if self.problem is not None:
            raise EngineError(f"engine={self.name}: {self.problem}")

    def unsupported_settings(self, sampling: Sampling) -> tuple[str, ...]:
        """The settings that only apply to models."""
        return ("temperature", "max_tokens")

    def generate(self, requests: Iterable[Request], sampling: Sampling) -> Iterator[Generated]:
        """Yield the answer without errors for each sample."""
        self.load()
        candidate = Candidate(get_format(self.only_format).answer(EMPTY, "")[0], logprob=0.0)
        for request in requests:
            yield Generated(request.key, request.first, (candidate,) * request.n)
