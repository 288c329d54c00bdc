"""What a change would do: nothing where nothing changes, and its side effects told where it has some."""

import pytest
from clusters.queued import NOW, QueuedCluster, queued_cluster

from clusterscape.errors import QueryError
from clusterscape.query.scheduling.whatif_answers import QueueWhatIf

__all__ = ["queued_cluster"]

FEW = 6


def fill(cluster: QueuedCluster) -> None:
    """Small ones came first, large ones later."""
    for at in range(4):
        cluster.wait(f"slurm:{10 + at}", 4, hours=6, since_h=4 - at / 10)
    for at in range(3):
        cluster.wait(f"slurm:{20 + at}", 16, nodes=2, hours=6, since_h=2 - at / 10)


def test_unchanged_what_if_is_the_baseline_exactly(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(futures=FEW))
    assert answer.is_unchanged
    assert [(each.difference, each.low, each.high, each.verdict) for each in answer.measures] == [
        (0.0, 0.0, 0.0, "same")
    ] * len(answer.measures)
    assert all(each.baseline == each.changed for each in answer.measures)
    assert all(row.change_s == 0 and row.baseline_at == row.changed_at for row in answer.workloads)
    assert all(node.baseline == node.changed for node in answer.nodes)
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
    wait = next(each for each in answer.measures if each.name == "wait_s")
    assert wait.verdict == "better"
    assert [node.node for node in answer.nodes if node.baseline == []] == [f"new-main-{at}" for at in (1, 2, 3, 4)]


def test_gangs_never_start_when_a_node_they_need_is_drained(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(drained=["n1"], futures=FEW))
    never = next(warning for warning in answer.warnings if warning.kind == "never")
    assert never.workloads == ["slurm:20", "slurm:21", "slurm:22"]


def test_refused_ones_are_told_when_a_limit_is_set(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(limits={"main": 8}, futures=FEW))
    refused = next(warning for warning in answer.warnings if warning.kind == "refused")
    assert len(refused.workloads) == 3


def test_one_starts_first_when_it_is_put_first(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(first=["slurm:22"], futures=FEW))
    row = next(each for each in answer.workloads if each.workload == "slurm:22")
    assert row.change_s is not None
    assert row.change_s < 0


def test_picture_shows_who_holds_each_gpu_when_a_time_is_chosen(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    answer = queued_cluster.queries.what_if.ask(QueueWhatIf(futures=2, picture_in_s=0))
    assert answer.picture_at == NOW
    held = {node.node: node.baseline for node in answer.nodes}
    assert held["n1"] == ["slurm:1"] * 8
    assert held["n3"] == ["slurm:3"] * 4 + [None] * 4


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
def test_change_is_refused_when_it_names_what_is_not_there(queued_cluster: QueuedCluster, change: QueueWhatIf) -> None:
    fill(queued_cluster)
    with pytest.raises(QueryError):
        queued_cluster.queries.what_if.ask(change)


def test_likely_starts_lie_between_now_and_the_plan_when_they_are_sampled(queued_cluster: QueuedCluster) -> None:
    fill(queued_cluster)
    queued_cluster.queries.what_if.tend()
    rows = queued_cluster.queries.queue.all().workloads
    for row in rows[:4]:
        assert row.likely is not None
        assert row.planned_at is not None
        assert NOW <= row.likely.from_at <= row.likely.likely_at <= row.likely.to_at
        assert row.likely.likely_at <= row.planned_at
