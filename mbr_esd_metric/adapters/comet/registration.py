"""Makes COMET's own ``download_model`` and ``load_from_checkpoint`` know this package's model names and folders.

Those functions look up two names in the module ``comet.models`` on every call. So it does not matter how and when the
functions were imported, if these names are replaced: ``str2model`` gets our class, and ``snapshot_download`` is
wrapped. For one of our models, the wrapper returns a folder like a COMET checkpoint. Its ``model.ckpt`` is one line of
text with the model's name. No file of COMET is changed, and other names go through unchanged.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mbr_esd_metric.adapters.comet.command_line import report_errors
from mbr_esd_metric.adapters.comet.compatibility import patch_comet
from mbr_esd_metric.adapters.comet.model_class import POINTER, MbrEsdMetric
from mbr_esd_metric.errors import StoreError
from mbr_esd_metric.files.streams import write_whole
from mbr_esd_metric.generation.model_files import cache_folder
from mbr_esd_metric.metric.model_folder import CLASS_IDENTIFIER, is_model_folder

#: The beginning of our model names. An unknown name with it gets our error message, not COMET's.
PREFIX = "mbr-esd"


def register() -> None:
    """Register with the imported ``comet.models``. Does nothing if that is not unbabel-comet's, or if it is done
    already."""
    models: Any = sys.modules["comet.models"]
    if not hasattr(models, "str2model") or not hasattr(models, "snapshot_download"):
        return
    models.str2model[CLASS_IDENTIFIER] = MbrEsdMetric
    if not hasattr(models.snapshot_download, "mbr_esd"):
        models.snapshot_download = _extended(models.snapshot_download)
        patch_comet()


def _extended(download: Callable[..., str]) -> Callable[..., str]:
    """`huggingface_hub.snapshot_download` for our names and our model folders too, on this disk or on the hub."""

    @functools.wraps(download)
    def snapshot_download(repo_id: str, *args: Any, cache_dir: str | Path | None = None, **options: Any) -> str:
        base, mark, query = str(repo_id).partition("?")
        if is_model_folder(base):
            folder = base
        elif base.startswith(PREFIX) and "/" not in base:
            return checkpoint_folder(str(repo_id), cache_dir)
        else:
            folder = download(base, *args, cache_dir=cache_dir, **options)
        if is_model_folder(folder):
            return checkpoint_folder(str(Path(folder).resolve()) + mark + query, cache_dir)
        return folder

    snapshot_download.mbr_esd = True  # type: ignore[attr-defined]
    return snapshot_download


def checkpoint_folder(name: str, saving_directory: str | Path | None = None) -> str:
    """A folder with ``hparams.yaml`` and ``checkpoints/model.ckpt`` that COMET loads as the model `name`.

    Args:
        name: a model name or model folder, with its options; it is checked when it is loaded.
        saving_directory: the folder for models that COMET was given; the default is this package's cache folder.
    """
    report_errors()
    root = Path(saving_directory) if saving_directory is not None else cache_folder() / "comet"
    folder = root / f"mbr-esd-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    try:
        _write(folder / "hparams.yaml", f"class_identifier: {CLASS_IDENTIFIER}\n")
        _write(folder / "checkpoints" / "model.ckpt", f"{POINTER}{name}\n")
    except OSError as error:
        raise StoreError(
            f"cannot write {folder}: {error.strerror}; name another folder, with --model_storage_path or MBR_ESD_CACHE"
        ) from None
    return str(folder)


def _write(path: Path, text: str) -> None:
    """Write a small file, unless it is there with that text. A model's name may hold a server's password, so that
    nobody else may read it."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(path, text)
    path.chmod(0o600)
