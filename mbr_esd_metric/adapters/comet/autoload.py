"""The stub that waits for COMET. It takes microseconds, imports only the standard library, and never raises.

It is called by ``import mbr_esd_metric``, and by `mbr_esd_autoload` at the end of ``import torch`` in COMET's commands.
``comet.models`` may then be complete, half imported (COMET imports torch there), or not imported. In each case the
registration runs when the module is complete. At that moment the import system sets it as an attribute of the package
``comet``, which the stub waits for. ``MBR_ESD_AUTOLOAD=0`` in the environment switches the stub off.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from types import ModuleType

#: Environment variable that, set to 0, leaves COMET alone.
SWITCH = "MBR_ESD_AUTOLOAD"


class _Finder:
    """Notices that the import of ``comet.models`` begins. It finds no module itself."""

    #: Whether COMET gets our models, or only what its own code misses.
    with_models = True

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name == "comet.models":
            _await_models()


class _Package(ModuleType):
    """The package ``comet`` while the stub waits for its module ``models``."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "models":
            object.__setattr__(self, "__class__", ModuleType)
            _register()


_FINDER = _Finder()


def install(with_models: bool = True) -> None:
    """Register this package's models with COMET now, or as soon as COMET is imported.

    Args:
        with_models: False only supplies what COMET's code misses beside newer packages and a newer Python.
    """
    if os.environ.get(SWITCH) == "0":
        return
    _FINDER.with_models = with_models
    models = sys.modules.get("comet.models")
    if models is None:
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
    elif hasattr(models, "load_from_checkpoint"):
        _register()
    else:
        _await_models()


def _await_models() -> None:
    if not hasattr(functools, "_HashedSeq"):
        # COMET 2.2.7 imports it, to hash the keys of a cache. Python 3.14 has tuples in its place.
        functools._HashedSeq = tuple  # type: ignore[attr-defined]
    package = sys.modules.get("comet")
    if type(package) is ModuleType:
        package.__class__ = _Package


def _register() -> None:
    try:
        if _FINDER in sys.meta_path:
            sys.meta_path.remove(_FINDER)
        if _FINDER.with_models:
            from mbr_esd_metric.adapters.comet.registration import register

            register()
        else:
            from mbr_esd_metric.adapters.comet.compatibility import supply

            supply()
    except Exception as error:
        import logging

        logging.getLogger(__name__).warning("mbr-esd-metric could not register its models with COMET: %s", error)
