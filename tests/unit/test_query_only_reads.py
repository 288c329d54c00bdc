"""`query` only reads: no module of it starts a thread or a process, and none calls what writes.

What writes is derived: of a store every method that its reader does not have, of the versions and of the watch every method
that leads to a write. mypy says the same of the stores, because a QueryContext hands out readers.
"""

import ast
import inspect
from collections import deque
from collections.abc import Iterator
from dataclasses import fields
from io import IOBase
from pathlib import Path
from textwrap import dedent
from typing import get_type_hints

import pytest

from clusterscape.query import QueryContext
from clusterscape.query.redaction.scoped_records import ScopedRecords
from clusterscape.query.redaction.scopes import ScopedFiles
from clusterscape.store.artifacts.contract import ArtifactReader, ArtifactStore
from clusterscape.store.changes import Changes
from clusterscape.store.metrics.contract import MetricReader, MetricStore
from clusterscape.store.records.contract import RecordReader, RecordStore
from clusterscape.watch.rulebook import RuleBook
from clusterscape.watch.watcher import Watch

QUERY = Path(__file__).parents[2] / "src/clusterscape/query"
READERS: dict[type, type] = {RecordStore: RecordReader, MetricStore: MetricReader, ArtifactStore: ArtifactReader}
CONCURRENT_MODULES = {"asyncio", "concurrent", "multiprocessing", "subprocess"}
ALLOWED_OF = {
    "threading": {"Lock", "RLock"},
    "clusterscape.executors": {"run_meanwhile", "Compute", "compute_here", "Report", "ignore_progress"},
}
"""Locks; a thread that ends with the answer that it is for; the type of what computes elsewhere, which queries are handed."""


def own_methods(kind: type) -> set[str]:
    """Methods that a class itself defines, not those of its bases."""
    return {name for name, value in vars(kind).items() if inspect.isfunction(value) and not name.startswith("__")}


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Called methods, each with the last name of what it is called on: ``("records", "write_document")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            yield name.strip("_"), node.func.attr


def writing_methods() -> dict[str, set[str]]:
    """Writing methods by the name of their owner: the stores, the versions, the watch and its book of rules."""
    hints = get_type_hints(QueryContext)
    of = {
        field.name: own_methods(store)
        for field in fields(QueryContext)
        for store, reader in READERS.items()
        if reader in (hints[field.name], *getattr(hints[field.name], "__args__", ()))
    }
    assert len(of) == len(READERS), "a QueryContext has a reader of each store"
    for name, kind in {"changes": Changes, "book": RuleBook, "watch": Watch}.items():
        of[name] = leading_to(kind, {*of.keys(), "self"}, set().union(*of.values()) | {"_update"})
    return of


def leading_to(kind: type, owners: set[str], writes: set[str]) -> set[str]:
    """Methods of a class that call one of ``writes`` on one of ``owners``, or another such method of the class."""
    bodies = {name: ast.parse(dedent(inspect.getsource(getattr(kind, name)))) for name in own_methods(kind)}
    leading: set[str] = set()
    while True:
        more = {
            name
            for name, body in bodies.items()
            if any(owner in owners and called in writes | leading for owner, called in calls(body))
        }
        if more <= leading:
            return {name for name in leading if not name.startswith("_")}
        leading |= more


def is_of_containers(method: str) -> bool:
    """Whether lists, dictionaries, sets or files also have a method of that name."""
    return any(hasattr(kind, method) for kind in (list, dict, set, deque, IOBase))


def find_writes(tree: ast.AST, of: dict[str, set[str]]) -> list[str]:
    unmistakable = {name for name in set().union(*of.values()) if not is_of_containers(name) and "_" in name}
    return [
        f"{owner}.{method}()" for owner, method in calls(tree) if method in of.get(owner, ()) or method in unmistakable
    ]


def find_threads(tree: ast.AST) -> list[str]:
    threads = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            threads += [alias.name for alias in node.names if alias.name.split(".")[0] in CONCURRENT_MODULES]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module.split(".")[0] in CONCURRENT_MODULES:
                threads.append(node.module)
            allowed = ALLOWED_OF.get(node.module)
            if allowed is not None:
                threads += [f"{alias.name} of {node.module}" for alias in node.names if alias.name not in allowed]
            threads += [f"all of clusterscape.{alias.name}" for alias in node.names if node.module == "clusterscape"]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "threading":
            threads += [f"threading.{node.attr}"] if node.attr not in ALLOWED_OF["threading"] else []
    return threads


def parse_query() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(QUERY.rglob("*.py")):
        yield str(path.relative_to(QUERY)), ast.parse(path.read_text(encoding="utf-8"))


def test_nothing_is_written_when_any_query_is_read() -> None:
    of = writing_methods()
    assert not {name: wrong for name, tree in parse_query() if (wrong := find_writes(tree, of))}


def test_no_thread_is_started_when_any_query_is_read() -> None:
    assert not {name: wrong for name, tree in parse_query() if (wrong := find_threads(tree))}


def test_writing_methods_are_derived_when_contracts_are_compared() -> None:
    of = writing_methods()
    assert {"write_document", "remove_run", "replace_violations", "close"} <= of["records"]
    assert {"append", "remove_unit", "maintain"} <= of["metrics"]
    assert of["artifacts"] == {"put", "delete", "remove_unfinished"}
    assert {"bump_rules", "bump_inventory", "adopt"} <= of["changes"]
    assert {"save", "remove", "order"} <= of["book"]
    assert {"save_rule", "remove_rule", "judge"} <= of["watch"]
    assert not {"rules", "find", "shipped"} & of["book"]


@pytest.mark.parametrize(
    "line",
    [
        "self._context.records.write_document('view', 'mine', {}, at_ms=now)",
        "store.write_violations([])",
        "self._artifacts.put(key, chunks)",
        "context.metrics.append(batch)",
        "self._context.changes.bump_rules()",
        "self._watch.save_rule(rule)",
        "watch.book.order(keys)",
    ],
)
def test_a_write_is_reported_when_a_query_does_it(line: str) -> None:
    assert find_writes(ast.parse(line), writing_methods())
    assert not find_writes(ast.parse("rows.append(row); file.close(); self._context.records.documents('view')"), {})


@pytest.mark.parametrize(
    "line",
    [
        "threading.Thread(target=run).start()",
        "from threading import Timer",
        "from concurrent.futures import ThreadPoolExecutor",
        "import multiprocessing.pool",
        "from clusterscape.executors import UPKEEP",
        "from clusterscape import executors",
    ],
)
def test_a_thread_is_reported_when_a_query_starts_it(line: str) -> None:
    assert find_threads(ast.parse(line))
    assert not find_threads(ast.parse("lock = threading.Lock()\nfrom clusterscape.executors import run_meanwhile"))


@pytest.mark.parametrize(("scoped", "store"), [(ScopedRecords, RecordStore), (ScopedFiles, ArtifactStore)])
def test_scoped_stores_cannot_write_when_their_methods_are_listed(scoped: type, store: type) -> None:
    assert not own_methods(scoped) & own_methods(store)
    assert {name for name in own_methods(READERS[store]) if not name.startswith("_")} <= own_methods(scoped)
