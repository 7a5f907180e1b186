"""What ``import torch`` calls (entry point group ``torch.backends``), so that COMET's commands find our models.

torch ends every import of itself with an error where such an entry point fails. So this file stands beside the package
and not in it, needs no more than the standard library, and lets nothing through: whatever is missing or broken in the
package, torch works. Where no command of COMET's names a model that may be ours, it does nothing, but for two cases:
beside newer packages than COMET asks for, or on a newer Python, COMET's commands get what its code misses there; and
every process gets the name of functools that COMET imports and Python 3.14 dropped, also one that loads data for COMET.
``MBR_ESD_AUTOLOAD=0`` in the environment switches it off.
"""

from __future__ import annotations

import functools
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_PROGRAMS = ("comet-score", "comet-compare", "comet-mbr")


def install() -> None:
    """Make COMET wait for us, if this process is one of its commands and may ask for a model of ours."""
    try:
        if os.environ.get("MBR_ESD_AUTOLOAD") == "0":
            return
        if not hasattr(functools, "_HashedSeq"):  # as in autoload.py
            functools._HashedSeq = tuple  # type: ignore[attr-defined]
        program = _program()
        if program is None:
            return
        model = _model(sys.argv[1:])
        ours = model.startswith("mbr-esd") or _is_our_folder(model)
        maybe_ours = ours or _may_be_on_the_hub(model)
        if not maybe_ours and not _newer_than_comet():
            return
        if ours:
            _end_quietly(program)
            _hush()
        from mbr_esd_metric.adapters.comet.autoload import install as wait

        wait(with_models=maybe_ours)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        print(
            f"mbr-esd-metric is not whole ({type(error).__name__}: {error}), and COMET does not know its models; "
            "install it again: pip install --force-reinstall --no-deps mbr-esd-metric",
            file=sys.stderr,
        )


def _program() -> str | None:
    """The command of COMET's that this process is; also as ``python -m comet.cli.score``."""
    words = [
        *(getattr(sys, "argv", None) or [])[:1],
        *getattr(sys, "orig_argv", []),
    ]  # an embedded interpreter has none
    for name in _PROGRAMS:
        if (
            os.path.basename(words[0] if words else "").startswith(name)
            or name.replace("comet-", "comet.cli.") in words
        ):
            return name
    return None


def _model(arguments: list[str]) -> str:
    """The model that a command line names, without its options; "" if it is COMET's default."""
    model = ""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, equals, value = argument.partition("=")
        if name == "--model":
            model = value if equals else following
    return model.partition("?")[0]


def _is_our_folder(model: str) -> bool:
    try:
        with open(os.path.join(model, "hparams.yaml"), "rb") as file:
            return b"mbr_esd_metric" in file.read(1 << 16)
    except (OSError, ValueError):
        return False


def _may_be_on_the_hub(model: str) -> bool:
    """Whether it may be a model folder of ours on the hub, which is not known until it is there."""
    return model.count("/") == 1 and not model.startswith("Unbabel/") and not os.path.exists(model)


def _newer_than_comet() -> bool:
    """Whether COMET misses something: of argparse since Python 3.12.8 and 3.13.1, of transformers 5 or numpy 2."""
    import argparse

    if "intermixed" in vars(argparse.ArgumentParser)["_parse_known_args"].__code__.co_varnames:
        return True
    from importlib.metadata import version

    try:
        return int(version("transformers").split(".")[0]) >= 5 or int(version("numpy").split(".")[0]) >= 2
    except (ImportError, ValueError):
        return False


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
