"""Explanations of the live queue: positions, reasons, holders, promises after a restart, and cheaper alternatives."""

import pytest
from clusters.opened import open_services
from clusters.queued import HOUR_MS, NOW, QueuedCluster, queued_cluster

from clusterscape.errors import NotFoundError
from clusterscape.model import UnixMs
from clusterscape.model.observations import PRIORITY_PARTS

__all__ = ["queued_cluster"]

HOUR_S = 3600


def test_rows_are_in_queue_order_when_priorities_differ(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8, since_h=3)
    queued_cluster.wait("slurm:11", 8, priority=900)
    queued_cluster.wait("slurm:12", 8, reason="Dependency", priority=999)
    answer = queued_cluster.queries.queue.all()
    assert [(row.workload, row.position, row.ahead) for row in answer.workloads] == [
        ("slurm:12", None, 0),
        ("slurm:11", 1, 0),
        ("slurm:10", 2, 1),
    ]
    assert [row.planned_at for row in answer.workloads] == [None, NOW + 2 * HOUR_MS, NOW + 3 * HOUR_MS]
    assert answer.gpus_asked == 24
    assert answer.longest_wait_s == 3 * HOUR_S
    main = next(partition for partition in answer.partitions if partition.name == "main")
    assert (main.waiting, main.held, main.blocked, main.gpus_free) == (3, 0, 1, 0)


def test_explanation_names_jobs_ahead_and_holders_when_all_nodes_are_busy(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8, since_h=3)
    queued_cluster.wait("slurm:11", 8, priority=900)
    story = queued_cluster.queries.queue.story("slurm:11")
    assert [holder.workload for holder in story.holders] == ["slurm:1"]
    assert story.holders[0].ends_by == NOW + 2 * HOUR_MS
    assert story.needed is not None
    assert (story.needed.missing_gpus, story.needed.missing_nodes) == (8, 1)
    behind = queued_cluster.queries.queue.story("slurm:10")
    assert [(other.workload, other.why) for other in behind.ahead] == [("slurm:11", "priority 900 vs 100")]
    assert any("position 2 in main" in line for line in behind.text)


def test_cheapest_change_is_the_other_partition_when_it_has_a_free_node(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8)
    story = queued_cluster.queries.queue.story("slurm:10")
    best = story.changes[0]
    assert (best.kind, best.partition, best.start_at) == ("partition", "spare", NOW)


def test_gain_is_the_difference_to_the_likely_start_when_there_is_a_forecast(queued_cluster: QueuedCluster) -> None:
    """No change can start a workload sooner by more than it likely waits, however late its latest start is."""
    queued_cluster.wait("slurm:10", 8, hours=40, since_h=3)
    queued_cluster.wait("slurm:11", 8, hours=20, since_h=2)
    story = queued_cluster.queries.queue.story("slurm:11")
    assert story.row is not None
    assert story.row.likely is not None
    assert story.row.planned_at is not None
    assert story.row.likely.likely_at < story.row.planned_at
    assert story.baseline == "likely"
    assert story.changes
    for change in story.changes:
        assert change.gain_s == (story.row.likely.likely_at - change.start_at) // 1000
        assert change.start_at >= NOW
    assert any("its likely start would be" in sentence for sentence in story.text)


def test_order_is_told_as_it_is_when_priorities_are_equal(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8, since_h=3)
    queued_cluster.wait("slurm:11", 8, since_h=2)
    queued_cluster.wait("slurm:12", 8, since_h=1)
    story = queued_cluster.queries.queue.story("slurm:12")
    assert {other.why for other in story.ahead} == {
        "same priority, queued 2 h earlier",
        "same priority, queued 1 h earlier",
    }
    assert story.order == "2 have the same priority and were queued earlier."
    assert not any("higher priority" in line for line in story.text)
    queued_cluster.wait("slurm:13", 8, priority=900)
    story = queued_cluster.queries.queue.story("slurm:12")
    assert story.order == "1 has a higher priority, 2 the same priority and were queued earlier."
    first = queued_cluster.queries.queue.story("slurm:13")
    assert first.text[0] == "It is at position 1 in main: next to start."


