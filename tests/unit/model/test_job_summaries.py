"""Summaries of ended jobs: small, exact where they fit, and still summed where they do not."""

from dataclasses import fields

import orjson
import pytest
from contract.record_samples import job

from clusterscape.model import NodeId, UnixMs, Workload, WorkloadState
from clusterscape.model.job_summaries import MAX_DETAIL_CHARS, SummarySource, name_family, summarize
from clusterscape.model.job_usage import GpuUsage, JobUsage, NodeUsage


def ended(nodes: int, gpus: int) -> Workload:
    return job(
        7,
        state=WorkloadState.COMPLETED,
        name="x" * 500,
        started_at=UnixMs(1_000_000),
        ended_at=UnixMs(4_600_000),
        nodes=tuple(NodeId(f"gpu-{index:04d}") for index in range(nodes)),
        gpus_requested=nodes * gpus,
        cpus=nodes * 96,
        time_limit_s=86_400,
    )


def usage(nodes: int, gpus: int) -> JobUsage:
    """Values that hardly compress: no two are alike."""
    return JobUsage(
        run_s=3600,
        gpu_count=nodes * gpus,
        nodes={
            f"gpu-{node:04d}": NodeUsage(
                cores=96,
                cpu_s=(node * 7919 % 345_600) + 0.3,
                memory_used_bytes=(node * 104_729 % 10**8) * 4096.0,
                memory_limit_bytes=1e12 // 1024 * 1024,
                gpus={
                    str(index): GpuUsage(
                        util_ratio=round((node * 31 + index * 17) % 1000 / 1000, 5),
                        memory_used_bytes=(node * 7907 + index * 6101) % 80_000 * 2.0**20,
                        memory_total_bytes=80 * 2.0**30,
                    )
                    for index in range(gpus)
                },
            )
            for node in range(nodes)
        },
    )


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 0), (1, 8), (4, 8), (1000, 8), (3000, 0)])
def test_a_summary_is_at_most_2_kb_when_the_job_has_any_size(nodes: int, gpus: int) -> None:
    summary = summarize(ended(nodes, gpus), usage(nodes, gpus), source=SummarySource.SAMPLES)
    assert summary is not None
    stored = orjson.dumps([getattr(summary, field.name) for field in fields(summary)])
    assert len(summary.detail) <= MAX_DETAIL_CHARS
    assert len(stored) <= 2048
    assert summary.cpu_s == pytest.approx(sum(node.cpu_s or 0 for node in usage(nodes, gpus).nodes.values()))
    assert summary.is_whole == (nodes <= 4)
    assert summary.usage.nodes.items() <= usage(nodes, gpus).nodes.items()
    if nodes > 4:
        assert len(summary.usage.nodes) >= 4


def test_a_record_equals_the_one_that_was_summarized_in_what_a_card_shows() -> None:
    workload = ended(2, 8)
    summary = summarize(workload, usage(2, 8), source=SummarySource.SAMPLES)
    assert summary is not None
    record = summary.workload_record
    assert record.run_s(UnixMs(0)) == 3600
    assert (record.nodes, record.gpus_held, record.cpus) == (workload.nodes, 16, 192)


def test_nothing_is_known_when_a_node_has_no_samples() -> None:
    summary = summarize(
        ended(1, 1), JobUsage(run_s=3600, gpu_count=1, nodes={"n": NodeUsage()}), source=SummarySource.SAMPLES
    )
    assert summary is not None
    assert (summary.source, summary.cpu_s, summary.gpus_unused, summary.detail) == (
        SummarySource.ACCOUNTING,
        None,
        None,
        "",
    )


def test_there_is_no_summary_when_a_job_has_not_run_or_not_ended() -> None:
    assert summarize(job(1), None, source=SummarySource.SAMPLES) is None
    assert summarize(job(1, state=WorkloadState.CANCELLED, started_at=None), None, source=SummarySource.SAMPLES) is None


def test_names_are_of_one_family_when_they_differ_in_numbers() -> None:
    assert name_family("Train-lr0.01-17") == name_family("train-lr0.1-3") == "train-lr#.#-#"
    assert name_family("train-0badcafe") == name_family("train-deadbeef")
    assert name_family("train") != name_family("eval")
    assert name_family(None) == ""
