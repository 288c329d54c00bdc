"""The demo cluster's jobs as workloads and allocations, as the collectors would have recorded them."""

from collections.abc import Iterator

from clusterscape.demo.hardware import MACHINE_OF_PARTITION
from clusterscape.demo.jobs import Attempt, Life
from clusterscape.demo.scenario import DemoScenario
from clusterscape.model import (
    Allocation,
    NodeId,
    NodeState,
    NodeStateChange,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)
from clusterscape.simulate.faults import FaultKind

SIGTERM = 15
OUT_OF_MEMORY_SIGNAL = 125  # the signal that Slurm reports with OUT_OF_MEMORY


def iter_workloads(scenario: DemoScenario, start_ms: int, end_ms: int) -> Iterator[Workload]:
    """Workloads that waited or ran in [start, end), in their state at ``end``."""
    end_s = end_ms // 1000
    for life in _lives_between(scenario, start_ms, end_ms):
        state = life.state_at(end_s)
        if state is not None:
            yield _workload(life, state, end_s)


def iter_allocations(scenario: DemoScenario, start_ms: int, end_ms: int) -> Iterator[Allocation]:
    """Allocations that overlap [start, end), in their state at ``end``."""
    unit_ids = scenario.hardware.unit_ids
    for life in _lives_between(scenario, start_ms, end_ms):
        for attempt in life.attempts_by(end_ms // 1000):
            to_ms = _end_ms(attempt, end_ms)
            if to_ms is not None and to_ms <= start_ms:
                continue
            for unit in attempt.units:
                yield Allocation(
                    workload=workload_id(life), unit=unit_ids[unit], from_at=UnixMs(attempt.start_s * 1000), to_at=to_ms
                )


def iter_node_turns(scenario: DemoScenario, start_ms: int, end_ms: int) -> Iterator[NodeStateChange]:
    """When nodes went out of service and came back in [start, end)."""
    scenario.advance(end_ms)
    nodes = scenario.hardware.nodes
    for outage in scenario.outages:
        from_ms, to_ms = outage.from_s * 1000, outage.to_s * 1000
        if to_ms <= start_ms or from_ms >= end_ms:
            continue
        node = NodeId(nodes[outage.node].name)
        state = NodeState.DOWN if outage.kind is FaultKind.FAIL else NodeState.DRAINED
        yield NodeStateChange(node=node, from_at=UnixMs(from_ms), state=state, reason=outage.reason)
        if to_ms < end_ms:
            yield NodeStateChange(node=node, from_at=UnixMs(to_ms), state=NodeState.IDLE)


def workload_id(life: Life) -> WorkloadId:
    """The id that the collector assigns to the job."""
    return WorkloadId(f"slurm:{life.demo.native_id}")


def exit_of(life: Life, state: WorkloadState) -> tuple[int | None, int | None]:
    """(exit code, signal) of a job that ended as ``state``."""
    match state:
        case WorkloadState.COMPLETED:
            return 0, None
        case WorkloadState.FAILED:
            return life.demo.exit_code, None
        case WorkloadState.CANCELLED:
            return None, SIGTERM
        case WorkloadState.OUT_OF_MEMORY:
            return None, OUT_OF_MEMORY_SIGNAL
        case _:
            return None, None


def _lives_between(scenario: DemoScenario, start_ms: int, end_ms: int) -> Iterator[Life]:
    scenario.advance(end_ms)
    for life in scenario.lives.values():
        ended_s = life.ended_s
        if life.demo.job.submit_s * 1000 < end_ms and (ended_s is None or ended_s * 1000 > start_ms):
            yield life


def _end_ms(attempt: Attempt, now_ms: int) -> UnixMs | None:
    if attempt.end_s is None or attempt.end_s * 1000 > now_ms:
        return None
    return UnixMs(attempt.end_s * 1000)


def _workload(life: Life, state: WorkloadState, now_s: int) -> Workload:
    demo, job = life.demo, life.demo.job
    machine = MACHINE_OF_PARTITION[job.partition]
    begun = life.attempts_by(now_s)
    last = begun[-1] if begun and state is not WorkloadState.WAITING else None
    exit_code, exit_signal = exit_of(life, state)
    ended_s = life.ended_s
    tags = {}
    if demo.array is not None:
        tags = {"job_id": str(job.id), "array_job": str(demo.array.array_id)}
    return Workload(
        id=workload_id(life),
        state=state,
        kind=demo.kind,
        name=demo.name,
        user=job.user,
        project=demo.project,
        experiment=demo.experiment,
        partition=job.partition,
        resource_type=f"{machine.name}-{job.gpus}",
        qos=demo.qos,
        priority=job.priority,
        gpus_requested=job.gpus,
        nodes_requested=job.nodes,
        time_limit_s=job.limit_s,
        submitted_at=UnixMs(job.submit_s * 1000),
        eligible_at=UnixMs(job.queued_s * 1000) if job.queued_s <= now_s else None,
        started_at=None if last is None else UnixMs(last.start_s * 1000),
        ended_at=None if state.is_active or ended_s is None else UnixMs(ended_s * 1000),
        pending_reason=life.reason_at(now_s) if state is WorkloadState.WAITING else None,
        exit_code=exit_code,
        exit_signal=exit_signal,
        restarts=max(0, len(begun) - 1),
        nodes=() if last is None else tuple(grant.node for grant in last.grants),
        tags=tags,
        gpus_allocated=None if last is None else job.gpus,
        cpus=demo.cpus,
        memory_requested_bytes=demo.memory_gib * 2**30,
    )
