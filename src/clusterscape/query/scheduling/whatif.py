"""What another policy, placement, limit, node or priority would do to the queue as it is now.

The queue and its changed twin are simulated on the same sampled futures, so that their differences are paired. Reads run times
from the models; knows nothing of requests.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from clusterscape.errors import QueryError
from clusterscape.model.samples import Float64s
from clusterscape.query.context import QueryContext
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob
from clusterscape.query.scheduling.queue import PlannedQueue, QueueQuery
from clusterscape.query.scheduling.waiting import WaitQuery
from clusterscape.query.scheduling.whatif_answers import (
    MOST_ADDED_NODES,
    MOST_FUTURES,
    MeasureChange,
    QueueWhatIf,
    StartChange,
    WhatIfAnswer,
)
from clusterscape.query.scheduling.whatif_course import describe_course
from clusterscape.query.scheduling.whatif_scenario import (
    LIVE_BACKFILLS,
    Future,
    Prepared,
    change_queue,
    check_choices,
    prepare,
)
from clusterscape.query.scheduling.whatif_warnings import find_small, find_warnings
from clusterscape.query.workload_ids import find_id
from clusterscape.simulate.batch.measures import BOUND_S
from clusterscape.simulate.batch.policies import policy_names
from clusterscape.simulate.cluster.contract import ClusterSchedule
from clusterscape.simulate.futures import RunQuantiles, sample_runs
from clusterscape.simulate.placements import placement_names

ARRIVE_FOR_S = 6 * 3600
SEED = 7

ASSUMPTIONS = (
    "Run times are drawn from what the models say of each workload; the same draws are used with and without the change.",
    "For six hours others come as in former weeks at this hour; then nobody.",
    "As it is: by priority, then first come first served, EASY backfilling, the fullest node that fits.",
    "Who waits for something else than room (held, a dependency, a quota) is left out.",
    "Reservations and preemption by the scheduler's rules are not simulated.",
)

MEASURES: tuple[tuple[str, str, str, bool], ...] = (
    ("wait_s", "Mean wait of those in the queue", "s", True),
    ("small_wait_s", "Mean wait of small workloads", "s", True),
    ("large_wait_s", "Mean wait of the others", "s", True),
    ("slowdown", "Mean bounded slowdown", "", True),
    ("drained_s", "Until the queue of now has started", "s", True),
    ("fragmented_gpus", "GPUs idle in fragments", "GPUs", True),
    ("blocked_gpu_h", "Idle GPU-hours beside a blocked gang", "GPU-h", True),
)
"""Name, title, unit, whether less is better."""


@dataclass(frozen=True, slots=True)
class Played:
    """One future, simulated: the start of each waiting workload (NaN: never) and the measures."""

    start_s: Float64s
    measures: Mapping[str, float]
    schedule: ClusterSchedule
    prepared: Prepared


class WhatIfQuery:
    """Simulates the live queue, as it is and changed."""

    def __init__(self, context: QueryContext, queue: QueueQuery, waits: WaitQuery) -> None:
        self._context = context
        self._queue = queue
        self._waits = waits

    def check(self, what: QueueWhatIf) -> tuple[PlannedQueue, LiveQueue]:
        """The queue as it is and changed; raises QueryError where a change names what is not there."""
        if not 2 <= what.futures <= MOST_FUTURES:
            raise QueryError(f"there may be 2 to {MOST_FUTURES} futures")
        if min(what.added.values(), default=0) < 0 or sum(what.added.values()) > MOST_ADDED_NODES:
            raise QueryError(f"0 to {MOST_ADDED_NODES:,} nodes can be added", hint="Try a smaller cluster.")
        check_choices(what)
        seen = self._queue.seen()
        if not seen.queue.nodes:
            raise QueryError("there is no node with GPUs", hint="GET /api/v1/sources tells what collectors see.")
        return seen, change_queue(seen.queue, self._resolve(what))

    def _resolve(self, what: QueueWhatIf) -> QueueWhatIf:
        """Workloads by their ids, however they were named."""
        ids = {name: find_id(self._context.records, name) for name in (*what.first, *what.priorities)}
        priorities = {ids[name]: priority for name, priority in what.priorities.items()}
        return replace(what, first=[ids[name] for name in what.first], priorities=priorities)

    def ask(self, what: QueueWhatIf, tell: Callable[[float], None] = lambda _: None) -> WhatIfAnswer:
        """The differences; raises QueryError where a change names what is not there. ``tell`` hears how far it is, 0 to 1."""
        what = self._resolve(what)
        seen, changed = self.check(what)
        names = [job.workload for job in seen.queue.planned()]
        small = find_small(seen.queue)
        usual = QueueWhatIf(futures=what.futures)
        users = {name: workload.user for name, workload in seen.workloads.items() if workload.user is not None}
        middle = Future(self._middle(), users=users)
        pairs = []
        for at, future in enumerate([middle, *self._draw(seen.queue, users, what.futures)]):
            # The first is what is drawn; its seed is that of the first sampled one.
            seed = max(at - 1, 0)
            pairs.append(
                (_play(seen.queue, usual, future, names, small, seed), _play(changed, what, future, names, small, seed))
            )
            tell((at + 1) / (what.futures + 1))
        typical = pairs.pop(0)
        measures = [_compare(*about, pairs) for about in MEASURES]
        starts = _starts(seen, names, pairs)
        courses = tuple((played.schedule, played.prepared) for played in typical)
        return WhatIfAnswer(
            at=seen.queue.now_s * 1000,
            is_unchanged=what == usual,
            changes=describe_changes(what),
            futures=what.futures,
            simulated=len(names),
            measures=measures,
            workloads=starts,
            warnings=find_warnings(measures, starts, small, typical[1].prepared.refused, what),
            course=describe_course(seen.queue, changed, (courses[0], courses[1]), seen.workloads),
            policies=policy_names(),
            backfills=list(LIVE_BACKFILLS),
            placements=placement_names(),
            assumptions=list(ASSUMPTIONS),
        )

    def _middle(self) -> dict[str, float]:
        """What is left of each run if it takes its middle time."""
        now_s = self._context.clock() / 1000
        return {
            name: max(1.0, started + float(row[row.size // 2]) - now_s)
            for name, (started, row) in self._queue.run_quantiles().items()
        }

    def _draw(self, queue: LiveQueue, users: Mapping[str, str], count: int) -> list[Future]:
        """Futures that go evenly through what the models say, the same for the same queue."""
        runs = self._queue.run_quantiles()
        names = sorted(runs)
        random = np.random.default_rng([SEED, len(names), count])
        now_s = self._context.clock() / 1000
        drawn = np.zeros((count, 0))
        if names:
            drawn = sample_runs(RunQuantiles(np.stack([runs[name][1] for name in names])), count, random)
        elapsed = np.array([now_s - runs[name][0] for name in names])
        left = np.maximum(drawn - elapsed, 1.0)
        arrivals = self._arrivals(queue, count, random)
        return [
            Future(dict(zip(names, left[at].tolist(), strict=True)), arrivals[at] if arrivals else (), users)
            for at in range(count)
        ]

    def _arrivals(
        self, queue: LiveQueue, count: int, random: np.random.Generator
    ) -> list[tuple[tuple[QueueJob, int], ...]]:
        learned = self._waits.models.current()
        found: list[list[tuple[QueueJob, int]]] = [[] for _ in range(count)]
        for partition in queue.max_times_s:
            here = queue.open_nodes(partition)
            if not here:
                continue
            largest, total = max(node.gpus for node in here), sum(node.gpus for node in here)
            priorities = [job.priority for job in queue.waiting if job.partition == partition]
            priority = int(np.median(priorities)) if priorities else 0
            come = learned.arrivals_of(partition).sample(queue.now_s, ARRIVE_FOR_S, count, total, random)
            for future in range(count):
                for at in range(int(come.offsets[future]), int(come.offsets[future + 1])):
                    size = int(come.size[at])
                    nodes = -(-size // largest)
                    job = QueueJob(
                        workload=f"later {future} {at}",
                        partition=partition,
                        machine_type=None,
                        nodes=nodes,
                        gpus=-(-size // nodes),
                        limit_s=int(come.limit_s[at]),
                        priority=priority,
                        queued_s=queue.now_s + int(come.at_s[at]),
                        is_planned=True,
                    )
                    found[future].append((job, int(come.run_s[at])))
        return [tuple(each) for each in found]


def describe_changes(what: QueueWhatIf) -> list[str]:
    """The changes in words."""
    return [
        *([f"policy {what.policy}"] if what.policy else []),
        *([f"backfilling {what.backfill}"] if what.backfill else []),
        *([f"placement {what.placement}"] if what.placement else []),
        *(f"{name} drained" for name in what.drained),
        *(f"{count} more nodes in {partition}" for partition, count in what.added.items()),
        *(f"at most {gpus} GPUs a workload in {partition}" for partition, gpus in what.limits.items()),
        *(f"{name} first" for name in what.first),
        *(f"{name} with priority {priority:,}" for name, priority in what.priorities.items()),
    ]


def _play(
    queue: LiveQueue, what: QueueWhatIf, future: Future, names: list[str], small: frozenset[str], seed: int
) -> Played:
    from clusterscape.simulate.cluster.standing import simulate_standing

    prepared = prepare(queue, what, future, seed=seed)
    schedule = simulate_standing(prepared.scenario, prepared.standing)
    start = np.full(len(names), np.nan)
    for at, name in enumerate(names):
        row = prepared.rows.get(name)
        if row is not None and schedule.has_started[row]:
            start[at] = schedule.start_s[row]
    return Played(start, _measure(queue, schedule, prepared, start, names, small), schedule, prepared)


def _measure(
    queue: LiveQueue,
    schedule: ClusterSchedule,
    prepared: Prepared,
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
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0


def _compare(
    name: str, title: str, unit: str, less_is_better: bool, pairs: list[tuple[Played, Played]]
) -> MeasureChange:
    """The mean difference with its 95 % interval (Student's t over the futures)."""
    from scipy.special import stdtrit

    before = np.array([pair[0].measures[name] for pair in pairs])
    after = np.array([pair[1].measures[name] for pair in pairs])
    apart = after - before
    mean = float(apart.mean())
    half = float(stdtrit(len(apart) - 1, 0.975)) * float(apart.std(ddof=1)) / len(apart) ** 0.5
    low, high = mean - half, mean + half
    if not apart.any():
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


def _starts(seen: PlannedQueue, names: list[str], pairs: list[tuple[Played, Played]]) -> list[StartChange]:
    before = np.stack([pair[0].start_s for pair in pairs])
    after = np.stack([pair[1].start_s for pair in pairs])
    rows = []
    jobs = {job.workload: job for job in seen.queue.waiting}
    for at, name in enumerate(names):
        both = np.isfinite(before[:, at]) & np.isfinite(after[:, at])
        apart = (after - before)[both, at]
        known = seen.workloads.get(name)
        rows.append(
            StartChange(
                workload=name,
                user=known.user if known else None,
                partition=jobs[name].partition,
                gpus=jobs[name].total_gpus,
                baseline_at=_middle_ms(before[:, at]),
                changed_at=_middle_ms(after[:, at]),
                change_s=float(np.median(apart)) if apart.size else None,
                low_s=float(np.quantile(apart, 0.1)) if apart.size else None,
                high_s=float(np.quantile(apart, 0.9)) if apart.size else None,
            )
        )
    return rows


def _middle_ms(starts: Float64s) -> int | None:
    known = starts[np.isfinite(starts)]
    return int(np.median(known) * 1000) if known.size > starts.size / 2 else None
