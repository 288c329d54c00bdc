"""Plan, promise, forecast, what-if and free GPUs agree on the waiting jobs and their order."""

import math
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from clusters.queued import HOUR_MS, NOW, QueuedCluster
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterscape.model import (
    Allocation,
    Node,
    NodeId,
    NodeState,
    Partition,
    Unit,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    gpu_unit_id,
)
from clusterscape.query.answers import ClusterSummary
from clusterscape.query.reasons import demands_gpus_now
from clusterscape.query.scheduling.live_queue import LiveQueue, read_live_queue
from clusterscape.query.scheduling.queue_answers import QueueRow
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf
from clusterscape.settings import RetentionSettings, StorageSettings
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.records import open_record_store

ROOM = (
    None, "None", "Resources", "Priority", "NodeDown", "Prolog", "Cleaning", "NotEnoughResources", "(Resources)",
    "ReqNodeNotAvail, UnavailableNodes:n1", "Insufficient nvidia.com/gpu", "Reservation",
)  # fmt: skip
NOT_ROOM = (
    "Dependency", "DependencyNeverSatisfied", "BeginTime", "JobHeldUser", "JobHeldAdmin", "JobArrayTaskLimit",
    "PartitionDown", "PartitionTimeLimit", "BadConstraints", "Licenses", "ReservationDeleted", "JobLaunchFailure",
    "QOSMaxGRESPerUser", "AssocGrpGRES", "MaxMemPerLimit", "UntoleratedTaint", "SchedulingGated", "KueueQuota",
    "VolcanoQueued", "SomethingNew",
)  # fmt: skip
TYPES = ("A100", "V100", None)
PARTS = ("main", "short", "all")


