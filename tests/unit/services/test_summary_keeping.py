"""Ended jobs are summarized, and their cards rest on the summaries when samples and records are gone."""

import base64
import gzip
import json
from dataclasses import replace

from clusters.small import NOW, SmallCluster, unit
from unit.query.test_job_card_query import START, store_cgroups, store_gpus, write_job

from clusterscape.collect.slurm.parse_history import parse_history
from clusterscape.collect.slurm.parse_nodes import SlurmInventory
from clusterscape.ingest.pipeline import Ingest
from clusterscape.model import HistoryObserved, NodeId, UnixMs, Workload, WorkloadId, WorkloadState, job_unit_id
from clusterscape.model.durations import DAY_MS, HOUR_MS
from clusterscape.model.job_summaries import SummarySource, summarize
from clusterscape.services import ServiceContext
from clusterscape.services.job_summaries import SummaryKeeper

ENDED = UnixMs(NOW - 300_000)


def keeper(cluster: SmallCluster) -> SummaryKeeper:
    return SummaryKeeper(ServiceContext(reads=cluster.queries.context, records=cluster.records))


def end_job(cluster: SmallCluster, **fields: object) -> Workload:
    return write_job(cluster, state=WorkloadState.COMPLETED, ended_at=ENDED, **fields)


def test_card_of_an_ended_job_stays_when_its_record_and_samples_are_gone(small_cluster: SmallCluster) -> None:
    end_job(small_cluster)
    store_cgroups(small_cluster)
    store_gpus(small_cluster)
    before = small_cluster.queries.jobs.card("70_3")
    keep = keeper(small_cluster)
    assert keep.update() >= 1
    assert keep.update() == 0

    small_cluster.records.remove_ended_before(NOW)
    for place in (job_unit_id("73", NodeId("n2")), job_unit_id("73", NodeId("n3")), unit("n3", 0), unit("n2", 0)):
        small_cluster.metrics.remove_unit(place, start_ms=UnixMs(0), end_ms=UnixMs(NOW + 1))
    after = small_cluster.queries.jobs.card("slurm:70_3")

    kept = ("cpu", "cpu_memory", "gpu", "gpu_memory", "nodes", "state", "run_s", "notes", "wasted_gpu_hours", "cpus")
    assert {name: getattr(after, name) for name in kept} == {name: getattr(before, name) for name in kept}


def test_jobs_are_summarized_only_after_their_last_samples_arrived(small_cluster: SmallCluster) -> None:
    write_job(small_cluster, state=WorkloadState.COMPLETED, ended_at=UnixMs(NOW - 10_000))
    keeper(small_cluster).update()
    assert small_cluster.records.job_summary(WorkloadId("slurm:70_3")) is None
    small_cluster.now = UnixMs(NOW + 200_000)
    keeper(small_cluster).update()
    assert small_cluster.records.job_summary(WorkloadId("slurm:70_3")) is not None


def test_summaries_are_removed_when_they_are_too_old(small_cluster: SmallCluster) -> None:
    end_job(small_cluster)
    keeper(small_cluster).update()
    small_cluster.now = UnixMs(NOW + 1826 * DAY_MS)
    keeper(small_cluster).update()
    assert small_cluster.records.job_summary(WorkloadId("slurm:70_3")) is None


