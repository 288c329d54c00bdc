"""Explains why a workload waits: who is ahead and why, which GPUs it needs, who holds them, what would start it sooner. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from clusterscape.model import Workload
from clusterscape.model.quantities import format_duration
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob
from clusterscape.query.scheduling.priority_parts import Parts, compare_parts, find_parts, list_parts
from clusterscape.query.scheduling.promises import PromiseLedger, Slip, SlipCause
from clusterscape.query.scheduling.queue_answers import (
    AheadRow,
    CheaperChange,
    HolderRow,
    Needed,
    PromiseStory,
    SlipRow,
)
from clusterscape.query.scheduling.queue_plan import plan_queue

MAX_ROWS = 12
MIN_GAIN_S = 300
MIN_GAIN_RATIO = 0.1
"""Minimum gain of a suggested change, in seconds and as a share of the remaining wait."""

_SPLIT_COST, _PARTITION_COST, _OTHER_TYPE_COST = 0.02, 0.05, 0.2

_CAUSES: Mapping[SlipCause, tuple[str, str]] = {
    SlipCause.OVERDUE: ("It did not start at its planned time", "It did not start at its planned time"),
    SlipCause.LIMIT_CHANGED: (
        "A running workload got a longer time limit",
        "A running workload got a shorter time limit",
    ),
    SlipCause.NODES_CHANGED: ("Nodes went out of service", "Nodes returned to service"),
    SlipCause.ENDED: ("A workload ended, and others moved ahead", "A workload ended before its time limit"),
    SlipCause.LEFT: ("A waiting workload was cancelled, and others moved ahead", "A waiting workload was cancelled"),
    SlipCause.STARTED: ("Another workload started on its GPUs", "Another workload started elsewhere or sooner"),
    SlipCause.ARRIVED: (
        "A workload was submitted that is ahead of it",
        "A workload was submitted, and the plan became denser",
    ),
    SlipCause.REORDERED: ("Other workloads were moved ahead of it", "It was moved ahead"),
    SlipCause.SCHEDULER: ("The scheduler expects it later", "The scheduler expects it sooner"),
    SlipCause.UNSEEN: ("It was held, or not observed for a time", "It was held, or not observed for a time"),
    SlipCause.OWN_START: ("It started later than planned", "It started sooner than planned"),
}
"""The texts for a later and for an earlier start."""


def find_ahead(queue: LiveQueue, job: QueueJob) -> list[QueueJob]:
    """Jobs of the same partition that wait only for GPUs and are ahead of ``job``."""
    return [other for other in queue.planned() if other.partition == job.partition and other.order < job.order]


def explain_ahead(
    ahead: Sequence[QueueJob],
    job: QueueJob,
    starts: Mapping[str, int],
    workloads: Mapping[str, Workload],
    priorities: Mapping[str, Parts] | None = None,
) -> list[AheadRow]:
    """At most MAX_ROWS jobs, those directly ahead. ``priorities``: factors by workload, if the scheduler reports them."""
    rows = []
    parts_by_workload = priorities or {}
    job_parts = find_parts(parts_by_workload, job.workload)
    for other in ahead[-MAX_ROWS:]:
        workload = workloads.get(other.workload)
        start = starts.get(other.workload)
        other_parts = find_parts(parts_by_workload, other.workload)
        rows.append(
            AheadRow(
                workload=other.workload,
                user=workload.user if workload else None,
                gpus=other.total_gpus,
                priority=workload.priority if workload else None,
                why=_compare(other, job, workload, compare_parts(other_parts, job_parts)),
                planned_at=None if start is None else start * 1000,
                parts=list_parts(other_parts),
            )
        )
    return rows


def _compare(other: QueueJob, job: QueueJob, workload: Workload | None, differences: str) -> str:
    if other.priority != job.priority and differences:
        return f"priority {other.priority:,} vs {job.priority:,}: {differences}"
    qos = f" (QOS {workload.qos})" if workload and workload.qos else ""
    if other.priority != job.priority:
        return f"priority {other.priority:,} vs {job.priority:,}{qos}"
    if other.queued_s != job.queued_s:
        return f"same priority, queued {format_duration(job.queued_s - other.queued_s)} earlier"
    return "same priority and queue time, lower id"


def describe_order(ahead: Sequence[QueueJob], job: QueueJob) -> str:
    """Why those ahead are ahead, counted: "2 have a higher priority, 3 the same priority and were queued earlier."."""
    higher = sum(other.priority > job.priority for other in ahead)
    same = len(ahead) - higher
    parts = []
    if higher:
        parts.append(f"{higher} {'has' if higher == 1 else 'have'} a higher priority")
    if same:
        verb = "" if higher else "has " if same == 1 else "have "
        parts.append(f"{same} {verb}the same priority and {'was' if same == 1 else 'were'} queued earlier")
    return f"{', '.join(parts)}." if parts else ""


def find_needed(queue: LiveQueue, job: QueueJob, ahead: int) -> Needed:
    """The GPUs that are missing now, on the nodes where the fewest are missing."""
    free = queue.free_by_node()
    shortages = sorted(max(0, job.gpus - free[node.name]) for node in queue.usable_nodes(job) if node.gpus >= job.gpus)
    smallest = shortages[: job.nodes]
    ready = sum(missing == 0 for missing in shortages)
    missing_nodes = sum(missing > 0 for missing in smallest)
    kind = job.machine_type or "GPU"
    return Needed(
        nodes=job.nodes,
        gpus_per_node=job.gpus,
        machine_type=job.machine_type,
        ready_nodes=ready,
        missing_nodes=missing_nodes,
        missing_gpus=sum(smallest),
        text=_describe_needed(job, kind, len(shortages), ready, sum(smallest), missing_nodes, ahead),
    )


def _describe_needed(
    job: QueueJob, kind: str, large_nodes: int, ready: int, missing_gpus: int, missing_nodes: int, ahead: int
) -> str:
    request = (
        f"{job.gpus} free {_plural('GPU', job.gpus)} on one node"
        if job.nodes == 1
        else f"{job.nodes} nodes with {job.gpus} free {_plural('GPU', job.gpus)} each"
    )
    if large_nodes < job.nodes:
        are = "is" if large_nodes == 1 else "are"
        return (
            f"It needs {request}, but only {large_nodes} such {_plural('node', large_nodes)} ({kind}) {are} in service."
        )
    if missing_gpus == 0:
        others = f"the {ahead} ahead of it go first" if ahead else "the scheduler has not considered it yet"
        return f"Enough GPUs are free now: {ready} {_plural('node', ready)} ({kind}) could run a part of it; {others}."
    where = "one node" if missing_nodes == 1 else f"{missing_nodes} nodes"
    return f"It needs {request}: at least {missing_gpus} more {kind} {_plural('GPU', missing_gpus)} on {where} must become free."


def find_holders(
    queue: LiveQueue,
    nodes: Iterable[str],
    start_s: int,
    workloads: Mapping[str, Workload],
    likely_end_s: Mapping[str, float],
) -> list[HolderRow]:
    """Running workloads on these nodes that must end before the planned start, latest end first."""
    planned_nodes = set(nodes)
    nodes_of: dict[str, list[str]] = {}
    gpus: dict[str, int] = {}
    ends: dict[str, int] = {}
    for holding in queue.held:
        if holding.node in planned_nodes and holding.end_s <= max(start_s, queue.now_s + 60):
            nodes_of.setdefault(holding.workload, []).append(holding.node)
            gpus[holding.workload] = gpus.get(holding.workload, 0) + holding.gpus
            ends[holding.workload] = max(holding.end_s, queue.now_s)
    rows = []
    for name in sorted(nodes_of, key=lambda name: -ends[name])[:MAX_ROWS]:
        workload = workloads.get(name)
        likely = likely_end_s.get(name)
        rows.append(
            HolderRow(
                workload=name,
                name=workload.name if workload else None,
                user=workload.user if workload else None,
                nodes=sorted(nodes_of[name]),
                gpus=gpus[name],
                started_at=workload.started_at if workload else None,
                ends_by=ends[name] * 1000,
                likely_end_at=None if likely is None else int(min(max(likely, queue.now_s), ends[name]) * 1000),
            )
        )
    return rows


def describe_promise(ledger: PromiseLedger) -> PromiseStory:
    """The promised start of a workload and its slips, with their causes as text."""
    return PromiseStory(
        first_told_at=ledger.first_at_s * 1000,
        first_at=ledger.first_s * 1000,
        last_at=ledger.last_s * 1000,
        started_at=None if ledger.started_s is None else ledger.started_s * 1000,
        is_schedulers=ledger.is_schedulers,
        slipped_s=ledger.slipped_s,
        slips=[_describe_slip(slip) for slip in ledger.slips],
    )


def _describe_slip(slip: Slip) -> SlipRow:
    later, sooner = _CAUSES[slip.cause]
    words = later if slip.change_s > 0 else sooner
    return SlipRow(at=slip.at_s * 1000, cause=slip.cause, change_s=slip.change_s, words=words, by=list(slip.by))


def find_changes(queue: LiveQueue, job: QueueJob, start_s: int) -> list[tuple[CheaperChange, QueueJob]]:
    """Changes that would start it sooner by the same plan, cheapest first; of each kind the cheapest with a sufficient gain.

    Each with the changed job; starts and gains are latest starts.
    """
    changes: dict[str, tuple[CheaperChange, QueueJob]] = {}
    for kind, cost, words, other in sorted(_variants(queue, job), key=lambda variant: variant[1]):
        if kind in changes:
            continue
        jobs = (other if waiting.workload == job.workload else waiting for waiting in queue.waiting)
        starts, _ = plan_queue(queue.with_jobs(jobs))
        sooner = starts.get(job.workload)
        gain = 0 if sooner is None else start_s - sooner
        if sooner is not None and is_worthwhile(gain, start_s - queue.now_s):
            change = CheaperChange(
                kind=kind,
                words=words,
                cost=round(cost, 3),
                start_at=sooner * 1000,
                gain_s=gain,
                partition=other.partition,
                nodes=other.nodes,
                gpus_per_node=other.gpus,
                limit_s=other.limit_s,
            )
            changes[kind] = change, other
    return sorted(changes.values(), key=lambda pair: pair[0].cost)


def is_worthwhile(gain_s: float, wait_s: float) -> bool:
    """Whether a start that is ``gain_s`` earlier is worth a suggestion."""
    return gain_s >= max(MIN_GAIN_S, MIN_GAIN_RATIO * wait_s)


def _variants(queue: LiveQueue, job: QueueJob) -> Iterator[tuple[str, float, str, QueueJob]]:
    """Changed requests: kind, cost, text and the changed job."""
    for parts in (2, 4):
        if job.gpus % parts == 0:
            other = replace(job, nodes=job.nodes * parts, gpus=job.gpus // parts)
            yield (
                "split",
                _SPLIT_COST * parts,
                f"spread it over {other.nodes} nodes with {other.gpus} {_plural('GPU', other.gpus)} each",
                other,
            )
    for share in (0.75, 0.5, 0.25, 0.1):
        limit = int(job.limit_s * share)
        if limit >= 600:
            text = f"reduce its time limit to {format_duration(limit)}"
            yield "shorter", (1 - share) / 2, text, replace(job, limit_s=limit)
    yield from _other_partitions(queue, job)
    total = job.total_gpus
    for share in (2, 4, 8):
        if total // share >= 1 and total % share == 0:
            nodes = max(1, job.nodes // share)
            gpus = total // share // nodes
            yield (
                "fewer",
                1 - 1 / share,
                f"request {nodes * gpus} {_plural('GPU', nodes * gpus)}",
                replace(job, nodes=nodes, gpus=gpus),
            )


def _other_partitions(queue: LiveQueue, job: QueueJob) -> Iterator[tuple[str, float, str, QueueJob]]:
    for name, max_time_s in sorted(queue.max_times_s.items()):
        nodes = queue.open_nodes(name)
        if name == job.partition or (max_time_s is not None and max_time_s < job.limit_s):
            continue
        if sum(node.gpus >= job.gpus for node in nodes) < job.nodes:
            continue
        is_same = any(node.machine_type == job.machine_type for node in nodes)
        cost = _PARTITION_COST if is_same else _OTHER_TYPE_COST
        kind = job.machine_type if is_same else nodes[0].machine_type
        yield (
            "partition",
            cost,
            f"submit it to partition {name} ({kind})",
            replace(job, partition=name, machine_type=kind),
        )


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
