"""Plan, promise, forecast and the answer before submitting respect reservations and preemption, and agree."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from clusters.queued import GPUS, HOUR_MS, NOW, QueuedCluster, queued_cluster
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterscape.model import (
    NO_PREEMPTION,
    NodeId,
    PreemptionRules,
    Reservation,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
)
from clusterscape.model.observations import SCHEDULER_RULES
from clusterscape.query.scheduling.live_queue import Holding, LiveQueue, QueueJob, QueueNode, read_live_queue
from clusterscape.query.scheduling.queue_plan import plan_queue

__all__ = ["queued_cluster"]


def write_rules(
    cluster: QueuedCluster, *reservations: Reservation, preemption: PreemptionRules | None = NO_PREEMPTION
) -> None:
    body = msgspec.json.decode(msgspec.json.encode({"reservations": list(reservations), "preemption": preemption}))
    cluster.records.write_document(SCHEDULER_RULES, "slurm", body, at_ms=cluster.now)
    cluster.changes.bump_inventory()


def reserve(name: str, *nodes: str, from_h: float, to_h: float, is_maintenance: bool = False) -> Reservation:
    return Reservation(
        name=name,
        starts_at=UnixMs(int(NOW + from_h * HOUR_MS)),
        ends_at=UnixMs(int(NOW + to_h * HOUR_MS)),
        nodes=tuple(map(NodeId, nodes)),
        is_maintenance=is_maintenance,
    )


def starts_h(cluster: QueuedCluster, workload: str) -> tuple[float, float, float]:
    """Hours from now: the plan, and both ends of the likely start."""
    row = next(row for row in cluster.queries.queue.all().workloads if row.workload == workload)
    assert row.planned_at is not None
    assert row.likely is not None
    return tuple((at - NOW) / HOUR_MS for at in (row.planned_at, row.likely.from_at, row.likely.to_at))  # type: ignore[return-value]


def test_no_start_is_predicted_before_the_end_of_maintenance_when_it_holds_the_nodes(
    queued_cluster: QueuedCluster,
) -> None:
    queued_cluster.wait("slurm:10", GPUS, hours=4)
    write_rules(queued_cluster, reserve("maint", "n1", "n2", from_h=3, to_h=8, is_maintenance=True))
    planned, low, high = starts_h(queued_cluster, "slurm:10")
    # n1 is free in two hours, but four hours do not fit before the maintenance.
    assert planned == 8
    assert 8 <= low <= high
    forecast = queued_cluster.queries.waits.ask(gpus=GPUS, hours=4, partition="main").start
    assert (forecast.plan_at - NOW) / HOUR_MS >= 8
    assert forecast.likely_at >= NOW + 8 * HOUR_MS


def test_short_jobs_start_before_it_when_a_maintenance_is_still_to_come(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", GPUS, hours=1)
    write_rules(queued_cluster, reserve("maint", "n1", "n2", from_h=3.5, to_h=8, is_maintenance=True))
    assert starts_h(queued_cluster, "slurm:10")[0] == 2


def test_reserved_nodes_are_only_for_jobs_that_name_the_reservation(
    queued_cluster: QueuedCluster,
) -> None:
    queued_cluster.wait("slurm:10", GPUS, hours=1)
    queued_cluster.wait("slurm:11", GPUS, hours=1, since_h=0.5)
    _tag(queued_cluster, "slurm:11", reservation="course")
    write_rules(queued_cluster, reserve("course", "n1", from_h=2.5, to_h=6))
    assert starts_h(queued_cluster, "slurm:10")[0] == 5  # n2, after its holder
    assert starts_h(queued_cluster, "slurm:11")[0] == 2.5


def test_job_starts_immediately_when_it_may_preempt_running_jobs(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", GPUS, hours=1)
    _tag(queued_cluster, "slurm:10", qos="high")
    for running in ("slurm:1", "slurm:2"):
        _tag(queued_cluster, running, qos="low")
    assert starts_h(queued_cluster, "slurm:10")[0] == 2
    write_rules(queued_cluster, preemption=PreemptionRules(by_qos=True, displaces={"high": ("low",)}))
    planned, low, high = starts_h(queued_cluster, "slurm:10")
    assert (planned, low, high) == (0, 0, 0)
    write_rules(
        queued_cluster,
        preemption=PreemptionRules(by_qos=True, displaces={"high": ("low",)}, protected_qos=frozenset({"low"})),
    )
    assert starts_h(queued_cluster, "slurm:10")[0] == 2


def test_a_job_may_start_in_any_of_its_partitions_when_it_names_several(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", GPUS, hours=1)
    assert starts_h(queued_cluster, "slurm:10")[0] == 2
    _tag(queued_cluster, "slurm:10", partitions="main,spare")
    assert starts_h(queued_cluster, "slurm:10")[0] == 0  # n4 of the other one is free


def test_reservations_are_listed_with_their_gpus_when_the_cluster_is_asked(queued_cluster: QueuedCluster) -> None:
    later = reserve("course", "n3", from_h=5, to_h=6)
    now = reserve("maint", "n1", "n2", from_h=-1, to_h=2, is_maintenance=True)
    write_rules(queued_cluster, later, now, reserve("over", "n1", from_h=-3, to_h=-2))
    for listed in (
        queued_cluster.queries.cluster.summary().reservations,
        queued_cluster.queries.queue.all().reservations,
    ):
        assert [
            (reservation.name, reservation.is_active, reservation.is_maintenance, reservation.gpus)
            for reservation in listed
        ] == [
            ("maint", True, True, 2 * GPUS),
            ("course", False, False, GPUS),
        ]


REASONS = (
    None, "None", "Resources", "Priority", "NodeDown", "Prolog", "ReqNodeNotAvail, May be reserved for other job",
    "Dependency", "QOSMaxGRESPerUser", "JobHeldUser", "BeginTime", "AssocGrpGRES", "Licenses",
)  # fmt: skip


def test_all_answers_agree_on_waiting_jobs_and_their_order_for_every_reason(
    queued_cluster: QueuedCluster,
) -> None:
    for number, reason in enumerate(REASONS):
        queued_cluster.wait(
            f"slurm:{20 + number}", 1 + number % 8, priority=100 - number % 3, since_h=number / 10, reason=reason or ""
        )
    rows = queued_cluster.queries.queue.all().workloads
    planned = [row.workload for row in rows if row.planned_at is not None]
    likely = [row.workload for row in rows if row.likely is not None]
    forecast = [forecast.workload for forecast in queued_cluster.queries.waits.waiting().workloads]
    queue = read_live_queue(queued_cluster.queries.context)
    queued_cluster.services.promises.update()
    assert planned == likely == forecast == [job.workload for job in queue.planned()]
    assert set(queued_cluster.queries.promises.open) == set(planned)
    assert len(planned) == 7
    assert queued_cluster.queries.waits.waiting().left_out == len(REASONS) - len(planned)


def _tag(cluster: QueuedCluster, workload: str, *, qos: str | None = None, **tags: str) -> None:
    record = cluster.records.workload(WorkloadId(workload))
    assert record is not None
    changed: Workload = replace(record, qos=qos or record.qos, tags={**record.tags, **tags})
    cluster.records.write_workloads([changed], at_ms=cluster.now)
    cluster.changes.bump_inventory()


@st.composite
def queues(draw: st.DrawFn) -> LiveQueue:
    """Small clusters with arbitrary contents."""
    nodes = {f"n{at}": QueueNode(f"n{at}", 4, "A100", ("main",), True) for at in range(draw(st.integers(1, 3)))}
    held = tuple(
        Holding(f"r{name}", name, draw(st.integers(1, 4)), draw(st.integers(1, 20)) * 100, 0, "main", draw(QOS))
        for name in nodes
        if draw(st.booleans())
    )
    reservations = tuple(
        Reservation(
            name=f"res{at}",
            starts_at=UnixMs(start * 100_000),
            ends_at=UnixMs((start + draw(st.integers(1, 10))) * 100_000),
            nodes=tuple(NodeId(name) for name in nodes if draw(st.booleans())) or (NodeId("n0"),),
        )
        for at in range(draw(st.integers(0, 2)))
        for start in [draw(st.integers(0, 15))]
    )
    jobs = [
        QueueJob(
            f"w{at}", "main", "A100", draw(st.integers(1, len(nodes))), draw(st.integers(1, 4)),
            draw(st.integers(1, 12)) * 100, draw(st.integers(0, 2)), at, True, qos=draw(QOS),
            reservation=draw(st.sampled_from([None, None, *(reservation.name for reservation in reservations)])),
        )
        for at in range(draw(st.integers(1, 6)))
    ]  # fmt: skip
    rules = PreemptionRules(by_qos=draw(st.booleans()), displaces={"high": ("low",)})
    return LiveQueue(0, nodes, held, (), {"main": None}, reservations, rules).with_jobs(jobs)


QOS = st.sampled_from(["low", "high"])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(queues())
def test_no_gpu_is_given_twice_and_no_reservation_broken_when_a_queue_is_planned(queue: LiveQueue) -> None:
    """For every second of 100 s, held (not preempted), planned and reserved GPUs fit on every node."""
    starts, plan = plan_queue(queue)
    jobs = queue.planned()
    names = list(queue.nodes)
    for step in range(40):
        at = step * 100
        used = dict.fromkeys(names, 0)
        preempted = dict.fromkeys(names, 0)
        for job, first in zip(jobs, plan.first.tolist(), strict=True):
            start = starts.get(job.workload)
            if start is None or not start <= at < start + job.limit_s:
                continue
            for node in plan.nodes[first : first + job.nodes].tolist():
                used[names[node]] += job.gpus
                if job.qos == "high" and queue.preemption and queue.preemption.by_qos:
                    preempted[names[node]] += job.gpus
                check_reserved(queue, job, names[node], start)
        for held in queue.held:
            # A running job loses at most the GPUs that jobs preempting it were given.
            left = held.gpus if held.end_s > at else 0
            used[held.node] += max(0, left - (preempted[held.node] if held.qos == "low" else 0))
        low = [job for job in jobs if job.qos == "low"]
        if not (queue.preemption and queue.preemption.by_qos) or not low:
            assert all(count <= 4 for count in used.values()), (at, used)


def check_reserved(queue: LiveQueue, job: QueueJob, node: str, start: int) -> None:
    end = start + job.limit_s
    for reservation in queue.reservations:
        begin_s, end_s = reservation.starts_at // 1000, reservation.ends_at // 1000
        if job.reservation == reservation.name:
            assert node in reservation.nodes
            assert begin_s <= start
            assert end <= end_s
        elif node in reservation.nodes:
            assert end <= begin_s or start >= end_s


def test_forecasts_never_exceed_the_plan_by_limits_without_later_arrivals(queued_cluster: QueuedCluster) -> None:
    for number in range(6):
        queued_cluster.wait(f"slurm:{30 + number}", 1 + number, hours=1 + number)
    for forecast in queued_cluster.queries.waits.waiting().workloads:
        highest = max(interval.to_at for interval in forecast.start.intervals)
        assert highest <= forecast.start.plan_at + 1000
        assert np.isfinite(forecast.start.wait_s)


def test_state_is_read_when_it_was_written_by_a_collector(queued_cluster: QueuedCluster) -> None:
    rules = PreemptionRules(by_partition=True, tiers={"main": 2, "spare": 1}, protected_partitions=frozenset({"x"}))
    write_rules(queued_cluster, reserve("maint", "n1", from_h=1, to_h=2), preemption=rules)
    queue = read_live_queue(queued_cluster.queries.context)
    assert queue.preemption == rules
    assert queue.reservations[0].nodes == ("n1",)


@pytest.mark.parametrize("state", [WorkloadState.RUNNING, WorkloadState.SUSPENDED])
def test_a_workload_holds_its_nodes_when_no_unit_of_it_is_known(
    queued_cluster: QueuedCluster, state: WorkloadState
) -> None:
    unplaced = Workload(
        id=WorkloadId("slurm:77"), state=state, partition="spare", gpus_requested=GPUS, nodes=("n4",),
        time_limit_s=7200, started_at=NOW,
    )  # fmt: skip
    queued_cluster.records.write_workloads([unplaced], at_ms=NOW)
    held = {
        holding.workload: (holding.node, holding.gpus)
        for holding in read_live_queue(queued_cluster.queries.context).held
    }
    assert held["slurm:77"] == ("n4", GPUS)
