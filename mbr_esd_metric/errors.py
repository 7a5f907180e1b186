"""The exceptions. Each message says what was wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mbr_esd_metric.installing import install_command
from mbr_esd_metric.messages import masked, printable

#: What every command says if its run ends early.
RESUME = "sampled candidates are kept; repeat the command to go on from there"


class MbrEsdError(Exception):
    """Base of every error that this package raises on purpose; its text is one line, fit for a terminal."""

    def __str__(self) -> str:
        return printable(masked(super().__str__()))


class InputError(MbrEsdError):
    """The input is malformed. The message names the file, line, segment or key, and says what to do."""


class OptionError(MbrEsdError):
    """An unknown name, option or value. The message names the nearest valid ones."""


class EngineError(MbrEsdError):
    """A model cannot be loaded or cannot generate. The message says why, and which command helps."""


class MissingDependencyError(EngineError):
    """An optional package is not installed. The message names it and the command that installs it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed; "
            f"install it with: {install_command(extra)}"
        )


def require(package: str, extra: str, purpose: str) -> None:
    """Raise `MissingDependencyError` if a package is not installed."""
    if importlib.util.find_spec(package) is None:
        raise MissingDependencyError(package, extra, purpose)


class PluginError(MbrEsdError):
    """A part that another package offers cannot be used. The message names the package and says why."""


class StoreError(MbrEsdError):
    """The candidate store cannot be read or written; the file is left as it was."""


class NoValidCandidateError(MbrEsdError):
    """Every candidate of a segment is invalid, so there is nothing to choose from."""


@contextmanager
def labelled(label: str) -> Iterator[None]:
    """Let errors begin with the name of what they are about, such as a segment."""
    try:
        yield
    except (InputError, NoValidCandidateError) as error:
        raise type(error)(f"{label}: {error}") from None


def unknown(kind: str, value: str, valid: Iterable[str], listed: str | None = None) -> OptionError:
    """An `OptionError` for an unknown value of a kind such as "rule", with the nearest valid names. `listed` is the
    command that lists them, where they are too many for a message."""
    names = sorted(valid)
    close = difflib.get_close_matches(value.lower(), {name.lower(): None for name in names}, n=3, cutoff=0.5)
    near = [name for lowered in close for name in names if name.lower() == lowered]
    hint = f"did you mean {' or '.join(repr(n) for n in near)}? " if near else ""
    every = f"valid: {', '.join(names) or 'none'}" if listed is None else f"{listed} lists them all"
    return OptionError(f"unknown {kind} {value!r}; {hint}{every}")


def no_effect_error(option: str, beside: str) -> OptionError:
    """An `OptionError` for an option that has no effect together with the other options."""
    return OptionError(f"{option} has no effect with {beside}; remove it")
