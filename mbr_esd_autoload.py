"""The hook that makes COMET, once imported, know this package's models.

COMET has no plugins, so something has to run in its unchanged commands. Of what they import, torch alone calls code of
other packages (entry points of the group ``torch.backends``, at the end of ``import torch``). A .pth file would run in
every Python, and a `comet-score` of our own would replace COMET's file. torch ends every import of itself with an error
where such an entry point fails. So this file stands beside the package, needs the standard library alone, lets no error
through, and does nothing outside of COMET's commands, but for one name of functools that COMET needs on Python 3.14.
``MBR_ESD_AUTOLOAD=0`` in the environment switches it off.
"""

from __future__ import annotations

import functools
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_COMMANDS = ("score", "compare", "mbr")


def install(everywhere: bool = False) -> None:
    """Register our models with COMET now, or as soon as it is imported.

    ``import torch`` calls it, for COMET's commands alone, and ``import mbr_esd_metric`` calls it for any program.
    """
    if os.environ.get("MBR_ESD_AUTOLOAD") == "0":
        return
    if not hasattr(functools, "_HashedSeq"):
        # COMET 2.2.7 imports it, to hash the keys of a cache. Python 3.14 has tuples in its place.
        functools._HashedSeq = tuple  # type: ignore[attr-defined]
    if not everywhere and not _is_command():
        return
    if hasattr(sys.modules.get("comet.models"), "load_from_checkpoint"):
        _register()
    elif _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def _is_command() -> bool:
    """Whether this process is one of COMET's commands; also as ``python -m comet.cli.score``."""
    words = [*getattr(sys, "argv", [])[:1], *getattr(sys, "orig_argv", [])]  # an embedded interpreter has none
    program = os.path.basename(words[0]) if words else ""
    return any(program.startswith(f"comet-{name}") or f"comet.cli.{name}" in words for name in _COMMANDS)


class _Finder:
    """Registers when ``comet.models`` has been imported. Where that had begun before, as in COMET's commands, which
    import torch there, it registers before ``comet.cli``."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "comet.cli":
            _register()
        if name != "comet.models":
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in others if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                _register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()


def _register() -> None:
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    try:
        from mbr_esd_metric.adapters.comet.registration import register

        register()
    except Exception as error:
        print(
            f"mbr-esd-metric is not whole ({type(error).__name__}: {error}), and COMET does not know its models; "
            "install it again: pip install --force-reinstall --no-deps mbr-esd-metric",
            file=sys.stderr,
        )
