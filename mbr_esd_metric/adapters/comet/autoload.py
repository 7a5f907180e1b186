"""The stub that waits for COMET. It takes microseconds, imports only the standard library, and never raises.

It is called at the end of ``import torch`` (entry point group ``torch.backends``) and by ``import mbr_esd_metric``.
``comet.models`` may then be complete, half imported (COMET imports torch there), or not imported. In each case the
registration runs when the module is complete. At that moment the import system sets it as an attribute of the package
``comet``, which the stub waits for. ``MBR_ESD_AUTOLOAD=0`` in the environment switches the stub off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType

#: Environment variable that, set to 0, leaves COMET alone.
SWITCH = "MBR_ESD_AUTOLOAD"


class _Finder:
    """Notices that the import of ``comet.models`` begins. It finds no module itself."""

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


def install() -> None:
    """Register this package's models with COMET now, or as soon as COMET is imported."""
    if os.environ.get(SWITCH) == "0":
        return
    program = os.path.basename((getattr(sys, "argv", None) or [""])[0])  # an embedded interpreter has none
    if program in ("comet-score", "comet-compare"):
        _end_quietly(program)
        if _names_ours(sys.argv[1:]):
            _hush()
    models = sys.modules.get("comet.models")
    if models is None:
        if _FINDER not in sys.meta_path:
            sys.meta_path.insert(0, _FINDER)
    elif hasattr(models, "load_from_checkpoint"):
        _register()
    else:
        _await_models()


def _end_quietly(program: str) -> None:
    """Let Ctrl-C end COMET's commands with one line: they import for seconds before they name a model."""
    previous = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if kind is KeyboardInterrupt:
            print(f"\n{program}: interrupted", file=sys.stderr)
            raise SystemExit(130)
        previous(kind, error, trace)

    if previous is sys.__excepthook__:
        sys.excepthook = report


def _names_ours(arguments: Sequence[str]) -> bool:
    """Whether a command line of COMET's names a model of this package, or a model folder on this disk."""
    model = ""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        name, equals, value = argument.partition("=")
        if name == "--model":
            model = value if equals else following
    base = model.partition("?")[0]
    if base.startswith("mbr-esd"):
        return True
    try:
        with open(os.path.join(base, "hparams.yaml"), encoding="utf-8", errors="replace") as file:
            return "mbr_esd_metric" in file.read(1 << 16)
    except OSError:
        return False


def _hush() -> None:
    """Keep back what COMET's parts say of themselves, which says nothing of our models: that torchmetrics uses
    pkg_resources, and which seed Lightning sets."""
    if not sys.warnoptions:
        import warnings

        warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)
    import logging

    for name in ("lightning_fabric.utilities.seed", "lightning_fabric.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning.utilities.rank_zero").setLevel(logging.WARNING)


def _await_models() -> None:
    package = sys.modules.get("comet")
    if type(package) is ModuleType:
        package.__class__ = _Package


def _register() -> None:
    try:
        if _FINDER in sys.meta_path:
            sys.meta_path.remove(_FINDER)
        from mbr_esd_metric.adapters.comet.registration import register

        register()
    except Exception as error:
        import logging

        logging.getLogger(__name__).warning("mbr-esd-metric could not register its models with COMET: %s", error)
