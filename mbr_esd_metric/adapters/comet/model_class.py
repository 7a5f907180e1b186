"""The metric class that COMET loads: COMET's interface around `mbr_esd_metric.metric.metric.Metric`.

Only the registration imports it, when COMET and torch are already loaded.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from mbr_esd_metric.adapters.comet.command_line import add_to_json, check_arguments, report_errors
from mbr_esd_metric.errors import OptionError, logger, notes
from mbr_esd_metric.metric.data_warnings import warnings
from mbr_esd_metric.metric.metric import load_metric
from mbr_esd_metric.metric.signature import short

if TYPE_CHECKING:
    from comet.models.utils import Prediction

    from mbr_esd_metric.metric.metric import Metric

#: The beginning of a checkpoint file that only names a model.
POINTER = "mbr-esd-metric model: "


class MbrEsdMetric(torch.nn.Module):  # type: ignore[misc]
    """A model of this package, as COMET's ``load_from_checkpoint`` returns it.

    It is a module without parameters, so ``eval``, ``half``, ``to`` and the like work as COMET's callers expect. The
    engine loads the language model when candidates are missing, and chooses device and dtype.
    """

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self.metric = metric
        self._signature = ""

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: str | Path, **_: Any) -> MbrEsdMetric:
        """Called by COMET's function of that name.

        Args:
            checkpoint_path: ``FOLDER/checkpoints/FILE``. The file names a model, or FOLDER is the model.

        Raises:
            OptionError: unknown model name, option or value.
            InputError: a malformed model folder, or under ``comet-score`` and ``comet-compare`` malformed input files.
        """
        report_errors()
        path = Path(checkpoint_path)
        with path.open("rb") as file:
            first = file.readline(1 << 16).decode("utf-8", "replace").strip()
        name = first.removeprefix(POINTER) if first.startswith(POINTER) else str(path.parents[1])
        metric = load_metric(name)
        check_arguments(metric.card.candidates)
        return cls(metric)

    def requires_references(self) -> bool:
        """False: the model never sees a reference."""
        return False

    def is_referenceless(self) -> bool:
        """True: the model never sees a reference."""
        return True

    def set_embedding_cache(self) -> None:
        """Nothing to do: there are no embeddings. Candidates are kept in the store."""

    def enable_context(self) -> NoReturn:
        """COMET's document context; raises `OptionError`."""
        raise OptionError("--enable-context is for COMET's regression models; leave it out with this model")

    @staticmethod
    @functools.lru_cache(maxsize=0)
    def retrieve_sentence_embedding(*_: Any) -> NoReturn:
        """There are no sentence embeddings. Only its ``cache_info`` is needed, for ``--print_cache_info``."""
        raise OptionError("this model has no sentence embeddings; use predict")

    def predict(
        self,
        samples: Sequence[Mapping[str, str]],
        batch_size: int = 16,
        gpus: int = 1,
        devices: Sequence[int] | str | int | None = None,
        mc_dropout: int = 0,
        progress_bar: bool = True,
        accelerator: str = "auto",
        num_workers: int | None = None,
        length_batching: bool = True,
    ) -> Prediction:
        """Scores and error spans of samples, as COMET's own ``Prediction``; arguments, values and exceptions are
        those of `mbr_esd_metric.metric.metric.Metric.predict`."""
        from comet.models.utils import Prediction

        result = self.metric.predict(samples, gpus=gpus, mc_dropout=mc_dropout, progress_bar=progress_bar)
        add_to_json(samples, result.metadata, self.metric.card.name)
        if result.metadata.signature != self._signature:
            self._signature = result.metadata.signature
            with notes(progress_bar):
                logger.info(short(self._signature))
        labels = [f"Segment {number}" for number in range(len(samples))]
        if data_warnings := warnings(result.metadata.data_warning, labels, self.metric.card.decision.blank):
            logger.warning(data_warnings)
        return Prediction(
            scores=result.scores, system_score=result.system_score, metadata=Prediction(**result.metadata)
        )
