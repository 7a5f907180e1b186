"""Parts by name, of this package and of other packages that are installed.

Similarities, rules, formats, engines and checks are classes, found in a `Catalog`. In this package, a file is named
like its class: ``gemba_mqm.py`` defines the format with ``name = "gemba-mqm"``, so names are known before a class is
loaded. The rules share one file, and one file lists the checks. Statistics and verbs are rows of a table, `Rows`.

Another package offers a part by an entry point with the part's name::

    [options.entry_points]
    mbr_esd_metric.rules =
        longest = my_package.rules:Longest
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

from mbr_esd_metric.errors import PluginError, unknown
from mbr_esd_metric.log import logger

_T = TypeVar("_T")
_C = TypeVar("_C")
_R = TypeVar("_R")
#: File or folder of another package -> the part that was loaded from it, such as "the rule 'x' of NAME 1.2".
PARTS: dict[str, str] = {}


class Parts(ABC, Generic[_T]):
    """Parts of one kind by name: those of this package, and those of other packages under other names.

    Args:
        kind, plural: such as "engine"; the entry points' group is ``mbr_esd_metric.`` and the plural.
    """

    def __init__(self, kind: str, plural: str) -> None:
        self.kind, self.plural = kind, plural
        self._loaded: dict[str, _T] = {}
        self._warned: set[str] = set()

    @property
    @abstractmethod
    def builtin(self) -> list[str]:
        """The names of this package."""

    @abstractmethod
    def _load_builtin(self, name: str) -> _T:
        """The part of this package."""

    @abstractmethod
    def _why_not(self, value: Any, point: EntryPoint) -> str | None:
        """Why what another package offers cannot be used; None if it can."""

    @cached_property
    def _offered(self) -> dict[str, EntryPoint]:
        points: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=f"mbr_esd_metric.{self.plural}"), key=lambda point: point.name):
            if point.name in self.builtin or point.name in points:
                self._warn(f"{_package_of(point)} offers the {self.kind} {point.name!r}, which is there already")
            else:
                points[point.name] = point
        return points

    def names(self) -> list[str]:
        """All names: this package's, then those of other packages, which are not loaded."""
        return [*self.builtin, *self._offered]

    def get(self, name: str) -> _T:
        """The part of that name; `OptionError`, with the nearest names, for none, and `PluginError` for one of another
        package that cannot be used."""
        if name not in self._loaded:
            if name in self.builtin:
                self._loaded[name] = self._load_builtin(name)
            elif name in self._offered:
                self._loaded[name] = self._load(self._offered[name])
            else:
                raise unknown(self.kind, name, self.names())
        return self._loaded[name]

    def check(self, name: str) -> None:
        """Raise as `get` does. Only a part of another package is loaded."""
        if name not in self.builtin:
            self.get(name)

    def all(self) -> dict[str, _T]:
        """Name -> part. A part that cannot be used is left out, with one warning."""
        parts = {name: self.get(name) for name in self.builtin}
        for name in self._offered:
            try:
                parts[name] = self.get(name)
            except PluginError as error:
                self._warn(str(error))
        return parts

    def offered(self) -> dict[str, str]:
        """Name -> the other package that offers it, with its version."""
        return {name: _package_of(point) for name, point in self._offered.items() if not _is_ours(point)}

    def _load(self, point: EntryPoint) -> _T:
        part = f"the {self.kind} {point.name!r} of {_package_of(point)}"
        try:
            value = point.load()
            if why := self._why_not(value, point):
                raise TypeError(why)
        except Exception as error:  # a package of somebody else may raise anything on import
            why = f"{type(error).__name__}: {error}"
            raise PluginError(f"{part} cannot be used: {why}; update or uninstall that package") from error
        if not _is_ours(point):
            loaded = (sys.modules[name].__file__ for name in (point.module.partition(".")[0], point.module))
            PARTS[next(filter(None, loaded)).removesuffix("__init__.py")] = part
        return value  # type: ignore[no-any-return]

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            logger.warning(message)


class Catalog(Parts[type[_C]]):
    """Classes of one kind by name.

    Args:
        package: dotted name of the folder, every module of which defines the class of its name; or of one module.
        base: their base class.
        beside: name -> the module that defines it, where that is not its own.
    """

    def __init__(
        self, kind: str, plural: str, package: str, base: type[_C], beside: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(kind, plural)
        self._package, self._base, self._beside = package, base, beside or {}

    @cached_property
    def builtin(self) -> list[str]:
        """The names of this package."""
        package = importlib.import_module(self._package)
        if not hasattr(package, "__path__"):
            return sorted([*self._beside, *self._classes(package)])
        modules = pkgutil.iter_modules(package.__path__)
        return sorted([*self._beside, *(module.name.replace("_", "-") for module in modules)])

    def _load_builtin(self, name: str) -> type[_C]:
        module = importlib.import_module(self._package)
        if hasattr(module, "__path__") or name in self._beside:
            file = self._beside.get(name, name).replace("-", "_")
            module = importlib.import_module(f"{module.__package__}.{file}")
        return self._classes(module)[name]

    def _classes(self, module: ModuleType) -> dict[str, type[_C]]:
        """Name -> class, of those that the module defines or imports."""
        # Not issubclass: in Python 3.10 `list[int]` in a module counts as a class, and issubclass raises for it.
        every = [value for value in vars(module).values() if isinstance(value, type) and self._base in value.__mro__]
        return {name: value for value in every if (name := vars(value).get("name")) is not None}

    def _why_not(self, value: Any, point: EntryPoint) -> str | None:
        if not (isinstance(value, type) and issubclass(value, self._base)):
            return f"{point.value} is not a subclass of {self._base.__name__}"
        if lacking := ", ".join(sorted(getattr(value, "__abstractmethods__", ()))):
            return f"it lacks {lacking}"
        return None if getattr(value, "name", None) == point.name else f"the class is not called {point.name!r}"


class Rows(Parts[_R]):
    """Rows of one table by name.

    Args:
        rows: name -> the row of this package.
        base: the class of a row, which has a `name`.
    """

    def __init__(self, kind: str, plural: str, rows: Mapping[str, _R], base: type[_R]) -> None:
        super().__init__(kind, plural)
        self._rows, self._base = rows, base

    @property
    def builtin(self) -> list[str]:
        """The names of this package."""
        return [*self._rows]

    def _load_builtin(self, name: str) -> _R:
        return self._rows[name]

    def _why_not(self, value: Any, point: EntryPoint) -> str | None:
        if not isinstance(value, self._base):
            return f"{point.value} is no {self._base.__name__}"
        return None if getattr(value, "name", None) == point.name else f"it is not called {point.name!r}"


def _is_ours(point: EntryPoint) -> bool:
    return point.dist is not None and point.dist.name == "mbr-esd-metric"


def _package_of(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