def test_held_workload_has_no_plan_when_it_waits_for_something_else(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8, reason="JobHeldUser")
    story = queued_cluster.queries.queue.story("slurm:10")
    assert story.row is not None
    assert (story.row.position, story.row.planned_at, story.changes, story.needed) == (None, None, [], None)
    assert "Held by its owner" in story.text[0]


def test_promises_survive_a_restart_when_slips_were_recorded(queued_cluster: QueuedCluster) -> None:
    queued_cluster.wait("slurm:10", 8)
    queued_cluster.services.promises.update()
    queued_cluster.wait("slurm:11", 8, priority=900, since_h=0)
    queued_cluster.services.promises.update()
    again = queued_cluster.make_queries()
    services = open_services(again)
    ledger = again.promises.ledger("slurm:10")
    assert ledger is not None
    assert [(slip.cause.value, slip.change_s, slip.by) for slip in ledger.slips] == [("arrived", HOUR_S, ("slurm:11",))]
    queued_cluster.now = UnixMs(NOW + 4 * HOUR_MS)
    queued_cluster.start("slurm:10", "n1")
    services.promises.update()
    story = again.queue.story("slurm:10")
    assert story.row is None
    assert story.promise is not None
    assert story.promise.started_at == queued_cluster.now
    assert sum(slip.change_s for slip in story.promise.slips) == (queued_cluster.now - story.promise.first_at) // 1000


def test_priority_factors_explain_jobs_ahead_when_the_scheduler_reports_them(
    queued_cluster: QueuedCluster,
) -> None:
    queued_cluster.wait("slurm:10_3", 8, priority=1_200)
    queued_cluster.wait("slurm:11", 8, priority=2_600)
    parts = {"10": {"age": 1_000, "fair_share": 200}, "11": {"age": 100, "fair_share": 1_500, "qos": 1_000}}
    queued_cluster.records.write_document(PRIORITY_PARTS, "slurm", {"parts": parts}, at_ms=NOW)
    story = queued_cluster.queries.queue.story("slurm:10_3")
    assert [(part.name, part.points) for part in story.parts] == [("age", 1_000), ("fair_share", 200)]
    (ahead,) = story.ahead
    assert ahead.why == "priority 2,600 vs 1,200: +1,300 fair share, +1,000 QOS, −900 age"
    assert [part.title for part in ahead.parts] == ["fair share", "QOS", "age"]


def test_likely_start_equals_the_forecast_before_submitting_when_the_job_is_the_same(
    queued_cluster: QueuedCluster,
) -> None:
    """The forecast before submitting equals that of the queue right after submitting."""
    queued_cluster.wait("slurm:10", 8, hours=6)
    forecast = queued_cluster.queries.waits.ask(gpus=8, hours=4, partition="main", user="bob").start
    queued_cluster.wait("slurm:11", 8, hours=4, since_h=0, priority=100)
    row = next(row for row in queued_cluster.queries.queue.all().workloads if row.workload == "slurm:11")
    assert row.likely is not None
    (interval,) = (interval for interval in forecast.intervals if interval.level == row.likely.level)
    assert (row.likely.likely_at, row.likely.from_at, row.likely.to_at) == (
        forecast.likely_at,
        interval.from_at,
        interval.to_at,
    )
    assert NOW <= row.likely.from_at <= row.likely.likely_at <= row.likely.to_at


def test_unknown_workload_is_not_found_when_it_is_asked_about(queued_cluster: QueuedCluster) -> None:
    with pytest.raises(NotFoundError, match="no workload"):
        queued_cluster.queries.queue.story("slurm:404")


def test_nothing_waits_when_the_queue_is_empty(queued_cluster: QueuedCluster) -> None:
    answer = queued_cluster.queries.queue.all()
    assert (answer.workloads, answer.longest_wait_s, answer.drained_at) == ([], None, None)
