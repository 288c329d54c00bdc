"""What-ifs: no differences without a change, and warnings about side effects."""

import time

import pytest
from clusters.queued import NOW, QueuedCluster, queued_cluster

from clusterscape.errors import NotFoundError, QueryError
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf, WhatIfProgress
from clusterscape.simulate.placements import placement_names

__all__ = ["queued_cluster"]

FEW = 6


def fill(cluster: QueuedCluster) -> None:
    """Submit small jobs first, then large ones."""
    for at in range(4):
        cluster.wait(f"slurm:{10 + at}", 4, hours=6, since_h=4 - at / 10)
    for at in range(3):
        cluster.wait(f"slurm:{20 + at}", 16, nodes=2, hours=6, since_h=2 - at / 10)


def test_unchanged_what_if_is_the_baseline_exactly(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(futures=FEW))
    assert answer.is_unchanged
    assert [(measure.difference, measure.low, measure.high, measure.verdict) for measure in answer.measures] == [
        (0.0, 0.0, 0.0, "same")
    ] * len(answer.measures)
    assert all(measure.baseline == measure.changed for measure in answer.measures)
    assert all(row.change_s == 0 and row.baseline_at == row.changed_at for row in answer.workloads)
    assert answer.course.baseline == answer.course.changed
    assert answer.warnings == []


def test_starvation_is_flagged_when_the_largest_go_first(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(policy="size-priority", futures=FEW))
    assert [warning.kind for warning in answer.warnings] == ["starvation"]
    assert set(answer.warnings[0].workloads) <= {"slurm:10", "slurm:11", "slurm:12", "slurm:13"}
    changes = {row.workload: row.change_s for row in answer.workloads}
    assert (changes["slurm:10"] or 0) > 0 > (changes["slurm:22"] or 0)


def test_everybody_starts_sooner_when_nodes_are_added(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(added={"main": 4}, futures=FEW))
    wait = next(measure for measure in answer.measures if measure.name == "wait_s")
    assert wait.verdict == "better"
    assert [node.node for node in answer.course.nodes if node.is_added] == [f"new-main-{at}" for at in (1, 2, 3, 4)]
    added = {place for place, node in enumerate(answer.course.nodes) if node.is_added}
    assert added & set(answer.course.changed.node)
    assert not added & set(answer.course.baseline.node)


def test_gangs_never_start_when_a_node_they_need_is_drained(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(drained=["n1"], futures=FEW))
    never = next(warning for warning in answer.warnings if warning.kind == "never")
    assert never.workloads == ["slurm:20", "slurm:21", "slurm:22"]


def test_refused_jobs_are_reported_when_a_limit_is_set(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(limits={"main": 8}, futures=FEW))
    refused = next(warning for warning in answer.warnings if warning.kind == "refused")
    assert len(refused.workloads) == 3


def test_job_starts_first_when_it_is_moved_to_the_front(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(first=["slurm:22"], futures=FEW))
    row = next(row for row in answer.workloads if row.workload == "slurm:22")
    assert row.change_s is not None
    assert row.change_s < 0


def test_timeline_names_the_holder_of_each_gpu_when_the_queue_is_simulated(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    course = queued_cluster.queries.what_if.ask(QueueWhatIf(policy="size-priority", futures=2)).course
    assert course.from_at == NOW
    names = [node.node for node in course.nodes]
    rows = list(zip(course.baseline.node, course.baseline.holder, course.baseline.gpus, strict=True))
    now = {
        (names[node], course.holders[holder].workload): gpus
        for (node, holder, gpus), since in zip(rows, course.baseline.from_at, strict=True)
        if since == NOW
    }
    assert now["n1", "slurm:1"] == 8
    assert now["n3", "slurm:3"] == 4
    assert {holder.workload for holder in course.holders if holder.is_waiting} >= {"slurm:10", "slurm:20"}
    for spans in (course.baseline, course.changed):
        assert all(begin < end <= course.until_at for begin, end in zip(spans.from_at, spans.to_at, strict=True))
        for moment in spans.from_at:
            held = [0] * len(names)
            for node, gpus, begin, end in zip(spans.node, spans.gpus, spans.from_at, spans.to_at, strict=True):
                held[node] += gpus if begin <= moment < end else 0
            assert max(held) <= 8


def test_users_with_less_go_first_when_shares_are_fair(queued_cluster: QueuedCluster) -> None:
    """Users that hold GPUs come after users that hold none; without users the order is that of arrival."""
    queued_cluster.wait("slurm:10", 8, hours=6, since_h=2, user="ada")
    queued_cluster.wait("slurm:11", 8, hours=6, since_h=1, user="zoe")
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(policy="fair-share", futures=FEW))
    changes = {row.workload: row.change_s or 0 for row in answer.workloads}
    assert changes["slurm:11"] < 0 < changes["slurm:10"]


@pytest.mark.parametrize("placement", placement_names())
def test_every_placement_can_be_asked_for_when_one_is_assumed(queued_cluster: QueuedCluster, placement: str) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(placement=placement, futures=2))
    assert (answer.placement.placement, answer.placement.certainty) == ("most-allocated", "assumed")
    assert placement in answer.placements
    if placement == answer.placement.placement:
        assert {measure.verdict for measure in answer.measures} == {"same"}


def wait_for(cluster: QueuedCluster, name: str) -> WhatIfProgress:
    runs = cluster.services.what_if_runs
    for _ in range(2_400):
        progress = runs.find(name)
        if progress.state != "running":
            return progress
        time.sleep(0.05)
    raise AssertionError("the what-if goes on and on")


def test_run_ends_with_the_same_answer_when_it_is_polled(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    what_if = QueueWhatIf(policy="sjf", futures=2)
    begun = queued_cluster.services.what_if_runs.start(what_if)
    assert (begun.state, begun.answer) == ("running", None)
    ended = wait_for(queued_cluster, begun.run)
    assert (ended.state, ended.progress) == ("done", 1.0)
    assert ended.answer == queued_cluster.queries.what_if.ask(what_if)


def test_run_stays_stopped_when_it_was_stopped(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    runs = queued_cluster.services.what_if_runs
    first, second = (runs.start(QueueWhatIf(policy="sjf", futures=60)) for _ in range(2))
    assert runs.stop(second.run).state == "stopped"
    assert runs.stop(first.run).state == "stopped"
    last = runs.start(QueueWhatIf(policy="sjf", futures=2))
    assert wait_for(queued_cluster, last.run).state == "done"
    assert (runs.find(first.run).state, runs.find(second.run).answer) == ("stopped", None)


def test_run_is_refused_immediately_when_the_change_is_invalid(queued_cluster: QueuedCluster) -> None:
    with pytest.raises(QueryError):
        queued_cluster.services.what_if_runs.start(QueueWhatIf(backfill="easy++"))
    with pytest.raises(NotFoundError):
        queued_cluster.services.what_if_runs.find("0")


@pytest.mark.parametrize(
    "change",
    [
        QueueWhatIf(drained=["nowhere"]),
        QueueWhatIf(added={"nowhere": 1}),
        QueueWhatIf(limits={"nowhere": 1}),
        QueueWhatIf(first=["slurm:404"]),
        QueueWhatIf(policy="chaos"),
        QueueWhatIf(backfill="chaos"),
        QueueWhatIf(placement="chaos"),
        QueueWhatIf(futures=1),
    ],
)
def test_change_is_refused_when_it_names_something_that_does_not_exist(
    queued_cluster: QueuedCluster, change: QueueWhatIf
) -> None:
    fill(queued_cluster)
    with pytest.raises(QueryError):
        queued_cluster.queries.what_if.ask(change)
