"""The cache folder: the candidate store, the embedded weights, and other files that can be made again."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path

from mbr_esd_metric.errors import EngineError


def cache_folder() -> Path:
    """The folder of the variable ``MBR_ESD_CACHE``, else ``mbr-esd`` in the platform's cache folder.

    That is ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on macOS, ``%LOCALAPPDATA%`` on
    Windows. The folder need not exist yet.
    """
    own = os.environ.get("MBR_ESD_CACHE")
    return Path(own).expanduser() if own else user_cache_path("mbr-esd", appauthor=False, opinion=False)


def made_folder(name: str, make: Callable[[Path], None], needs: str) -> Path:
    """A folder of the cache, made on the first call. If two processes make it at once, the first one's is kept.

    Args:
        name: of the folder; it must change when the content changes.
        make: fills the empty folder that it is given.
        needs: the disk space that the folder takes, for the error message.

    Raises:
        EngineError: the cache folder cannot be written.
    """
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as work:
            made = Path(work, name)
            made.mkdir()
            make(made)
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    except OSError as error:
        raise EngineError(
            f"cannot write {folder}: {error.strerror or error}; it needs {needs}: free the space, or name another "
            "cache folder with MBR_ESD_CACHE"
        ) from error
    return folder
