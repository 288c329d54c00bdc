"""Why one workload waits: who goes first and why, what must come free, who holds it, what would start it sooner. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from clusterscape.model import Workload
from clusterscape.query.scheduling.live_queue import LiveQueue, QueueJob
from clusterscape.query.scheduling.priority_parts import Parts, compare_parts, find_parts, list_parts
from clusterscape.query.scheduling.promises import Ledger, Slip, SlipCause
from clusterscape.query.scheduling.queue_answers import (
    AheadRow,
    CheaperChange,
    HolderRow,
    Needed,
    PromiseStory,
    SlipRow,
)
from clusterscape.query.scheduling.queue_plan import plan_queue

MOST_ROWS = 12
LEAST_GAIN_S = 300
LEAST_GAIN = 0.1
"""A change must start a workload so much sooner, in seconds and as a share of what it still waits, to be worth telling."""

_SPLIT_COST, _PARTITION_COST, _OTHER_TYPE_COST = 0.02, 0.05, 0.2

_CAUSES: Mapping[SlipCause, tuple[str, str]] = {
    SlipCause.OVERDUE: ("Its planned start passed without a start", "Its planned start passed without a start"),
    SlipCause.LIMIT_CHANGED: ("A running workload may run longer", "A running workload must end sooner"),
    SlipCause.NODES_CHANGED: ("Nodes were lost", "Nodes came back"),
    SlipCause.ENDED: ("A workload ended, and others moved up", "A workload ended before its limit"),
    SlipCause.LEFT: ("A waiting workload left, and others moved up", "A waiting workload left the queue"),
    SlipCause.STARTED: ("Another workload started on its space", "Another workload started elsewhere or sooner"),
    SlipCause.ARRIVED: ("A workload came that goes first", "A workload came, and the plan closed up"),
    SlipCause.REORDERED: ("Others were put before it", "It was moved forward"),
    SlipCause.SCHEDULER: ("The scheduler expects it later", "The scheduler expects it sooner"),
    SlipCause.UNSEEN: ("It was held, or nobody watched", "It was held, or nobody watched"),
    SlipCause.OWN_START: ("It started later than planned", "It started sooner than planned"),
}


def find_ahead(queue: LiveQueue, job: QueueJob) -> list[QueueJob]:
    """Those of its partition that wait for room and go first."""
    return [other for other in queue.planned() if other.partition == job.partition and other.order < job.order]


def explain_ahead(
    ahead: Sequence[QueueJob],
    job: QueueJob,
    starts: Mapping[str, int],
    workloads: Mapping[str, Workload],
    priorities: Mapping[str, Parts] | None = None,
) -> list[AheadRow]:
    """The last before it first: those are the ones it may hope to pass. ``priorities``: parts by workload, where told."""
    rows = []
    told = priorities or {}
    ours = find_parts(told, job.workload)
    for other in ahead[-MOST_ROWS:]:
        known = workloads.get(other.workload)
        start = starts.get(other.workload)
        theirs = find_parts(told, other.workload)
        rows.append(
            AheadRow(
                workload=other.workload,
                user=known.user if known else None,
                gpus=other.total_gpus,
                priority=known.priority if known else None,
                why=_compare(other, job, known, compare_parts(theirs, ours)),
                planned_at=None if start is None else start * 1000,
                parts=list_parts(theirs),
            )
        )
    return rows


def _compare(other: QueueJob, job: QueueJob, known: Workload | None, apart: str) -> str:
    if other.priority != job.priority and apart:
        return f"priority {other.priority:,} vs {job.priority:,}: {apart}"
    qos = f" (quality of service {known.qos})" if known and known.qos else ""
    if other.priority != job.priority:
        return f"priority {other.priority:,} vs {job.priority:,}{qos}"
    if other.queued_s != job.queued_s:
        return f"same priority, {describe_span(job.queued_s - other.queued_s)} longer in the queue"
    return "same priority and time, lower number"


def find_needed(queue: LiveQueue, job: QueueJob, ahead: int) -> Needed:
    """What of its nodes is missing now, where least is missing."""
    free = queue.free_by_node()
    able = sorted(max(0, job.gpus - free[node.name]) for node in queue.usable_nodes(job) if node.gpus >= job.gpus)
    short = able[: job.nodes]
    ready = sum(missing == 0 for missing in able)
    missing_nodes = sum(missing > 0 for missing in short)
    kind = job.machine_type or "GPU"
    return Needed(
        nodes=job.nodes,
        gpus_per_node=job.gpus,
        machine_type=job.machine_type,
        ready_nodes=ready,
        missing_nodes=missing_nodes,
        missing_gpus=sum(short),
        text=_say_needed(job, kind, len(able), ready, sum(short), missing_nodes, ahead),
    )


def _say_needed(job: QueueJob, kind: str, able: int, ready: int, gpus: int, nodes: int, ahead: int) -> str:
    wish = (
        f"{job.gpus} free GPUs on one node" if job.nodes == 1 else f"{job.nodes} nodes with {job.gpus} free GPUs each"
    )
    if able < job.nodes:
        return f"It needs {wish}, and only {able} such {_plural('node', able)} of {kind} are in service."
    if gpus == 0:
        others = f"the {ahead} ahead are to have it" if ahead else "the scheduler has not looked yet"
        return f"There is room now: {ready} {_plural('node', ready)} of {kind} could host a part of it; {others}."
    at_least = f"{gpus} more {_plural('GPU', gpus)} of {kind} must come free"
    where = "on one node" if nodes == 1 else f"on {nodes} nodes"
    return f"It needs {wish}: {at_least} {where} at least."


def find_holders(
    queue: LiveQueue,
    nodes: Iterable[str],
    start_s: int,
    workloads: Mapping[str, Workload],
    likely_end_s: Mapping[str, float],
) -> list[HolderRow]:
    """Who runs on these nodes and must be gone by then, the last to end first."""
    wanted = set(nodes)
    found: dict[str, list[str]] = {}
    gpus: dict[str, int] = {}
    ends: dict[str, int] = {}
    for each in queue.held:
        if each.node in wanted and each.end_s <= max(start_s, queue.now_s + 60):
            found.setdefault(each.workload, []).append(each.node)
            gpus[each.workload] = gpus.get(each.workload, 0) + each.gpus
            ends[each.workload] = max(each.end_s, queue.now_s)
    rows = []
    for name in sorted(found, key=lambda name: -ends[name])[:MOST_ROWS]:
        known = workloads.get(name)
        likely = likely_end_s.get(name)
        rows.append(
            HolderRow(
                workload=name,
                name=known.name if known else None,
                user=known.user if known else None,
                nodes=sorted(found[name]),
                gpus=gpus[name],
                started_at=known.started_at if known else None,
                ends_by=ends[name] * 1000,
                likely_end_at=None if likely is None else int(min(max(likely, queue.now_s), ends[name]) * 1000),
            )
        )
    return rows


def tell_promise(ledger: Ledger) -> PromiseStory:
    """A ledger in words."""
    return PromiseStory(
        first_told_at=ledger.first_at_s * 1000,
        first_at=ledger.first_s * 1000,
        last_at=ledger.last_s * 1000,
        started_at=None if ledger.started_s is None else ledger.started_s * 1000,
        is_schedulers=ledger.is_schedulers,
        slipped_s=ledger.slipped_s,
        slips=[_tell_slip(slip) for slip in ledger.slips],
    )


def _tell_slip(slip: Slip) -> SlipRow:
    later, sooner = _CAUSES[slip.cause]
    words = later if slip.change_s > 0 else sooner
    return SlipRow(at=slip.at_s * 1000, cause=slip.cause, change_s=slip.change_s, words=words, by=list(slip.by))


def find_changes(queue: LiveQueue, job: QueueJob, start_s: int) -> list[CheaperChange]:
    """What would start it sooner by the same plan, the cheapest first; of each kind the cheapest that is worth it."""
    found: dict[str, CheaperChange] = {}
    for kind, cost, words, other in sorted(_variants(queue, job), key=lambda one: one[1]):
        if kind in found:
            continue
        new = plan_queue(queue.with_jobs(other if each.workload == job.workload else each for each in queue.waiting))
        sooner = new[0].get(job.workload)
        gain = 0 if sooner is None else start_s - sooner
        if sooner is not None and gain >= max(LEAST_GAIN_S, LEAST_GAIN * (start_s - queue.now_s)):
            found[kind] = CheaperChange(
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
    return sorted(found.values(), key=lambda change: change.cost)


def _variants(queue: LiveQueue, job: QueueJob) -> Iterator[tuple[str, float, str, QueueJob]]:
    """Kind, cost, words and the job itself."""
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
            yield "shorter", (1 - share) / 2, f"ask for {describe_span(limit)} at most", replace(job, limit_s=limit)
    yield from _elsewhere(queue, job)
    total = job.total_gpus
    for share in (2, 4, 8):
        if total // share >= 1 and total % share == 0:
            nodes = max(1, job.nodes // share)
            gpus = total // share // nodes
            yield (
                "fewer",
                1 - 1 / share,
                f"ask for {nodes * gpus} {_plural('GPU', nodes * gpus)}",
                replace(job, nodes=nodes, gpus=gpus),
            )


def _elsewhere(queue: LiveQueue, job: QueueJob) -> Iterator[tuple[str, float, str, QueueJob]]:
    for name, longest in sorted(queue.max_times_s.items()):
        here = queue.open_nodes(name)
        if name == job.partition or (longest is not None and longest < job.limit_s):
            continue
        if sum(node.gpus >= job.gpus for node in here) < job.nodes:
            continue
        is_same = any(node.machine_type == job.machine_type for node in here)
        cost = _PARTITION_COST if is_same else _OTHER_TYPE_COST
        kind = job.machine_type if is_same else here[0].machine_type
        yield (
            "partition",
            cost,
            f"submit it to partition {name} ({kind})",
            replace(job, partition=name, machine_type=kind),
        )


def describe_span(span_s: float) -> str:
    """In one or two units: 45 min, 3 h 20 min, 2 days."""
    minutes = round(span_s / 60)
    if minutes < 1:
        return f"{int(span_s)} s"
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{round(hours / 24)} days"
    if hours == 0:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