@dataclass(frozen=True)
class Site:
    """Records of a cluster."""

    nodes: list[Node]
    partitions: list[Partition]
    units: list[Unit]
    workloads: list[Workload]
    allocations: list[Allocation]


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Up to four nodes in up to three partitions that may share them, in any state, and a queue with any reasons."""
    sizes = {f"n{at}": draw(st.sampled_from([1, 4, 8])) for at in range(draw(st.integers(1, 4)))}
    members = {name: [node for node in sizes if draw(st.booleans())] for name in PARTS[: draw(st.integers(1, 3))]}
    nodes = [
        Node(
            id=NodeId(name), machine_type=draw(st.sampled_from(TYPES)), state=draw(st.sampled_from(NodeState)),
            gpu_count=gpus, partitions=tuple(part for part, names in members.items() if name in names),
        )
        for name, gpus in sizes.items()
    ]  # fmt: skip
    partitions = [
        Partition(
            name=part, nodes=tuple(map(NodeId, names)), is_up=draw(st.integers(0, 4)) > 0,
            max_time_s=draw(st.sampled_from([None, 86_400])),
        )
        for part, names in members.items()
    ]  # fmt: skip
    units = [
        Unit(id=gpu_unit_id(node.id, at), node=node.id, index=at) for node in nodes for at in range(node.gpu_count)
    ]
    running = [draw(runners(node)) for node in nodes if draw(st.booleans())]
    allocations = [
        Allocation(workload=workload.id, unit=gpu_unit_id(NodeId(workload.nodes[0]), at), from_at=NOW)
        for workload in running
        for at in range(workload.gpus_requested if draw(st.integers(0, 3)) else 0)
    ]
    waiting = [draw(waiters(number)) for number in range(draw(st.integers(0, 8)))]
    return Site(nodes, partitions, units, [*running, *waiting], allocations)


@st.composite
def runners(draw: st.DrawFn, node: Node) -> Workload:
    return Workload(
        id=WorkloadId(f"slurm:{node.id}"),
        state=draw(st.sampled_from([WorkloadState.RUNNING, WorkloadState.SUSPENDED])),
        user="ada",
        partition=node.partitions[0] if node.partitions else None,
        gpus_requested=draw(st.integers(1, node.gpu_count)),
        nodes=(str(node.id),),
        time_limit_s=draw(st.sampled_from([None, 3600, 7200])),
        started_at=draw(st.sampled_from([None, UnixMs(NOW - HOUR_MS), UnixMs(NOW - 3 * HOUR_MS)])),
    )


@st.composite
def waiters(draw: st.DrawFn, number: int) -> Workload:
    gpus = draw(st.sampled_from([0, 1, 2, 4, 8, 9, 16]))
    machine_type = draw(st.sampled_from([*TYPES, "H200"]))
    submitted = draw(st.sampled_from([None, UnixMs(NOW - HOUR_MS), UnixMs(NOW - 2 * HOUR_MS)]))
    return Workload(
        id=WorkloadId(f"slurm:{100 + number}"),
        state=WorkloadState.WAITING,
        user="bob",
        partition=draw(st.sampled_from([*PARTS, "gone", None])),
        resource_type=machine_type and f"{machine_type}-{gpus}",
        gpus_requested=gpus,
        nodes_requested=draw(st.sampled_from([None, 1, 2])),
        time_limit_s=draw(st.sampled_from([None, 3600, 36_000])),
        priority=draw(st.sampled_from([None, 1, 1000])),
        submitted_at=submitted,
        eligible_at=draw(st.sampled_from([None, UnixMs(NOW - HOUR_MS // 2)])),
        pending_reason=draw(st.sampled_from([*ROOM, *NOT_ROOM])),
        tags=draw(st.sampled_from([{}, {}, {"partitions": "main,all"}])),
    )


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(sites())
def test_all_answers_agree_when_a_queue_has_any_reason_node_state_and_shared_partition(site: Site) -> None:
    with TemporaryDirectory() as folder:
        storage = StorageSettings(data_dir=Path(folder) / "data")
        cluster = QueuedCluster(open_metric_store(storage, RetentionSettings()), open_record_store(storage))
        try:
            write(cluster, site)
            check_answers(cluster, site)
        finally:
            cluster.metrics.close()
            cluster.records.close()


def write(cluster: QueuedCluster, site: Site) -> None:
    cluster.records.write_inventory(nodes=site.nodes, partitions=site.partitions, units=site.units, at_ms=NOW)
    cluster.records.write_workloads(site.workloads, at_ms=NOW)
    cluster.records.write_allocations(site.allocations)
    cluster.changes.bump_inventory()


def check_answers(cluster: QueuedCluster, site: Site) -> None:
    queries = cluster.queries
    rows = queries.queue.all().workloads
    in_line = [row.workload for row in rows if row.position is not None]
    assert [row.workload for row in rows] == [workload.id for workload in order(site)]
    assert set(in_line) == {workload.id for workload in order(site) if should_be_planned(workload, site)}
    # The plan, the forecasts and the promises: the same jobs in the same order, at the same times.
    planned = {row.workload: row.planned_at for row in rows if row.planned_at is not None}
    assert [row.workload for row in rows if row.likely is not None] == list(planned)
    forecasts = queries.waits.waiting()
    assert {forecast.workload: forecast.start.plan_at for forecast in forecasts.workloads} == planned
    assert [forecast.workload for forecast in forecasts.workloads] == list(planned)
    assert forecasts.left_out == len(rows) - len(planned)
    cluster.services.promises.update()
    assert {name: ledger.last_s * 1000 for name, ledger in queries.promises.open.items()} == planned
    for row in rows:
        if row.position is not None:
            story = queries.queue.story(row.workload)
            assert [other.workload for other in story.ahead] == before(row, rows)
            # Needed nodes are those of the plan: a job has no plan only if there are too few of them.
            assert story.needed is not None
            assert ("in service" in story.needed.text) == (row.planned_at is None)
    queue = read_live_queue(queries.context)
    check_what_if(cluster, rows, in_line, queue)
    check_demand(queries.cluster.summary(), rows, site, queue)


def order(site: Site) -> list[Workload]:
    """Waiting workloads that request GPUs: by priority, then time in the queue, then name."""
    asking = [
        workload
        for workload in site.workloads
        if workload.state is WorkloadState.WAITING and workload.gpus_requested and workload.partition is not None
    ]
    return sorted(
        asking,
        key=lambda workload: (
            -(workload.priority or 0),
            workload.eligible_at or workload.submitted_at or NOW,
            workload.id,
        ),
    )


def should_be_planned(workload: Workload, site: Site) -> bool:
    is_open = any(part.name == workload.partition and part.is_up for part in site.partitions)
    return is_open and workload.pending_reason in ROOM


def before(row: QueueRow, rows: list[QueueRow]) -> list[str]:
    mine = [other for other in rows if other.position is not None and other.partition == row.partition]
    assert [other.position for other in mine] == list(range(1, len(mine) + 1))
    return [other.workload for other in mine[: (row.position or 0) - 1]]


def check_what_if(cluster: QueuedCluster, rows: list[QueueRow], in_line: list[str], queue: LiveQueue) -> None:
    answer = cluster.queries.what_if.ask(QueueWhatIf(futures=2))
    assert [result.workload for result in answer.workloads] == in_line
    jobs = {job.workload: job for job in queue.planned()}
    for result in answer.workloads:
        row = next(row for row in rows if row.workload == result.workload)
        job = jobs[result.workload]
        assert (row.partition, row.nodes, row.limit_s) == (result.partition, job.nodes, job.limit_s)
        assert result.gpus == job.total_gpus
        # Jobs without a planned start never start in the simulation.
        assert (row.planned_at is None) == (result.baseline_at is None)


def check_demand(summary: ClusterSummary, rows: list[QueueRow], site: Site, queue: LiveQueue) -> None:
    """The smallest request is that of a job with a position, and startable GPUs are those that are free in the queue."""
    types = {part.name: {machine_type(site, name) for name in part.nodes} for part in site.partitions}
    partitions = {str(workload.id): named_partitions(workload, site) for workload in site.workloads}
    free = queue.free_by_node()
    for part in summary.partitions:
        nodes = next(partition.nodes for partition in site.partitions if partition.name == part.name)
        for place in part.largest_startable:
            requests = []
            for row in rows:
                own = set().union(*(types.get(name, set()) for name in partitions[row.workload]))
                wanted = {row.machine_type} if row.machine_type in own and row.machine_type else own
                is_demand = row.position is not None and demands_gpus_now(row.reason)
                if is_demand and part.name in partitions[row.workload]:
                    requests += [math.ceil(row.gpus / row.nodes)] if place.machine_type in wanted else []
            assert place.smallest_request == min(requests, default=None)
            mine = [free[name] for name in nodes if machine_type(site, name) == place.machine_type]
            assert place.free == sum(mine)
            assert place.one_node_gpus == (max(mine) if part.is_up else 0)


def machine_type(site: Site, node: str) -> str | None:
    return next(candidate.machine_type for candidate in site.nodes if candidate.id == node)


def named_partitions(workload: Workload, site: Site) -> list[str]:
    up = {part.name for part in site.partitions if part.is_up}
    others = [name for name in workload.tags.get("partitions", "").split(",") if name in up]
    return [workload.partition or "", *others]
