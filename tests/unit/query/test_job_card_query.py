"""The card of a job, from samples in a real store."""

from dataclasses import replace

import pytest
from clusters.small import NOW, SmallCluster, unit

from clusterscape.analyze.jobcard.text import card_text, meter, sparkline
from clusterscape.errors import QueryError
from clusterscape.model import (
    Execution,
    NodeId,
    UnitId,
    UnixMs,
    Workload,
    WorkloadId,
    WorkloadState,
    job_unit_id,
)

START = UnixMs(NOW - 3_600_000)
GIB = 2.0**30


def write_job(cluster: SmallCluster, **fields: object) -> Workload:
    job = replace(
        Workload(
            id=WorkloadId("slurm:70_3"),
            state=WorkloadState.RUNNING,
            name="train\x1b[31m",
            user="ada",
            project="ml",
            partition="main",
            qos="normal",
            submitted_at=UnixMs(START - 60_000),
            started_at=START,
            nodes=("n3", "n2"),
            tags={"job_id": "73", "array_job": "70"},
            gpus_requested=2,
            cpus=8,
            memory_requested_bytes=2**34,
            time_limit_s=7200,
        ),
        **fields,  # type: ignore[arg-type]
    )
    cluster.records.write_workloads([job], at_ms=NOW)
    return job


def store_cgroups(cluster: SmallCluster, name: str = "73", nodes: tuple[str, ...] = ("n3", "n2")) -> None:
    """An hour in which each node used 2 of 4 cores; shared memory peaks while processes use less."""
    for node in map(NodeId, nodes):
        place = job_unit_id(name, node)
        for minute in range(1, 60):
            at = START + minute * 60_000
            cluster.store_sample("job_cpu_seconds", place, at, 120.0 * minute)
            if minute % 10 == 0:
                cluster.store_sample("job_cores_count", place, at, 4)
                cluster.store_sample("job_memory_limit_bytes", place, at, 8 * GIB)
                cluster.store_sample("job_memory_rss_bytes", place, at, 3 * GIB if minute == 30 else GIB)
                cluster.store_sample("job_memory_shared_bytes", place, at, GIB if minute == 50 else 0.5 * GIB)


def store_gpus(cluster: SmallCluster) -> None:
    for minute in (10, 20, 30, 40):
        for node, number, util in (("n3", 73, 0.8), ("n2", 73, 0.02), ("n2", 99, 1.0)):
            index = 1 if number == 99 else 0
            at = START + minute * 60_000
            cluster.store_sample("gpu_job_number", unit(node, index), at, number)
            cluster.store_sample("gpu_util_ratio", unit(node, index), at, util)
            cluster.store_sample("memory_used_bytes", unit(node, index), at, minute * GIB)
            cluster.store_sample("memory_total_bytes", unit(node, index), at, 80 * GIB)


def test_card_joins_cgroups_and_gpus_by_the_number_of_the_job_when_it_is_an_array_task(
    small_cluster: SmallCluster,
) -> None:
    write_job(small_cluster)
    store_cgroups(small_cluster)
    store_gpus(small_cluster)

    card = small_cluster.queries.jobs.card("70_3")

    assert card.workload == "slurm:70_3"
    assert (card.cpu.used, card.cpu.total, card.cpu.percent) == (14_160, 28_800, 49)
    # The peaks of 3 + 0.5 GiB of each node, not the sum of separate peaks.
    assert (card.cpu_memory.used, card.cpu_memory.percent) == (7 * GIB, 44)
    assert card.gpu is not None
    assert card.gpu.percent == 41
    assert card.gpu_memory is not None
    assert card.gpu_memory.percent == 50
    assert {gpu.unit: gpu.util_ratio for node in card.nodes for gpu in node.gpus} == pytest.approx(
        {"n3:0": 0.8, "n2:0": 0.02}
    )
    assert (card.gpu_hours, card.wasted_gpu_hours) == (2.0, 1.0)
    assert card.is_running
    assert card.hint is None


