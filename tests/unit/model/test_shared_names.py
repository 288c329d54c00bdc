"""Durations and array types have one definition each, in ``model``."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from clusterscape.model import durations

PACKAGE = Path(__file__).parents[3] / "src/clusterscape"
DURATIONS = PACKAGE / "model/durations.py"
ARRAYS = PACKAGE / "model/arrays.py"
DURATION_NAME = re.compile(
    r"_?(SECOND|MINUTE|HOUR|DAY|WEEK)_(S|MS|NS)|_?(S|MS|NS|SECONDS)_PER_(SECOND|MINUTE|HOUR|DAY|WEEK)"
)


def iter_assignments() -> Iterator[tuple[Path, str, str]]:
    """File, name and value of every assignment to a module's name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign):
                names = [
                    name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                ]
                yield from ((path, name, ast.unparse(node.value)) for name in names)


def test_durations_are_defined_once_when_all_modules_are_read() -> None:
    defined = {(path, name) for path, name, _ in iter_assignments() if DURATION_NAME.fullmatch(name)}
    assert not [f"{path}: import {name} from model.durations" for path, name in defined if path != DURATIONS]
    assert len(defined) == 7
    assert durations.WEEK_S == 7 * 86_400
    assert durations.DAY_MS == 86_400_000


def test_array_types_are_defined_once_when_all_modules_are_read() -> None:
    defined = [
        (path, name) for path, name, value in iter_assignments() if value.startswith(("NDArray[", "npt.NDArray["))
    ]
    assert not [f"{path}: build {name} on a type of model.arrays" for path, name in defined if path != ARRAYS]
    assert len(defined) == 9


UNCLEAR = {"each", "found", "known", "one", "told"}
"""They say how a value was obtained, not what it is."""
FIELDS_OF_THE_API = {("query/scheduling/waiting.py", "told")}


def iter_value_names(module: ast.Module) -> Iterator[str]:
    """Names of variables, arguments and fields."""
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_names_say_what_the_value_is_when_all_modules_are_read() -> None:
    unclear = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        for name in iter_value_names(ast.parse(path.read_text(encoding="utf-8")))
        if name in UNCLEAR
    }
    assert unclear == FIELDS_OF_THE_API
