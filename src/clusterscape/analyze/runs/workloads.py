"""Workloads of runs: which runs executed together, their time and energy, and the slowdown compared with running alone.

A workload here is what a plan calls so: runs of one experiment and workload name on a host whose times overlap.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clusterscape.analyze.runs.lines import Estimate, compute_fairness, estimate

COMPLETED = "completed"
ALONE = (None, "", "-")
"""Collocations under which a single run has the whole device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Facts about a run. Times are Unix ms; ``per_second`` is throughput in ``work_unit``."""

    run: str
    experiment: str | None = None
    group: str | None = None  # the plan's workload
    user: str | None = None
    host: str | None = None
    state: str = COMPLETED
    command: tuple[str, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()
    device_type: str | None = None
    collocation: str | None = None
    queued_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    joules: float | None = None
    joules_method: str | None = None
    joules_scope: str | None = None
    per_second: float | None = None
    work_unit: str | None = None
    work_amount: float | None = None

    @property
    def running_s(self) -> float | None:
        """Running time; None while the run is active."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at) / 1000

    @property
    def likeness(self) -> tuple[object, ...]:
        """Identifies the work and the kind of device: runs with equal ``likeness`` are comparable."""
        return (self.command, self.params, self.device_type, len(self.devices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """Time for the same work relative to running alone: 1.3 is 30 % longer. ``basis``: what was compared."""

    ratio: float
    energy_ratio: float | None  # joules for the same work relative to running alone
    basis: str  # "throughput" or "running time"
    baseline: tuple[str, ...]  # the runs that ran alone


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """Runs that executed together. ``id``: of the first run."""

    id: str
    runs: tuple[RunFacts, ...]
    makespan_s: float | None
    joules: float | None
    joules_method: str | None
    per_second: float | None
    work_unit: str | None
    slowdowns: dict[str, Slowdown] = field(default_factory=dict)  # by run, where a baseline is known
    fairness: float | None = None

    @property
    def slowdown(self) -> float | None:
        """Mean slowdown of its runs; None if a run has no baseline."""
        if len(self.slowdowns) < len(self.runs):
            return None
        return sum(slowdown.ratio for slowdown in self.slowdowns.values()) / len(self.slowdowns)

    @property
    def is_complete(self) -> bool:
        """Whether every run completed: only completed workloads count as baselines and repeats."""
        return all(run.state == COMPLETED for run in self.runs)

    @property
    def configuration(self) -> tuple[object, ...]:
        """Workloads of one experiment with the same one are repeats of each other."""
        parts = Counter((*run.likeness, run.collocation if run.collocation not in ALONE else None) for run in self.runs)
        return (self.runs[0].experiment, *sorted(parts.items(), key=repr))


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Repeats of one workload, and their means with confidence intervals."""

    workloads: tuple[str, ...]
    makespan_s: Estimate | None
    joules: Estimate | None
    per_second: Estimate | None
    slowdown: Estimate | None
    fairness: Estimate | None


def find_workloads(runs: Iterable[RunFacts]) -> list[WorkloadFacts]:
    """All workloads, sorted by start, with slowdowns and fairness where baselines are known."""
    groups: dict[tuple[object, ...], list[RunFacts]] = {}
    for run in runs:
        key = (run.experiment, run.group, run.host, run.user) if run.group is not None else (run.run,)
        groups.setdefault(key, []).append(run)
    parts = [part for group in groups.values() for part in _split_by_time(group)]
    parts.sort(key=lambda part: (_begin(part[0]), part[0].run))
    baselines = find_baselines(parts)
    return [_describe(part, baselines) for part in parts]


def find_baselines(parts: Sequence[Sequence[RunFacts]]) -> dict[tuple[object, ...], list[RunFacts]]:
    """Completed runs that were alone in their workload and on their device, by the work they did."""
    everyone = sorted((run for part in parts for run in part if run.started_at is not None), key=_begin)
    shared = _find_sharing(everyone)
    baselines: dict[tuple[object, ...], list[RunFacts]] = {}
    for part in parts:
        (first, *others) = part
        is_alone = not others and first.run not in shared and first.collocation in ALONE
        if is_alone and first.state == COMPLETED:
            baselines.setdefault(first.likeness, []).append(first)
    return baselines


def find_repeats(workloads: Iterable[WorkloadFacts]) -> list[Repeats]:
    """Completed workloads by configuration, sorted by the first of each."""
    groups: dict[tuple[object, ...], list[WorkloadFacts]] = {}
    for workload in workloads:
        if workload.is_complete:
            groups.setdefault(workload.configuration, []).append(workload)
    return [
        Repeats(
            workloads=tuple(workload.id for workload in group),
            makespan_s=estimate([workload.makespan_s for workload in group if workload.makespan_s is not None]),
            joules=estimate([workload.joules for workload in group if workload.joules is not None]),
            per_second=estimate([workload.per_second for workload in group if workload.per_second is not None]),
            slowdown=estimate([workload.slowdown for workload in group if workload.slowdown is not None]),
            fairness=estimate([workload.fairness for workload in group if workload.fairness is not None]),
        )
        for group in groups.values()
    ]


def compare_to_alone(run: RunFacts, baselines: Sequence[RunFacts]) -> Slowdown | None:
    """By throughput if both have one in the same unit, else by running time of completed runs."""
    others = [other for other in baselines if other.run != run.run]
    rates = [other.per_second for other in others if other.per_second and other.work_unit == run.work_unit]
    energy = _energy_ratio(run, others)
    names = tuple(other.run for other in others)
    if run.per_second and rates:
        ratio = sum(rates) / len(rates) / run.per_second
        return Slowdown(ratio=ratio, energy_ratio=energy, basis="throughput", baseline=names)
    times = [other.running_s for other in others if other.running_s]
    if run.state == COMPLETED and run.running_s and times:
        ratio = run.running_s / (sum(times) / len(times))
        return Slowdown(ratio=ratio, energy_ratio=energy, basis="running time", baseline=names)
    return None


def _energy_ratio(run: RunFacts, others: Sequence[RunFacts]) -> float | None:
    """Joules per unit of work if both recorded their work, else of the whole run."""
    is_per_work = run.work_amount is not None and all(
        other.work_amount is not None and other.work_unit == run.work_unit for other in others
    )

    def cost(other: RunFacts) -> float | None:
        if other.joules is None or not is_per_work:
            return other.joules
        return other.joules / other.work_amount if other.work_amount else None

    own = cost(run)
    alone = [joules for other in others if (joules := cost(other))]
    return own / (sum(alone) / len(alone)) if own is not None and alone else None


def _describe(part: Sequence[RunFacts], baselines: dict[tuple[object, ...], list[RunFacts]]) -> WorkloadFacts:
    starts = [run.started_at for run in part if run.started_at is not None]
    ends = [run.ended_at for run in part if run.ended_at is not None]
    is_over = len(ends) == len(part) and bool(starts)
    joules = [run.joules for run in part if run.joules is not None]
    units = {run.work_unit for run in part}
    rates = [run.per_second for run in part if run.per_second is not None]
    slowdowns = {}
    if len(part) > 1:
        compared = {run.run: compare_to_alone(run, baselines.get(run.likeness, ())) for run in part}
        slowdowns = {name: slowdown for name, slowdown in compared.items() if slowdown is not None}
    return WorkloadFacts(
        id=part[0].run,
        runs=tuple(part),
        makespan_s=(max(ends) - min(starts)) / 1000 if is_over else None,
        # The energy of a whole GPU is attributed to each run that shares it: the sum would count it twice.
        joules=sum(joules) if len(joules) == len(part) and _is_additive(part) else None,
        joules_method="estimated" if any(run.joules_method == "estimated" for run in part) else "measured",
        per_second=sum(rates) if len(rates) == len(part) and len(units) == 1 else None,
        work_unit=units.pop() if len(units) == 1 else None,
        slowdowns=slowdowns,
        fairness=_fairness(part, slowdowns),
    )


def _is_additive(part: Sequence[RunFacts]) -> bool:
    if len(part) == 1 or all(run.joules_scope != "device" for run in part):
        return True
    devices = [device for run in part for device in run.devices]
    return bool(devices) and len(devices) == len(set(devices))


def _fairness(part: Sequence[RunFacts], slowdowns: dict[str, Slowdown]) -> float | None:
    """Fairness of the progress relative to running alone; without baselines, of the throughputs if all runs do the same work."""
    if len(slowdowns) == len(part):
        return compute_fairness([1 / slowdown.ratio for slowdown in slowdowns.values() if slowdown.ratio > 0])
    rates = [run.per_second for run in part if run.per_second is not None]
    is_same = len({(run.likeness, run.work_unit) for run in part}) == 1
    return compute_fairness(rates) if is_same and len(rates) == len(part) else None


def _begin(run: RunFacts) -> int:
    return run.started_at or run.queued_at or 0


def _split_by_time(group: Sequence[RunFacts]) -> list[list[RunFacts]]:
    """A name that is reused later, or retried, is another execution."""
    parts: list[list[RunFacts]] = []
    until: float = float("-inf")
    for run in sorted(group, key=lambda run: (_begin(run), run.run)):
        if not parts or _begin(run) >= until:
            parts.append([])
            until = float("-inf")
        parts[-1].append(run)
        until = max(until, float("inf") if run.ended_at is None else run.ended_at)
    return parts


def _find_sharing(runs: Sequence[RunFacts]) -> set[str]:
    """Runs whose device another run used at the same time. ``runs`` are sorted by start."""
    shared: set[str] = set()
    open_on: dict[tuple[str | None, str], list[RunFacts]] = {}
    for run in runs:
        for device in run.devices or ("any",):
            place = (run.host, device)
            still = [
                other for other in open_on.get(place, []) if other.ended_at is None or other.ended_at > _begin(run)
            ]
            if still:
                shared.update(other.run for other in still)
                shared.add(run.run)
            open_on[place] = [*still, run]
    return shared