def test_curves_say_what_they_are_of_when_drawn(small_cluster: SmallCluster) -> None:
    write_job(small_cluster)
    store_cgroups(small_cluster)
    for minute in range(60):
        small_cluster.store_sample("node_network_sent_bytes", UnitId("n3"), START + minute * 60_000, 6e6 * minute)

    curves = {curve.name: curve for curve in small_cluster.queries.jobs.card("70_3").curves}

    assert {name: curve.subject for name, curve in curves.items()} == {
        "cpu_cores": "job",
        "cpu_memory": "job",
        "network": "node",
    }
    cores = [value for value in curves["cpu_cores"].values if value is not None]
    assert cores[5:25] == pytest.approx([4.0] * 20, abs=0.01)
    assert curves["cpu_cores"].most == 8
    sent = [value for value in curves["network"].values if value is not None]
    assert sent[5:25] == pytest.approx([1e5] * 20, rel=0.01)


def test_card_is_found_by_the_sluid_when_cgroups_have_no_number(small_cluster: SmallCluster) -> None:
    write_job(small_cluster, gpus_requested=0, tags={"job_id": "73", "sluid": "s0123456789ABC"})
    store_cgroups(small_cluster, "s0123456789ABC")

    card = small_cluster.queries.jobs.card("70_3")

    assert card.cpu.percent == 49
    assert card.gpu is None


def test_total_is_unknown_and_not_smaller_when_a_node_has_no_samples(small_cluster: SmallCluster) -> None:
    write_job(small_cluster)
    store_cgroups(small_cluster, nodes=("n3",))

    card = small_cluster.queries.jobs.card("70_3")

    assert (card.cpu.ratio, card.cpu.problem) == (None, "missing")
    assert card.nodes[0].cpu_ratio == pytest.approx(0.4917, abs=1e-4)
    assert card.hint is not None
    assert "cgroup_exporter" in card.hint


def test_card_is_of_the_last_execution_when_the_job_waits_again(small_cluster: SmallCluster) -> None:
    former = Execution(started_at=START, ended_at=UnixMs(START + 1_800_000), gpus=2)
    write_job(small_cluster, state=WorkloadState.WAITING, started_at=None, earlier=(former,))
    store_cgroups(small_cluster)

    card = small_cluster.queries.jobs.card("73")

    assert (card.run_s, card.executions, card.ended_at) == (1800, 1, START + 1_800_000)
    assert card.cpu.used == 7200


def test_card_is_refused_when_the_job_never_started(small_cluster: SmallCluster) -> None:
    write_job(small_cluster, state=WorkloadState.WAITING, started_at=None)

    with pytest.raises(QueryError, match="has not started"):
        small_cluster.queries.jobs.card("70_3")


def test_short_job_says_so_when_it_has_no_samples(small_cluster: SmallCluster) -> None:
    write_job(small_cluster, state=WorkloadState.COMPLETED, ended_at=UnixMs(START + 20_000))

    card = small_cluster.queries.jobs.card("70_3")

    assert card.run_s == 20
    assert card.hint is not None
    assert "too short" in card.hint


def test_text_has_no_control_characters_of_strangers_when_printed(small_cluster: SmallCluster) -> None:
    from dataclasses import asdict

    write_job(small_cluster)
    store_cgroups(small_cluster)
    store_gpus(small_cluster)

    text = card_text(asdict(small_cluster.queries.jobs.card("70_3")), url="http://127.0.0.1:8321")

    assert "\x1b" not in text
    assert "  CPU utilization  [||||||||||||||||||||||||                       49%]" in text
    assert "      n2 (GPU 0): 2%" in text
    assert "http://127.0.0.1:8321/job/small/70_3" in text
    assert "2.0 GPU-hours, of which idle: 1.0" in text


def test_meter_and_sparkline_fit_when_values_are_extreme() -> None:
    assert meter(0) == "[" + " " * 48 + "0%]"
    assert meter(100) == "[" + "|" * 46 + "100%]"
    assert meter(250) == "[" + "|" * 46 + "250%]"
    assert sparkline([None, 0.0, 0.5, 1.0, 2.0], 1.0) == " ▁▅██"
    assert sparkline([0.0], None) == "▁"
