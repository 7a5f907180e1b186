"""The hook that makes COMET, once imported, know this package's models.

COMET has no plugins, so something has to run in its unchanged commands. Of what they import, torch alone calls code of
other packages (entry points of the group ``torch.backends``, at the end of ``import torch``). A .pth file would run in
every Python, and a `comet-score` of our own would replace COMET's file. torch ends every import of itself with an error
where such an entry point fails. So this file stands beside the package, needs the standard library alone, lets no error
through, and changes nothing but the finder that waits for COMET. Our models are registered in COMET's commands, and
where this package is imported.

A finder cannot be avoided. COMET's commands import torch in the middle of importing ``comet.models``, before that
module has the function that is replaced, and nothing calls us again when it is complete. A program that imports this
package first and COMET later has the same gap. The finder removes itself as soon as ``comet.models`` is complete.

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
    _FINDER.registers |= everywhere or _is_command()
    models = sys.modules.get("comet.models")
    if models is not None:
        _supply()  # it imports torch right now, and the rest of itself after that
    if hasattr(models, "load_from_checkpoint"):
        if _FINDER.registers:
            _register()
    elif _FINDER not in sys.meta_path and (_FINDER.registers or models is None):
        sys.meta_path.insert(0, _FINDER)


def _supply() -> None:
    """Set the name of functools that COMET 2.2.7 imports, to hash the keys of a cache; Python 3.14 has tuples."""
    if not hasattr(functools, "_HashedSeq"):
        functools._HashedSeq = tuple  # type: ignore[attr-defined]


def _is_command() -> bool:
    """Whether this process is one of COMET's commands; also as ``python -m comet.cli.score``."""
    words = [*getattr(sys, "argv", [])[:1], *getattr(sys, "orig_argv", [])]  # an embedded interpreter has none
    program = os.path.basename(words[0]) if words else ""
    return any(program.startswith(f"comet-{name}") or f"comet.cli.{name}" in words for name in _COMMANDS)


class _Finder:
    """Registers when ``comet.models`` has been imported. Where that had begun before, as in COMET's commands, which
    import torch there, it registers before ``comet.cli``."""

    registers = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "comet.cli" and self.registers:
            _register()
        if name != "comet.models":
            return None
        _supply()
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in others if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self.registers:
                    _register()
                else:
                    sys.meta_path.remove(self)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


_FINDER = _Finder()


def _register() -> None:
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    try:
        from mbr_esd_metric.adapters.comet.model_class import register

        register()
    except Exception as error:
        print(
            f"mbr-esd-metric is not whole ({type(error).__name__}: {error}), and COMET does not know its models; "
            "install it again: pip install --force-reinstall --no-deps mbr-esd-metric",
            file=sys.stderr,
        )
