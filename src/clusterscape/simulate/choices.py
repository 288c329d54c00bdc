"""Choices of a simulation that have one file each: their names are the files', their labels what the files say."""

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType

from clusterscape.errors import QueryError


@dataclass(frozen=True, slots=True)
class Choice:
    """``label``: as it stands beside others (``FCFS``); ``title``: as it stands in a menu (``First come, first served``)."""

    name: str
    label: str
    title: str


class Folder:
    """The files of a package, each a choice: ``what`` it is called in errors."""

    def __init__(self, package: str, path: Iterable[str], what: str) -> None:
        self._package = package
        self._path = path
        self._what = what

    def names(self) -> list[str]:
        """Every choice there is, as it is written on the command line."""
        return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(self._path))

    def load(self, name: str) -> ModuleType:
        """The file of that name; raises QueryError where there is none."""
        names = self.names()
        if name not in names:
            raise QueryError(f"there is no {self._what} {name!r}", hint=f"There are {', '.join(names)}.")
        return importlib.import_module(f"{self._package}.{name.replace('-', '_')}")

    def describe(self) -> list[Choice]:
        """Every choice with its labels: LABEL and TITLE of its file, else made of its name."""
        return [self._describe(name) for name in self.names()]

    def _describe(self, name: str) -> Choice:
        module = self.load(name)
        label = getattr(module, "LABEL", name.replace("-", " "))
        return Choice(name, label, getattr(module, "TITLE", label[:1].upper() + label[1:]))
