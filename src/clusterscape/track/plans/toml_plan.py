"""Reads plans in TOML, with sweeps. Their progress is stored in the state folder; the file is not changed."""

import hashlib
import itertools
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterscape.errors import ConfigError
from clusterscape.track.places import make_private_folder
from clusterscape.track.plans.plan import PlannedRun, RunPlan, make_run

_TOP = ("experiment", "devices", "collocation", "listeners", "file", "params", "retries", "workload", "sweep")
_SHARED = ("name", "devices", "collocation", "listeners", "file", "params", "retries")
_WORKLOAD = (*_SHARED, "run", "repeat")
_SWEEP = (*_SHARED, "grid", "copies", "repeat")
_RUN = (*_SHARED, "copies")
MOST_RUNS = 100_000


def read_toml_plan(path: Path, state: Path) -> RunPlan:
    """The plan; raises ConfigError naming the table."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", hint="Give an existing file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", hint="Fix the line named above.") from None
    _check_keys(document, _TOP, str(path))
    experiment = str(document.get("experiment", path.stem))
    shared = {key: value for key, value in document.items() if key in _SHARED}
    runs: list[PlannedRun] = []
    for number, table in enumerate(_tables(document, "workload"), 1):
        runs += _workload(path, experiment, shared, table, number)
    for number, table in enumerate(_tables(document, "sweep"), 1):
        runs += _sweep(path, experiment, shared, table, number)
    if len(runs) > MOST_RUNS:
        raise ConfigError(f"{path} has {len(runs):,} runs", hint=f"A plan may have {MOST_RUNS:,}.")
    return RunPlan(path=path, runs=runs, book=JsonBook(path, state))


class JsonBook:
    """States by run key in one small file."""

    def __init__(self, plan: Path, state: Path) -> None:
        name = hashlib.sha256(str(plan.resolve()).encode()).hexdigest()[:16]
        self._file = state / "plans" / f"{name}.json"
        try:
            self._states: dict[str, list[str]] = json.loads(self._file.read_text())["runs"]
        except (OSError, ValueError, KeyError):
            self._states = {}
        self._plan = plan

    def status(self, key: str) -> str:
        """The status in the file."""
        return self._states.get(key, ["", ""])[0]

    def write(self, updates: Mapping[str, tuple[str, str]]) -> None:
        """Replace the file."""
        self._states |= {key: list(pair) for key, pair in updates.items()}
        make_private_folder(self._file.parent)
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps({"plan": str(self._plan.resolve()), "runs": self._states}, indent=1))
        temporary.replace(self._file)


def _workload(
    path: Path, experiment: str, shared: Mapping[str, Any], table: Mapping[str, Any], number: int
) -> list[PlannedRun]:
    where = f"{path.name}, workload {table.get('name', number)}"
    _check_keys(table, _WORKLOAD, where)
    base = {**shared, **{key: value for key, value in table.items() if key in _SHARED}}
    runs = []
    for repeat in range(_count(table, "repeat", where)):
        name = str(table.get("name", number)) + (f" #{repeat + 1}" if repeat else "")
        for place, run in enumerate(_tables(table, "run") or [{}], 1):
            _check_keys(run, _RUN, f"{where}, run {place}")
            options = {**base, **run, "params": {**base.get("params", {}), **run.get("params", {})}}
            key = f"w{number}.{repeat}.{place}"
            copies = range(_count(run, "copies", where))
            runs += [
                _make(path, experiment, name, options, f"{where}, run {place}", f"{key}.{copy}") for copy in copies
            ]
    return runs


def _sweep(
    path: Path, experiment: str, shared: Mapping[str, Any], table: Mapping[str, Any], number: int
) -> list[PlannedRun]:
    """Every combination of the grid is a separate workload with ``copies`` runs, ``repeat`` times."""
    where = f"{path.name}, sweep {table.get('name', number)}"
    _check_keys(table, _SWEEP, where)
    grid = table.get("grid")
    if (
        not isinstance(grid, Mapping)
        or not grid
        or not all(isinstance(values, list) and values for values in grid.values())
    ):
        raise ConfigError(
            f"{where}: grid needs lists of values", hint="grid = { lr = [0.1, 0.01], batch-size = [64, 128] }"
        )
    base = {**shared, **{key: value for key, value in table.items() if key in _SHARED}}
    runs = []
    for values in itertools.product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        label = " ".join(f"{key}={value}" for key, value in chosen.items())
        options = {**base, "params": {**base.get("params", {}), **chosen}}
        for repeat in range(_count(table, "repeat", where)):
            name = f"{table.get('name', f'sweep {number}')} {label}" + (f" #{repeat + 1}" if repeat else "")
            key = f"s{number}.{label}.{repeat}"
            copies = range(_count(table, "copies", where))
            runs += [_make(path, experiment, name, options, f"{where} ({label})", f"{key}.{copy}") for copy in copies]
    return runs


def _make(path: Path, experiment: str, workload: str, options: Mapping[str, Any], place: str, key: str) -> PlannedRun:
    retries = options.get("retries")
    return make_run(
        key=key,
        place=place,
        base=path.parent.resolve(),
        experiment=experiment,
        workload=workload,
        file=str(options.get("file", "")),
        params=options.get("params", {}),
        devices=str(options.get("devices", "")),
        collocation=str(options.get("collocation", "")),
        listeners=str(options.get("listeners", "")),
        retries=retries if isinstance(retries, int) else None,
    )


def _tables(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    tables = document.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise ConfigError(f"`{key}` must be tables", hint=f"Write [[{key}]] above each.")
    return tables


def _count(table: Mapping[str, Any], key: str, where: str) -> int:
    number = table.get(key, 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ConfigError(f"{where}: {key} = {number!r} is not a count", hint="Give a whole number from 1 on.")
    return number


def _check_keys(table: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    unknown = [key for key in table if key not in allowed]
    if unknown:
        raise ConfigError(f"{where}: unknown key `{unknown[0]}`", hint=f"It takes: {', '.join(allowed)}.")
