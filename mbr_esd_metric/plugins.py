"""Classes by name: similarities, rules, formats, engines and checks, of this package and of others that are installed.

In this package, a file is named like its class: ``gemba_mqm.py`` defines the format with ``name = "gemba-mqm"``. So
names are known before a class is loaded. The rules are in one file, and a file names those
of the checks. Another package offers a class by an entry point
with the class's ``name``::

    [options.entry_points]
    mbr_esd_metric.rules =
        longest = my_package.rules:Longest
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Generic, TypeVar

from mbr_esd_metric.errors import PluginError, logger, unknown

_T = TypeVar("_T")
#: File or folder of another package -> the part that was loaded from it, such as "the rule 'x' of NAME 1.2".
PARTS: dict[str, str] = {}


class Catalog(Generic[_T]):
    """Classes of one kind by name: those of this package, and those of other packages under other names.

    Args:
        kind, plural: such as "engine"; the entry points' group is ``mbr_esd_metric.`` and the plural.
        package: dotted name of the folder, every module of which defines the class of its name; or of one module.
        base: their base class.
        beside: name -> the module that it stands in, where that is not its own.
    """

    def __init__(
        self, kind: str, plural: str, package: str, base: type[_T], beside: Mapping[str, str] | None = None
    ) -> None:
        self.kind, self.plural = kind, plural
        self._package, self._base, self._beside = package, base, beside or {}
        self._loaded: dict[str, type[_T]] = {}
        self._warned: set[str] = set()

    @cached_property
    def builtin(self) -> list[str]:
        """The names of this package."""
        package = importlib.import_module(self._package)
        if not hasattr(package, "__path__"):
            return sorted([*self._beside, *self._classes(package)])
        modules = pkgutil.iter_modules(package.__path__)
        return sorted([*self._beside, *(module.name.replace("_", "-") for module in modules)])

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

    def get(self, name: str) -> type[_T]:
        """The class of that name; `OptionError`, with the nearest names, for none, and `PluginError` for one of another
        package that cannot be used."""
        if name not in self._loaded:
            if name in self.builtin:
                module = importlib.import_module(self._package)
                if hasattr(module, "__path__") or name in self._beside:
                    file = self._beside.get(name, name).replace("-", "_")
                    module = importlib.import_module(f"{module.__package__}.{file}")
                self._loaded[name] = self._classes(module)[name]
            elif name in self._offered:
                self._loaded[name] = self._load(self._offered[name])
            else:
                raise unknown(self.kind, name, self.names())
        return self._loaded[name]

    def check(self, name: str) -> None:
        """Raise as `get` does. Only a class of another package is loaded."""
        if name not in self.builtin:
            self.get(name)

    def all(self) -> dict[str, type[_T]]:
        """Name -> class. A class that cannot be used is left out, with one warning."""
        classes = {name: self.get(name) for name in self.builtin}
        for name in self._offered:
            try:
                classes[name] = self.get(name)
            except PluginError as error:
                self._warn(str(error))
        return classes

    def offered(self) -> dict[str, str]:
        """Name -> the other package that offers it, with its version."""
        return {name: _package_of(point) for name, point in self._offered.items()}

    def _classes(self, module: ModuleType) -> dict[str, type[_T]]:
        """Name -> class, of those that the module defines or imports."""
        # Not issubclass: in Python 3.10 `list[int]` in a module counts as a class, and issubclass raises for it.
        every = [value for value in vars(module).values() if isinstance(value, type) and self._base in value.__mro__]
        return {name: value for value in every if (name := vars(value).get("name")) is not None}

    def _load(self, point: EntryPoint) -> type[_T]:
        part = f"the {self.kind} {point.name!r} of {_package_of(point)}"
        try:
            value = point.load()
            lacking = ", ".join(sorted(getattr(value, "__abstractmethods__", ())))
            if not (isinstance(value, type) and issubclass(value, self._base)):
                raise TypeError(f"{point.value} is no subclass of {self._base.__name__}")
            if lacking or getattr(value, "name", None) != point.name:
                raise TypeError(f"it lacks {lacking}" if lacking else f"the class is not called {point.name!r}")
        except Exception as error:  # a package of somebody else may raise anything on import
            why = f"{type(error).__name__}: {error}"
            raise PluginError(f"{part} cannot be used: {why}; update or uninstall that package") from error
        module = sys.modules[value.__module__.partition(".")[0]]
        PARTS[(module.__file__ or inspect.getfile(value)).removesuffix("__init__.py")] = part
        return value

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            logger.warning(message)


def _package_of(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
