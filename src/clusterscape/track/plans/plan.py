"""A plan: runs in workloads, their status, and the checks before the first run."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from clusterscape.errors import ConfigError
from clusterscape.track.devices import CPU, check_devices, parse_devices
from clusterscape.track.listeners import DEFAULT_LISTENERS, ListenerChoice, parse_listeners
from clusterscape.track.plans.collocation import MIG, Collocation, parse_collocation
from clusterscape.track.processes import PROFILERS, check_profiler

FINISHED = "FINISHED"
FAILED = "FAILED"
RUNNING = "RUNNING"
CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run of a plan. ``place``: its position in the file, for messages."""

    key: str
    place: str
    experiment: str
    workload: str
    file: Path
    words: tuple[str, ...]
    params: Mapping[str, str]
    devices: tuple[str, ...]
    collocation: Collocation
    listeners: tuple[ListenerChoice, ...]
    later: tuple[str, ...] = ()  # listeners of radT's that are not there
    profiler: str | None = None
    name: str | None = None
    letter: str = ""
    retries: int | None = None


class StatusBook(Protocol):
    """Storage of a plan's progress."""

    def status(self, key: str) -> str:
        """The last written status; empty if there is none."""
        ...

    def write(self, updates: Mapping[str, tuple[str, str]]) -> None:
        """Write status and run id by key durably."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Runs in the order of the file, and the storage of their status."""

    path: Path
    runs: Sequence[PlannedRun]
    book: StatusBook = field(compare=False)

    def workloads(self) -> list[list[PlannedRun]]:
        """Runs that execute together, in the order in which workloads first appear."""
        groups: dict[tuple[str, str], list[PlannedRun]] = {}
        for run in self.runs:
            groups.setdefault((run.experiment, run.workload), []).append(run)
        return list(groups.values())

    def is_due(self, run: PlannedRun, *, skips_failed: bool) -> bool:
        """Whether the run must still be executed: not finished, and not failed if ``skips_failed``."""
        status = self.book.status(run.key).strip().upper()
        if status.startswith(FINISHED):
            return False
        return not (skips_failed and status.startswith(FAILED))


def make_run(
    *,
    key: str,
    place: str,
    base: Path,
    experiment: str,
    workload: str,
    file: str,
    params: str | Mapping[str, object],
    devices: str,
    collocation: str,
    listeners: str,
    name: str | None = None,
    retries: int | None = None,
) -> PlannedRun:
    """A run from the fields of a plan; raises ConfigError that names the position."""
    try:
        script = (base / file).resolve()
        if not file or not script.is_file():
            raise ConfigError(f"there is no script {file or '(empty)'}", hint=f"Paths are relative to {base}.")
        choices, others = parse_listeners(listeners.split("+") if listeners else DEFAULT_LISTENERS)
        words, params_by_name = read_params(params)
        return PlannedRun(
            key=key,
            place=place,
            experiment=experiment,
            workload=workload,
            file=script,
            words=tuple(words),
            params=params_by_name,
            devices=parse_devices(devices),
            collocation=parse_collocation(collocation),
            listeners=tuple(choices),
            later=tuple(name for name in others if name not in PROFILERS),
            profiler=next((check_profiler(name) for name in others if name in PROFILERS), None),
            name=name,
            retries=retries,
        )
    except ConfigError as error:
        raise ConfigError(f"{place}: {error.message}", hint=error.hint) from None


def read_params(params: str | Mapping[str, object]) -> tuple[list[str], dict[str, str]]:
    """The arguments of the command line, and the same by name. ``batch-size=128`` is short for ``--batch-size 128``."""
    if not isinstance(params, str):
        words = []
        for name, value in params.items():
            if value is False:
                continue
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return words, {str(name): str(value) for name, value in params.items()}
    try:
        split = shlex.split(params)
    except ValueError as error:
        raise ConfigError(f"params `{params}`: {error}", hint="Close the quotes.") from None
    words = []
    for word in split:
        name, equals, value = word.partition("=")
        words += [f"--{name}", value] if equals and not name.startswith("-") and name.isprintable() else [word]
    return words, _by_name(words)


def _by_name(words: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for place, word in enumerate(words):
        if not word.startswith("--") or len(word) < 3:
            continue
        name, equals, value = word[2:].partition("=")
        following = words[place + 1] if place + 1 < len(words) else "--"
        values[name] = value if equals else "true" if following.startswith("--") else following
    return values


def find_missing_devices(plan: RunPlan) -> list[str]:
    """A sentence for each run whose devices this machine does not have, in order."""
    missing = []
    for run in plan.runs:
        try:
            check_devices(run.devices)
        except ConfigError as error:
            missing.append(f"{run.place}: {error.message}")
    return missing


def check_plan(plan: RunPlan, *, allows_mig: bool = False, is_for_here: bool = True) -> None:
    """Check everything that can be checked before the first run starts.

    ``is_for_here``: the runs will start on this machine, so that it must have their devices.
    """
    if not plan.runs:
        raise ConfigError(f"{plan.path} has no runs", hint="Each line below the columns is one run.")
    for group in plan.workloads():
        kinds = {run.collocation.kind for run in group}
        if len(kinds) > 1:
            raise ConfigError(
                f"{group[0].place}: workload {group[0].workload} mixes collocations: {', '.join(sorted(kinds))}",
                hint="The runs of one workload share their GPUs in one way.",
            )
        for run in group:
            try:
                if is_for_here:
                    check_devices(run.devices)
                _check_mig(run, allows_mig=allows_mig)
            except ConfigError as error:
                raise ConfigError(f"{run.place}: {error.message}", hint=error.hint) from None


def _check_mig(run: PlannedRun, *, allows_mig: bool) -> None:
    if run.collocation.kind != MIG:
        return
    if not run.devices or CPU in run.devices:
        raise ConfigError(f"a MIG instance ({run.collocation}) needs its GPU named", hint="Give Devices: 0.")
    if not allows_mig:
        raise ConfigError(
            f"{run.collocation} would make a MIG instance on GPU {'+'.join(run.devices)}",
            hint="Allow it with --allow-mig; instances are removed when their workload has ended.",
        )
