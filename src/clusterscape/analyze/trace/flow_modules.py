"""What captured modules (``clusterscape.trace.capture``) tell of an operator graph made of spans: which module a namespace is,
how the tensors between modules are split over ranks, and which modules are layers of one kind.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from clusterscape.model.spans import Activation, ModuleFacts, StageModules

Shards = list[list[int]] | None


class NamedModules:
    """Modules of all stages by the namespaces their calls have in the trace."""

    def __init__(self, stages: Sequence[StageModules]) -> None:
        self._by_path = {each.stage: {module.path: module for module in each.modules} for each in stages}
        self._found: dict[tuple[int | None, str], ModuleFacts | None] = {}

    def find(self, stage: int | None, namespace: str) -> ModuleFacts | None:
        """The module whose call the namespace is; None where it is an annotation, or not known."""
        key = (stage, namespace)
        if key not in self._found:
            self._found[key] = self._match(self._by_path.get(stage, {}), namespace)
        return self._found[key]

    def around(self, stage: int | None, namespace: str) -> Iterator[tuple[str, ModuleFacts]]:
        """Modules whose calls an operator of the namespace lies in, outer before inner, with their namespaces."""
        for path in paths_of(namespace):
            module = self.find(stage, path)
            if module is not None:
                yield path, module

    def _match(self, modules: Mapping[str, ModuleFacts], namespace: str) -> ModuleFacts | None:
        """``forward mb0/Stage/blocks.1/down`` is ``blocks.1.down``: the longest end of it that is a module's path."""
        parts = namespace.split("/")
        for start in range(len(parts)):
            found = modules.get(".".join(parts[start:]))
            if found is not None:
                return found
        root = modules.get("")
        return root if root is not None and parts[-1] == root.class_name else None


def paths_of(namespace: str) -> Iterator[str]:
    """``a/b/c`` → ``a``, ``a/b``, ``a/b/c``."""
    parts = namespace.split("/") if namespace else []
    for depth in range(len(parts)):
        yield "/".join(parts[: depth + 1])


def add_shards(operators: pl.DataFrame, modules: NamedModules) -> pl.DataFrame:
    """The graph with ``shards`` where a tensor goes into a module or comes out of one, and the shape and type of what the last
    operator of a module makes.
    """
    stages, spaces = operators["stage"].to_list(), operators["namespace"].to_list()
    counts = operators["inputs"].list.len().to_list()
    calls = [dict(modules.around(stage, space)) for stage, space in zip(stages, spaces, strict=True)]
    shards: list[Shards] = []
    made: list[Activation | None] = []
    for row, (stage, inside) in enumerate(zip(stages, calls, strict=True)):
        is_first = row == 0 or stages[row - 1] != stage
        is_last = row + 1 == len(stages) or stages[row + 1] != stage
        taken = _taken({} if is_first else calls[row - 1], inside)
        shards.append([list(taken.splits)] * max(1, counts[row]) if taken is not None and taken.splits else None)
        made.append(_given(inside, {} if is_last else calls[row + 1]))
    shards = _hand_back(shards, operators["message"].to_list(), stages)
    return operators.with_columns(
        pl.Series("shards", shards, dtype=operators.schema["shards"]),
        pl.Series("shape", [None if each is None else _say(each) for each in made], dtype=pl.String),
        pl.Series("data_type", [None if each is None else each.data_type for each in made], dtype=pl.String),
    )


def _taken(before: Mapping[str, ModuleFacts], now: Mapping[str, ModuleFacts]) -> Activation | None:
    """What flows into an operator: the input of the innermost module it is the first of, else the output of the outermost
    module that has just been left.
    """
    entered = [module for path, module in now.items() if path not in before]
    for module in reversed(entered):
        if module.inputs and module.inputs[0].splits:
            return module.inputs[0]
    return _given(before, now)


def _given(before: Mapping[str, ModuleFacts], after: Mapping[str, ModuleFacts]) -> Activation | None:
    """What comes out of the outermost module that is left."""
    return next((module.outputs[0] for path, module in before.items() if path not in after and module.outputs), None)


def _hand_back(shards: list[Shards], messages: Sequence[str | None], stages: Sequence[int | None]) -> list[Shards]:
    """A received tensor is split as the module that takes it says."""
    for row in range(len(shards) - 2, -1, -1):
        if messages[row] == "recv" and shards[row] is None and stages[row] == stages[row + 1]:
            following = shards[row + 1]
            shards[row] = None if following is None else following[:1]
    return shards


def _say(tensor: Activation) -> str:
    return " × ".join(str(each) for each in tensor.shape) + (" (partial sums)" if tensor.is_partial else "")


def find_layers(namespaces: Sequence[str], stages: Sequence[int | None], modules: NamedModules) -> frozenset[str]:
    """Namespaces of modules that stand side by side, are of one class and differ only in numbers: layers, not just neighbors."""
    groups: dict[tuple[str, str, str], set[str]] = {}
    for path in namespaces:
        found = next((module for stage in stages if (module := modules.find(stage, path)) is not None), None)
        if found is not None:
            around, _, name = path.rpartition("/")
            groups.setdefault((around, found.class_name, re.sub(r"\d+", "#", name)), set()).add(path)
    return frozenset(path for (_, _, name), paths in groups.items() if len(paths) > 1 and "#" in name for path in paths)
