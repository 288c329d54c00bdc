"""The memory of what-ifs: 10,000,000 added nodes took 5 GB. They are refused, and the most that may be added costs little."""

from pathlib import Path

from clusters.queued import open_queued_cluster
from hostile.memory import MIB, measure

from clusterscape.query.scheduling.whatif_answers import MAX_ADDED_NODES, QueueWhatIf


def ask_with_more_nodes(folder: Path, added: int) -> int:
    with open_queued_cluster(folder) as cluster:
        for at in range(4):
            cluster.wait(f"slurm:{10 + at}", 4, hours=6, since_h=4 - at / 10)
        what_if = cluster.queries.what_if
        question = QueueWhatIf(added={"main": added}, futures=6)
        what_if.check(question)
        return sum(node.is_added for node in what_if.ask(question).course.nodes)


def test_ten_million_added_nodes_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    cost = measure(ask_with_more_nodes, tmp_path, 10_000_000)
    assert "nodes can be added" in str(cost.error)
    assert cost.peak_bytes < 200 * MIB


def test_as_many_nodes_as_may_be_added_take_little_memory(tmp_path: Path) -> None:
    few = measure(ask_with_more_nodes, tmp_path / "few", 1)
    most = measure(ask_with_more_nodes, tmp_path / "most", MAX_ADDED_NODES)
    assert few.value == 1
    assert most.value > MAX_ADDED_NODES * 0.9  # a picture has room for 2,000 nodes in all
    assert most.peak_bytes < few.peak_bytes + 150 * MIB