def test_summary_of_jobstats_is_kept_when_there_are_no_samples(small_cluster: SmallCluster) -> None:
    document = {
        "nodes": {
            "gpu01": {
                "total_time": 1000.0,
                "cpus": 4,
                "used_memory": 2**30,
                "total_memory": 2**32,
                "gpu_utilization": {"0": 55.5},
                "gpu_used_memory": {"0": 2**30},
                "gpu_total_memory": {"0": 2**36},
            }
        },
        "total_time": 3600,
        "gpus": 1,
    }
    packed = "JS1:" + base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()
    entry = {
        "job_id": 4711,
        "state": {"current": ["COMPLETED"]},
        "name": "train-1",
        "user": "ada",
        "account": "ml",
        "partition": "main",
        "nodes": "gpu01",
        "allocation_nodes": 1,
        "time": {"submission": 1_700_000_000, "start": 1_700_000_000, "end": 1_700_003_600, "limit": 120},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 1}, {"type": "cpu", "count": 4}]},
        "comment": {"administrator": packed},
    }
    parsed = parse_history({"jobs": [entry]}, SlurmInventory((), ()), NOW)
    assert "comment" not in parsed.workloads[0].tags
    ingest = Ingest(small_cluster.metrics, small_cluster.records, small_cluster.changes, clock=lambda: NOW)
    observed = HistoryObserved(source="slurm", at=NOW, workloads=parsed.workloads, usages=parsed.usages)
    for _ in range(2):  # accounting is read again and again
        ingest.accept(observed)

    card = small_cluster.queries.jobs.card("4711")
    assert (card.cpu.used, card.cpu.total, card.gpu and card.gpu.percent) == (1000.0, 14_400.0, 56)
    summary = small_cluster.records.job_summary(WorkloadId("slurm:4711"))
    assert summary is not None
    assert summary.source is SummarySource.JOBSTATS
    keeper(small_cluster).update()
    assert small_cluster.records.job_summary(WorkloadId("slurm:4711")) == summary


def test_card_lists_similar_jobs_and_what_would_have_been_enough(small_cluster: SmallCluster) -> None:
    job = end_job(small_cluster, name="train-7", gpus_requested=0, time_limit_s=86_400, cpus=8)
    store_cgroups(small_cluster)
    for number in range(3):
        other = replace(
            job,
            id=WorkloadId(f"slurm:{number}"),
            name=f"train-{number}",
            started_at=UnixMs(START - (number + 2) * HOUR_MS),
            ended_at=UnixMs(START - (number + 1) * HOUR_MS),
        )
        past = summarize(other, None, source=SummarySource.SAMPLES)
        assert past is not None
        small_cluster.records.write_summaries([past])

    card = small_cluster.queries.jobs.card("70_3")

    assert card.similar is not None
    assert (card.similar.count, card.similar.completed, card.similar.longest_run_s) == (3, 3, 3600)
    assert [job.workload for job in card.similar.latest] == ["slurm:0", "slurm:1", "slurm:2"]
    advice = {piece.kind.value: piece for piece in card.advice}
    assert (advice["time_limit"].enough, advice["time_limit"].basis) == (4500, 4)
    assert advice["time_limit"].sooner_s is None  # the planner knows only jobs with GPUs
    assert (advice["memory"].option, advice["memory"].basis) == ("--mem=5G", 1)


def test_advice_says_how_much_sooner_the_job_would_have_started(small_cluster: SmallCluster) -> None:
    """n1 (2 GPUs) is busy until its limit; a reservation of all nodes begins two hours after the submission."""
    small_cluster.records.remove_nodes(["n2", "n3"])  # type: ignore[list-item]
    submitted = UnixMs(NOW - 10 * HOUR_MS)
    holder = Workload(
        id=WorkloadId("slurm:90"),
        state=WorkloadState.COMPLETED,
        user="bob",
        partition="main",
        gpus_requested=1,
        submitted_at=UnixMs(submitted - HOUR_MS),
        started_at=UnixMs(submitted - HOUR_MS),
        ended_at=UnixMs(submitted + 4 * HOUR_MS),
        time_limit_s=6 * 3600,
        nodes=("n1",),
    )
    job = replace(
        holder,
        id=WorkloadId("slurm:91"),
        user="ada",
        name="train",
        gpus_requested=2,
        submitted_at=submitted,
        started_at=UnixMs(submitted + 4 * HOUR_MS),
        ended_at=UnixMs(submitted + 5 * HOUR_MS),
    )
    small_cluster.records.write_workloads([holder, job], at_ms=NOW)
    for minute in (10, 20, 30):
        at = job.started_at + minute * 60_000 if job.started_at else 0
        for index, util in ((0, 0.9), (1, 0.0)):
            small_cluster.store_sample("gpu_job_number", unit("n1", index), at, 91)
            small_cluster.store_sample("gpu_util_ratio", unit("n1", index), at, util)

    [piece] = [piece for piece in small_cluster.queries.jobs.card("91").advice if piece.kind.value == "gpus"]

    assert (piece.option, piece.saved) == ("--gpus=1", 1.0)
    # With one GPU it would have run beside the other job at once, instead of after its limit, five hours later.
    assert piece.sooner_s == 5 * 3600
