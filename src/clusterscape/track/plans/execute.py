"""Runs a plan: workloads one after another, the runs of each together; states are written before and after each workload."""

import string
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from clusterscape.track.plans.collocation import NONE, HeldSeat, Seat, check_instances, hold_seats
from clusterscape.track.plans.plan import CANCELLED, FAILED, FINISHED, RUNNING, PlannedRun, RunPlan
from clusterscape.track.tracked_run import RunRequest, TrackedRun
from clusterscape.track.tracker import TrackOptions, track


class PlanOptions(NamedTuple):
    """Options of an execution. ``device_wait_s`` None: wait for devices without a limit."""

    state: Path
    python: str
    retries: int = 0
    skips_failed: bool = False
    stops_at_failure: bool = False
    shows_output: bool = False
    device_wait_s: float | None = None
    track: TrackOptions | None = None


class PlanWatcher(Protocol):
    """Receives progress events of a plan."""

    def workload_started(self, runs: Sequence[PlannedRun], attempt: int) -> None:
        """The runs of a workload start."""
        ...

    def run_ended(self, run: PlannedRun, tracked: TrackedRun) -> None:
        """A run has ended."""
        ...

    def waiting(self, device: str) -> None:
        """Another plan holds a device."""
        ...


class PlanResult(NamedTuple):
    """Numbers of runs by outcome in this execution; ``skipped`` runs had ended before."""

    finished: int
    failed: int
    cancelled: int
    skipped: int


def due_workloads(plan: RunPlan, *, skips_failed: bool) -> list[list[PlannedRun]]:
    """Workloads with runs that are due."""
    groups = [[run for run in group if plan.is_due(run, skips_failed=skips_failed)] for group in plan.workloads()]
    return [group for group in groups if group]


def letters(runs: Sequence[PlannedRun]) -> list[str]:
    """Names within a workload, as radT gives them: ``0``, ``0_A_mps``."""
    places = ["+".join(run.devices) or "all" for run in runs]
    totals, counts = Counter(places), Counter[str]()
    names = []
    for run, place in zip(runs, places, strict=True):
        number = counts[place]
        counts[place] += 1
        suffix = "" if run.collocation.kind == NONE else f"_{run.collocation.profile or run.collocation.kind}"
        names.append((f"{place}_{_letter(number)}" if totals[place] > 1 else place) + suffix)
    return names


def execute(plan: RunPlan, options: PlanOptions, watcher: PlanWatcher) -> PlanResult:
    """Execute all due runs. Call from the main thread; returns early when stopped by a signal."""
    ends: Counter[str] = Counter()
    due = due_workloads(plan, skips_failed=options.skips_failed)
    for group in due:
        left = group
        for attempt in range(1 + max([options.retries, *(run.retries or 0 for run in group)])):
            ended = _execute_workload(plan, left, options, watcher, attempt)
            states = {run.key: _state(tracked) for run, tracked in ended}
            failed = [run for run in left if states[run.key] == FAILED]
            ends.update(state for state in states.values() if state != FAILED)
            left = [run for run in failed if attempt < max(options.retries, run.retries or 0)]
            ends[FAILED] += len(failed) - len(left)
            if CANCELLED in states.values() or not left:
                break
        if ends[CANCELLED] or (options.stops_at_failure and ends[FAILED]):
            break
    skipped = len(plan.runs) - sum(map(len, due))
    return PlanResult(ends[FINISHED], ends[FAILED], ends[CANCELLED], skipped)


def _execute_workload(
    plan: RunPlan, runs: Sequence[PlannedRun], options: PlanOptions, watcher: PlanWatcher, attempt: int
) -> list[tuple[PlannedRun, TrackedRun]]:
    queued_at = time.time_ns() // 1_000_000
    seats = [_seat(run) for run in runs]
    with hold_seats(seats, options.state, wait_s=options.device_wait_s, on_wait=watcher.waiting) as held:
        requests = [
            _request(run, letter, own, queued_at, options)
            for run, letter, own in zip(runs, letters(runs), held, strict=True)
        ]
        watcher.workload_started(runs, attempt)
        plan.book.write({run.key: (RUNNING, "") for run in runs})
        base = options.track or TrackOptions(state=options.state)
        tracked = track(requests, base._replace(ends_leftovers=True))
    ended = list(zip(runs, tracked, strict=True))
    plan.book.write({run.key: (_status(tracked_run), tracked_run.id) for run, tracked_run in ended})
    for run, tracked_run in ended:
        watcher.run_ended(run, tracked_run)
    return ended


def check_mig(groups: Sequence[Sequence[PlannedRun]]) -> None:
    """Raise ConfigError if a GPU does not offer a requested MIG profile."""
    check_instances([_seat(run) for group in groups for run in group])


def _seat(run: PlannedRun) -> Seat:
    return Seat(run.devices, run.collocation)


def _request(run: PlannedRun, letter: str, held: HeldSeat, queued_at: int, options: PlanOptions) -> RunRequest:
    return RunRequest(
        words=[options.python, str(run.file), *run.words],
        cwd=run.file.parent,
        name=run.name or run.file.name,
        experiment=run.experiment,
        workload=run.workload,
        letter=letter,
        devices=run.devices,
        collocation=str(run.collocation),
        params=run.params,
        environ=held.environ,
        instances=held.instances,
        listeners=run.listeners,
        profiler=run.profiler,
        queued_at=queued_at,
        keeps_output=not options.shows_output,
    )


def _state(tracked: TrackedRun) -> str:
    assert tracked.outcome is not None
    return {"completed": FINISHED, "cancelled": CANCELLED}.get(tracked.outcome.state, FAILED)


def _status(tracked: TrackedRun) -> str:
    """The status in the plan: radT's word, followed by the cause."""
    assert tracked.outcome is not None
    cause = " ".join((tracked.outcome.cause or "").split())[:200]
    return f"{_state(tracked)} ({cause})" if cause else _state(tracked)


def _letter(number: int) -> str:
    """A … Z, AA, AB …"""
    text = ""
    while number >= 0:
        text = string.ascii_uppercase[number % 26] + text
        number = number // 26 - 1
    return text
