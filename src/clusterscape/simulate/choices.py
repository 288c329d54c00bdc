"""Choices of a simulation with one file each: names come from the files' names, labels from their content."""

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

from clusterscape.errors import QueryError


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice. ``label``: short name in tables (``FCFS``); ``title``: name in menus (``First come, first served``)."""

    name: str
    label: str
    title: str


class ChoiceFolder:
    """The files of a package, each a choice. ``what``: the kind of choice, in error messages."""

    def __init__(self, package: str, path: Iterable[str], what: str) -> None:
        self._package = package
        self._path = path
        self._what = what

    def names(self) -> list[str]:
        """Names of all choices, as on the command line."""
        return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(self._path))

    def load(self, name: str) -> ModuleType:
        """The module of that name; raises QueryError if there is none."""
        names = self.names()
        if name not in names:
            raise QueryError(f"unknown {self._what} {name!r}", hint=f"Choose one of: {', '.join(names)}.")
        return importlib.import_module(f"{self._package}.{name.replace('-', '_')}")

    def describe(self) -> list[Choice]:
        """All choices with their labels: LABEL and TITLE of the file, else derived from its name."""
        return [self._describe(name) for name in self.names()]

    def _describe(self, name: str) -> Choice:
        module = self.load(name)
        label = getattr(module, "LABEL", name.replace("-", " "))
        return Choice(name, label, getattr(module, "TITLE", label[:1].upper() + label[1:]))
