"""COMET checkpoints run by COMET: loading, and prediction without repeated messages of its libraries."""

from __future__ import annotations

import logging
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Settings, Signature
from mbr_esd_metric.errors import EngineError, MissingDependencyError, OptionError, unknown
from mbr_esd_metric.files.judged import JudgedSegment, annotation_of
from mbr_esd_metric.log import logger
from mbr_esd_metric.messages import number_of


@dataclass(frozen=True, slots=True)
class CometOptions:
    """Options for running a COMET checkpoint, written after its name, as in
    ``Unbabel/XCOMET-XL?dtype=float32&batch_size=8``.

    Attributes:
        reference: "no" omits metrics that need a reference when scoring a test set.
        dtype: number format of the weights. `comet-score` runs every model in float16, on a CPU as well; its scores
            differ from those in float32 in the fourth digit, and occasionally a span differs.
    """

    batch_size: int = 16
    gpus: int | None = None
    dtype: Literal["float16", "float32"] = "float16"
    reference: Literal["yes", "no"] = "yes"

    @classmethod
    def parse(cls, model: str) -> tuple[str, CometOptions]:
        """Parse a checkpoint name with options; raises `OptionError` for an unknown option or an invalid value."""
        name, _, query = model.partition("?")
        takes = {"batch_size": r"[1-9]\d*", "gpus": r"\d+", "dtype": "float16|float32", "reference": "yes|no"}
        values: dict[str, Any] = dict(option.partition("=")[::2] for option in query.split("&") if option)
        for option, value in values.items():
            if option not in takes:
                raise unknown("option of a COMET checkpoint", option, takes)
            if not re.fullmatch(takes[option], value):
                raise OptionError(f"{option}={value}: give {takes[option].replace('|', ' or ')}")
        values = {option: int(value) if value.isdecimal() else value for option, value in values.items()}
        return name, cls(**values)


@dataclass
class CometCheckpoint:
    """A checkpoint loaded by COMET.

    Attributes:
        name: a .ckpt file, a folder with checkpoints/model.ckpt, or a name on the hub.
        has_spans: whether it is an xCOMET.
        needs_references: whether it requires references (xCOMET does not).
        signature: the settings that its scores depend on, as in sacreBLEU.

    Raises:
        MissingDependencyError: COMET is not installed.
        EngineError: COMET cannot load it (with the reason).
    """

    name: str
    options: CometOptions = field(default_factory=CometOptions)

    def __post_init__(self) -> None:
        with _quiet():
            try:
                import comet
                from comet.models import XCOMETMetric
            except ImportError:
                raise MissingDependencyError("unbabel-comet", "comet", f"scoring with {self.name}") from None

            path = Path(self.name)
            if path.is_dir():
                path = path / "checkpoints" / "model.ckpt"
            try:
                checkpoint = str(path) if path.is_file() else comet.download_model(self.name)
                self.model: Any = comet.load_from_checkpoint(checkpoint)
            # COMET does not convert exceptions of Lightning, torch and the hub.
            except Exception as error:
                raise EngineError(
                    f"COMET cannot load {self.name}: {error}; give a .ckpt file or the name of an accessible model "
                    "on the hub"
                ) from error
        self.model.eval()
        if self.options.dtype == "float16":
            self.model.half()
        self.has_spans = isinstance(self.model, XCOMETMetric)
        self.needs_references = bool(self.model.requires_references()) and not self.has_spans
        fields = {"model": self.name, "dtype": self.options.dtype}
        self.signature = Signature.of("comet", fields, version("unbabel-comet"))

    def predict(self, samples: Sequence[Mapping[str, str]], progress: bool) -> Any:
        """COMET's `Prediction` for samples with "src", "mt" and optionally "ref"; a note gives the number of samples
        that COMET truncates."""
        gpus = self.options.gpus
        if gpus is None:
            import torch

            gpus = int(torch.cuda.is_available())
        rows, batch_size = [dict(sample) for sample in samples], self.options.batch_size
        if cut := self.cut(rows):
            logger.warning(
                f"note: {self.name} reads {int(self.model.encoder.max_positions)} tokens, and COMET cut {cut} of "
                f"{number_of(len(rows), 'segment')} there; a model of this package with unit=sentence reads all"
            )
        with _quiet():
            return self.model.predict(rows, batch_size=batch_size, gpus=gpus, progress_bar=progress)

    def judge(
        self, segments: Sequence[Segment], references: Sequence[str | None], settings: Settings, progress: bool
    ) -> list[JudgedSegment]:
        """The segments with their scores and error spans; None for no reference."""
        pairs = list(zip(segments, references, strict=True))
        rows = [
            {"src": one.source, "mt": one.translation} | ({} if reference is None else {"ref": reference})
            for one, reference in pairs
        ]
        found = self.predict(rows, progress)
        spans = found.metadata.error_spans if self.has_spans else [None] * len(pairs)
        return [
            JudgedSegment(
                segment,
                None if errors is None else annotation_of(errors),
                None if math.isnan(score) else float(score),
                settings=settings,
                reference=reference,
                raw_errors=errors,
            )
            for (segment, reference), score, errors in zip(pairs, found.scores, spans, strict=True)
        ]

    def cut(self, samples: Sequence[Mapping[str, str]]) -> int:
        """The number of samples that COMET silently truncates. Encoders of joined texts truncate the joined text,
        others each text, at the maximum number of positions."""
        from comet.models import UnifiedMetric

        encoder, together = self.model.encoder, isinstance(self.model, UnifiedMetric)
        most = int(encoder.max_positions)
        texts = list(dict.fromkeys(text for one in samples for key, text in one.items() if key in ("src", "mt", "ref")))
        with _quiet():
            tokens = dict(zip(texts, encoder.tokenizer(texts, add_special_tokens=False)["input_ids"], strict=True))
        cut = 0
        for one in samples:
            lengths = [len(tokens[one[key]]) for key in ("src", "mt", "ref") if key in one]
            # COMET reserves two positions per separate text, and positions for separators in joined texts.
            special = 1 + len(lengths) * encoder.size_separator
            cut += sum(lengths) > most - special if together else max(lengths) > most - 4
        return cut


def looks_like_checkpoint(name: str) -> bool:
    """Whether a name is a file, a folder, or a hub name (with a slash); options follow a ?."""
    base = name.partition("?")[0]
    return os.path.exists(base) or "/" in base


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress repeated messages of COMET and Lightning about devices, workers and deprecated code."""
    before = [(one, one.level) for one in map(logging.getLogger, ("pytorch_lightning", "comet"))]
    for one, _ in before:
        one.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for one, level in before:
            one.setLevel(level)
