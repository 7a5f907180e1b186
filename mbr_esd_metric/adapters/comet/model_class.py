"""The metric class that COMET loads, and its registration, so that COMET's functions accept our model names and
folders.

COMET's functions look up two names in the module ``comet.models`` on every call: ``str2model`` gets our class, and
``snapshot_download`` is wrapped. For our models, the wrapper returns a folder in the form of a COMET checkpoint, whose
``model.ckpt`` is one line of text with the model's name; other names are passed on unchanged. Only ``mbr_esd_autoload``
imports this module, when COMET and torch are already loaded.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from mbr_esd_metric.adapters.comet.command_line import add_to_json, check_arguments, report_errors
from mbr_esd_metric.adapters.comet.compatibility import patch_comet
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.core.signature import Signature
from mbr_esd_metric.errors import OptionError, StoreError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.generation.store import cache_folder
from mbr_esd_metric.log import logger, notes
from mbr_esd_metric.metric.data_warnings import warnings
from mbr_esd_metric.metric.metric import load_metric
from mbr_esd_metric.metric.model_folder import CLASS_IDENTIFIER, is_model_folder

if TYPE_CHECKING:
    from comet.models.utils import Prediction

    from mbr_esd_metric.metric.metric import Metric

#: Prefix of a checkpoint file that only contains a model name.
_POINTER = "mbr-esd-metric model: "
#: Prefix of our model names. Unknown names with it get our error message instead of COMET's.
_PREFIX = "mbr-esd"


class MbrEsdMetric(torch.nn.Module):  # type: ignore[misc]
    """A model of this package, as COMET's ``load_from_checkpoint`` returns it: a module without parameters, so
    ``eval``, ``half``, ``to`` and the like work as COMET's callers expect. The engine chooses device and dtype."""

    def __init__(self, metric: Metric, labels: Sequence[str] = ()) -> None:
        super().__init__()
        self.metric = metric
        self._labels = labels
        self._signature: Signature | None = None

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: str | Path, **_: Any) -> MbrEsdMetric:
        """Called by COMET's function of this name with ``FOLDER/checkpoints/FILE``. The file contains a model name, or
        FOLDER is a model folder. Raises the exceptions of `load_metric`, and in ``comet-score`` and ``comet-compare``
        `InputError` for malformed input files."""
        report_errors()
        path = Path(checkpoint_path)
        with path.open("rb") as file:
            first = file.readline(1 << 16).decode("utf-8", "replace").strip()
        name = first.removeprefix(_POINTER) if first.startswith(_POINTER) else str(path.parents[1])
        metric = load_metric(name)
        return cls(metric, check_arguments(metric.card.candidates))

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
        """Raises `OptionError`; ``--print_cache_info`` needs its ``cache_info``."""
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
        """Scores and error spans of samples, as COMET's ``Prediction``; for arguments, values and exceptions, see
        `mbr_esd_metric.metric.metric.Metric.predict`."""
        from comet.models.utils import Prediction

        # COMET's commands pass the translations in order, all at once or file by file.
        labels, self._labels = self._labels[: len(samples)], self._labels[len(samples) :]
        segments = [Segment(s["src"], s["mt"], label) for s, label in zip(samples, labels, strict=False)]
        run = self.metric.judge(segments or samples, gpus=gpus, mc_dropout=mc_dropout, progress=progress_bar)
        result = self.metric.prediction(run)
        add_to_json(samples, run.judged)
        if run.signature is not None and run.signature != self._signature:
            self._signature = run.signature
            with notes(progress_bar):
                logger.info(str(run.signature.short))
        if any(result.metadata.data_warning):
            labels = labels or [f"samples[{number}]" for number in range(len(samples))]
            logger.warning(warnings(result.metadata.data_warning, labels, self.metric.card.decision.blank))
        return Prediction(
            scores=result.scores, system_score=result.system_score, metadata=Prediction(**result.metadata)
        )


def register() -> None:
    """Register once with the imported ``comet.models``; an unrelated package with this name is ignored."""
    models: Any = sys.modules["comet.models"]
    if not hasattr(models, "str2model") or not hasattr(models, "snapshot_download"):
        return
    models.str2model[CLASS_IDENTIFIER] = MbrEsdMetric
    if not hasattr(models.snapshot_download, "mbr_esd"):
        models.snapshot_download = _extended(models.snapshot_download)
        patch_comet()


def _extended(download: Callable[..., str]) -> Callable[..., str]:
    """`huggingface_hub.snapshot_download`, extended to our names and model folders, local or on the hub."""

    @functools.wraps(download)
    def snapshot_download(repo_id: str, *args: Any, cache_dir: str | Path | None = None, **options: Any) -> str:
        base, mark, query = str(repo_id).partition("?")
        if is_model_folder(base):
            folder = base
        elif base.startswith(_PREFIX) and "/" not in base:
            return checkpoint_folder(str(repo_id), cache_dir)
        else:
            folder = download(base, *args, cache_dir=cache_dir, **options)
        if is_model_folder(folder):
            return checkpoint_folder(str(Path(folder).resolve()) + mark + query, cache_dir)
        return folder

    snapshot_download.mbr_esd = True  # type: ignore[attr-defined]
    return snapshot_download


def checkpoint_folder(name: str, saving_directory: str | Path | None = None) -> str:
    """A folder with ``hparams.yaml`` and ``checkpoints/model.ckpt`` that COMET loads as the model `name`; inside
    COMET's model storage folder, by default this package's cache folder."""
    report_errors()
    root = Path(saving_directory) if saving_directory is not None else cache_folder() / "comet"
    folder = root / f"mbr-esd-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    try:
        _write(folder / "hparams.yaml", f"class_identifier: {CLASS_IDENTIFIER}\n")
        _write(folder / "checkpoints" / "model.ckpt", f"{_POINTER}{name}\n")
    except OSError as error:
        raise StoreError(
            f"cannot write {folder}: {error.strerror}; choose another folder with --model_storage_path or MBR_ESD_CACHE"
        ) from None
    return str(folder)


def _write(path: Path, text: str) -> None:
    """Write a small file readable only by the user, because a model name may contain a server's password."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, text)
    path.chmod(0o600)
