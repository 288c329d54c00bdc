"""Simulates the queue with and without a change on the same sampled futures, so that the differences are paired.

Pure: `simulate_what_if` can run in another process.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from clusterscape.model.arrays import Float64s
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob
from clusterscape.query.scheduling.queue_answers import PlacementEvidence
from clusterscape.query.scheduling.whatif_answers import (
    MeasureChange,
    QueueWhatIf,
    RoomChange,
    StartChange,
    WhatIfAnswer,
)
from clusterscape.query.scheduling.whatif_course import HolderFacts, describe_course
from clusterscape.query.scheduling.whatif_scenario import (
    LIVE_BACKFILLS,
    Future,
    PreparedScenario,
    change_queue,
    prepare_scenario,
)
from clusterscape.query.scheduling.whatif_warnings import find_small, find_warnings
from clusterscape.simulate.batch.measures import BOUND_S
from clusterscape.simulate.batch.policies import policy_names
from clusterscape.simulate.cluster.contract import ClusterSchedule
from clusterscape.simulate.futures import SampledArrivals
from clusterscape.simulate.placements import placement_names

ASSUMPTIONS = (
    "Run times are sampled from the models; the same samples are used with and without the change.",
    "For six hours, workloads are submitted as in past weeks at this hour; none afterwards.",
    "The current scheduler is modeled as priority, then first come first served, with EASY backfilling and the placement that "
    "its recent starts show.",
    "Workloads that wait for something other than GPUs (a hold, a dependency, a quota) are excluded.",
    "Reservations and preemption are not simulated.",
)

MEASURES: tuple[tuple[str, str, str, bool], ...] = (
    ("wait_s", "Mean wait of waiting workloads", "s", True),
    ("small_wait_s", "Mean wait of small workloads", "s", True),
    ("large_wait_s", "Mean wait of other workloads", "s", True),
    ("slowdown", "Mean bounded slowdown", "", True),
    ("drained_s", "Time until all waiting workloads have started", "s", True),
    ("fragmented_gpus", "Fragmented idle GPUs", "GPUs", True),
    ("blocked_gpu_h", "Idle GPU-hours while a gang is blocked", "GPU-h", True),
)
"""Name, title, unit, whether lower is better."""


@dataclass(frozen=True, slots=True)
class SimulatedFuture:
    """One simulated future: the start of each waiting workload (NaN: never) and the measures."""

    start_s: Float64s
    measures: Mapping[str, float]
    schedule: ClusterSchedule
    prepared: PreparedScenario


@dataclass(frozen=True, slots=True)
class WhatIfTask:
    """A what-if and all its inputs.

    ``names``: workloads with a predicted run time. ``middle_s``: the remaining time of each run if it takes its median time
    (seconds); ``drawn_s``: the same in each sampled future, futures × names. ``arrivals``: by partition.
    """

    change: QueueWhatIf
    queue: LiveQueue
    placement: PlacementEvidence
    room: list[RoomChange]
    holders: Mapping[str, HolderFacts]
    names: list[str]
    middle_s: Float64s
    drawn_s: Float64s
    arrivals: Mapping[str, SampledArrivals]


def simulate_what_if(task: WhatIfTask, report: Callable[[float], None]) -> WhatIfAnswer:
    """The differences; ``report`` is called with the progress, 0–1, and may raise to cancel."""
    queue, change = task.queue, task.change
    changed = change_queue(queue, change)
    names = [job.workload for job in queue.planned()]
    small = find_small(queue)
    unchanged = QueueWhatIf(futures=change.futures)
    pairs = []
    for index, future in enumerate(_list_futures(task)):
        # The first future is the one that the page draws; it has the same seed as the first sampled one.
        seed = max(index - 1, 0)
        pairs.append(
            (
                _simulate(queue, unchanged, future, task, names, small, seed),
                _simulate(changed, change, future, task, names, small, seed),
            )
        )
        report((index + 1) / (change.futures + 1))
    typical = pairs.pop(0)
    measures = [_compare(*measure, pairs) for measure in MEASURES]
    starts = _starts(task, names, pairs)
    courses = tuple((simulated.schedule, simulated.prepared) for simulated in typical)
    return WhatIfAnswer(
        at=queue.now_s * 1000,
        is_unchanged=change == unchanged,
        changes=describe_changes(change),
        futures=change.futures,
        simulated=len(names),
        placement=task.placement,
        measures=measures,
        room=task.room,
        workloads=starts,
        warnings=find_warnings(measures, starts, small, typical[1].prepared.refused, change),
        course=describe_course(queue, changed, (courses[0], courses[1]), task.holders),
        policies=policy_names(),
        backfills=list(LIVE_BACKFILLS),
        placements=placement_names(),
        assumptions=list(ASSUMPTIONS),
    )


def _list_futures(task: WhatIfTask) -> Iterator[Future]:
    """The future of median run times without arrivals, then the sampled ones."""
    users = {name: holder.user for name, holder in task.holders.items() if holder.user is not None}
    yield Future(_by_name(task.names, task.middle_s), users=users)
    for index in range(task.change.futures):
        arrivals = [
            job
            for partition in task.arrivals
            for job in _list_arrivals(task.queue, partition, task.arrivals[partition], index)
        ]
        yield Future(_by_name(task.names, task.drawn_s[index]), tuple(arrivals), users)


def _by_name(names: list[str], values: Float64s) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _list_arrivals(
    queue: LiveQueue, partition: str, arrivals: SampledArrivals, future: int
) -> Iterator[tuple[QueueJob, int]]:
    """Jobs that are submitted later in one future, with their run times in seconds."""
    largest = max(node.gpus for node in queue.open_nodes(partition))
    priorities = [job.priority for job in queue.waiting if job.partition == partition]
    priority = int(np.median(priorities)) if priorities else 0
    for at in range(int(arrivals.offsets[future]), int(arrivals.offsets[future + 1])):
        size = int(arrivals.size[at])
        nodes = -(-size // largest)
        job = QueueJob(
            workload=f"later {future} {at}",
            partition=partition,
            machine_type=None,
            nodes=nodes,
            gpus=-(-size // nodes),
            limit_s=int(arrivals.limit_s[at]),
            priority=priority,
            queued_s=queue.now_s + int(arrivals.at_s[at]),
            is_planned=True,
        )
        yield job, int(arrivals.run_s[at])


def describe_changes(change: QueueWhatIf) -> list[str]:
    """The changes as texts."""
    return [
        *([f"policy {change.policy}"] if change.policy else []),
        *([f"backfilling {change.backfill}"] if change.backfill else []),
        *([f"placement {change.placement}"] if change.placement else []),
        *(f"{name} drained" for name in change.drained),
        *(f"{count} more nodes in {partition}" for partition, count in change.added.items()),
        *(f"at most {gpus} GPUs per workload in {partition}" for partition, gpus in change.limits.items()),
        *(f"{name} first" for name in change.first),
        *(f"{name} with priority {priority:,}" for name, priority in change.priorities.items()),
    ]


def _simulate(
    queue: LiveQueue,
    change: QueueWhatIf,
    future: Future,
    task: WhatIfTask,
    names: list[str],
    small: frozenset[str],
    seed: int,
) -> SimulatedFuture:
    from clusterscape.simulate.cluster.engine import simulate_from_now

    prepared = prepare_scenario(queue, change, future, own_placement=task.placement.placement, seed=seed)
    schedule = simulate_from_now(prepared.scenario, prepared.standing)
    start = np.full(len(names), np.nan)
    for index, name in enumerate(names):
        row = prepared.rows.get(name)
        if row is not None and schedule.has_started[row]:
            start[index] = schedule.start_s[row]
    return SimulatedFuture(start, _measure(queue, schedule, prepared, start, names, small), schedule, prepared)


def _measure(
    queue: LiveQueue,
    schedule: ClusterSchedule,
    prepared: PreparedScenario,
    start: Float64s,
    names: list[str],
    small: frozenset[str],
) -> dict[str, float]:
    jobs = prepared.scenario.jobs
    queued = {job.workload: job.queued_s for job in queue.waiting}
    wait = start - np.array([queued[name] for name in names], float) if names else start
    rows = [prepared.rows.get(name) for name in names]
    run = np.array([np.nan if row is None else float(jobs.run_s[row]) for row in rows])
    is_small = np.array([name in small for name in names], bool)
    ends = schedule.end_s[schedule.has_ended]
    span = float(ends.max() - queue.now_s) if ends.size else 1.0
    return {
        "wait_s": _mean(wait),
        "small_wait_s": _mean(wait[is_small]),
        "large_wait_s": _mean(wait[~is_small]),
        "slowdown": _mean(np.maximum(1.0, (wait + run) / np.maximum(run, BOUND_S))),
        "drained_s": float(np.nanmax(start) - queue.now_s) if np.isfinite(start).any() else 0.0,
        "fragmented_gpus": schedule.integrals.fragmented / max(span, 1.0),
        "blocked_gpu_h": schedule.integrals.blocked / 3600,
    }


def _mean(values: Float64s) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else 0.0


def _compare(
    name: str, title: str, unit: str, less_is_better: bool, pairs: list[tuple[SimulatedFuture, SimulatedFuture]]
) -> MeasureChange:
    """The mean difference with its 95 % interval (Student's t over the futures)."""
    from scipy.special import stdtrit

    before = np.array([pair[0].measures[name] for pair in pairs])
    after = np.array([pair[1].measures[name] for pair in pairs])
    differences = after - before
    mean = float(differences.mean())
    half = float(stdtrit(len(differences) - 1, 0.975)) * float(differences.std(ddof=1)) / len(differences) ** 0.5
    low, high = mean - half, mean + half
    if not differences.any():
        verdict = "same"
    elif low <= 0 <= high:
        verdict = "unclear"
    else:
        verdict = "better" if (mean < 0) == less_is_better else "worse"
    return MeasureChange(
        name=name,
        title=title,
        unit=unit,
        baseline=float(before.mean()),
        changed=float(after.mean()),
        difference=mean,
        low=low,
        high=high,
        verdict=verdict,
    )


def _starts(
    task: WhatIfTask, names: list[str], pairs: list[tuple[SimulatedFuture, SimulatedFuture]]
) -> list[StartChange]:
    before = np.stack([pair[0].start_s for pair in pairs])
    after = np.stack([pair[1].start_s for pair in pairs])
    rows = []
    jobs = {job.workload: job for job in task.queue.waiting}
    for index, name in enumerate(names):
        both = np.isfinite(before[:, index]) & np.isfinite(after[:, index])
        differences = (after - before)[both, index]
        rows.append(
            StartChange(
                workload=name,
                user=task.holders[name].user if name in task.holders else None,
                partition=jobs[name].partition,
                gpus=jobs[name].total_gpus,
                baseline_at=_middle_ms(before[:, index]),
                changed_at=_middle_ms(after[:, index]),
                change_s=float(np.median(differences)) if differences.size else None,
                low_s=float(np.quantile(differences, 0.1)) if differences.size else None,
                high_s=float(np.quantile(differences, 0.9)) if differences.size else None,
            )
        )
    return rows


def _middle_ms(starts: Float64s) -> int | None:
    finite = starts[np.isfinite(starts)]
    return int(np.median(finite) * 1000) if finite.size > starts.size / 2 else None
